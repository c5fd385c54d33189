//! Supervises one executor: starts its process, serves it, restarts it within a bound, and ends the process while no
//! job needs it.
//!
//! - `executor.rs`  the executor of these grants across its successive processes
//! - `restarts.rs`  how often a dead executor is restarted; `preload.rs` the modules that the permanent one loads

mod executor;
mod preload;
mod restarts;

use std::sync::Arc;
use std::time::Duration;

use brine_sandbox_wire::DirectGrants;
use tokio::sync::{Notify, OwnedSemaphorePermit, mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::kernel::admission::Jobs;
use crate::kernel::broker::Broker;
use crate::kernel::link::{Link, ModuleLines, Remains};
use crate::kernel::loadable::CodeSource;
use crate::kernel::process::{self, ExecutorProgram, Process};
use crate::kernel::suspects::Suspects;
use executor::Condition;
pub(crate) use executor::{Executor, Lease, NoExecutor};
use preload::{preload, repair_all};
use restarts::Recent;
pub use restarts::Restarts;

/// Time to read the rest of the socket after the process has ended.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// The result of [`Link::serve`] for an ordinary end of the connection. The exit status then says more.
const CLOSED: &str = crate::kernel::link::CLOSED;

/// The parts that all executors share.
#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) program: ExecutorProgram,
    pub(crate) restarts: Restarts,
    /// The source of compiled code.
    pub(crate) source: Arc<dyn CodeSource>,
    pub(crate) broker: Arc<dyn Broker>,
    /// Shared, because a module that kills one executor also kills the others.
    pub(crate) suspects: Arc<Suspects>,
    pub(crate) jobs: Arc<Jobs>,
    /// Shared, because a module runs in several.
    pub(crate) lines: Arc<ModuleLines>,
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
                        failed = Recent::default();
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
        let link = Link::new(
            pid,
            sender,
            Arc::clone(&self.parts.suspects),
            Arc::clone(&self.parts.jobs),
            Arc::clone(&self.parts.lines),
        );
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
