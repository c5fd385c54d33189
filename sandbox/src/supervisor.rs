//! An executor's life after death: started, served, and started again, within a bound.
//!
//! [`Executor`] stands for "the executor of these modules" while processes come and go. [`ExecutorSet`] has one for each
//! set of direct grants, so that what one process may reach is what its modules were granted and no more.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use brine_sandbox_wire::DirectGrants;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::broker::Broker;
use crate::link::Link;
use crate::process::{self, Process, Program};
use crate::store::{Entry, Store};
use crate::suspects::Suspects;

/// When an executor dies too often to be started again at once.
#[derive(Debug, Clone)]
pub struct Restarts {
    /// So many deaths …
    pub deaths: usize,
    /// … within this time …
    pub within: Duration,
    /// … are a crash loop: a pause of this length follows, in which jobs are refused at once.
    pub pause: Duration,
    /// Before the second start; doubled for each further death.
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

/// How long a job waits for an executor that is being started: longer than the backoff between two deaths.
const STARTING: Duration = Duration::from_secs(10);
/// For the socket to be read to its end after the process has ended.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// What [`Link::serve`] says of a connection that ended as connections end; how the process ended says more.
const CLOSED: &str = crate::link::CLOSED;

/// How an executor is doing.
#[derive(Clone)]
pub(crate) enum Condition {
    Starting,
    Up(Arc<Link>),
    /// In the pause after a crash loop.
    Paused {
        until: Instant,
        why: Arc<str>,
    },
    Stopped,
}

/// Why a job gets no executor: one line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoExecutor {
    #[error("The sandbox is not available: {why}; it is started again in {} s.", .left.as_secs().max(1))]
    Paused { why: Arc<str>, left: Duration },
    #[error("The sandbox's executor did not start in time.")]
    Slow,
    #[error("The minion is stopping.")]
    Stopped,
}

pub(crate) struct Executor {
    condition: watch::Receiver<Condition>,
    stop: watch::Sender<bool>,
    task: tokio::sync::Mutex<Option<JoinHandle<()>>>,
}

impl Executor {
    /// Starts the first process and returns when it is up, or why it does not come up.
    pub(crate) async fn start(
        program: Program,
        direct: DirectGrants,
        restarts: Restarts,
        store: Arc<Store>,
        broker: Arc<dyn Broker>,
    ) -> Result<Self, String> {
        let (condition_sender, mut condition) = watch::channel(Condition::Starting);
        let (stop, stop_receiver) = watch::channel(false);
        let first = process::start(&program).await?;
        let supervisor = Supervisor {
            program,
            direct,
            restarts,
            store,
            broker,
            suspects: Arc::default(),
            condition: condition_sender,
            stop: stop_receiver,
        };
        let task = tokio::spawn(supervisor.run(first));
        // Up, or dead at once and about to be started again: either way there is somebody to ask.
        let _ = condition.wait_for(|condition| !matches!(condition, Condition::Starting)).await;
        Ok(Self { condition, stop, task: tokio::sync::Mutex::new(Some(task)) })
    }

    /// The process that runs now, if one does.
    pub(crate) fn link(&self) -> Option<Arc<Link>> {
        match &*self.condition.borrow() {
            Condition::Up(link) => Some(Arc::clone(link)),
            _ => None,
        }
    }

    /// The process that runs now, or that will within a moment.
    pub(crate) async fn up(&self) -> Result<Arc<Link>, NoExecutor> {
        if let Some(link) = self.link() {
            return Ok(link);
        }
        let mut condition = self.condition.clone();
        let waited = condition.wait_for(|condition| !matches!(condition, Condition::Starting));
        match tokio::time::timeout(STARTING, waited).await {
            Ok(Ok(condition)) => match &*condition {
                Condition::Up(link) => Ok(Arc::clone(link)),
                Condition::Paused { until, why } => Err(NoExecutor::Paused {
                    why: Arc::clone(why),
                    left: until.saturating_duration_since(Instant::now()),
                }),
                Condition::Starting => Err(NoExecutor::Slow),
                Condition::Stopped => Err(NoExecutor::Stopped),
            },
            Ok(Err(_)) => Err(NoExecutor::Stopped),
            Err(_) => Err(NoExecutor::Slow),
        }
    }

    /// Ends the process, for good.
    pub(crate) async fn stop(&self) {
        self.stop.send_replace(true);
        if let Some(task) = self.task.lock().await.take() {
            let _ = task.await;
        }
    }
}

struct Supervisor {
    program: Program,
    direct: DirectGrants,
    restarts: Restarts,
    store: Arc<Store>,
    broker: Arc<dyn Broker>,
    suspects: Arc<Suspects>,
    condition: watch::Sender<Condition>,
    stop: watch::Receiver<bool>,
}

impl Supervisor {
    async fn run(mut self, first: Process) {
        let mut deaths: VecDeque<Instant> = VecDeque::new();
        let mut process = Ok(first);
        loop {
            let how = match process {
                Ok(process) => match self.live(process).await {
                    Some(how) => how,
                    None => break,
                },
                Err(why) => why,
            };
            let now = Instant::now();
            deaths.push_back(now);
            while deaths.front().is_some_and(|death| now.duration_since(*death) > self.restarts.within) {
                deaths.pop_front();
            }
            let wait = if deaths.len() >= self.restarts.deaths {
                let why = format!(
                    "its executor died {} times within {} s, the last time it {how}",
                    deaths.len(),
                    self.restarts.within.as_secs()
                );
                tracing::error!("{why}; it is started again in {} s", self.restarts.pause.as_secs());
                deaths.clear();
                let until = now + self.restarts.pause;
                self.condition.send_replace(Condition::Paused { until, why: why.into() });
                self.restarts.pause
            } else {
                self.condition.send_replace(Condition::Starting);
                // The first death is not a habit: the next job should not wait.
                let doubled = u32::try_from(deaths.len()).unwrap_or(1).saturating_sub(2);
                if deaths.len() == 1 { Duration::ZERO } else { self.restarts.backoff * 2u32.pow(doubled.min(8)) }
            };
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = stopped(&mut self.stop) => break,
            }
            process = tokio::select! {
                process = process::start(&self.program) => process,
                () = stopped(&mut self.stop) => break,
            };
            if let Err(why) = &process {
                tracing::error!("{why}");
            }
        }
        self.condition.send_replace(Condition::Stopped);
    }

    /// One process from ready to dead. Says how it died; nothing if it was to stop.
    async fn live(&mut self, process: Process) -> Option<String> {
        let Process { mut child, pid, sender, receiver } = process;
        let link = Link::new(pid, sender, Arc::clone(&self.suspects));
        let (store, broker) = (Arc::clone(&self.store), Arc::clone(&self.broker));
        let mut served = std::pin::pin!(link.serve(receiver, &broker));
        let mut ready = std::pin::pin!(preload(&link, &store, &self.direct));
        let mut is_ready = false;
        let mut repair = None;
        let fault = loop {
            tokio::select! {
                lost = &mut ready, if !is_ready => {
                    is_ready = true;
                    self.condition.send_replace(Condition::Up(Arc::clone(&link)));
                    tracing::debug!(executor = pid, "up");
                    repair = Some(tokio::spawn(repair_all(Arc::clone(&link), Arc::clone(&store), lost)));
                }
                why = &mut served => break (why != CLOSED).then_some(why),
                _ = child.wait() => {
                    // What it said before it died counts.
                    let _ = tokio::time::timeout(LAST_WORDS, &mut served).await;
                    break None;
                }
                why = link.condemned() => break Some(why),
                () = stopped(&mut self.stop) => {
                    let _ = child.start_kill();
                    let _ = child.wait().await;
                    link.died(&"was stopped with the minion".into());
                    repair.inspect(JoinHandle::abort);
                    return None;
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
        // Nobody is sent there any more, then whoever is there is told.
        self.condition.send_replace(Condition::Starting);
        let jobs = link.died(&how.as_str().into());
        tracing::error!(executor = pid, jobs, "the executor {how}");
        Some(how)
    }
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    // The sender going away means the same.
    let _ = stop.wait_for(|stop| *stop).await;
}

/// Loads every module whose compiled code is at hand; returns those whose code is not.
async fn preload(link: &Link, store: &Store, direct: &DirectGrants) -> Vec<Arc<Entry>> {
    let mut lost = Vec::new();
    let table = Arc::clone(&store.table());
    for entry in table.values().filter(|entry| entry.grants.direct == *direct) {
        match store.cached_code(entry).await {
            Some(code) => {
                if let Err(why) = link.loaded(entry, async { Ok(code) }).await {
                    tracing::error!(module = %entry.name, "{why}");
                }
            }
            None => lost.push(Arc::clone(entry)),
        }
    }
    lost
}

/// Compiles again what was lost from the cache, while jobs of other modules run.
async fn repair_all(link: Arc<Link>, store: Arc<Store>, lost: Vec<Arc<Entry>>) {
    for entry in lost {
        if let Err(why) = link.ensure(&entry, &store).await {
            tracing::error!(module = %entry.name, "{why}");
        }
    }
}

/// The executors there are, by what their processes may reach.
pub(crate) struct ExecutorSet {
    executors: HashMap<DirectGrants, Arc<Executor>>,
}

impl ExecutorSet {
    /// The set with the one executor that may reach nothing; others come with the grants that need them.
    pub(crate) fn new(executor: Executor) -> Self {
        Self { executors: HashMap::from([(DirectGrants::default(), Arc::new(executor))]) }
    }

    /// The executor of a module.
    pub(crate) fn of(&self, entry: &Entry) -> Result<&Arc<Executor>, NoExecutor> {
        self.executors.get(&entry.grants.direct).ok_or(NoExecutor::Slow)
    }

    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Executor>> {
        self.executors.values()
    }
}
