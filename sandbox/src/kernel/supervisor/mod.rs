//! Supervises one executor: starts its process, serves it, restarts it within a bound, and ends the process while no
//! job needs it.
//!
//! [`Executor`] stands for "the executor of these grants" across its successive processes; `executors.rs` keeps one for
//! each set of direct grants.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use brine_sandbox_wire::DirectGrants;
use tokio::sync::{Notify, OwnedSemaphorePermit, mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::kernel::admission::Jobs;
use crate::kernel::broker::Broker;
use crate::kernel::link::{Link, Remains};
use crate::kernel::loadable::{CodeSource, Loadable};
use crate::kernel::process::{self, Process, Program};
use crate::kernel::suspects::{Paused, Suspects};

/// How often a dead executor is restarted.
///
/// `suspects.rs` deals with the modules that ran or were loading at the death. The other modules get a new process at
/// once.
#[derive(Debug, Clone)]
pub struct Restarts {
    /// This many failed starts …
    pub deaths: usize,
    /// … within this time …
    pub within: Duration,
    /// … mean that this host cannot run the executor. A pause of this length follows; jobs are refused at once during
    /// the pause.
    pub pause: Duration,
    /// Delay before the second start after deaths that are no module's fault. Each further death doubles it, up to a
    /// second.
    pub backoff: Duration,
}

impl Default for Restarts {
    fn default() -> Self {
        Self {
            deaths: 5,
            within: Duration::from_secs(30),
            pause: Duration::from_secs(30),
            backoff: Duration::from_millis(50),
        }
    }
}

/// Upper bound of the backoff after deaths that are no module's fault. Jobs wait meanwhile; a higher rate of restarts
/// would load the host.
const LONGEST_BACKOFF: Duration = Duration::from_secs(1);
/// How long a job waits for an executor that is starting: longer than the longest backoff.
const STARTING: Duration = Duration::from_secs(10);
/// Time to read the rest of the socket after the process has ended.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// The result of [`Link::serve`] for an ordinary end of the connection. The exit status then says more.
const CLOSED: &str = crate::kernel::link::CLOSED;

/// The parts that all executors share.
#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) program: Program,
    pub(crate) restarts: Restarts,
    /// The source of compiled code.
    pub(crate) source: Arc<dyn CodeSource>,
    pub(crate) broker: Arc<dyn Broker>,
    /// Shared, because a module that kills one executor also kills the others.
    pub(crate) suspects: Arc<Suspects>,
    pub(crate) jobs: Arc<Jobs>,
}

/// The state of an executor.
#[derive(Clone)]
enum Condition {
    /// No process; the next job that needs one wakes it.
    Asleep,
    Starting,
    Up(Arc<Link>),
    /// In the pause after repeated failed starts.
    Paused {
        until: Instant,
        why: Arc<str>,
    },
    Stopped,
}

/// Why a job gets no executor, in one line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoExecutor {
    #[error("The sandbox is not available: {why}; it is started again in {} s.", .left.as_secs().max(1))]
    Paused { why: Arc<str>, left: Duration },
    #[error("The sandbox's executor did not start in time.")]
    Slow,
    #[error("The minion is busy: {0} executors for modules with grants of their own are at work. Try again.")]
    Busy(usize),
    #[error("The minion is busy: {0} executors for modules that ran when another one died are at work. Try again.")]
    BusyWards(usize),
    #[error(transparent)]
    Refused(#[from] Paused),
    #[error("The minion is stopping.")]
    Stopped,
}

pub(crate) struct Executor {
    condition: watch::Receiver<Condition>,
    stop: watch::Sender<bool>,
    task: tokio::sync::Mutex<Option<JoinHandle<()>>>,
    /// None: the executor never sleeps.
    bed: Option<Bed>,
}

/// The state of an executor that sleeps while no job needs it.
struct Bed {
    /// Number of leases.
    users: watch::Sender<usize>,
    /// When the last lease ended.
    last_use: Mutex<Instant>,
    /// Makes the executor sleep now if there is no lease.
    doze: Arc<Notify>,
    /// Wakes the executor. The permit is its place among the running processes, whose number is bounded.
    wake: mpsc::Sender<OwnedSemaphorePermit>,
}

/// Keeps an executor awake until it is dropped.
pub(crate) struct Lease(Option<Arc<Executor>>);

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(bed) = self.0.as_ref().and_then(|executor| executor.bed.as_ref()) {
            *bed.last_use.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
            bed.users.send_modify(|users| *users -= 1);
        }
    }
}

impl Executor {
    /// Starts the first process of an executor that never sleeps. Returns when it is up, or the reason why it does not
    /// start.
    pub(crate) async fn start(parts: Parts, direct: DirectGrants) -> Result<Self, String> {
        let first = process::start(&parts.program, &direct).await?;
        let executor = Self::supervised(parts, direct, Some(first), None);
        // The executor is now up, or died at once and will be restarted. Jobs can be sent to it in both cases.
        let mut condition = executor.condition.clone();
        let _ = condition.wait_for(|condition| !matches!(condition, Condition::Starting)).await;
        Ok(executor)
    }

    /// Returns a sleeping executor. It wakes when a job needs it, and sleeps again after `idle` without a lease.
    pub(crate) fn asleep(parts: Parts, direct: DirectGrants, idle: Duration) -> Self {
        Self::supervised(parts, direct, None, Some(idle))
    }

    fn supervised(parts: Parts, direct: DirectGrants, first: Option<Process>, idle: Option<Duration>) -> Self {
        let (condition_sender, condition) =
            watch::channel(if first.is_some() { Condition::Starting } else { Condition::Asleep });
        let (stop, stop_receiver) = watch::channel(false);
        let (bed, sleep) = match idle {
            Some(idle) => {
                let (users, users_receiver) = watch::channel(0);
                let (wake, woken) = mpsc::channel(1);
                let doze = Arc::new(Notify::new());
                let sleep = Sleep { idle, users: users_receiver, doze: Arc::clone(&doze), woken };
                (Some(Bed { users, last_use: Mutex::new(Instant::now()), doze, wake }), Some(sleep))
            }
            None => (None, None),
        };
        let supervisor = Supervisor { parts, direct, sleep, condition: condition_sender, stop: stop_receiver };
        let task = tokio::spawn(supervisor.run(first));
        Self { condition, stop, task: tokio::sync::Mutex::new(Some(task)), bed }
    }

    /// Returns the running process, if there is one.
    pub(crate) fn link(&self) -> Option<Arc<Link>> {
        match &*self.condition.borrow() {
            Condition::Up(link) => Some(Arc::clone(link)),
            _ => None,
        }
    }

    /// Takes a lease: the executor stays awake until the lease is dropped.
    pub(crate) fn lease(self: &Arc<Self>) -> Lease {
        let Some(bed) = &self.bed else { return Lease(None) };
        bed.users.send_modify(|users| *users += 1);
        Lease(Some(Arc::clone(self)))
    }

    /// Returns since when the running process has had no lease.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        let bed = self.bed.as_ref().filter(|bed| *bed.users.borrow() == 0)?;
        self.link()?;
        Some(*bed.last_use.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Checks whether the executor is asleep and has no lease.
    pub(crate) fn is_forgotten(&self) -> bool {
        let unneeded = self.bed.as_ref().is_some_and(|bed| *bed.users.borrow() == 0);
        unneeded && matches!(&*self.condition.borrow(), Condition::Asleep)
    }

    /// Makes the executor sleep now if there is no lease.
    pub(crate) fn doze(&self) {
        if let Some(bed) = &self.bed {
            bed.doze.notify_one();
        }
    }

    /// Returns the running process, or waits briefly for the one that starts. `place` reserves a place for a new
    /// process.
    pub(crate) async fn up<F>(&self, place: impl Fn() -> F) -> Result<Arc<Link>, NoExecutor>
    where
        F: Future<Output = Result<OwnedSemaphorePermit, NoExecutor>>,
    {
        let up = async {
            let mut condition = self.condition.clone();
            loop {
                let now = condition.borrow_and_update().clone();
                match now {
                    Condition::Up(link) => return Ok(link),
                    Condition::Paused { until, why } => {
                        return Err(NoExecutor::Paused { why, left: until.saturating_duration_since(Instant::now()) });
                    }
                    Condition::Stopped => return Err(NoExecutor::Stopped),
                    Condition::Asleep => {
                        let bed = self.bed.as_ref().ok_or(NoExecutor::Stopped)?;
                        // Another caller may have sent a place already. This one is then given back.
                        let _ = bed.wake.try_send(place().await?);
                    }
                    Condition::Starting => {}
                }
                condition.changed().await.map_err(|_| NoExecutor::Stopped)?;
            }
        };
        tokio::time::timeout(STARTING, up).await.unwrap_or(Err(NoExecutor::Slow))
    }

    /// Ends the process for good.
    pub(crate) async fn stop(&self) {
        self.stop.send_replace(true);
        if let Some(task) = self.task.lock().await.take() {
            let _ = task.await;
        }
    }
}

struct Supervisor {
    parts: Parts,
    direct: DirectGrants,
    sleep: Option<Sleep>,
    condition: watch::Sender<Condition>,
    stop: watch::Receiver<bool>,
}

/// The supervisor's side of a [`Bed`].
struct Sleep {
    idle: Duration,
    users: watch::Receiver<usize>,
    doze: Arc<Notify>,
    woken: mpsc::Receiver<OwnedSemaphorePermit>,
}

impl Sleep {
    fn needed(&self) -> bool {
        *self.users.borrow() > 0
    }

    /// Waits until the executor has had no lease for the idle time.
    async fn tired(&mut self) {
        loop {
            let _ = self.users.wait_for(|users| *users == 0).await;
            tokio::select! {
                _ = self.users.wait_for(|users| *users > 0) => continue,
                () = tokio::time::sleep(self.idle) => return,
                () = self.doze.notified() => return,
            }
        }
    }
}

/// How a process ended.
enum Death {
    /// Before it was ready, and not while loading a module. The text says how.
    NeverUp(String),
    /// By itself, or for a breach of the protocol. `blamed`: it ran or loaded a module that may be the cause.
    Died { blamed: bool },
    /// No job needed it.
    Idle,
    /// The minion stopped it.
    Stopped,
}

/// The times of recent events.
#[derive(Default)]
struct Recent(VecDeque<Instant>);

impl Recent {
    /// Records one more event. Returns the number of events within this time.
    fn one_more(&mut self, within: Duration) -> usize {
        let now = Instant::now();
        self.0.push_back(now);
        while self.0.front().is_some_and(|before| now.duration_since(*before) > within) {
            self.0.pop_front();
        }
        self.0.len()
    }
}

impl Restarts {
    /// Returns the delay after so many deaths. The first death causes none, so that the next job does not wait.
    fn backoff(&self, deaths: usize) -> Duration {
        match u32::try_from(deaths).unwrap_or(u32::MAX).checked_sub(2) {
            Some(more) => (self.backoff * 2u32.pow(more.min(8))).min(LONGEST_BACKOFF),
            None => Duration::ZERO,
        }
    }
}

impl Supervisor {
    async fn run(mut self, mut first: Option<Process>) {
        let (mut failed, mut deaths) = (Recent::default(), Recent::default());
        // The place among the counted processes; None for an executor that never sleeps.
        let mut place = None;
        loop {
            if first.is_none()
                && place.is_none()
                && let Some(sleep) = &mut self.sleep
            {
                self.condition.send_replace(Condition::Asleep);
                place = tokio::select! {
                    place = sleep.woken.recv() => place,
                    () = stopped(&mut self.stop) => break,
                };
                self.condition.send_replace(Condition::Starting);
            }
            let process = match first.take() {
                Some(process) => Ok(process),
                None => tokio::select! {
                    process = process::start(&self.parts.program, &self.direct) => process,
                    () = stopped(&mut self.stop) => break,
                },
            };
            let death = match process {
                Ok(process) => self.live(process).await,
                Err(why) => {
                    tracing::error!("{why}");
                    Death::NeverUp(format!("did not start: {why}"))
                }
            };
            let restarts = &self.parts.restarts;
            let wait = match death {
                Death::Stopped => break,
                Death::Idle => {
                    place = None;
                    continue;
                }
                // No backoff: the suspects no longer run in this executor.
                Death::Died { blamed: true } => Duration::ZERO,
                Death::Died { blamed: false } => restarts.backoff(deaths.one_more(restarts.within)),
                Death::NeverUp(how) => match failed.one_more(restarts.within) {
                    few if few < restarts.deaths => restarts.backoff(few),
                    many => {
                        let (within, pause) = (restarts.within.as_secs(), restarts.pause);
                        let why = format!("its executor died {many} times within {within} s, the last time it {how}");
                        tracing::error!("{why}; it is started again in {} s", pause.as_secs());
                        failed.0.clear();
                        let until = Instant::now() + pause;
                        self.condition.send_replace(Condition::Paused { until, why: why.into() });
                        // Other executors may use the place during the pause.
                        place = None;
                        pause
                    }
                },
            };
            if !matches!(&*self.condition.borrow(), Condition::Paused { .. }) {
                self.condition.send_replace(Condition::Starting);
            }
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = stopped(&mut self.stop) => break,
            }
            if self.sleep.as_ref().is_some_and(|sleep| !sleep.needed()) {
                place = None;
            } else {
                self.condition.send_replace(Condition::Starting);
            }
        }
        self.condition.send_replace(Condition::Stopped);
    }

    /// Runs one process from its start to its death.
    async fn live(&mut self, process: Process) -> Death {
        let Process { mut child, pid, sender, receiver, other_end, life: _life } = process;
        let link = Link::new(pid, sender, Arc::clone(&self.parts.suspects), Arc::clone(&self.parts.jobs));
        let (source, broker) = (Arc::clone(&self.parts.source), Arc::clone(&self.parts.broker));
        let mut served = std::pin::pin!(link.serve(receiver, &broker));
        // Only the permanent executor loads all modules. One that was started for a job loads the modules of its jobs.
        let preloads = self.sleep.is_none();
        let mut gone = std::pin::pin!(link.gone());
        let mut ready = std::pin::pin!(async { if preloads { preload(&link, &*source).await } else { Vec::new() } });
        let (mut is_ready, mut repair, mut unread) = (false, None, None);
        let fault = loop {
            tokio::select! {
                lost = &mut ready, if !is_ready => {
                    is_ready = true;
                    self.condition.send_replace(Condition::Up(Arc::clone(&link)));
                    tracing::debug!(executor = pid, "up");
                    repair = Some(tokio::spawn(repair_all(Arc::clone(&link), Arc::clone(&source), lost)));
                }
                why = &mut served => break (why != CLOSED).then_some(why),
                _ = child.wait() => {
                    unread = Some(other_end.close());
                    // Messages that it sent before its death still count.
                    let _ = tokio::time::timeout(LAST_WORDS, &mut served).await;
                    break None;
                }
                why = link.condemned() => break Some(why),
                why = &mut gone => break Some(why.to_owned()),
                () = tired(&mut self.sleep), if is_ready => {
                    // New jobs now wait. A job that took a lease just before keeps the process up.
                    self.condition.send_replace(Condition::Starting);
                    if self.sleep.as_ref().is_some_and(Sleep::needed) {
                        self.condition.send_replace(Condition::Up(Arc::clone(&link)));
                        continue;
                    }
                    tracing::debug!(executor = pid, "ends: no job needs it");
                    repair.inspect(JoinHandle::abort);
                    let _ = child.start_kill();
                    let _ = child.wait().await;
                    link.died(&"was not needed any more".into(), other_end.close(), true);
                    return Death::Idle;
                }
                () = stopped(&mut self.stop) => {
                    let _ = child.start_kill();
                    let _ = child.wait().await;
                    link.died(&"was stopped with the minion".into(), other_end.close(), true);
                    repair.inspect(JoinHandle::abort);
                    return Death::Stopped;
                }
            }
        };
        repair.inspect(JoinHandle::abort);
        let how = match fault {
            Some(fault) => {
                let _ = child.start_kill();
                let _ = child.wait().await;
                format!("{fault} and was ended")
            }
            None => process::how(process::end(&mut child).await),
        };
        // Stop sending jobs to this process before its callers learn of its death.
        self.condition.send_replace(Condition::Starting);
        let unread = unread.unwrap_or_else(|| other_end.close());
        let Remains { jobs, blamed } = link.died(&how.as_str().into(), unread, false);
        tracing::error!(executor = pid, jobs, "the executor {how}");
        if is_ready || blamed { Death::Died { blamed } } else { Death::NeverUp(how) }
    }
}

async fn tired(sleep: &mut Option<Sleep>) {
    match sleep {
        Some(sleep) => sleep.tired().await,
        None => std::future::pending().await,
    }
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    // A closed channel means the same.
    let _ = stop.wait_for(|stop| *stop).await;
}

/// Loads every module whose compiled code is in the cache. Returns the modules whose code is missing.
async fn preload(link: &Link, source: &dyn CodeSource) -> Vec<Arc<Loadable>> {
    let mut lost = Vec::new();
    for module in source.modules() {
        match source.cached_code(&module).await {
            Some(code) => {
                if let Err(why) = link.loaded(&module, async { Ok(code) }).await {
                    tracing::error!(module = %module.name, "{why}");
                }
            }
            None => lost.push(module),
        }
    }
    lost
}

/// Compiles lost code again, while jobs of other modules run.
async fn repair_all(link: Arc<Link>, source: Arc<dyn CodeSource>, lost: Vec<Arc<Loadable>>) {
    for module in lost {
        if let Err(why) = link.ensure(&module, &*source).await {
            tracing::error!(module = %module.name, "{why}");
        }
    }
}
