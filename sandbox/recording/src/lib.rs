//! Recordings of calls: what an instance asked of its host and what it was told, in the order in which it asked.
//!
//! A file is [`MAGIC`] and then frames: a big-endian `u32` length and that many bytes of MessagePack, one [`Entry`]
//! each. The first one is the [`Head`], the last one the [`End`]. Executors write the calls, the minion the rest.
//! Recordings come from other people's hosts, so reading is bounded: no length in a file reserves memory.
//!
//! - [`write`]: the bytes of an entry; [`read`]: a whole file

mod read;
mod write;

use brine_sandbox_wire::{ByteBuf, JobContext, Limits, Outcome, Sha256Hex};
use serde::{Deserialize, Serialize};

pub use read::{Recording, RecordingError, entries, unpack};
pub use write::{Written, entry, pack};

/// The first bytes of a file. The number is the version of the format.
pub const MAGIC: &[u8] = b"brine-recording 1\n";

/// Upper bound on the bytes of a file. A replay passes it to an executor in one message.
pub const MAX_FILE: u64 = 24 << 20;

/// Upper bound on the calls in a file. It bounds the memory that many small entries take when they are read.
pub const MAX_CALLS: u32 = 200_000;

/// The ending of a file's name.
pub const SUFFIX: &str = ".recording";

/// A part of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Entry {
    /// What was called.
    Head(Box<Head>),
    /// One call of the host.
    Call(HostCall),
    /// The bound was reached: later calls are missing.
    Full,
    /// How the call ended.
    End(Box<End>),
}

/// What was called, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// The module's name.
    pub module: String,
    /// The component's hash.
    pub sha256: Sha256Hex,
    /// The function's name as executors know it: `ping`, `states.managed`.
    pub function: String,
    /// Positional arguments: a MessagePack array.
    pub args: ByteBuf,
    /// Keyword arguments: a MessagePack map.
    pub kwargs: ByteBuf,
    /// The job.
    pub context: JobContext,
    /// The limits of the call.
    pub limits: Limits,
    /// The time of the call, in seconds since 1970.
    pub time: u64,
    /// The version of the minion.
    pub brine: String,
    /// How many different secrets were replaced by markers.
    #[serde(default)]
    pub secrets: u32,
}

/// One call of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostCall {
    /// Interface and function: `grains.items`, `wasi:clocks/wall-clock.now`.
    pub name: String,
    /// What was asked: MessagePack.
    pub asked: ByteBuf,
    /// What the host said: MessagePack.
    pub told: ByteBuf,
    /// Where `asked` has markers in place of secrets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<Span>,
}

/// A place in bytes: start and length.
pub type Span = (u32, u32);

/// Compares recorded bytes with others. Where the recorded ones have markers in place of secrets, any bytes are equal.
#[must_use]
pub fn is_same(recorded: &[u8], hidden: &[Span], other: &[u8]) -> bool {
    let wide = |n: u32| usize::try_from(n).unwrap_or(usize::MAX);
    let mut places = hidden.to_vec();
    places.sort_unstable();
    let mut from = 0;
    let ends = [(u32::MAX, 0)];
    let equal = places.iter().chain(&ends).all(|(start, length)| {
        let to = wide(*start).clamp(from, recorded.len().max(from));
        let same = recorded.get(from..to) == other.get(from..to);
        from = to.saturating_add(wide(*length)).min(recorded.len().max(to));
        same
    });
    recorded.len() == other.len() && equal
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// What the job was told.
    pub outcome: Outcome,
    /// Where the return or the error has markers in place of secrets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<Span>,
}

impl End {
    /// Compares the outcome with that of a replay, apart from secrets.
    #[must_use]
    pub fn is_same(&self, other: &Outcome) -> bool {
        match (&self.outcome, other) {
            (Outcome::Returned { value, retcode }, Outcome::Returned { value: others, retcode: code }) => {
                retcode == code && is_same(value, &self.hidden, others)
            }
            (
                Outcome::Failed { kind, message, retcode },
                Outcome::Failed { kind: others, message: text, retcode: code },
            ) => kind == others && retcode == code && is_same(message.as_bytes(), &self.hidden, text.as_bytes()),
            _ => false,
        }
    }
}
