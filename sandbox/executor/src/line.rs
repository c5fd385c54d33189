//! The state that a call and the socket's loop share: the call's requests to the minion, and the minion's messages to
//! it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use brine_sandbox_wire::{ByteBuf, FromExecutor, HostError, HostOp, InUse, LogLevel, Wanted};
use tokio::sync::{Notify, oneshot};

use crate::activity::Activity;
use crate::failure::HostFailure;
use crate::ticker::Hurry;
use crate::told::Told;

/// Upper bound on the bytes of a log line. A longer line ends in "…".
const MAX_LINE: usize = 1_024;
/// Added to each line's length, so that the number of empty lines is bounded too.
const LINE_OVERHEAD: u64 = 32;
/// Characters of the last line that an error shows.
const LAST_LINE: usize = 200;

pub(crate) fn wide(size: usize) -> u64 {
    u64::try_from(size).unwrap_or(u64::MAX)
}

/// A call's share of the memory for all jobs.
#[derive(Debug, Default)]
struct Ledger {
    /// The memory it may hold before it must ask. None: its whole limit.
    lease: Option<u64>,
    held: u64,
    /// Where to send the minion's answer to a request for more.
    asks: Option<oneshot::Sender<Result<(), String>>>,
}

/// The state that a call and the socket's loop share.
#[derive(Debug)]
pub struct Line {
    call: u64,
    arrived: Instant,
    /// Notified when `state` changes in a way that the call must handle.
    pub changed: Arc<Notify>,
    /// Whether the call computes or waits.
    pub activity: Arc<Activity>,
    long: AtomicBool,
    /// Microseconds of CPU time until the end of the last turn.
    cpu_us: AtomicU64,
    state: Mutex<LineState>,
    ledger: Mutex<Ledger>,
}

#[derive(Debug, Default)]
struct LineState {
    killed: Option<(String, Hurry)>,
    /// Messages to the minion, in order. The log's budget and the requests without an answer bound them.
    outgoing: Vec<FromExecutor>,
    /// The requests without an answer. One that nobody waits for any more stays until its answer comes: the minion counts it until then.
    waiting: Vec<(u64, oneshot::Sender<Result<ByteBuf, HostError>>)>,
    log_left: u64,
    lines_left: u32,
    log_written: u64,
    log_dropped: u64,
    last_line: String,
    told: Told,
}

impl Line {
    /// Makes the state of a call with this many bytes and lines of log.
    #[must_use]
    pub fn new(call: u64, log: u64, lines: u32) -> Self {
        let state = LineState { log_left: log, lines_left: lines, ..LineState::default() };
        Self {
            call,
            arrived: Instant::now(),
            changed: Arc::default(),
            activity: Arc::default(),
            long: AtomicBool::new(false),
            cpu_us: AtomicU64::new(0),
            state: Mutex::new(state),
            ledger: Mutex::default(),
        }
    }

    /// Sets the lease: the call asks before it holds more memory than this. None: it need not ask.
    #[must_use]
    pub fn within(self, lease: Option<u64>) -> Self {
        self.ledger().lease = lease;
        self
    }

    /// Returns when the call arrived.
    #[must_use]
    pub fn arrived(&self) -> Instant {
        self.arrived
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the bytes that the call is about to hold. Returns a receiver to wait for if they exceed the lease.
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

    /// Delivers the minion's answer to a request for more memory.
    pub fn grown(&self, refused: Option<String>) {
        let mut ledger = self.ledger();
        let Some(asks) = ledger.asks.take() else { return };
        if refused.is_none() {
            ledger.lease = None;
        }
        let _ = asks.send(refused.map_or(Ok(()), Err));
    }

    /// Reduces the call's lease if the call holds no more than that. A call that is asking for more keeps its lease.
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

    /// Requests the end of the call. `hurry` makes the clock tick faster until then.
    pub fn kill(&self, reason: String, hurry: Hurry) {
        self.state().killed.get_or_insert((reason, hurry));
        self.changed.notify_one();
    }

    /// Returns the reason for the requested end, if there is one.
    #[must_use]
    pub fn killed(&self) -> Option<String> {
        self.state().killed.as_ref().map(|(reason, _)| reason.clone())
    }

    /// Records that the call has used more CPU time than short calls do.
    pub fn set_long(&self) {
        self.long.store(true, Ordering::Relaxed);
    }

    /// Checks whether the call has used more CPU time than short calls do.
    #[must_use]
    pub fn is_long(&self) -> bool {
        self.long.load(Ordering::Relaxed)
    }

    /// Records the CPU time that the call has used.
    pub fn spent(&self, cpu: Duration) {
        self.cpu_us.store(u64::try_from(cpu.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Returns what the call uses now.
    #[must_use]
    pub fn in_use(&self) -> InUse {
        InUse { call: self.call, memory: self.ledger().held, cpu_us: self.cpu_us.load(Ordering::Relaxed) }
    }

    /// Delivers the minion's reply. A reply for which nothing waits is dropped.
    pub fn reply(&self, request: u64, result: Result<ByteBuf, HostError>) {
        let mut state = self.state();
        if let Some(index) = state.waiting.iter().position(|(number, _)| *number == request) {
            let _ = state.waiting.swap_remove(index).1.send(result);
        }
    }

    /// Sends a request to the minion's broker.
    pub fn ask(&self, request: u64, op: HostOp) -> Answer {
        let (sender, receiver) = oneshot::channel();
        let mut state = self.state();
        state.waiting.push((request, sender));
        state.outgoing.push(FromExecutor::HostCall { call: self.call, request, op });
        drop(state);
        self.changed.notify_one();
        receiver
    }

    /// Returns how many requests have no answer yet.
    #[must_use]
    pub fn open_requests(&self) -> usize {
        self.state().waiting.len()
    }

    /// Sends a part of the call's recording.
    pub fn recorded(&self, part: Vec<u8>) {
        self.state().outgoing.push(FromExecutor::Recorded { call: self.call, part: ByteBuf::from(part) });
        self.changed.notify_one();
    }

    /// Has the owner of the host told of something that this process refuses the guest.
    pub fn refused(&self, wanted: Wanted) {
        let mut state = self.state();
        if state.told.is_new(&wanted) {
            state.outgoing.push(FromExecutor::Refused { call: self.call, wanted });
            drop(state);
            self.changed.notify_one();
        }
    }

    /// Sends the message about the first difference of a replay.
    pub fn differs(&self, message: FromExecutor) {
        self.state().outgoing.push(message);
        self.changed.notify_one();
    }

    /// Takes the messages to send now.
    #[must_use]
    pub fn outgoing(&self) -> Vec<FromExecutor> {
        std::mem::take(&mut self.state().outgoing)
    }

    /// Logs a text: one message for each line, within the budget.
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
                // After the first dropped line all are dropped: later lines without it would mislead.
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

    /// Returns the last logged line, for the error of a guest that gave up after it.
    #[must_use]
    pub fn last_line(&self) -> String {
        self.state().last_line.clone()
    }

    /// Returns the bytes of log written and the number of dropped lines.
    #[must_use]
    pub fn logged(&self) -> (u64, u64) {
        let state = self.state();
        (state.log_written, state.log_dropped)
    }
}

/// The pending reply of the broker.
pub type Answer = oneshot::Receiver<Result<ByteBuf, HostError>>;

/// Evaluates the broker's reply. The inner error is the broker's `Failed`.
///
/// # Errors
/// `Denied`, a missing reply, or one of more than `limit` bytes: the guest has to end.
pub fn answered(
    what: &'static str,
    answer: Option<Result<ByteBuf, HostError>>,
    limit: u64,
) -> Result<Result<Vec<u8>, String>, HostFailure> {
    match answer {
        Some(Ok(value)) if wide(value.len()) > limit => Err(HostFailure::LargeAnswer { what, limit }),
        Some(Ok(value)) => Ok(Ok(value.into_vec())),
        Some(Err(HostError::Failed(error))) => Ok(Err(error)),
        Some(Err(HostError::Planned(would))) => Err(HostFailure::Planned(would)),
        Some(Err(HostError::Denied(error))) => Err(HostFailure::Denied { what, error }),
        None => Err(HostFailure::Failed { what, error: "the minion gave no answer".into() }),
    }
}
