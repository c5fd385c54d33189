//! The reactor, and engines.

use super::*;

settings! { AREA = "Reactor and engines";
    /// Reactions: maps of one glob of tags to SLS files; with `from_minions` or `from_engines: true` also to events of these. See docs/reactor.md.
    REACTOR: Value = any("reactor", master("[]")).live();
    /// What reactions may start, as a user's list in `publisher_acl` has it. null: everything.
    REACTOR_ACL: Value = any("reactor_acl", master("null")).live();
    /// Runners and wheel functions of the reactor that run at a time. The others wait.
    REACTOR_WORKER_THREADS: usize = integer("reactor_worker_threads", master("10"), "runners", 1..=256);
    /// Events, and runners and wheel functions, that wait for the reactor. What comes beyond is left out, counted and told.
    REACTOR_WORKER_HWM: usize = integer("reactor_worker_hwm", master("10000"), "events", 1..=1_000_000);
    /// Engines: modules that see events of these `tags` and may speak to hosts, each with its settings. See docs/engines.md.
    ENGINES: Value = any("engines", master("[]")).live().private();
    /// Folders of engines of one's own, `NAME.wasm`, which only root and the master's user may write.
    ENGINES_DIRS: Vec<String> = list("engines_dirs", master("[]")).live();
    /// Files of reactions are always read anew.
    REACTOR_REFRESH_INTERVAL: Value = any("reactor_refresh_interval", master("60")).unused();
    /// The reactor is no process of its own.
    REACTOR_NICENESS: Value = any("reactor_niceness", master("null")).unused();
}
