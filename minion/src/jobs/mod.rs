//! Jobs: from a publication that is proved to a return that is kept.
//!
//! Is it for this minion? Was it seen before? Is there room? Then it is recorded, waits in the sandbox for its turn, runs there
//! and its return goes to the spool. Everything here is bounded: jobs at once, jobs waiting, and the returns they will need.

mod docs;
mod proc;
mod run;
mod seen;
mod timeout;

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use brine_protocol::job::JobLoad;
use brine_protocol::target::{Facts, Target, TargetType};
use brine_protocol::value::{Value, ValueExt, map};
use futures_util::FutureExt;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;
use tracing::{debug, error, info, warn};

pub use proc::ProcDir;
pub(crate) use proc::SALT_CALL;
use run::weight;
pub(crate) use run::{Origin, Outcomes, Runner, judge, module_of, usage};
pub(crate) use timeout::of as own_time;

use crate::config::MinionOpts;
use crate::events::Events;
use crate::facts::{GrainsStore, PillarStore};
use crate::returns::Returns;
use seen::SeenJids;

/// Bytes of the loads of all jobs that run or wait; how many there may be is the sandbox's `max_queued`.
const MAX_LOAD_BYTES: usize = 64 * 1024 * 1024;
/// Of these, the last are for jobs that are expected to be short, and for those that ask after jobs and end them …
const KEPT_BYTES: usize = MAX_LOAD_BYTES / 16;
/// … and so many places beyond all others.
const KEPT: usize = 100;
/// A refusal says what it refuses, with its arguments while they are no longer than this.
const MAX_REFUSAL_BYTES: usize = 4 * 1024;
const SPOOL_FULL: &str = "The minion's spool is full of returns that the master has not acknowledged; it takes no jobs until \
                          the master takes returns.";
const FAILED: &str =
    "The minion itself failed on this job; its log says where. The job may have been cut off anywhere.";
/// Turns kept for asking after jobs and ending them, so that a minion full of jobs can still be told to stop one.
pub(crate) const CONTROL_SLOTS: usize = 4;
const CONTROL: &[&str] = &[
    "saltutil.find_job",
    "saltutil.running",
    "saltutil.kill_job",
    "saltutil.kill_all_jobs",
    "saltutil.term_job",
    "saltutil.term_all_jobs",
    "saltutil.signal_job",
    "saltutil.is_running",
];

/// Takes jobs.
pub struct Jobs {
    opts: Arc<MinionOpts>,
    runner: Runner,
    procs: Arc<ProcDir>,
    returns: Arc<Returns>,
    events: Arc<Events>,
    grains: Arc<GrainsStore>,
    pillar: Arc<PillarStore>,
    seen: Mutex<SeenJids>,
    /// `process_count_max`, where the owner has set it: all jobs at once, those too that wait for something.
    slots: Option<Semaphore>,
    control: Semaphore,
    max_jobs: usize,
    admitted: AtomicUsize,
    admitted_bytes: AtomicUsize,
    tasks: TaskTracker,
}

/// What became of a publication, for tests and the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It runs or waits for its turn.
    Admitted,
    /// It is not for this minion.
    NotForUs,
    /// It is no job.
    Malformed,
    /// Its jid was seen before.
    Repeated,
    /// There is no room; its return says so.
    Refused,
}

/// The parts that jobs need.
pub(crate) struct Parts {
    pub(crate) opts: Arc<MinionOpts>,
    pub(crate) runner: Runner,
    pub(crate) procs: Arc<ProcDir>,
    pub(crate) returns: Arc<Returns>,
    pub(crate) events: Arc<Events>,
    pub(crate) grains: Arc<GrainsStore>,
    pub(crate) pillar: Arc<PillarStore>,
    /// Jobs at once, from `process_count_max` or the sandbox's own bound.
    pub(crate) slots: usize,
    /// Jobs that may wait for something after they have begun, `sandbox:max_waiting`.
    pub(crate) max_waiting: usize,
    /// Jobs that may wait for their turn, `sandbox:max_queued`.
    pub(crate) max_queued: usize,
}

impl Jobs {
    pub(crate) fn new(parts: Parts) -> Arc<Self> {
        let Parts { opts, runner, procs, returns, events, grains, pillar, slots, max_waiting, max_queued } = parts;
        Arc::new(Self {
            seen: Mutex::new(SeenJids::new(opts.jobs.seen_jids)),
            slots: opts.jobs.running_max.is_some().then(|| Semaphore::new(slots.max(1))),
            control: Semaphore::new(CONTROL_SLOTS),
            max_jobs: slots.saturating_add(CONTROL_SLOTS).saturating_add(max_waiting).saturating_add(max_queued),
            admitted: AtomicUsize::new(0),
            admitted_bytes: AtomicUsize::new(0),
            tasks: TaskTracker::new(),
            opts,
            runner,
            procs,
            returns,
            events,
            grains,
            pillar,
        })
    }

    /// Takes a publication that was proved to be that of the master with this fingerprint. Does not wait.
    pub fn accept(self: &Arc<Self>, load: &Value, master: &Arc<str>) -> Verdict {
        let job = match JobLoad::parse(load) {
            Ok(job) => job,
            Err(e) => {
                warn!("a publication is no job: {e}");
                return Verdict::Malformed;
            }
        };
        if !self.is_for_us(&job) {
            debug!(jid = %job.jid, "a job for others");
            return Verdict::NotForUs;
        }
        if !self.seen.lock().unwrap_or_else(PoisonError::into_inner).is_new(&job.jid) {
            info!(jid = %job.jid, "a job that was seen before is not run again");
            return Verdict::Repeated;
        }
        info!(jid = %job.jid, user = job.user, fun = job.fun(), "job");
        if !job.ret.is_empty() {
            debug!(jid = %job.jid, "the job names returners ({}); this minion leaves them to its master", job.ret);
        }
        match self.admit(load, self.is_let_by(&job)) {
            Ok(place) => {
                let (this, master) = (Arc::clone(self), Arc::clone(master));
                self.tasks.spawn(async move { this.run(job, master, place).await });
                Verdict::Admitted
            }
            Err(why) => {
                warn!(jid = %job.jid, "the job is refused: {why}");
                let mut load = self.return_load(&job, Outcomes::refused(&job, self.opts.jobs.multifunc_ordered, &why));
                let mut bytes = weight(&load);
                if bytes > MAX_REFUSAL_BYTES {
                    // Who sent so much need not be sent it back.
                    load.insert("fun_args", Value::Array(Vec::new()));
                    for key in ["metadata", "ret_config", "ret_kwargs"] {
                        let _ = load.remove(key);
                    }
                    bytes = weight(&load);
                }
                self.returns.send_unkept(load, bytes);
                Verdict::Refused
            }
        }
    }

    /// Whether all of its functions are expected to be over after a moment, so that it waits for nobody.
    fn is_short(&self, job: &JobLoad) -> bool {
        job.calls.iter().all(|call| self.runner.runtime.is_short(&call.fun))
    }

    fn is_let_by(&self, job: &JobLoad) -> bool {
        is_control(job) || self.is_short(job)
    }

    fn is_for_us(&self, job: &JobLoad) -> bool {
        let parsed =
            job.tgt_type.parse::<TargetType>().and_then(|tgt_type| Target::parse(tgt_type, &job.tgt, &job.delimiter));
        match parsed {
            Ok(target) => {
                let (grains, pillar) = (self.grains.now(), self.pillar.now());
                target.matches(&Facts { id: &self.opts.id, grains: Some(&grains), pillar: Some(&pillar) })
            }
            Err(e) => {
                warn!(jid = %job.jid, "the job is taken to be for others: {e}");
                false
            }
        }
    }

    /// A place among the jobs that run or wait, or why there is none.
    fn admit(self: &Arc<Self>, load: &Value, let_by: bool) -> Result<Place, String> {
        let bytes = weight(load);
        let place = Place { jobs: Arc::clone(self), bytes };
        let before = self.admitted.fetch_add(1, Ordering::Relaxed);
        let bytes_before = self.admitted_bytes.fetch_add(bytes, Ordering::Relaxed);
        let (more, fewer_bytes) = if let_by { (KEPT, 0) } else { (0, KEPT_BYTES) };
        if before >= self.max_jobs.saturating_add(more) || bytes_before + bytes > MAX_LOAD_BYTES - fewer_bytes {
            return Err(format!(
                "The minion is busy: {before} jobs run and wait. Try again, or raise sandbox:max_queued."
            ));
        }
        if !self.returns.has_room(before) {
            return Err(SPOOL_FULL.to_owned());
        }
        Ok(place)
    }

    async fn run(self: Arc<Self>, job: JobLoad, master: Arc<str>, _place: Place) {
        let record = self.procs.record(&job.jid, &job.raw);
        if job.start_event {
            self.events.job_started(&job, &master);
        }
        let slots = match is_control(&job) {
            true => Some(&self.control),
            // The sandbox knows best who has to wait.
            false => self.slots.as_ref().filter(|_| !self.is_short(&job)),
        };
        let ordered = self.opts.jobs.multifunc_ordered;
        let mut end = record.end();
        let told = async {
            match &mut end {
                Some(end) => end.told().await,
                None => std::future::pending().await,
            }
        };
        let turn = tokio::select! {
            biased;
            () = told => Err("The job was stopped before it began: it was killed."),
            turn = async {
                match slots {
                    Some(slots) => slots.acquire().await.map(Some),
                    None => Ok(None),
                }
            } => turn.map_err(|_closed| "The minion ended before it ran this job."),
        };
        let outcomes = match turn {
            // A fault of ours is no reason for the master to wait in vain.
            Ok(_turn) => {
                let ran = AssertUnwindSafe(self.runner.run(&job, &master, end)).catch_unwind().await;
                ran.unwrap_or_else(|_| {
                    error!(jid = %job.jid, "the minion failed on this job");
                    Outcomes::refused(&job, ordered, FAILED)
                })
            }
            Err(why) => Outcomes::refused(&job, ordered, why),
        };
        let load = self.return_load(&job, outcomes);
        match self.returns.keep(job.jid.as_str(), load) {
            Ok(kept) => {
                drop(record); // before the return is sent: who asks after it then gets the right answer
                self.returns.deliver(kept);
            }
            Err((e, load)) => {
                error!(jid = %job.jid, "{e}; the return is sent without being kept");
                drop(record);
                let bytes = weight(&load);
                self.returns.send_unkept(load, bytes);
            }
        }
    }

    /// The load of the `_return` request (PROTOCOL §6.2).
    fn return_load(&self, job: &JobLoad, outcomes: Outcomes) -> Value {
        let mut load = map([
            ("cmd", Value::from("_return")),
            ("id", Value::from(&self.opts.id)),
            ("jid", Value::from(&job.jid)),
            ("fun", job.raw.get("fun").cloned().unwrap_or(Value::Nil)),
            ("fun_args", job.raw.get("arg").cloned().unwrap_or(Value::Nil)),
        ]);
        for (key, value) in outcomes.fields() {
            load.insert(key, value);
        }
        for key in ["user", "master_id", "ret_config", "ret_kwargs"] {
            if let Some(value) = job.raw.get(key) {
                load.insert(key, value.clone());
            }
        }
        // What `--return` names, its master writes: a minion has no passwords of databases, and its modules no way to them.
        if let Some(ret) = job.raw.get("ret").filter(|ret| ret.truthy()) {
            load.insert("ret", ret.clone());
        }
        if let Some(metadata) = job.metadata.as_ref().filter(|m| m.entries().is_some()) {
            load.insert("metadata", metadata.clone());
        }
        load
    }

    /// Returns a failure for each job that an earlier run of this minion did not finish. `kept` says whether its return
    /// is in the spool: then it did, and died before it removed the record.
    pub(crate) async fn answer_for_the_dead(&self, kept: impl Fn(&str) -> bool) {
        // Each record is there until the return is: a minion that ends meanwhile finds it again.
        for (jid, mut raw, record) in self.procs.take_left() {
            if kept(jid.as_str()) {
                continue;
            }
            let _ = raw.remove("pid");
            let Ok(job) = JobLoad::parse(&raw) else { continue };
            warn!(%jid, "the minion ended while this job ran");
            let why = "The minion ended while this job ran; what it did until then is not known.";
            let load = self.return_load(&job, Outcomes::refused(&job, self.opts.jobs.multifunc_ordered, why));
            match self.returns.keep(jid.as_str(), load) {
                Ok(kept) => self.returns.deliver(kept),
                Err((e, _)) => {
                    error!(%jid, "{e}; it is tried again at the next start");
                    record.leave();
                }
            }
        }
    }

    /// Jobs that run or wait.
    pub fn count(&self) -> usize {
        self.tasks.len()
    }

    /// Waits for the jobs there are, then ends those that go on after `grace`. All their returns are kept when this ends.
    pub(crate) async fn drain(&self, grace: Duration) {
        self.tasks.close();
        if tokio::time::timeout(grace, self.tasks.wait()).await.is_ok() {
            return;
        }
        warn!("ending {} jobs that run on after {grace:?}", self.tasks.len());
        self.slots.iter().for_each(Semaphore::close); // those that wait for their turn end without one
        self.control.close();
        for load in self.procs.running("") {
            if load.get_u64("pid") == Some(u64::from(std::process::id()))
                && let Some(jid) = load.get_text("jid")
            {
                self.runner.runtime.kill(jid);
                let _ = jid.parse().map(|jid| self.procs.end(&jid));
            }
        }
        if tokio::time::timeout(KILL_GRACE, self.tasks.wait()).await.is_err() {
            error!("{} jobs did not end", self.tasks.len());
        }
    }
}

fn is_control(job: &JobLoad) -> bool {
    job.calls.iter().all(|call| CONTROL.contains(&call.fun.as_str()))
}

/// Ending an instance and writing its return takes milliseconds.
const KILL_GRACE: Duration = Duration::from_secs(3);

/// A job's place; given back when this is dropped.
struct Place {
    jobs: Arc<Jobs>,
    bytes: usize,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.jobs.admitted.fetch_sub(1, Ordering::Relaxed);
        self.jobs.admitted_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
