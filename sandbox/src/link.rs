//! The conversation with one executor process: calls by number, modules that it has, answers of the broker.
//!
//! - `pulse.rs` whether it is still there; `waits.rs` which calls wait and need memory; `death.rs` what its end leaves
//!
//! Jobs write to the socket themselves, under a lock: a writer task would be one more switch in each job's way.

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

use crate::admission::Jobs;
use crate::broker::{self, Broker, Caller};
use crate::store::{Entry, Store};
use crate::suspects::Suspects;
use crate::value;
pub(crate) use death::Remains;

/// For a module to be loaded: mapping a file.
const LOAD: Duration = Duration::from_secs(10);
/// For an executor to read a message. Its loop waits for no guest, so one that takes longer is stopped, or means harm.
const TAKE: Duration = Duration::from_secs(10);
/// How much later than told an executor may end a job: its clock ticks, its threads are busy, the machine swaps.
const GRACE: Duration = Duration::from_secs(5);
/// The same for a job's own clock, which the executor sees to; a short one gets less.
pub(crate) fn grace(wall: Duration) -> Duration {
    (wall / 5).clamp(Duration::from_secs(1), GRACE)
}
/// Calls to the broker that one call may have open. A guest waits for each answer, so one is all that is ever seen.
const MAX_OPEN_REQUESTS: u32 = 4;
/// Bytes of a `LoadFailed` or of an outcome's message that are passed on.
const MAX_MESSAGE: usize = 4_096;

/// What [`Link::serve`] ends with where nothing was wrong.
pub(crate) const CLOSED: &str = "closed its connection";

/// After so long whoever waits for an executor has it looked at: an ordinary call takes a thousandth of it.
pub(crate) const PATIENCE: Duration = Duration::from_millis(250);

/// How a call ended.
#[derive(Debug)]
pub(crate) enum CallEnd {
    /// The executor says so.
    Done(Outcome, Usage),
    /// The executor is gone; one line says how.
    Died(Arc<str>),
    /// The same, and it had not even read that there is this call.
    NotBegun(Arc<str>),
}

/// One executor while it lives.
pub(crate) struct Link {
    pub(crate) pid: u32,
    sender: tokio::sync::Mutex<Sender<ToExecutor>>,
    state: Mutex<State>,
    next: AtomicU64,
    /// How many bytes were sent.
    written: Arc<AtomicU64>,
    /// Modules whose loading ends executors; of all the executors there were.
    suspects: Arc<Suspects>,
    jobs: Arc<Jobs>,
    /// Somebody waits for it longer than usual.
    doubted: Notify,
    /// The last question whether it is there, and the last answer.
    asked: AtomicU64,
    answered: AtomicU64,
    /// Messages that came from it, and those that nobody has read yet.
    heard: AtomicU64,
    inbox: Inbox,
    /// Why it has to be ended, once somebody found out.
    condemned: watch::Sender<Option<String>>,
}

#[derive(Default)]
struct State {
    calls: HashMap<u64, Call>,
    modules: HashMap<Sha256Hex, Arc<OnceCell<()>>>,
    loading: HashMap<Sha256Hex, oneshot::Sender<Result<(), String>>>,
    /// What was sent to be loaded and is not answered, whether or not somebody still waits. It is loaded one after the other.
    sent: VecDeque<Sha256Hex>,
    /// It is over, and how.
    died: Option<Arc<str>>,
}

/// What the minion knows of a running call; the executor's word is not asked.
struct Call {
    caller: Arc<Caller>,
    done: oneshot::Sender<CallEnd>,
    /// Which byte of all that is ever sent is the last of it. None: the executor never hears of it.
    last_byte: Option<u64>,
    requests: u32,
    open_requests: u32,
    max_requests: u32,
    /// Bytes of one answer.
    host_bytes: u64,
    log_left: u64,
    lines_left: u32,
    /// Its end ends the answers that are being worked out for it. Made with the first.
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
        // Nothing in here panics between two changes that belong together.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a message. An error means that the executor is gone, which the reader of its socket sees too, or is to be.
    async fn send(&self, message: &ToExecutor) -> Result<(), WireError> {
        let sent = std::pin::pin!(async { self.sender.lock().await.send(message).await });
        self.taken(sent).await
    }

    /// Ends an executor that does not read what is sent to it: whoever sends next would wait behind it for ever.
    async fn taken(&self, sent: Pin<&mut impl Future<Output = Result<(), WireError>>>) -> Result<(), WireError> {
        match self.patiently(TAKE, sent).await {
            Some(sent) => sent,
            None => {
                self.condemn("did not read what it was sent");
                Err(WireError::Closed)
            }
        }
    }

    /// Waits for the executor for so long at most, and has it looked at when that takes longer than usual.
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

    /// Whether the module is there, without waiting.
    pub(crate) fn has(&self, key: Sha256Hex) -> bool {
        self.state().modules.get(&key).is_some_and(|cell| cell.initialized())
    }

    /// Has the module loaded if it is not, with its code from the cache or, where that was lost, compiled again.
    pub(crate) async fn ensure(&self, entry: &Entry, store: &Store) -> Result<(), String> {
        self.loaded(entry, store.code(entry)).await
    }

    /// Has the module loaded with this code if it is not.
    pub(crate) async fn loaded(
        &self,
        entry: &Entry,
        code: impl Future<Output = Result<std::fs::File, String>>,
    ) -> Result<(), String> {
        if let Some(why) = self.suspects.set_aside(entry.key) {
            return Err(format!("module {} is not available: {why}", entry.name));
        }
        let cell = Arc::clone(self.state().modules.entry(entry.key).or_default());
        cell.get_or_try_init(|| async { self.load(entry, code.await?).await }).await.copied()
    }

    async fn load(&self, entry: &Entry, code: std::fs::File) -> Result<(), String> {
        let module = entry.key;
        let (sender, receiver) = oneshot::channel();
        {
            let mut state = self.state();
            if let Some(why) = &state.died {
                return Err(format!("the executor {why}"));
            }
            state.loading.insert(module, sender);
        }
        let imports_granted = Some(entry.grants.interfaces().map(str::to_owned).collect());
        let load = ToExecutor::Load { module, name: entry.name.to_string(), imports_granted };
        let conversation = async {
            let sent = std::pin::pin!(async {
                let mut sender = self.sender.lock().await;
                self.state().sent.push_back(module);
                sender.send_with_file(&load, code.into()).await
            });
            let sent = self.taken(sent).await;
            sent.map_err(|error| format!("the executor cannot be reached: {error}"))?;
            receiver.await.unwrap_or_else(|_| Err("the executor ended while it loaded the module".into()))
        };
        match self.patiently(LOAD, std::pin::pin!(conversation)).await {
            Some(result) => result,
            None => {
                self.state().loading.remove(&module);
                Err(format!("the executor did not load the module within {} s", LOAD.as_secs()))
            }
        }
    }

    /// Has the executor forget a module. Calls that run go on.
    pub(crate) async fn unload(&self, module: Sha256Hex) {
        self.state().modules.remove(&module);
        let _ = self.send(&ToExecutor::Unload { module }).await;
    }

    /// Writes a call down with who asks when it asks. What it ends with comes through the channel. It runs when [`Link::start`] has sent it; the ticket
    /// sees to it that it does not run on when nobody waits for it any more.
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

    /// Sends a call that was written down, which may hold so much memory until it asks for more. Gives the arguments back: they are
    /// needed again where the executor is gone before it has read them.
    pub(crate) async fn start(
        &self,
        ticket: &Ticket,
        caller: &Caller,
        entry: &Entry,
        function: &str,
        (args, kwargs): (Vec<u8>, Vec<u8>),
        (limits, lease): (&Limits, Option<u64>),
    ) -> Result<(Vec<u8>, Vec<u8>), WireError> {
        let run = Box::new(Run {
            call: ticket.call,
            module: entry.key,
            function: function.to_owned(),
            args,
            kwargs,
            context: JobContext::clone(&caller.job),
            limits: limits.clone(),
            imports_granted: entry.grants.interfaces().map(str::to_owned).collect(),
            direct: caller.grants.direct.clone(),
        });
        let message = match lease {
            Some(lease) => ToExecutor::RunWithin { run, lease },
            None => ToExecutor::Run(run),
        };
        let sent = {
            let sending = std::pin::pin!(async {
                let mut sender = self.sender.lock().await;
                // A call that is dropped until here was never sent.
                let note = |last| {
                    if let Some(call) = self.state().calls.get_mut(&ticket.call) {
                        call.last_byte = Some(last);
                    }
                };
                sender.send_noting(&message, note).await
            });
            self.taken(sending).await
        };
        // Too large to send: the connection is as it was. Anything else is its end, and the reader tells how.
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

    /// Whether the executor has to be told that nobody waits for the call any more. One that it never heard of is forgotten.
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

    /// Has this executor ended: it does not do what executors do. All its calls die with it.
    fn condemn(&self, why: &str) {
        self.condemned.send_replace(Some(why.to_owned()));
    }

    /// Waits until it is condemned; says why.
    pub(crate) async fn condemned(&self) -> String {
        let mut condemned = self.condemned.subscribe();
        // The sender is in this same link, so it is never gone.
        let why = condemned.wait_for(Option::is_some).await.map(|why| why.clone());
        why.ok().flatten().unwrap_or_default()
    }

    /// Reads what the executor says until it says no more, or something it must not. Returns why.
    pub(crate) async fn serve(
        self: &Arc<Self>,
        mut receiver: Receiver<FromExecutor>,
        broker: &Arc<dyn Broker>,
    ) -> String {
        // Answers being worked out; they end with the executor.
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
                        // Most are known at once; those need no task of their own, which another thread would be woken for.
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
                            // It goes when the call does.
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

    /// The one place where a call from a guest meets its grant.
    fn admit(&self, call: u64, op: HostOp) -> Admitted {
        let (caller, over) = {
            let mut state = self.state();
            let Some(call) = state.calls.get_mut(&call) else {
                // It may have ended a moment ago.
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
        // Other calls do not wait while this one is looked at.
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
            // Nothing is ever sent: it closes when the call is forgotten.
            _ = over.changed() => return,
        };
        let host_bytes = {
            let mut state = self.state();
            // Over meanwhile: nobody waits for it.
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
        // What is written down counts: what nobody would see takes up to ten times its bytes.
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

/// A call that somebody waits for. Dropped before its end, it ends the call; an executor that does not let go of it is
/// ended.
pub(crate) struct Ticket {
    link: Arc<Link>,
    call: u64,
}

impl Ticket {
    /// It takes longer than usual: is its executor still there?
    pub(crate) fn doubt(&self) {
        self.link.doubt();
    }

    /// Asks the executor to end the call; its end still comes through the channel.
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
        // Nobody awaits it, but it ends by itself within twice the grace.
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
