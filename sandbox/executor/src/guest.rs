//! The data of one instance: its budget, its context, its connection to the minion.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brine_sandbox_wire::{ByteBuf, FromExecutor, HostError, HostOp, JobContext, LogLevel, NetworkRule, Run};
use tokio::sync::{Notify, oneshot};
use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

use crate::activity::Activity;
use crate::host::filesystem::Files;
use crate::host::sockets;
use crate::host::wasi::{MAX_RANDOM, Stdio};
use crate::memory::Memory;
use crate::network::Network;
use crate::outcome::HostFailure;
use crate::request;
use crate::ticker::Hurry;

/// Upper bound on the host resources of a guest: files, sockets, streams, pollables. A stream may hold a buffer of 64
/// KiB.
pub const MAX_RESOURCES: usize = 256;
/// Upper bound on the handles of a guest, to host resources and to its own.
pub const MAX_HANDLES: usize = 1_000;

/// Upper bound on the bytes of a log line; the rest becomes "…".
const MAX_LINE: usize = 1_024;
/// Bytes that a line counts beside its text, so that empty lines are bounded too.
const LINE_OVERHEAD: u64 = 32;
/// Bytes of the last log line that an error message quotes.
const LAST_LINE: usize = 200;

fn wide(size: usize) -> u64 {
    u64::try_from(size).unwrap_or(u64::MAX)
}

/// The call's share of the memory for all jobs.
#[derive(Debug, Default)]
struct Ledger {
    /// The bytes that the call may hold without asking the minion; none for the call's whole limit.
    lease: Option<u64>,
    held: u64,
    /// Receives the minion's reply to a request for more memory.
    asks: Option<oneshot::Sender<Result<(), String>>>,
}

/// The state that a call shares with the socket's loop.
#[derive(Debug)]
pub struct Line {
    call: u64,
    /// Notified when the call has to look at `state`.
    pub changed: Arc<Notify>,
    /// Whether the call computes or waits.
    pub activity: Arc<Activity>,
    long: AtomicBool,
    state: Mutex<LineState>,
    ledger: Mutex<Ledger>,
}

#[derive(Debug, Default)]
struct LineState {
    killed: Option<(String, Hurry)>,
    /// Messages to the minion, in order. The log's budget and the bound of one request at a time limit them; for name
    /// look-ups, the bound on the guest's resources does.
    outgoing: Vec<FromExecutor>,
    waiting: Vec<(u64, oneshot::Sender<Result<ByteBuf, HostError>>)>,
    log_left: u64,
    lines_left: u32,
    log_written: u64,
    log_dropped: u64,
    last_line: String,
}

impl Line {
    /// The line of a call that may log `log` bytes in `lines` lines.
    #[must_use]
    pub fn new(call: u64, log: u64, lines: u32) -> Self {
        let state = LineState { log_left: log, lines_left: lines, ..LineState::default() };
        Self {
            call,
            changed: Arc::default(),
            activity: Arc::default(),
            long: AtomicBool::new(false),
            state: Mutex::new(state),
            ledger: Mutex::default(),
        }
    }

    /// Sets the memory that the call may hold before it asks the minion.
    #[must_use]
    pub fn within(self, lease: Option<u64>) -> Self {
        self.ledger().lease = lease;
        self
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that the call is about to hold this many bytes. If that exceeds its lease, asks the minion for more and
    /// returns the receiver of the reply.
    pub fn hold(&self, bytes: u64) -> Option<oneshot::Receiver<Result<(), String>>> {
        let asked = {
            let mut ledger = self.ledger();
            if ledger.lease.is_none_or(|lease| bytes <= lease) {
                ledger.held = bytes;
                return None;
            }
            let (sender, asked) = oneshot::channel();
            ledger.asks = Some(sender);
            asked
        };
        self.state().outgoing.push(FromExecutor::Grow { call: self.call });
        self.changed.notify_one();
        Some(asked)
    }

    /// Passes the minion's reply to the request for more memory.
    pub fn grown(&self, refused: Option<String>) {
        let mut ledger = self.ledger();
        let Some(asks) = ledger.asks.take() else { return };
        if refused.is_none() {
            ledger.lease = None;
        }
        let _ = asks.send(refused.map_or(Ok(()), Err));
    }

    /// Restores the lease if the call holds no more than that. Returns false, and changes nothing, if it holds more.
    pub fn give_back(&self, lease: u64) -> bool {
        let mut ledger = self.ledger();
        let gives = ledger.lease.is_none() && ledger.held <= lease;
        if gives {
            ledger.lease = Some(lease);
        }
        gives
    }

    fn state(&self) -> MutexGuard<'_, LineState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Orders the call to end. The clock ticks fast until the call has ended.
    pub fn kill(&self, reason: String, hurry: Hurry) {
        self.state().killed.get_or_insert((reason, hurry));
        self.changed.notify_one();
    }

    /// The reason for the order to end, if there is one.
    #[must_use]
    pub fn killed(&self) -> Option<String> {
        self.state().killed.as_ref().map(|(reason, _)| reason.clone())
    }

    /// Marks the call as long: it has used more CPU time than short calls do.
    pub fn set_long(&self) {
        self.long.store(true, Ordering::Relaxed);
    }

    /// Whether the call is marked as long.
    #[must_use]
    pub fn is_long(&self) -> bool {
        self.long.load(Ordering::Relaxed)
    }

    /// Passes the minion's reply to a request. A reply without a waiting request (the call ended) is dropped.
    pub fn reply(&self, request: u64, result: Result<ByteBuf, HostError>) {
        let mut state = self.state();
        if let Some(index) = state.waiting.iter().position(|(number, _)| *number == request) {
            let _ = state.waiting.swap_remove(index).1.send(result);
        }
    }

    fn ask(&self, request: u64, op: HostOp) -> Answer {
        let (sender, receiver) = oneshot::channel();
        let mut state = self.state();
        state.waiting.retain(|(_, waiting)| !waiting.is_closed());
        state.waiting.push((request, sender));
        state.outgoing.push(FromExecutor::HostCall { call: self.call, request, op });
        drop(state);
        self.changed.notify_one();
        receiver
    }

    /// Takes the messages that are to be sent now.
    #[must_use]
    pub fn outgoing(&self) -> Vec<FromExecutor> {
        std::mem::take(&mut self.state().outgoing)
    }

    /// Logs a text within the budget: one message for each of its lines.
    pub fn log(&self, level: LogLevel, text: &str) {
        let mut state = self.state();
        for line in text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)) {
            let mut message = String::new();
            let cut = line.floor_char_boundary(MAX_LINE);
            message.push_str(&brine_text::line(&line[..cut]));
            if cut < line.len() {
                message.push('…');
            }
            let cost = wide(message.len()).saturating_add(LINE_OVERHEAD);
            let (left, lines) = (state.log_left.checked_sub(cost), state.lines_left.checked_sub(1));
            let (Some(left), Some(lines)) = (left, lines) else {
                state.log_dropped += 1;
                // After the first dropped line, all further lines are dropped, so that the log has no gaps.
                state.log_left = 0;
                continue;
            };
            (state.log_left, state.lines_left) = (left, lines);
            state.log_written += wide(message.len());
            if !message.trim().is_empty() {
                state.last_line = brine_text::short(&message, LAST_LINE);
            }
            state.outgoing.push(FromExecutor::Log { call: self.call, level, message });
        }
        drop(state);
        self.changed.notify_one();
    }

    /// The last logged line, which explains the failure of a guest that aborted after it.
    #[must_use]
    pub fn last_line(&self) -> String {
        self.state().last_line.clone()
    }

    /// Bytes of log written, and lines dropped.
    #[must_use]
    pub fn logged(&self) -> (u64, u64) {
        let state = self.state();
        (state.log_written, state.log_dropped)
    }
}

/// The broker's future reply.
pub type Answer = oneshot::Receiver<Result<ByteBuf, HostError>>;

/// Checks the broker's reply. A refusal, a missing reply and a reply of more than `limit` bytes end the guest.
///
/// # Errors
/// When the guest has to end. The inner error is the broker's `Failed`, for the guest.
pub fn answered(
    what: &'static str,
    answer: Option<Result<ByteBuf, HostError>>,
    limit: u64,
) -> Result<Result<Vec<u8>, String>, HostFailure> {
    match answer {
        Some(Ok(value)) if wide(value.len()) > limit => Err(HostFailure::LargeAnswer { what, limit }),
        Some(Ok(value)) => Ok(Ok(value.into_vec())),
        Some(Err(HostError::Failed(error))) => Ok(Err(error)),
        Some(Err(HostError::Denied(error))) => Err(HostFailure::Denied { what, error }),
        None => Err(HostFailure::Failed { what, error: "the minion gave no answer".into() }),
    }
}

/// The data of an instance's store.
pub struct Guest {
    /// The line to the minion.
    pub line: Arc<Line>,
    /// The job.
    pub context: JobContext,
    /// The module's name.
    pub module: Arc<str>,
    /// The memory limit.
    pub memory: Memory,
    /// The directories and open files.
    pub files: Files,
    /// The table numbers of the guest's sockets; some may be closed.
    pub tcp: Vec<u32>,
    rules: Vec<NetworkRule>,
    network: Option<Arc<Network>>,
    /// The table of host resources.
    pub table: ResourceTable,
    /// The value of `set-retcode`.
    pub retcode: Option<i32>,
    /// Number of calls to the broker so far.
    pub host_calls: u64,
    /// Bytes of the broker's replies.
    pub host_bytes: u64,
    max_host_calls: u32,
    max_answer: u64,
    /// WASI's context, made at its first use, because most modules need none.
    wasi: Option<(WasiCtx, Stdio, Stdio)>,
}

impl Guest {
    /// The data for one call.
    #[must_use]
    pub fn new(line: Arc<Line>, module: &Arc<str>, run: &mut Run) -> Self {
        let (context, limits) = (std::mem::take(&mut run.context), &run.limits);
        let rules = std::mem::take(&mut run.direct.network);
        let mut table = ResourceTable::new();
        table.set_max_capacity(MAX_RESOURCES);
        let memory = Memory::new(limits.memory, Arc::clone(&line));
        Self {
            line,
            context,
            module: Arc::clone(module),
            files: Files::new(module, limits),
            tcp: Vec::new(),
            rules,
            network: None,
            memory,
            table,
            retcode: None,
            host_calls: 0,
            host_bytes: 0,
            max_host_calls: limits.host_calls,
            max_answer: limits.host_bytes,
            wasi: None,
        }
    }

    /// Sends a request to the minion's broker and waits for its reply: one MessagePack value, not checked.
    ///
    /// # Errors
    /// When the guest has to end: after a refusal, or beyond a limit. The inner error is the broker's `Failed`; the
    /// caller decides about it.
    pub async fn ask(&mut self, what: &'static str, op: HostOp) -> Result<Result<Vec<u8>, String>, HostFailure> {
        let answer = match self.begin(op)? {
            Ok(answer) => answer.await.ok(),
            Err(error) => return Ok(Err(error)),
        };
        let answer = answered(what, answer, self.max_answer)?;
        self.host_bytes += answer.as_ref().map_or(0, |value| wide(value.len()));
        Ok(answer)
    }

    /// Sends a request to the minion's broker. Pass the reply to [`answered`].
    ///
    /// # Errors
    /// When the limit on host calls is used up. The inner error says that the request is too large.
    pub fn begin(&mut self, op: HostOp) -> Result<Result<Answer, String>, HostFailure> {
        if self.host_calls >= u64::from(self.max_host_calls) {
            return Err(HostFailure::TooManyCalls(self.max_host_calls));
        }
        self.host_calls += 1;
        if let Err(error) = request::check(&op) {
            return Ok(Err(error));
        }
        Ok(Ok(self.line.ask(self.host_calls, op)))
    }

    /// As [`Guest::ask`], for functions that return no error: the guest ends.
    ///
    /// # Errors
    /// When the broker has no result.
    pub async fn ask_or_end(&mut self, what: &'static str, op: HostOp) -> Result<Vec<u8>, HostFailure> {
        self.ask(what, op).await?.map_err(|error| HostFailure::Failed { what, error })
    }

    /// Logs the unfinished lines of the standard streams.
    pub fn flush_stdio(&mut self) {
        if let Some((_, out, err)) = &self.wasi {
            out.finish();
            err.finish();
        }
    }
}

impl WasiView for Guest {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        if self.wasi.is_none() {
            self.wasi = Some(self.make_wasi());
        }
        let (ctx, ..) = self.wasi.as_mut().expect("it was just made");
        WasiCtxView { ctx, table: &mut self.table }
    }
}

impl Guest {
    /// The addresses that the guest may connect to.
    pub fn network(&mut self) -> Arc<Network> {
        Arc::clone(self.network.get_or_insert_with(|| Arc::new(Network::new(&self.rules))))
    }

    fn make_wasi(&mut self) -> (WasiCtx, Stdio, Stdio) {
        let out = Stdio::new(Arc::clone(&self.line), LogLevel::Info);
        let err = Stdio::new(Arc::clone(&self.line), LogLevel::Warning);
        let mut builder = WasiCtx::builder();
        builder
            .stdout(out.clone())
            .stderr(err.clone())
            .max_random_size(MAX_RANDOM)
            .allow_tcp(false)
            .allow_udp(false)
            .allow_ip_name_lookup(false)
            .allow_blocking_current_thread(false);
        if !self.rules.is_empty() {
            let network = self.network();
            builder.allow_tcp(true).socket_addr_check(sockets::check(
                network,
                Arc::clone(&self.line),
                Arc::clone(&self.module),
            ));
        }
        (builder.build(), out, err)
    }
}
