//! The file server, and what minions are told for states.

use std::time::Duration;

use super::*;

settings! { AREA = "File server and states";
    /// Folders of the file server by environment. The first folder that has a file provides it.
    FILE_ROOTS: Folders = folders("file_roots", both("{base: [/srv/salt, /srv/spm/salt]}"))
        .live_on(Role::Master)
        .unused_on(Role::Minion);
    // Above, a chunk would not fit into a peer's message limit.
    /// Size of a piece of a file, for clients that do not ask for a length, as Brine minions do (up to 1 MiB).
    FILE_BUFFER_SIZE: usize = integer("file_buffer_size", each("1048576", "262144"), "bytes", 1..=16_777_216)
        .live_on(Role::Master)
        .unused_on(Role::Minion);
    /// Follow symbolic links in `file_roots`.
    FILESERVER_FOLLOWSYMLINKS: bool = flag("fileserver_followsymlinks", both("true"))
        .live_on(Role::Master)
        .unused_on(Role::Minion);
    /// Files that are not served, as globs.
    FILE_IGNORE_GLOB: Vec<String> = list("file_ignore_glob", master("[]")).live();
    /// Files that are not served, as regular expressions.
    FILE_IGNORE_REGEX: Vec<String> = list("file_ignore_regex", master("[]")).live();
    /// Let minions push files to the master.
    FILE_RECV: bool = flag("file_recv", master("false")).live();
    /// Size of a file that a minion pushes.
    FILE_RECV_MAX_SIZE: u64 = integer("file_recv_max_size", master("100"), "MiB", MIB).live();
    // Ten files of the largest size.
    /// Size of all files that one minion pushed; 0 is no bound.
    FILE_RECV_QUOTA: u64 = integer("file_recv_quota", master("1024"), "MiB", MIB).live();
    /// Number of them, folders included; 0 is no bound.
    FILE_RECV_QUOTA_COUNT: u64 = integer("file_recv_quota_count", master("10000"), "files", ANY).live();
    /// How minions merge the top files of several environments.
    TOP_FILE_MERGING_STRATEGY: Value = any("top_file_merging_strategy", master("merge")).live();
    /// Order in which the top files of environments are merged.
    ENV_ORDER: Value = any("env_order", master("[]")).live();
    /// Environment whose top file counts where the strategy is `same` and an environment has none.
    DEFAULT_TOP: Value = any("default_top", master("base")).live();
    /// Renderers of state files.
    RENDERER: Value = any("renderer", master("jinja|yaml")).live();
    /// Stop at the first state that fails. For `salt --batch`: at the first minion that fails.
    FAILHARD: Value = setting("failhard", master("false"), SettingKind::Truth).live();
    /// Name of the top file.
    STATE_TOP: Value = any("state_top", master("salt://top.sls")).live();
    /// Environment of the top file; null: each has its own.
    STATE_TOP_SALTENV: Value = any("state_top_saltenv", master("null")).live();
    /// Run states in the order in which they are written.
    STATE_AUTO_ORDER: Value = any("state_auto_order", master("true")).live();
    /// Send an event for each state.
    STATE_EVENTS: Value = any("state_events", master("false")).live();
    /// Time for one orchestration (`state.orchestrate`). Those that it starts count in it.
    ORCHESTRATE_TIMEOUT: Duration = seconds("orchestrate_timeout", master("86400"), 1..=604_800).live();
    // Each has a thread.
    /// Orchestrations at a time, with those that others start. Another one is refused.
    ORCHESTRATE_MAX: usize = integer("orchestrate_max", master("16"), "orchestrations", 1..=256);
    // What is larger would be cut on the bus, where its only reader is.
    /// Size of all results of one orchestration. What minions changed is left out of the results beyond it.
    ORCHESTRATE_MAX_RETURN: usize = integer("orchestrate_max_return", master("16777216"), "bytes", 1024..=30_000_000).live();
    /// Combine states of one kind, as packages, into one call: true, false, or a list of kinds.
    STATE_AGGREGATE: Value = any("state_aggregate", master("false")).live();
    /// Options of Jinja in templates.
    JINJA_ENV: Value = mapping("jinja_env", master("{}")).live();
    /// Options of Jinja in state files.
    JINJA_SLS_ENV: Value = mapping("jinja_sls_env", master("{}")).live();
    /// Remove white space before a block of Jinja.
    JINJA_LSTRIP_BLOCKS: Value = any("jinja_lstrip_blocks", master("false")).live();
    /// Remove the line break after a block of Jinja.
    JINJA_TRIM_BLOCKS: Value = any("jinja_trim_blocks", master("false")).live();
}

/// File sizes up to 1 PiB.
const MIB: RangeInclusive<i64> = 0..=1 << 30;
