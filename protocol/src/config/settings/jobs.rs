//! Jobs, returns and events.

use std::time::Duration;

use super::*;

settings! { AREA = "Jobs, returns and events";
    /// Time that `salt` and the master's own jobs wait for returns before they ask the minions whether the job still runs.
    TIMEOUT: Duration = seconds("timeout", master("5"), TIME);
    /// Time that they wait for the answers to that.
    GATHER_JOB_TIMEOUT: Duration = seconds("gather_job_timeout", master("10"), TIME);
    /// Time between two rounds of the master's maintenance; on a minion, between two looks of a beacon without an interval.
    LOOP_INTERVAL: Duration = seconds("loop_interval", each("60", "1"), 1..=1_000_000_000);
    /// Age at which jobs are removed; 0 keeps them for ever.
    KEEP_JOBS_SECONDS: Duration = seconds("keep_jobs_seconds", master("86400"), TIME).live();
    /// Keep jobs and returns in the embedded store.
    JOB_CACHE: bool = flag("job_cache", master("true"));
    /// Returner that the minions write to, those of Brine through the master. See docs/jobs.md.
    EXT_JOB_CACHE: String = text("ext_job_cache", master("''"));
    /// Returner that the master writes all jobs and returns to, besides the embedded store: `postgres` or `pgjsonb`.
    MASTER_JOB_CACHE: String =
        choice("master_job_cache", master("local_cache"), &["local_cache", "brine", "postgres", "pgjsonb"]);
    /// Show the time of its last return with a job.
    JOB_CACHE_STORE_ENDTIME: bool = flag("job_cache_store_endtime", master("false"));
    /// Write two files for each job, which Python's LocalClient looks for.
    PYTHON_JOB_FILES: bool = flag("python_job_files", master("true"));
    /// Keep what runners return with the jobs.
    RUNNER_RETURNS: bool = flag("runner_returns", master("true"));
    /// Keep the minions' grains, which targets like `-G` need, and the mine.
    MINION_DATA_CACHE: bool = flag("minion_data_cache", master("true"));
    /// Put an event on the bus when they change.
    MINION_DATA_CACHE_EVENTS: bool = flag("minion_data_cache_events", master("true"));
    /// Put an event on the bus when minions connect or leave.
    PRESENCE_EVENTS: bool = flag("presence_events", master("false"));
    /// Returners that events are written to: `postgres`, `pgjsonb` or a list of both. See docs/jobs.md.
    EVENT_RETURN: Value = any("event_return", master("''"));
    /// Events that are collected before they are written; 0 writes each at once.
    EVENT_RETURN_QUEUE: usize = integer("event_return_queue", master("0"), "events", 0..=1_000);
    /// Longest time that they are collected; 0 is no bound.
    EVENT_RETURN_QUEUE_MAX_SECONDS: Duration = seconds("event_return_queue_max_seconds", master("0"), TIME);
    /// Tags (globs, expressions) of the events that are written; none: all.
    EVENT_RETURN_WHITELIST: Value = any("event_return_whitelist", master("[]"));
    /// Tags (globs, expressions) of the events that are not.
    EVENT_RETURN_BLACKLIST: Value = any("event_return_blacklist", master("[]"));
    /// Job ids that a minion remembers, to run no job twice.
    MINION_JID_QUEUE_HWM: usize = integer("minion_jid_queue_hwm", minion("100"), "jobs", 0..=100_000);
    /// Jobs that a minion runs at a time; the others wait. 0 and -1 leave it to the sandbox.
    PROCESS_COUNT_MAX: i64 = integer("process_count_max", minion("-1"), "jobs", -1..=1_000_000);
    /// Return the results of several functions as a list in their order, and not by their names.
    MULTIFUNC_ORDERED: bool = flag("multifunc_ordered", minion("false"));
    /// Modules of the minion, text or a list, whose function `returner` is given the return of each job besides those that the job names.
    RETURN: Value = any("return", minion("''"));
    /// Time that running jobs have to finish when the minion is asked to end.
    DRAIN_TIMEOUT: Duration = seconds("drain_timeout", minion("10"), TIME);
    /// First wait before a return that the master did not take is sent again. It grows with each attempt.
    RETURN_RETRY_TIMER: Duration = seconds("return_retry_timer", minion("5"), TIME);
    /// Longest such wait. Eight times `return_retry_timer` counts where that is longer, up to a minute.
    RETURN_RETRY_TIMER_MAX: Duration = seconds("return_retry_timer_max", minion("10"), TIME);
    // 64 returns of the largest output that a job may have.
    /// Size of all returns that wait for the master. Beyond it the oldest are shortened.
    SPOOL_MAX_BYTES: u64 = integer("spool_max_bytes", minion("268435456"), "bytes", ANY);
    // What a minion collects in a day of a job every nine seconds.
    /// Number of returns that wait for the master.
    SPOOL_MAX_COUNT: usize = integer("spool_max_count", minion("10000"), "returns", ANY);
    /// Sign a receipt for each job, keep it under `cachedir/receipts`, and send it with the return.
    RECEIPTS: bool = flag("receipts", minion("true"));
    // About 50,000 receipts with the publications that asked.
    /// Size of the receipts that are kept on this host. Beyond it the oldest are removed.
    RECEIPTS_MAX_BYTES: u64 = integer("receipts_max_bytes", minion("67108864"), "bytes", 1_048_576..=1_099_511_627_776);
    /// Time between the `minion_ping` events that a minion sends; 0 sends none.
    PING_INTERVAL: Duration = minutes("ping_interval", minion("0"), MINUTES);
    /// Send the event `minion_start` besides `salt/minion/ID/start`.
    ENABLE_LEGACY_STARTUP_EVENTS: bool = flag("enable_legacy_startup_events", minion("true"));
    /// Grains that the start event carries.
    START_EVENT_GRAINS: Vec<String> = list("start_event_grains", minion("[]"));
}
