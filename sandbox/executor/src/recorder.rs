//! The recording of a call: writes down each call of the host with its answer, or answers each call from an earlier
//! recording, without a host.
//!
//! Requests to the broker are recorded where they are sent ([`crate::guest::Guest::begin`]). What this program answers
//! itself (WASI, the metadata of files) is recorded around each function ([`crate::host::recorded`]).

use std::collections::HashMap;

use brine_recording::{HostCall, Recording, Written, is_same, pack, unpack};
use brine_sandbox_wire::{
    ByteBuf, FailKind, FromExecutor, FunctionsOp, HostError, HostOp, LogLevel, Outcome, Record, StatesOp,
};

use crate::failure::HostFailure;

/// Bytes of a recording that are sent in one message.
const PART: usize = 256 << 10;

/// The recorder of a call.
#[derive(Debug)]
pub struct Recorder {
    mode: Mode,
    /// Depth of functions that call others of the host. Only the guest's own calls are recorded.
    within: u32,
}

#[derive(Debug)]
enum Mode {
    Keeps(Written),
    Replays(Box<Replay>),
}

/// The state of a replay.
#[derive(Debug)]
struct Replay {
    calls: std::vec::IntoIter<HostCall>,
    /// Number of calls answered so far.
    answered: u64,
    full: bool,
    end: Outcome,
    state: State,
    /// The standard streams among the guest's handles, whose lines are logged as in the recorded call.
    outputs: HashMap<u32, LogLevel>,
}

#[derive(Debug)]
enum State {
    Goes,
    /// The recorded call ended here: the host ended it, or it waited for an answer.
    Ends,
    /// The recording has no more calls, because it reached its bound.
    Lacks,
    Differs {
        recorded: Option<HostCall>,
        asked: Option<HostCall>,
    },
}

impl Recorder {
    /// Makes the recorder that a call asks for. The error is one line.
    ///
    /// # Errors
    /// The recording to replay cannot be read.
    pub fn new(record: Record) -> Result<Self, String> {
        let mode = match record {
            Record::Keep { bytes } => Mode::Keeps(Written::new(bytes)),
            Record::Replay { recording } => {
                let recording = Recording::from_bytes(&recording).map_err(|error| format!("the recording {error}"))?;
                let Recording { calls, full, end, .. } = recording;
                let (calls, end) = (calls.into_iter(), end.outcome);
                let (state, outputs) = (State::Goes, HashMap::new());
                Mode::Replays(Box::new(Replay { calls, answered: 0, full, end, state, outputs }))
            }
        };
        Ok(Self { mode, within: 0 })
    }

    /// Whether the next call is the guest's own.
    fn is_outermost(&self) -> bool {
        self.within == 0
    }

    /// Begins a function of the host that may call others.
    pub fn enter(&mut self) {
        self.within += 1;
    }

    /// Ends a function of the host.
    pub fn leave(&mut self) {
        self.within = self.within.saturating_sub(1);
    }

    /// Whether it answers from a recording.
    #[must_use]
    pub fn replays(&self) -> bool {
        matches!(self.mode, Mode::Replays(_))
    }

    /// Writes down a call. Returns the part of the recording to send now, and whether the recording ended by its bound.
    pub fn keep(&mut self, name: &str, asked: Vec<u8>, told: Vec<u8>) -> (Option<Vec<u8>>, bool) {
        let outermost = self.is_outermost();
        match &mut self.mode {
            Mode::Keeps(written) if outermost => {
                let (asked, told) = (ByteBuf::from(asked), ByteBuf::from(told));
                let ended = written.call(HostCall { name: shown(name), asked, told, hidden: Vec::new() });
                (written.take(PART), ended)
            }
            _ => (None, false),
        }
    }

    /// Returns the rest of the recording.
    pub fn rest(&mut self) -> Option<Vec<u8>> {
        match &mut self.mode {
            Mode::Keeps(written) => written.take(0),
            Mode::Replays(_) => None,
        }
    }

    /// Answers a call from the recording. None if it does not replay, or if the call is not the guest's own.
    ///
    /// # Errors
    /// The inner error ends the guest: it asks something else, or the recording has no answer.
    pub fn answer(&mut self, name: &str, asked: &[u8]) -> Option<Result<Vec<u8>, HostFailure>> {
        let outermost = self.is_outermost();
        match &mut self.mode {
            Mode::Replays(replay) if outermost => Some(replay.answer(shown(name), asked)),
            _ => None,
        }
    }

    /// Answers a question that only some calls have. None if it is not the next one in the recording.
    pub fn answer_of(&mut self, name: &str, asked: &[u8]) -> Option<Vec<u8>> {
        let Mode::Replays(replay) = &mut self.mode else { return None };
        let next = replay.calls.as_slice().first()?;
        if next.name != name {
            return None;
        }
        replay.answer(name.to_owned(), asked).ok()
    }

    /// Ends the guest where the host ended it in the recorded call.
    pub fn ends(&mut self) -> HostFailure {
        if let Mode::Replays(replay) = &mut self.mode {
            replay.state = State::Ends;
        }
        HostFailure::Replayed
    }

    /// Notes that a handle of the guest is one of its standard streams.
    pub fn output(&mut self, handle: u32, level: Option<LogLevel>) {
        if let Mode::Replays(replay) = &mut self.mode {
            match level {
                Some(level) => drop(replay.outputs.insert(handle, level)),
                None => drop(replay.outputs.remove(&handle)),
            }
        }
    }

    /// Returns the level of a standard stream in a replay.
    #[must_use]
    pub fn level(&self, handle: u32) -> Option<LogLevel> {
        match &self.mode {
            Mode::Replays(replay) => replay.outputs.get(&handle).copied(),
            Mode::Keeps(_) => None,
        }
    }

    /// Judges a replay: returns its outcome, and the message about the first difference.
    pub fn judge(&mut self, call: u64, outcome: Outcome) -> (Outcome, Option<FromExecutor>) {
        let Mode::Replays(replay) = &mut self.mode else { return (outcome, None) };
        let at = replay.answered;
        let differs = |recorded, asked| FromExecutor::Differs { call, at, recorded, asked };
        let stopped = |text: &str| Outcome::Failed { kind: FailKind::Host, message: text.to_owned(), retcode: 1 };
        match std::mem::replace(&mut replay.state, State::Goes) {
            State::Goes => {
                let left = replay.calls.next().map(told_apart);
                (outcome, left.map(|left| differs(Some(left), None)))
            }
            State::Ends => (replay.end.clone(), None),
            State::Lacks => {
                (stopped("the recording ends here, because it reached its bound"), Some(differs(None, None)))
            }
            State::Differs { recorded, asked } => {
                let message = differs(recorded.map(told_apart), asked.map(told_apart));
                (stopped("it asks something else than in the recording"), Some(message))
            }
        }
    }
}

/// Upper bound on the bytes of what was asked in the message about a difference.
const MAX_ASKED: usize = 1 << 20;

/// A call without its answer, for a message.
fn told_apart(mut call: HostCall) -> (String, ByteBuf) {
    call.asked.truncate(MAX_ASKED);
    (call.name, call.asked)
}

impl Replay {
    fn answer(&mut self, name: String, asked: &[u8]) -> Result<Vec<u8>, HostFailure> {
        if !matches!(self.state, State::Goes) {
            return Err(HostFailure::Replayed);
        }
        self.state = match self.calls.next() {
            Some(call) if call.name == name && is_same(&call.asked, &call.hidden, asked) => {
                self.answered += 1;
                return Ok(call.told.into_vec());
            }
            Some(call) => State::Differs { recorded: Some(call), asked: Some(asks(name, asked)) },
            None if self.full => State::Lacks,
            // A call that waited when its time was up, or when it was killed, has no answer.
            None if matches!(
                self.end,
                Outcome::Failed { kind: FailKind::Wall | FailKind::Killed | FailKind::Cpu | FailKind::Internal, .. }
            ) =>
            {
                State::Ends
            }
            None => State::Differs { recorded: None, asked: Some(asks(name, asked)) },
        };
        Err(HostFailure::Replayed)
    }
}

/// A call without an answer.
fn asks(name: String, asked: &[u8]) -> HostCall {
    HostCall { name, asked: ByteBuf::from(asked.to_vec()), told: ByteBuf::new(), hidden: Vec::new() }
}

/// The name of a function as WIT writes it.
fn shown(name: &str) -> String {
    name.replace('_', "-")
}

/// The request as it is written down. What the caller has left of its budget depends on the host's files.
#[must_use]
pub fn asked(op: &HostOp) -> Vec<u8> {
    let mut op = op.clone();
    if let HostOp::Functions(call) | HostOp::States(StatesOp::Call(call)) = &mut op {
        let FunctionsOp::Call { written_left, new_files_left, .. } = call;
        (*written_left, *new_files_left) = (0, 0);
    }
    pack(&op)
}

/// The broker's answer as it is written down.
#[must_use]
pub fn told(answer: &Result<ByteBuf, HostError>) -> Vec<u8> {
    pack(&answer)
}

/// Reads the broker's answer from a recording.
///
/// # Errors
/// What is wrong with it.
pub fn answered(told: &[u8]) -> Result<Result<ByteBuf, HostError>, String> {
    unpack(told)
}
