//! The conversation with one executor process: numbered calls, loaded modules, and the broker's answers.
//!
//! - `calls.rs`     starts and ends calls; `modules.rs` loads and unloads modules
//! - `requests.rs`  what running calls ask for: the broker's answers, and lines of the log · `lines.rs` how many of them
//! - `waits.rs`     calls that wait or need memory; `measures.rs` what running calls use
//! - `pulse.rs`     checks whether the executor responds; `death.rs` cleans up after its end
//!
//! Jobs write to the socket themselves, under a lock: a writer task would add a task switch to each job.

mod calls;
mod death;
mod lines;
mod measures;
mod modules;
mod pulse;
mod requests;
mod waits;

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use brine_sandbox_wire::{
    FromExecutor, InUse, Inbox, Outcome, Receiver, Sender, Sha256Hex, ToExecutor, Usage, WireError,
};
use brine_text::LogLimit;
use tokio::sync::{Notify, OnceCell, oneshot, watch};
use tokio::task::JoinSet;

use crate::kernel::admission::Jobs;
use crate::kernel::broker::{Broker, Caller};
use crate::kernel::foresight::Watch;
use crate::kernel::suspects::Suspects;
use crate::kernel::value;
pub(crate) use calls::{Terms, Ticket};
pub(crate) use death::Remains;
pub(crate) use lines::ModuleLines;
use measures::Bounds;
pub use measures::RunningCall;
use requests::Admitted;

/// Time for an executor to read a message. Its loop waits for no guest, so an executor that takes longer is stopped or
/// hostile.
const TAKE: Duration = Duration::from_secs(10);
/// Upper bound on an executor's delay in ending a job: its clock ticks, its threads are busy, the machine swaps.
const GRACE: Duration = Duration::from_secs(5);
/// Returns the same delay for a job's wall-clock limit, which the executor enforces. A short job gets less.
pub(crate) fn grace(wall: Duration) -> Duration {
    (wall / 5).clamp(Duration::from_secs(1), GRACE)
}
/// Upper bound on the bytes passed on of a `LoadFailed` or of an outcome's message.
const MAX_MESSAGE: usize = 4_096;

/// The result of [`Link::serve`] for an ordinary end of the connection.
pub(crate) const CLOSED: &str = "closed its connection";

/// Time after which a waiting caller has the executor checked. An ordinary call takes a thousandth of it.
pub(crate) const PATIENCE: Duration = Duration::from_millis(250);

/// How a call ended.
#[derive(Debug)]
pub(crate) enum CallEnd {
    /// The executor reported the end.
    Done(Outcome, Usage),
    /// The executor died; one line says how.
    Died(Arc<str>),
    /// The executor died before it had read the call.
    NotBegun(Arc<str>),
}

/// One executor during its life.
pub(crate) struct Link {
    pub(crate) pid: u32,
    sender: tokio::sync::Mutex<Sender<ToExecutor>>,
    state: Mutex<State>,
    next: AtomicU64,
    /// Number of bytes sent.
    written: Arc<AtomicU64>,
    /// Modules whose loading ends executors; shared by all executors.
    suspects: Arc<Suspects>,
    jobs: Arc<Jobs>,
    /// What modules wrote to the log; shared by all executors.
    lines: Arc<ModuleLines>,
    /// Notified when a caller has waited longer than usual.
    doubted: Notify,
    /// Numbers of the last ping sent and the last pong received.
    asked: AtomicU64,
    answered: AtomicU64,
    /// Number of messages received, and the messages not read yet.
    heard: AtomicU64,
    inbox: Inbox,
    /// Why the executor has to be ended, once that is decided.
    condemned: watch::Sender<Option<String>>,
    /// The lines about refusals.
    refusal_lines: Mutex<LogLimit>,
}

#[derive(Default)]
struct State {
    calls: HashMap<u64, Call>,
    modules: HashMap<Sha256Hex, Arc<OnceCell<()>>>,
    loading: HashMap<Sha256Hex, oneshot::Sender<Result<(), String>>>,
    /// Modules whose load was sent and not answered yet, whether or not a caller still waits. The executor loads them
    /// in this order.
    sent: VecDeque<Sha256Hex>,
    /// Who waits for what the calls use, with the numbers of their questions.
    measuring: Vec<(u64, oneshot::Sender<Vec<InUse>>)>,
    /// How the executor ended, once it has.
    died: Option<Arc<str>>,
}

/// The minion's own record of a running call, independent of what the executor says.
struct Call {
    caller: Arc<Caller>,
    done: oneshot::Sender<CallEnd>,
    /// Position of its last byte in the stream of sent bytes. None: the call was not sent.
    last_byte: Option<u64>,
    /// Its limits of memory, CPU time and wall-clock time, and when it was registered.
    bounds: Bounds,
    requests: u32,
    open_requests: u32,
    max_requests: u32,
    /// Upper bound on the bytes of one answer.
    host_bytes: u64,
    /// What one call may write to the log, and what this one still may.
    log_most: u64,
    log_left: u64,
    lines_left: u32,
    /// Refusals that are still told to the owner.
    notes_left: u32,
    /// What it asks first.
    watch: Option<Watch>,
    /// Cancels the pending answers for this call when it is dropped. Made with the first request.
    over: Option<watch::Sender<()>>,
}

impl Link {
    pub(crate) fn new(
        pid: u32,
        sender: Sender<ToExecutor>,
        suspects: Arc<Suspects>,
        jobs: Arc<Jobs>,
        lines: Arc<ModuleLines>,
    ) -> Arc<Self> {
        Arc::new(Self {
            pid,
            written: sender.written(),
            inbox: sender.inbox(),
            sender: tokio::sync::Mutex::new(sender),
            state: Mutex::default(),
            refusal_lines: Mutex::new(LogLimit::new(requests::REFUSAL_LINES)),
            next: AtomicU64::new(1),
            suspects,
            jobs,
            lines,
            doubted: Notify::new(),
            asked: AtomicU64::new(0),
            answered: AtomicU64::new(0),
            heard: AtomicU64::new(0),
            condemned: watch::Sender::new(None),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No code in this module panics between two related changes, so a poisoned lock is usable.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a message. An error means that the executor is gone, which the socket's reader also sees, or must be
    /// ended.
    async fn send(&self, message: &ToExecutor) -> Result<(), WireError> {
        let sent = std::pin::pin!(async { self.sender.lock().await.send(message).await });
        self.taken(sent).await
    }

    /// Condemns an executor that does not read its messages, because later senders would block behind it for ever.
    async fn taken(&self, sent: Pin<&mut impl Future<Output = Result<(), WireError>>>) -> Result<(), WireError> {
        match self.patiently(TAKE, sent).await {
            Some(sent) => sent,
            None => {
                self.condemn("did not read what it was sent");
                Err(WireError::Closed)
            }
        }
    }

    /// Waits for the executor for at most `most`, and has it checked if it takes longer than usual.
    async fn patiently<T>(&self, most: Duration, mut what: Pin<&mut impl Future<Output = T>>) -> Option<T> {
        let began = Instant::now();
        match tokio::time::timeout(PATIENCE.min(most), what.as_mut()).await {
            Ok(done) => Some(done),
            Err(_) => {
                self.doubt();
                tokio::time::timeout(most.saturating_sub(began.elapsed()), what).await.ok()
            }
        }
    }

    /// Marks the executor to be ended for a breach of the protocol. All its calls end with it.
    fn condemn(&self, why: &str) {
        self.condemned.send_replace(Some(why.to_owned()));
    }

    /// Waits until the executor is condemned; returns the reason.
    pub(crate) async fn condemned(&self) -> String {
        let mut condemned = self.condemned.subscribe();
        // The sender is in this same struct, so it is never closed.
        let why = condemned.wait_for(Option::is_some).await.map(|why| why.clone());
        why.ok().flatten().unwrap_or_default()
    }

    /// Reads the executor's messages until the connection ends or a message breaks the protocol. Returns the reason.
    pub(crate) async fn serve(
        self: &Arc<Self>,
        mut receiver: Receiver<FromExecutor>,
        broker: &Arc<dyn Broker>,
    ) -> String {
        // Pending answers; they end with the executor.
        let mut answers: JoinSet<()> = JoinSet::new();
        loop {
            let message = tokio::select! {
                received = receiver.recv() => match received {
                    Ok(received) => received.message,
                    Err(WireError::Closed) => return CLOSED.into(),
                    Err(error) => return format!("broke the protocol ({error})"),
                },
                Some(_) = answers.join_next(), if !answers.is_empty() => continue,
            };
            self.heard.fetch_add(1, Ordering::Relaxed);
            match message {
                FromExecutor::Done { call, outcome, usage } => {
                    let ended = self.state().calls.remove(&call);
                    if let Some(mut call) = ended {
                        let used = call.watch.take().map(|watch| watch.ended(&outcome, &usage));
                        used.iter().flatten().for_each(|op| requests::log_request(&call.caller, op));
                        let _ = call.done.send(CallEnd::Done(bounded(outcome), usage));
                    }
                }
                FromExecutor::HostCall { call, request, op } => match self.admit(&**broker, call, op) {
                    Admitted::Refused(error) => self.reply(call, request, Err(error)).await,
                    Admitted::Answered(value) => self.reply(call, request, Ok(value::encode(&value))).await,
                    Admitted::Broken(why) => return why,
                    Admitted::Asks { caller, over, op } => {
                        let (link, broker) = (Arc::clone(self), Arc::clone(broker));
                        let answer = async move { link.answer(&*broker, call, request, &caller, over, op).await };
                        let mut answer = Box::pin(answer);
                        // Most answers are ready at once and need no task, which would wake another thread.
                        if futures_util::poll!(&mut answer).is_pending() {
                            answers.spawn(answer);
                        }
                    }
                },
                FromExecutor::Refused { call, wanted } => self.refused(&**broker, call, wanted),
                FromExecutor::Log { call, level, message } => self.log(&**broker, call, level, &message),
                FromExecutor::Recorded { call, part } => {
                    if let Err(why) = self.recorded(call, &part) {
                        return why;
                    }
                }
                FromExecutor::Differs { .. } => return "said that a call differs which was not replayed".into(),
                FromExecutor::Loaded { module } => self.load_ended(module, Ok(())),
                FromExecutor::LoadFailed { module, error } => {
                    self.load_ended(module, Err(brine_text::line(&cut(error)).into_owned()));
                }
                FromExecutor::Pong { n } => self.hears(n),
                FromExecutor::Looked { n, waits, gave_back } => {
                    self.hears(n);
                    self.looked(waits, &gave_back);
                }
                FromExecutor::Measured { n, calls } => {
                    self.hears(n);
                    self.measured(n, calls);
                }
                FromExecutor::Grow { call } => {
                    let link = Arc::clone(self);
                    match self.number_of(call).map(|number| self.jobs.grow(number)) {
                        None => {}
                        Some(Ok(None)) => self.grown(call, None).await,
                        Some(Err(busy)) => self.grown(call, Some(busy)).await,
                        Some(Ok(Some(granted))) => drop(answers.spawn(async move {
                            // The sender is dropped with the call.
                            if granted.await.is_ok() {
                                link.grown(call, None).await;
                            }
                        })),
                    }
                }
                FromExecutor::Ready { .. } => return "said twice that it is ready".into(),
            }
        }
    }
}

fn bounded(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Failed { kind, message, retcode } => {
            Outcome::Failed { kind, message: brine_text::line(&cut(message)).into_owned(), retcode }
        }
        returned @ Outcome::Returned { .. } => returned,
    }
}

fn cut(mut text: String) -> String {
    if text.len() > MAX_MESSAGE {
        let mut end = MAX_MESSAGE;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests;
