//! What a call and the socket's loop share: what the call asks of the minion, and what the minion tells it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brine_sandbox_wire::{ByteBuf, FromExecutor, HostError, HostOp, LogLevel};
use tokio::sync::{Notify, oneshot};

use crate::activity::Activity;
use crate::failure::HostFailure;
use crate::ticker::Hurry;

/// A log line's longest, in bytes; the rest of it is "…".
const MAX_LINE: usize = 1_024;
/// What a line counts for beside its text, so that empty ones are bounded too.
const LINE_OVERHEAD: u64 = 32;
/// Of the last line, what an error shows.
const LAST_LINE: usize = 200;

pub(crate) fn wide(size: usize) -> u64 {
    u64::try_from(size).unwrap_or(u64::MAX)
}

/// What of the memory for all jobs is a call's.
#[derive(Debug, Default)]
struct Ledger {
    /// None: its limit.
    lease: Option<u64>,
    held: u64,
    /// Where the minion's answer goes.
    asks: Option<oneshot::Sender<Result<(), String>>>,
}

/// What a call and the socket's loop share.
#[derive(Debug)]
pub struct Line {
    call: u64,
    /// Something in `state` changed that the call has to see to.
    pub changed: Arc<Notify>,
    /// Whether it computes or waits.
    pub activity: Arc<Activity>,
    long: AtomicBool,
    state: Mutex<LineState>,
    ledger: Mutex<Ledger>,
}

#[derive(Debug, Default)]
struct LineState {
    killed: Option<(String, Hurry)>,
    /// Messages on their way to the minion, in order: bounded by the log's budget and one request at a time, and by the resources
    /// a guest may hold for names that it looks up.
    outgoing: Vec<FromExecutor>,
    waiting: Vec<(u64, oneshot::Sender<Result<ByteBuf, HostError>>)>,
    log_left: u64,
    lines_left: u32,
    log_written: u64,
    log_dropped: u64,
    last_line: String,
}

impl Line {
    /// For a call with so many bytes and lines of log.
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

    /// The same for a call that asks before it holds more memory than this.
    #[must_use]
    pub fn within(self, lease: Option<u64>) -> Self {
        self.ledger().lease = lease;
        self
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The call is about to hold so many bytes of memory. What it has to wait for, if that is beyond its lease.
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

    /// The minion's answer to who asked for more memory.
    pub fn grown(&self, refused: Option<String>) {
        let mut ledger = self.ledger();
        let Some(asks) = ledger.asks.take() else { return };
        if refused.is_none() {
            ledger.lease = None;
        }
        let _ = asks.send(refused.map_or(Ok(()), Err));
    }

    /// Gives back what the call might hold beyond the lease, if it holds no more. One that asks for more keeps what it has.
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

    /// The minion wants the call to end, and the clock to hurry until it has.
    pub fn kill(&self, reason: String, hurry: Hurry) {
        self.state().killed.get_or_insert((reason, hurry));
        self.changed.notify_one();
    }

    /// Why the call is to end, if it is.
    #[must_use]
    pub fn killed(&self) -> Option<String> {
        self.state().killed.as_ref().map(|(reason, _)| reason.clone())
    }

    /// The call has used more CPU than short ones do.
    pub fn set_long(&self) {
        self.long.store(true, Ordering::Relaxed);
    }

    /// Whether it has.
    #[must_use]
    pub fn is_long(&self) -> bool {
        self.long.load(Ordering::Relaxed)
    }

    /// The minion answered. What nobody waits for (the call ended, or never asked) is dropped.
    pub fn reply(&self, request: u64, result: Result<ByteBuf, HostError>) {
        let mut state = self.state();
        if let Some(index) = state.waiting.iter().position(|(number, _)| *number == request) {
            let _ = state.waiting.swap_remove(index).1.send(result);
        }
    }

    /// Asks the minion's broker.
    pub fn ask(&self, request: u64, op: HostOp) -> Answer {
        let (sender, receiver) = oneshot::channel();
        let mut state = self.state();
        state.waiting.retain(|(_, waiting)| !waiting.is_closed());
        state.waiting.push((request, sender));
        state.outgoing.push(FromExecutor::HostCall { call: self.call, request, op });
        drop(state);
        self.changed.notify_one();
        receiver
    }

    /// What is to be sent now.
    #[must_use]
    pub fn outgoing(&self) -> Vec<FromExecutor> {
        std::mem::take(&mut self.state().outgoing)
    }

    /// Logs a text: a message for each line of it, within the budget.
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
                // Once over is over: what comes after would be out of order.
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

    /// The last line logged, for the error of a guest that gave up after it.
    #[must_use]
    pub fn last_line(&self) -> String {
        self.state().last_line.clone()
    }

    /// Bytes of log written and lines dropped.
    #[must_use]
    pub fn logged(&self) -> (u64, u64) {
        let state = self.state();
        (state.log_written, state.log_dropped)
    }
}

/// What the broker will say.
pub type Answer = oneshot::Receiver<Result<ByteBuf, HostError>>;

/// What the broker said. `Denied`, no answer and one of more than `limit` bytes end the guest.
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
