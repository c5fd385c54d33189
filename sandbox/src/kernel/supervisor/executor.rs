//! The executor of one set of direct grants, across its successive processes. `executors.rs` keeps one for each set.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use brine_sandbox_wire::DirectGrants;
use tokio::sync::{Notify, OwnedSemaphorePermit, mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::{Parts, Sleep, Supervisor};
use crate::kernel::link::Link;
use crate::kernel::process::Process;
use crate::kernel::suspects::Paused;

/// How long a job waits for an executor that is starting: longer than the longest backoff.
const STARTING: Duration = Duration::from_secs(10);

/// The state of an executor.
#[derive(Clone)]
pub(super) enum Condition {
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
    /// Begins an executor that never sleeps with its first process. Returns when it can be used.
    pub(crate) async fn start(parts: Parts, direct: DirectGrants, first: Process) -> Self {
        let executor = Self::supervised(parts, direct, Some(first), None);
        // The executor is now up, or died at once and will be restarted. Jobs can be sent to it in both cases.
        let mut condition = executor.condition.clone();
        let _ = condition.wait_for(|condition| !matches!(condition, Condition::Starting)).await;
        executor
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
