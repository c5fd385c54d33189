//! What a minion is, and what it does by itself.

use std::time::Duration;

use super::*;

settings! { AREA = "Minion";
    /// The daemon's id. Without it, a minion's is made from the host's name and kept in `minion_id`; a master's is `HOST_master`.
    ID: String = text("id", both(NONE));
    /// Keep an id that was made from the host's name.
    MINION_ID_CACHING: bool = flag("minion_id_caching", minion("true"));
    /// Write an id that is made from the host's name in lower case.
    MINION_ID_LOWERCASE: bool = flag("minion_id_lowercase", minion("false"));
    /// Remove the domain from such an id: true, or the domains to remove.
    MINION_ID_REMOVE_DOMAIN: Value = any("minion_id_remove_domain", minion(NONE));
    /// Domain to append to such an id.
    APPEND_DOMAIN: String = text("append_domain", minion(NONE));
    /// Grains of this host, besides those that the minion finds.
    GRAINS: Value = mapping("grains", minion("{}"));
    /// Keep the collected grains in `cachedir/grains.cache.p` and start with them while they are young.
    GRAINS_CACHE: bool = flag("grains_cache", minion("false"));
    /// Age at which kept grains are collected again.
    GRAINS_CACHE_EXPIRATION: Duration = seconds("grains_cache_expiration", minion("300"), TIME);
    /// Time after which the grains are collected again; the master is told if they have changed. 0: only when a job wants it.
    GRAINS_REFRESH_EVERY: Duration = minutes("grains_refresh_every", minion("0"), MINUTES);
    /// Merge dicts of the same grain from several sources; without it, the last source's dict replaces the others.
    GRAINS_DEEP_MERGE: bool = flag("grains_deep_merge", minion("false"));
    /// Grains that are left out, as globs or regular expressions. Those of the setting `grains` stay.
    GRAINS_BLACKLIST: Vec<String> = list("grains_blacklist", minion("[]"));
    /// Environment of the file server that modules and files come from; without it, `base`.
    SALTENV: String = text("saltenv", minion("null"));
    /// Environment of the pillar that the minion asks for; on a master, the one for minions that name none.
    PILLARENV: Value = any("pillarenv", both("null")).live_on(Role::Master);
    /// Show values of the pillar as `**********` in what `pillar.items` returns.
    PILLAR_MASK_OUTPUT: bool = truth("pillar_mask_output", minion("true"));
    /// Fail `pillar.get` for a key that is not there and has no default.
    PILLAR_RAISE_ON_MISSING: bool = truth("pillar_raise_on_missing", minion("false"));
    /// States that run once at each start, with the rights of the master's jobs: `highstate`, `sls` (those of `sls_list`), `top` (those of
    /// `top_file`).
    STARTUP_STATES: String = text("startup_states", minion("''"));
    /// SLS files of `startup_states: sls`.
    SLS_LIST: Value = any("sls_list", minion("[]"));
    /// Top file of `startup_states: top`.
    TOP_FILE: String = text("top_file", minion("''"));
    /// Jobs that the minion starts at their time, with the rights of this host's own jobs (docs/schedule.md).
    SCHEDULE: Value = mapping("schedule", minion("{}")).private().live();
    /// `local` makes `salt-call` run without a master.
    FILE_CLIENT: String = text("file_client", minion("remote"));
    /// Tell functions to change nothing and to return what they would change.
    TEST: bool = truth("test", minion(NONE));
    /// Fetch modules from `salt://_modules` at the start, and when a job names one that is missing.
    AUTOLOAD_DYNAMIC_MODULES: bool = flag("autoload_dynamic_modules", minion("true"));
    /// Remove modules that the master does not have any more.
    CLEAN_DYNAMIC_MODULES: bool = flag("clean_dynamic_modules", minion("true"));
    /// Send what `mine_functions` return to the master's mine.
    MINE_ENABLED: bool = flag("mine_enabled", minion("true"));
    /// Time between two updates of the mine; 0 and null send none.
    MINE_INTERVAL: Duration = minutes("mine_interval", minion("60"), MINUTES);
    /// Functions whose results are kept in the mine: a mapping of names to functions and arguments, or a list.
    MINE_FUNCTIONS: Value = mapping("mine_functions", minion("{}")).private();
    /// What modules watch on this host, by name. See docs/beacons.md.
    BEACONS: Value = mapping("beacons", minion("{}")).private();
}
