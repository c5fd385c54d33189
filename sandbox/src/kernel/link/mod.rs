//! The conversation with one executor process: numbered calls, loaded modules, and the broker's answers.
//!
//! - `pulse.rs` checks whether the executor responds; `waits.rs` calls that wait or need memory; `death.rs` cleans up
//!   after its end
//!
//! Jobs write to the socket themselves, under a lock: a writer task would add a task switch to each job.

mod death;
mod pulse;
mod waits;

use std::collections::hash_map;
use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use brine_sandbox_wire::{
    ByteBuf, FromExecutor, HostError, HostOp, Inbox, JobContext, Limits, LogLevel, Outcome, Receiver, Run, Sender,
    Sha256Hex, ToExecutor, Usage, WireError,
};
use tokio::sync::{Notify, OnceCell, oneshot, watch};
use tokio::task::JoinSet;

use crate::kernel::admission::Jobs;
use crate::kernel::broker::{self, Broker, Caller};
use crate::kernel::loadable::{CodeSource, Loadable};
use crate::kernel::suspects::Suspects;
use crate::kernel::value;
pub(crate) use death::Remains;

/// Time to load a module, which is mapping a file.
const LOAD: Duration = Duration::from_secs(10);
/// Time for an executor to read a message. Its loop waits for no guest, so an executor that takes longer is stopped or
/// hostile.
const TAKE: Duration = Duration::from_secs(10);
/// Upper bound on an executor's delay in ending a job: its clock ticks, its threads are busy, the machine swaps.
const GRACE: Duration = Duration::from_secs(5);
/// Returns the same delay for a job's wall-clock limit, which the executor enforces. A short job gets less.
pub(crate) fn grace(wall: Duration) -> Duration {
    (wall / 5).clamp(Duration::from_secs(1), GRACE)
}
/// Open broker requests of one call. A guest waits for each answer, so an honest executor has at most one.
const MAX_OPEN_REQUESTS: u32 = 4;
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
}

#[derive(Default)]
struct State {
    calls: HashMap<u64, Call>,
    modules: HashMap<Sha256Hex, Arc<OnceCell<()>>>,
    loading: HashMap<Sha256Hex, oneshot::Sender<Result<(), String>>>,
    /// Modules whose load was sent and not answered yet, whether or not a caller still waits. The executor loads them
    /// in this order.
    sent: VecDeque<Sha256Hex>,
    /// How the executor ended, once it has.
    died: Option<Arc<str>>,
}

/// The minion's own record of a running call, independent of what the executor says.
struct Call {
    caller: Arc<Caller>,
    done: oneshot::Sender<CallEnd>,
    /// Position of its last byte in the stream of sent bytes. None: the call was not sent.
    last_byte: Option<u64>,
    requests: u32,
    open_requests: u32,
    max_requests: u32,
    /// Upper bound on the bytes of one answer.
    host_bytes: u64,
    log_left: u64,
    lines_left: u32,
    /// Cancels the pending answers for this call when it is dropped. Made with the first request.
    over: Option<watch::Sender<()>>,
}

impl Link {
    pub(crate) fn new(pid: u32, sender: Sender<ToExecutor>, suspects: Arc<Suspects>, jobs: Arc<Jobs>) -> Arc<Self> {
        Arc::new(Self {
            pid,
            written: sender.written(),
            inbox: sender.inbox(),
            sender: tokio::sync::Mutex::new(sender),
            state: Mutex::default(),
            next: AtomicU64::new(1),
            suspects,
            jobs,
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

    /// Checks, without waiting, whether the module is loaded.
    pub(crate) fn has(&self, key: Sha256Hex) -> bool {
        self.state().modules.get(&key).is_some_and(|cell| cell.initialized())
    }

    /// Loads the module if necessary, with code from the cache or, if that was lost, compiled again.
    pub(crate) async fn ensure(&self, module: &Loadable, source: &dyn CodeSource) -> Result<(), String> {
        self.loaded(module, source.code(module)).await
    }

    /// Loads the module with this code if necessary.
    pub(crate) async fn loaded(
        &self,
        module: &Loadable,
        code: impl Future<Output = Result<std::fs::File, String>>,
    ) -> Result<(), String> {
        if let Some(why) = self.suspects.set_aside(module.key) {
            return Err(format!("module {} is not available: {why}", module.name));
        }
        let cell = Arc::clone(self.state().modules.entry(module.key).or_default());
        cell.get_or_try_init(|| async { self.load(module, code.await?).await }).await.copied()
    }

    async fn load(&self, module: &Loadable, code: std::fs::File) -> Result<(), String> {
        let key = module.key;
        let (sender, receiver) = oneshot::channel();
        {
            let mut state = self.state();
            if let Some(why) = &state.died {
                return Err(format!("the executor {why}"));
            }
            state.loading.insert(key, sender);
        }
        let imports_granted = Some(module.interfaces.clone());
        let load = ToExecutor::Load { module: key, name: module.name.to_string(), imports_granted };
        let conversation = async {
            let sent = std::pin::pin!(async {
                let mut sender = self.sender.lock().await;
                self.state().sent.push_back(key);
                sender.send_with_file(&load, code.into()).await
            });
            let sent = self.taken(sent).await;
            sent.map_err(|error| format!("the executor cannot be reached: {error}"))?;
            receiver.await.unwrap_or_else(|_| Err("the executor ended while it loaded the module".into()))
        };
        match self.patiently(LOAD, std::pin::pin!(conversation)).await {
            Some(result) => result,
            None => {
                self.state().loading.remove(&key);
                Err(format!("the executor did not load the module within {} s", LOAD.as_secs()))
            }
        }
    }

    /// Unloads a module. Its running calls continue.
    pub(crate) async fn unload(&self, module: Sha256Hex) {
        self.state().modules.remove(&module);
        let _ = self.send(&ToExecutor::Unload { module }).await;
    }

    /// Registers a call with its caller, for checks of its requests. The channel delivers its end. [`Link::start`]
    /// sends it; dropping the ticket ends it.
    pub(crate) fn register(
        self: &Arc<Self>,
        caller: &Arc<Caller>,
        limits: &Limits,
    ) -> (Ticket, oneshot::Receiver<CallEnd>) {
        let call = self.next.fetch_add(1, Ordering::Relaxed);
        let (done, ended) = oneshot::channel();
        let mut state = self.state();
        if let Some(why) = &state.died {
            let _ = done.send(CallEnd::NotBegun(Arc::clone(why)));
        } else {
            let call_state = Call {
                caller: Arc::clone(caller),
                done,
                last_byte: None,
                requests: 0,
                open_requests: 0,
                max_requests: limits.host_calls,
                host_bytes: limits.host_bytes,
                log_left: limits.log,
                lines_left: limits.log_lines,
                over: None,
            };
            state.calls.insert(call, call_state);
        }
        (Ticket { link: Arc::clone(self), call }, ended)
    }

    /// Sends a registered call with this much memory until it asks for more. Returns the arguments, for another attempt
    /// if the executor dies before it has read them.
    pub(crate) async fn start(
        &self,
        ticket: &Ticket,
        caller: &Caller,
        module: &Loadable,
        function: &str,
        (args, kwargs): (Vec<u8>, Vec<u8>),
        (limits, lease): (&Limits, Option<u64>),
    ) -> Result<(Vec<u8>, Vec<u8>), WireError> {
        let run = Box::new(Run {
            call: ticket.call,
            module: module.key,
            function: function.to_owned(),
            args,
            kwargs,
            context: JobContext::clone(&caller.job),
            limits: limits.clone(),
            imports_granted: module.interfaces.clone(),
            direct: caller.grants.direct.clone(),
        });
        let message = match lease {
            Some(lease) => ToExecutor::RunWithin { run, lease },
            None => ToExecutor::Run(run),
        };
        let sent = {
            let sending = std::pin::pin!(async {
                let mut sender = self.sender.lock().await;
                // A call dropped before this point was never sent.
                let note = |last| {
                    if let Some(call) = self.state().calls.get_mut(&ticket.call) {
                        call.last_byte = Some(last);
                    }
                };
                sender.send_noting(&message, note).await
            });
            self.taken(sending).await
        };
        // A message that is too large leaves the connection intact. Any other error ends it, and the reader reports
        // how.
        if let Err(error @ (WireError::TooLarge { .. } | WireError::Encode(_))) = sent {
            self.state().calls.remove(&ticket.call);
            return Err(error);
        }
        match message {
            ToExecutor::RunWithin { run, .. } | ToExecutor::Run(run) => Ok((run.args, run.kwargs)),
            _ => Ok(Default::default()),
        }
    }

    async fn kill(&self, call: u64, reason: &str) {
        let _ = self.send(&ToExecutor::Kill { call, reason: reason.to_owned() }).await;
    }

    fn runs(&self, call: u64) -> bool {
        self.state().calls.contains_key(&call)
    }

    /// Returns whether the executor must be asked to end an abandoned call. Forgets a call that was never sent.
    fn abandon(&self, call: u64) -> bool {
        match self.state().calls.entry(call) {
            hash_map::Entry::Occupied(known) if known.get().last_byte.is_none() => {
                known.remove();
                false
            }
            hash_map::Entry::Occupied(_) => true,
            hash_map::Entry::Vacant(_) => false,
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
                    if let Some(call) = self.state().calls.remove(&call) {
                        let _ = call.done.send(CallEnd::Done(bounded(outcome), usage));
                    }
                }
                FromExecutor::HostCall { call, request, op } => match self.admit(call, op) {
                    Admitted::Refused(error) => self.reply(call, request, Err(error)).await,
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
                FromExecutor::Log { call, level, message } => self.log(&**broker, call, level, &message),
                FromExecutor::Loaded { module } => self.load_ended(module, Ok(())),
                FromExecutor::LoadFailed { module, error } => {
                    self.load_ended(module, Err(brine_text::line(&cut(error)).into_owned()));
                }
                FromExecutor::Pong { n } => self.hears(n),
                FromExecutor::Looked { n, waits, gave_back } => {
                    self.hears(n);
                    self.looked(waits, &gave_back);
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

    /// Checks a guest's request against its grants. This is the only place.
    fn admit(&self, call: u64, op: HostOp) -> Admitted {
        let (caller, over) = {
            let mut state = self.state();
            let Some(call) = state.calls.get_mut(&call) else {
                // The call may have just ended.
                return Admitted::Refused(HostError::Denied("the job has ended".into()));
            };
            if call.open_requests >= MAX_OPEN_REQUESTS {
                return Admitted::Broken("asked more at once than a guest can".into());
            }
            call.requests += 1;
            if call.requests > call.max_requests {
                let refused = format!("more than {} calls of the host", call.max_requests);
                return Admitted::Refused(HostError::Denied(refused));
            }
            call.open_requests += 1;
            let over = call.over.get_or_insert_with(|| watch::Sender::new(())).subscribe();
            (Arc::clone(&call.caller), over)
        };
        // The lock is free during this check, so that other calls do not wait.
        match broker::check(&caller, op) {
            Ok(op) => Admitted::Asks { caller, over, op },
            Err(error) => {
                let line = brine_text::line(&cut(error.to_string())).into_owned();
                tracing::warn!(jid = caller.job.jid, function = caller.job.function, "refused: {line}");
                if let Some(call) = self.state().calls.get_mut(&call) {
                    call.open_requests = call.open_requests.saturating_sub(1);
                }
                Admitted::Refused(error)
            }
        }
    }

    async fn answer(
        &self,
        broker: &dyn Broker,
        call: u64,
        request: u64,
        caller: &Caller,
        mut over: watch::Receiver<()>,
        op: HostOp,
    ) {
        let shown = op.shown();
        let result = tokio::select! {
            result = broker.host_call(caller, op) => result.map(|answer| broker::cut_down(shown, &caller.grants, answer)),
            // The channel carries no messages: it closes when the call is removed.
            _ = over.changed() => return,
        };
        let host_bytes = {
            let mut state = self.state();
            // The call ended meanwhile, and nothing waits for the answer.
            let Some(call) = state.calls.get_mut(&call) else { return };
            call.open_requests = call.open_requests.saturating_sub(1);
            call.host_bytes
        };
        let result = result.map(|value| value::encode(&value)).and_then(|answer| match answer.len() as u64 {
            size if size > host_bytes => Err(HostError::Failed(format!(
                "the answer has {size} bytes; the limit of one is {host_bytes} (sandbox:limits:host_bytes)"
            ))),
            _ => Ok(answer),
        });
        self.reply(call, request, result).await;
    }

    async fn reply(&self, call: u64, request: u64, result: Result<Vec<u8>, HostError>) {
        let reply = |result| ToExecutor::HostReply { call, request, result };
        if let Err(error @ WireError::TooLarge { .. }) = self.send(&reply(result.map(ByteBuf::from))).await {
            let _ = self.send(&reply(Err(HostError::Failed(error.to_string())))).await;
        }
    }

    fn log(&self, broker: &dyn Broker, call: u64, level: LogLevel, message: &str) {
        // The bound applies to the escaped message: escaping can make it ten times as long.
        let message = brine_text::line(message);
        let caller = {
            let mut state = self.state();
            let Some(call) = state.calls.get_mut(&call) else { return };
            let size = message.len() as u64;
            if size > call.log_left || call.lines_left == 0 {
                return;
            }
            call.log_left -= size;
            call.lines_left -= 1;
            Arc::clone(&call.caller)
        };
        broker.log(&caller.job, level, &message);
    }

    fn load_ended(&self, module: Sha256Hex, result: Result<(), String>) {
        let waiting = {
            let mut state = self.state();
            if let Some(at) = state.sent.iter().position(|sent| *sent == module) {
                state.sent.remove(at);
                self.suspects.loaded(module);
            }
            state.loading.remove(&module)
        };
        if let Some(waiting) = waiting {
            let _ = waiting.send(result);
        }
    }
}

/// A call with a waiting caller. Dropping the ticket before the call's end ends the call, and ends an executor that
/// does not comply.
pub(crate) struct Ticket {
    link: Arc<Link>,
    call: u64,
}

impl Ticket {
    /// Reports that the call takes longer than usual, so that the executor is checked.
    pub(crate) fn doubt(&self) {
        self.link.doubt();
    }

    /// Asks the executor to end the call. The end still arrives through the channel.
    pub(crate) async fn kill(&self, reason: &str) {
        self.link.kill(self.call, reason).await;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if !self.link.abandon(self.call) {
            return;
        }
        let (link, call) = (Arc::clone(&self.link), self.call);
        // The task is not awaited, but it ends by itself within twice the grace time.
        runtime.spawn(async move {
            let killed = tokio::time::timeout(GRACE, link.kill(call, "its job is gone")).await;
            tokio::time::sleep(GRACE).await;
            if killed.is_err() || link.runs(call) {
                link.condemn("did not end a job that was over");
            }
        });
    }
}

enum Admitted {
    Asks { caller: Arc<Caller>, over: watch::Receiver<()>, op: HostOp },
    Refused(HostError),
    Broken(String),
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
