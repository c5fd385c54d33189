//! Jobs: every function that runs on this minion is submitted here, whatever its source.
//!
//! A publication is first checked: is it for this minion, is it new, is there room? Then the job is recorded, waits for its turn, runs
//! in the sandbox, and its outcome is delivered to the spool, the caller or the log. The source decides all of that (`Source`). The
//! jobs at once, the jobs that wait and the returns that they will need are bounded.

mod admission;
mod beat;
mod blackout;
mod docs;
mod functions;
mod outcomes;
mod own_failures;
mod own_timeout;
mod proc;
mod receipt;
mod record;
mod return_load;
mod run;
mod seen_jids;
mod source;

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use brine_protocol::job::JobLoad;
use brine_protocol::target::{Facts, Target, TargetType};
use brine_protocol::value::{Value, ValueExt};
use brine_receipts::Time;
use futures_util::FutureExt;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;
use tracing::{debug, error, info, warn};

pub(crate) use admission::{CONTROL_SLOTS, JobLimits};
pub use functions::Functions;
pub use outcomes::Called;
pub(crate) use own_timeout::parse as parse_own_timeout;
pub use proc::ProcDir;
pub(crate) use proc::{MASTER, PID, SALT_CALL};
pub(crate) use record::parse as parse_record;
pub(crate) use run::{JobRunner, module_of, read_function};
pub(crate) use source::{AsJid, Reply, Source, local_job, own_job};

use crate::config::{MinionOpts, returner_names};
use crate::connection::Masters;
use crate::events::Events;
use crate::grains::GrainsStore;
use crate::lines::Lines;
use crate::pillar::PillarStore;
use crate::receipts::{Draft, Receipts};
use crate::returners::Returners;
use crate::returns::ReturnSender;
use crate::weight::weight;
use admission::{Admission, Place, is_control};
use beat::Beat;
use outcomes::Outcomes;
use own_failures::OwnFailures;
use proc::{End, Left, ProcRecord, Why};
use source::{Checks, Delivery, Noted, OnEnd, Rules};

/// Ending an instance and writing its return takes milliseconds.
const KILL_GRACE: Duration = Duration::from_secs(3);
/// Time after which a job gets its file in `proc/`. Most jobs are over by then, and nobody looks at jobs that fast.
const SHOWN_AFTER: Duration = Duration::from_millis(100);
const SPOOL_FULL: &str = "The minion's spool is full of returns that the master has not acknowledged; it takes no jobs until \
                          the master takes returns.";
const FAILED: &str =
    "The minion itself failed on this job; its log says where. The job may have been cut off anywhere.";
const KILLED_BEFORE: &str = "The job was stopped before it began: it was killed.";
const ENDED_BEFORE: &str = "The minion ended before it ran this job.";
const ENDED_WITHIN: &str = "The minion ended while this job ran; what it did until then is not known.";

/// Takes jobs and runs them.
pub struct Jobs {
    opts: Arc<MinionOpts>,
    runner: JobRunner,
    procs: Arc<ProcDir>,
    masters: Masters,
    events: Arc<Events>,
    grains: Arc<GrainsStore>,
    pillar: Arc<PillarStore>,
    admission: Arc<Admission>,
    returners: Arc<Returners>,
    own_failures: OwnFailures,
    /// The lines about jobs that come to nothing.
    lines: Lines,
    /// None: no receipts are made.
    receipts: OnceLock<Arc<Receipts>>,
    tasks: TaskTracker,
    beat: Beat,
}

/// The parts that jobs need.
pub(crate) struct JobParts {
    pub(crate) opts: Arc<MinionOpts>,
    pub(crate) runner: JobRunner,
    pub(crate) procs: Arc<ProcDir>,
    pub(crate) masters: Masters,
    pub(crate) events: Arc<Events>,
    pub(crate) grains: Arc<GrainsStore>,
    pub(crate) pillar: Arc<PillarStore>,
    pub(crate) returners: Arc<Returners>,
    pub(crate) limits: JobLimits,
}

impl Jobs {
    pub(crate) fn new(parts: JobParts) -> Arc<Self> {
        let JobParts { opts, runner, procs, masters, events, grains, pillar, returners, limits } = parts;
        let (admission, tasks) = (Admission::new(&limits), TaskTracker::new());
        let own_failures = OwnFailures::default();
        Arc::new(Self {
            opts,
            runner,
            procs,
            masters,
            events,
            grains,
            pillar,
            admission,
            returners,
            own_failures,
            lines: Lines::about("jobs that were refused or failed"),
            receipts: OnceLock::new(),
            tasks,
            beat: Beat::default(),
        })
    }

    /// From here on, each job has a receipt.
    pub(crate) fn attach_receipts(&self, receipts: Arc<Receipts>) {
        let _ = self.receipts.set(receipts);
    }

    /// Takes a job and returns at once. The task ends when the outcome is delivered. Returns none if the job is not taken.
    pub(crate) fn submit(self: &Arc<Self>, source: Source, job: JobLoad) -> Option<JoinHandle<()>> {
        let rules = source.rules();
        let place = match rules.checks {
            Checks::Publication => Some(self.check(&rules, &job)?),
            Checks::Bounds => Some(self.enter(&rules, &job)?),
            Checks::None => None,
        };
        self.beat.job();
        let this = Arc::clone(self);
        Some(self.tasks.spawn(async move { this.run(rules, job, place).await }))
    }

    /// Runs a job of this host and returns its outcome. With `report`, its arguments as typed, the preferred master gets a return.
    pub(crate) async fn call(self: &Arc<Self>, job: JobLoad, report: Option<Value>, typed: bool) -> Called {
        let (answer, called) = oneshot::channel();
        let _task = self.submit(Source::Call { report, typed, answer }, job);
        called.await.expect("a call is always taken, and answered even when running it panics")
    }

    /// A place for a publication; none if it is for other minions, was seen before, or is refused.
    fn check(&self, rules: &Rules, job: &JobLoad) -> Option<Place> {
        if !self.is_for_us(job) {
            debug!(jid = %job.jid, "a job for other minions");
            return None;
        }
        if !self.admission.is_new(&job.jid) {
            info!(jid = %job.jid, "a job that was seen before is not run again");
            return None;
        }
        info!(jid = %job.jid, user = job.user, fun = job.fun(), "job");
        self.enter(rules, job)
    }

    /// A place for a job; none if there is no room for it or its return. Then the master gets a refusal, if the job was its own.
    fn enter(&self, rules: &Rules, job: &JobLoad) -> Option<Place> {
        let entered = self.admission.enter(weight(&job.raw), is_control(job) || self.is_short(job));
        let why = match (entered, &rules.delivery) {
            (Ok(place), Delivery::Spool(returns) | Delivery::Own(Reply::Master { returns, .. }, _))
                if !returns.has_room(place.before) =>
            {
                SPOOL_FULL.to_owned()
            }
            (Ok(place), _) => return Some(place),
            (Err(why), _) => why,
        };
        if self.lines.may() {
            warn!(jid = %job.jid, "the job is refused: {why}");
        }
        let outcomes = self.refused(job, &why);
        let draft = self.draft(rules, job, &outcomes, Time::now(), false);
        let (load, bytes) = return_load::for_refusal(&self.opts.id, job, outcomes);
        match &rules.delivery {
            Delivery::Spool(returns) => returns.send_once(rules.master.clone(), load, bytes, draft.as_ref()),
            _ => self.keep_receipt(draft.as_ref(), &load),
        }
        None
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
                if self.lines.may() {
                    warn!(jid = %job.jid, "the job is taken to be for other minions: {e}");
                }
                false
            }
        }
    }

    /// Whether all functions of the job are expected to be short, so that it need not wait for other jobs.
    fn is_short(&self, job: &JobLoad) -> bool {
        job.calls.iter().all(|call| self.runner.functions.is_short(&call.fun))
    }

    fn refused(&self, job: &JobLoad, why: &str) -> Outcomes {
        Outcomes::refused(job, self.opts.jobs.multifunc_ordered, why)
    }

    async fn run(self: Arc<Self>, rules: Rules, mut job: JobLoad, _place: Option<Place>) {
        if let Delivery::Own(reply, _) = &rules.delivery {
            reply.note(&mut job.raw);
        }
        let start = Time::now();
        let (mut record, end) =
            self.procs.record(&job.jid, rules.recorded.then_some(&job.raw), rules.master.as_deref());
        if let Some(master) = rules.master.as_ref().filter(|_| job.start_event) {
            self.events.announce_job(&job, master);
        }
        // What the minion starts by itself nobody types, whoever configured it.
        let by = (rules.master.as_deref(), matches!(rules.delivery, Delivery::Caller { typed: true, .. }));
        let outcomes = {
            let mut outcomes = std::pin::pin!(self.outcomes(&job, by, rules.blackout, &end));
            tokio::select! {
                biased;
                outcomes = &mut outcomes => outcomes,
                () = tokio::time::sleep(SHOWN_AFTER) => {
                    record.show();
                    outcomes.await
                }
            }
        };
        if !job.ret.is_empty() {
            // Whether a returner is a module of this host is known when the module is.
            let names = returner_names(&job.ret);
            self.runner.sandbox.settle_those(|module| names.contains(&module)).await;
        }
        let draft = self.draft(&rules, &job, &outcomes, start, end.is_ordered());
        let draft = draft.as_ref();
        match rules.delivery {
            Delivery::Spool(returns) => self.spool(&returns, rules.master, (&job, draft), outcomes, record),
            Delivery::Caller { report, answer, .. } => {
                if let Some(called) = outcomes.each.into_iter().next() {
                    let load =
                        return_load::for_call(&self.opts.id, &job, report.clone().unwrap_or(Value::Nil), &called);
                    let load = self.seal(draft, load);
                    drop(record);
                    if report.is_some() {
                        self.report(load, &called).await;
                    }
                    let _ = answer.send(called);
                }
            }
            Delivery::Mine => {
                log_mine(&outcomes);
                let load = return_load::for_own(&self.opts.id, &job, outcomes, None);
                self.keep_receipt(draft, &load);
            }
            Delivery::Own(reply, on_end) => {
                self.reply((reply, on_end), rules.master, (&job, draft), outcomes, record);
            }
        }
    }

    /// Waits for the job's turn and runs it.
    async fn outcomes(&self, job: &JobLoad, by: (Option<&str>, bool), blackout: bool, end: &End) -> Outcomes {
        let turn = tokio::select! {
            biased;
            why = end.clone().ordered() => Err(if why == Why::Killed { KILLED_BEFORE } else { ENDED_BEFORE }),
            turn = self.admission.turn(job, self.is_short(job)) => turn.map_err(|_closed| ENDED_BEFORE),
        };
        match turn {
            // After a fault of the minion itself, the master still gets a return.
            Ok(_turn) if blackout && blackout::refuses(job, &self.pillar.now(), &self.grains.now()) => {
                if self.lines.may() {
                    warn!(jid = %job.jid, fun = job.fun(), "the job is refused: a blackout");
                }
                blackout::refused(job, self.opts.jobs.multifunc_ordered)
            }
            Ok(_turn) => {
                let ran = AssertUnwindSafe(self.runner.run(job, by, end)).catch_unwind().await;
                ran.unwrap_or_else(|_| {
                    error!(jid = %job.jid, "the minion failed on this job");
                    self.refused(job, FAILED)
                })
            }
            Err(why) => self.refused(job, why),
        }
    }

    /// Hands out the outcome of a job that the minion started by itself.
    fn reply(
        &self,
        (reply, on_end): (Reply, Option<OnEnd>),
        master: Option<Arc<str>>,
        (job, draft): (&JobLoad, Option<&Draft>),
        outcomes: Outcomes,
        record: ProcRecord,
    ) {
        for called in &outcomes.each {
            let name = job.raw.get_text("schedule").unwrap_or(&called.fun);
            let why = called.outcome.value.text().unwrap_or_default();
            if called.ran {
                self.own_failures.succeeded(name);
            } else if self.own_failures.is_news(name, why) && self.lines.may() {
                warn!(jid = %job.jid, "{}, which this minion started by itself, failed: {why}", called.fun);
            }
        }
        match reply {
            Reply::Master { returns, as_jid } => {
                let load = return_load::for_own(&self.opts.id, job, outcomes, as_jid);
                self.give(master.as_deref(), job, &load);
                let draft = self.unless_unkept(as_jid, draft, &load);
                // The return of the owner's own job goes to the master that the minion has.
                self.keep(&returns, master, (job, draft), load, (record, on_end));
            }
            Reply::Nobody => {
                let load = return_load::for_own(&self.opts.id, job, outcomes, None);
                self.keep_receipt(draft, &load);
                if let Some(note) = on_end {
                    note();
                }
                drop(record);
            }
        }
    }

    /// Spools the return of a published job and has it sent.
    fn spool(
        &self,
        returns: &ReturnSender,
        master: Option<Arc<str>>,
        (job, draft): (&JobLoad, Option<&Draft>),
        outcomes: Outcomes,
        record: ProcRecord,
    ) {
        let mut load = return_load::for_publication(&self.opts.id, job, outcomes);
        let others = self.give(master.as_deref(), job, &load);
        // The rest are returners of the master.
        match others.is_empty() {
            true => drop(load.remove("ret")),
            false => load.insert("ret", others.join(",")),
        }
        self.keep(returns, master, (job, draft), load, (record, None));
    }

    /// What the receipt of a job says; none if no receipts are made.
    fn draft(&self, rules: &Rules, job: &JobLoad, outcomes: &Outcomes, start: Time, killed: bool) -> Option<Draft> {
        self.receipts.get()?;
        let by = (rules.master.as_deref(), rules.asked.clone());
        Some(receipt::draft(job, &outcomes.each, by, self.runner.sandbox.wall_names(), start, killed))
    }

    /// Keeps the receipt of a job whose return nobody gets.
    fn keep_receipt(&self, draft: Option<&Draft>, load: &Value) {
        if let Some((receipts, draft)) = self.receipts.get().zip(draft) {
            receipts.keep(draft, load);
        }
    }

    /// The draft, if the master is to store the return. If it only tells its bus, the receipt stays on the host: in a chain of which the
    /// master has each receipt, it would be a gap.
    fn unless_unkept<'a>(&self, as_jid: Option<AsJid>, draft: Option<&'a Draft>, load: &Value) -> Option<&'a Draft> {
        if as_jid != Some(AsJid::NotKept) {
            return draft;
        }
        self.keep_receipt(draft, load);
        None
    }

    /// Puts a receipt into the return of a call on this host, and keeps it.
    fn seal(&self, draft: Option<&Draft>, mut load: Value) -> Value {
        if let Some((receipts, draft)) = self.receipts.get().zip(draft) {
            receipts.seal_direct(draft, &mut load);
        }
        load
    }

    /// Gives a return to the returners of this host that the job names, and those of the setting `return`. Returns the
    /// names of the others.
    fn give(&self, master: Option<&str>, job: &JobLoad, load: &Value) -> Vec<String> {
        let mut own = returner_names(&job.ret);
        own.retain(|name| self.returners.is_one(name));
        for name in &own {
            self.returners.give(name, master, &job.user, load);
        }
        for name in self.opts.jobs.returners.iter().filter(|name| !own.contains(&name.as_str())) {
            self.returners.give(name, None, &job.user, load);
        }
        // All others, however many: the bound is one on calls here.
        let others = job.ret.split(',').map(str::trim).filter(|name| !name.is_empty() && !own.contains(name));
        others.map(str::to_owned).collect()
    }

    fn keep(
        &self,
        returns: &ReturnSender,
        master: Option<Arc<str>>,
        (job, draft): (&JobLoad, Option<&Draft>),
        load: Value,
        (record, on_end): (ProcRecord, Option<OnEnd>),
    ) {
        let kept = returns.keep(job.jid.as_str(), master.clone(), load, draft);
        // Before the return is sent: one that the master has is removed, and would not say any more that the job has ended.
        if let Some(note) = on_end {
            note();
        }
        drop(record); // before the return is sent, so that no job is shown as running that has returned
        match kept {
            Ok(kept) => returns.deliver(kept),
            Err((e, load)) => {
                error!(jid = %job.jid, "{e}; the return is sent without being kept");
                let bytes = weight(&load);
                returns.send_once(master, load, bytes, draft);
            }
        }
    }

    /// Sends the return of a call on this host, once. A failure is logged and does not fail the call. The master gets no
    /// return for a function that does not exist, because nothing was called.
    async fn report(&self, load: Value, called: &Called) {
        if !called.ran && read_function(&self.runner.sandbox, &called.fun, |_| ()).is_none() {
            return;
        }
        let answer = match self.masters.preferred() {
            Ok(channel) => channel.request(load).await,
            Err(e) => Err(e),
        };
        match answer {
            Ok(_) => debug!("the master has the return"),
            Err(e) => warn!("the return could not be sent to the master: {e}"),
        }
    }

    /// Returns a failure for each job that an earlier run of this minion did not finish. `spooled` says whether the spool has the
    /// job's return: then the job did finish, and the minion died before it removed the record.
    pub(crate) fn return_unfinished(&self, returns: &ReturnSender, spooled: impl Fn(&str) -> bool) {
        // Each record stays until its return is spooled, so that a minion that ends meanwhile finds it again.
        for Left { jid, load, master, record } in self.procs.take_left() {
            if spooled(jid.as_str()) {
                continue;
            }
            let Ok(job) = JobLoad::parse(&load) else { continue };
            let reply = source::noted_reply(&load);
            if reply == Noted::Nobody {
                warn!(%jid, "the minion ended while {}, which it had started by itself, ran", job.fun());
            } else {
                warn!(%jid, "the minion ended while this job ran");
            }
            let mut outcomes = self.refused(&job, ENDED_WITHIN);
            outcomes.with_states(&self.runner.runs, jid.as_str(), ENDED_WITHIN);
            let by = (master.as_deref(), None);
            let walls = self.runner.sandbox.wall_names();
            let made = receipt::draft(&job, &outcomes.each, by, walls, Time::now(), true);
            let mut draft = Some(&made);
            let load = match reply {
                Noted::Nobody => {
                    let load = return_load::for_own(&self.opts.id, &job, outcomes, None);
                    self.keep_receipt(draft, &load);
                    self.runner.runs.forget(jid.as_str());
                    continue;
                }
                Noted::Publication => return_load::for_publication(&self.opts.id, &job, outcomes),
                Noted::Own { as_jid } => {
                    let load = return_load::for_own(&self.opts.id, &job, outcomes, as_jid);
                    draft = self.unless_unkept(as_jid, draft, &load);
                    load
                }
            };
            match returns.keep(jid.as_str(), master, load, draft) {
                Ok(kept) => {
                    self.runner.runs.forget(jid.as_str());
                    returns.deliver(kept);
                }
                Err((e, _)) => {
                    error!(%jid, "{e}; it is tried again at the next start");
                    record.leave();
                }
            }
        }
    }

    /// Removes what states left whose jobs neither run nor have a record: those of `salt-call` processes that were
    /// killed.
    pub(crate) fn tidy_states(&self) {
        self.runner.runs.tidy(|jid| self.procs.runs(jid));
    }

    /// Gives the return of a call of `salt-call` to a returner of this host, once: whoever called sees what failed.
    ///
    /// # Errors
    /// One line.
    pub(crate) async fn hand_to(&self, returner: &str, load: &Value) -> Result<(), String> {
        self.returners.hand_to(returner, load).await
    }

    /// Takes up the returns that an earlier process left for returners of this host.
    pub(crate) fn resume_returners(&self) {
        self.returners.resume();
    }

    /// Makes the timers of jobs cheap. Never ends.
    pub(crate) async fn beat(&self) {
        self.beat.run().await;
    }

    /// Jobs that run or wait.
    pub fn count(&self) -> usize {
        self.tasks.len()
    }

    /// Waits for all jobs, then ends those that still run after `grace`. All their returns are kept when this ends.
    pub(crate) async fn drain(&self, grace: Duration) {
        self.drain_jobs(grace).await;
        // After the jobs: the last of them gave them something.
        self.returners.end().await;
    }

    async fn drain_jobs(&self, grace: Duration) {
        self.tasks.close();
        if tokio::time::timeout(grace, self.tasks.wait()).await.is_ok() {
            return;
        }
        warn!("ending {} jobs that still run after {grace:?}", self.tasks.len());
        self.admission.close();
        for jid in self.procs.end_all() {
            self.runner.functions.kill(jid.as_str());
        }
        if tokio::time::timeout(KILL_GRACE, self.tasks.wait()).await.is_err() {
            error!("{} jobs did not end", self.tasks.len());
        }
    }
}

fn log_mine(outcomes: &Outcomes) {
    for Called { outcome, ran, .. } in &outcomes.each {
        match ran {
            true => debug!("the mine is filled"),
            false => warn!("the mine could not be filled: {}", outcome.value.text().unwrap_or_default()),
        }
    }
}
