//! The reactor.

use super::*;

settings! { AREA = "Reactor";
    /// Reactions: maps of one glob of tags to SLS files; with `from_minions: true` also to events of minions. See docs/reactor.md.
    REACTOR: Value = any("reactor", master("[]"));
    /// What reactions may start, as a user's list in `publisher_acl` has it. null: everything.
    REACTOR_ACL: Value = any("reactor_acl", master("null"));
    /// Runners and wheel functions of the reactor that run at a time. The others wait.
    REACTOR_WORKER_THREADS: usize = integer("reactor_worker_threads", master("10"), "runners", 1..=256);
    /// Events, and runners and wheel functions, that wait for the reactor. What comes beyond is left out, counted and told.
    REACTOR_WORKER_HWM: usize = integer("reactor_worker_hwm", master("10000"), "events", 1..=1_000_000);
    /// Files of reactions are always read anew.
    REACTOR_REFRESH_INTERVAL: Value = any("reactor_refresh_interval", master("60")).unused();
    /// The reactor is no process of its own.
    REACTOR_NICENESS: Value = any("reactor_niceness", master("null")).unused();
}
