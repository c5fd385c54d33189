//! What minion and executor say to each other.

use std::fmt;
use std::str::FromStr;

use brine_capabilities::{DirectGrants, HostOp};
use brine_sandbox_walls::Walls;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_bytes::ByteBuf;

/// The largest frame's body. What goes into a job came from the master in one message and what comes out is limited by
/// [`Limits::output`]; both stay far below, and a peer that sends the most it may costs no more than this.
pub const MAX_FRAME: usize = 32 << 20;

/// A message of one direction.
pub trait Message: Serialize + DeserializeOwned + fmt::Debug + Send {
    /// Whether the message comes with one open file.
    fn carries_file(&self) -> bool {
        false
    }
}

/// From the minion to an executor.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum ToExecutor {
    /// Make a module ready: one open, read-only `.cwasm` file comes with it. Answered by `Loaded` or `LoadFailed`.
    Load {
        /// The component's hash: how `Run` and `Unload` name it.
        module: Sha256Hex,
        /// What operators call it, for errors: `test`.
        name: String,
        /// The interfaces it was granted, as in [`Run`]: what cannot be linked with them is answered by `LoadFailed`.
        /// None: that shows when it is called.
        #[serde(default)]
        imports_granted: Option<Vec<String>>,
    },
    /// Forget a module. Running calls of it go on.
    Unload {
        /// The component's hash.
        module: Sha256Hex,
    },
    /// Call a function. Answered by exactly one `Done`.
    Run(Box<Run>),
    /// The same for a call that may hold less than its limit of memory until it asks for all of it by `Grow`.
    RunWithin {
        /// The call.
        run: Box<Run>,
        /// Bytes.
        lease: u64,
    },
    /// End a call. Answered by its `Done` with [`FailKind::Killed`], unless it was done already.
    Kill {
        /// The call's number.
        call: u64,
        /// Why, as the return is to say it: "killed by saltutil.kill_job".
        reason: String,
    },
    /// The answer to a `HostCall`.
    HostReply {
        /// The call's number.
        call: u64,
        /// The request's number within the call.
        request: u64,
        /// One MessagePack value, or why there is none.
        result: Result<ByteBuf, HostError>,
    },
    /// The answer to a `Grow`.
    Grown {
        /// The call's number.
        call: u64,
        /// Why it gets no more, where it does not.
        refused: Option<String>,
    },
    /// Are you there? Answered by `Pong`.
    Ping {
        /// Comes back in the `Pong`.
        n: u64,
    },
    /// Are you there, and which of your calls wait? Answered by `Looked`.
    Look {
        /// Comes back in the answer.
        n: u64,
        /// Calls that wait and hold no more bytes of memory than this give back what they might hold beyond it.
        lease: u64,
    },
}

impl Message for ToExecutor {
    fn carries_file(&self) -> bool {
        matches!(self, Self::Load { .. })
    }
}

/// From an executor to the minion.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum FromExecutor {
    /// The first message.
    Ready {
        /// [`crate::VERSION`] of the executor.
        version: u32,
        /// Its process id.
        pid: u32,
        /// The walls that it has raised around itself.
        walls: Walls,
    },
    /// A module can be run.
    Loaded {
        /// The component's hash.
        module: Sha256Hex,
    },
    /// A module cannot be run; an earlier one under the same hash is gone too.
    LoadFailed {
        /// The component's hash.
        module: Sha256Hex,
        /// One line.
        error: String,
    },
    /// A call is over.
    Done {
        /// The call's number.
        call: u64,
        /// How it ended.
        outcome: Outcome,
        /// What it used.
        usage: Usage,
    },
    /// A line for the minion's log, without control characters. All of a call's lines come before its `Done`.
    Log {
        /// The call's number.
        call: u64,
        /// How grave.
        level: LogLevel,
        /// The line.
        message: String,
    },
    /// The guest asks the host for something; answered by `HostReply`.
    HostCall {
        /// The call's number.
        call: u64,
        /// The request's number within the call.
        request: u64,
        /// What it asks.
        op: HostOp,
    },
    /// A call needs more memory than its lease. It waits for `Grown`.
    Grow {
        /// The call's number.
        call: u64,
    },
    /// The answer to `Ping`.
    Pong {
        /// As in the `Ping`.
        n: u64,
    },
    /// The answer to `Look`.
    Looked {
        /// As in the `Look`.
        n: u64,
        /// Calls that have waited for something outside their instance since the `Look` before, and have not computed.
        waits: Vec<u64>,
        /// Those of them that hold no more than the lease of this `Look` from now on, or ask before.
        gave_back: Vec<u64>,
    },
}

impl Message for FromExecutor {}

/// One call of a function.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Run {
    /// Number of this call, chosen by the minion, never used twice on one connection.
    pub call: u64,
    /// The component.
    pub module: Sha256Hex,
    /// The function as called, without the module: `get_or_default`.
    pub function: String,
    /// Positional arguments: a MessagePack array.
    #[serde(with = "serde_bytes")]
    pub args: Vec<u8>,
    /// Keyword arguments: a MessagePack map with text keys.
    #[serde(with = "serde_bytes")]
    pub kwargs: Vec<u8>,
    /// The job it belongs to.
    pub context: JobContext,
    /// What it may use.
    pub limits: Limits,
    /// The interfaces beyond the ever granted ones that it may import: `brine:host/grains`, with or without `@version`.
    pub imports_granted: Vec<String>,
    /// What of the host the instance itself reaches; never more than the executor's process does.
    #[serde(default)]
    pub direct: DirectGrants,
}

/// The job that a call belongs to, as the guest's `brine:host/job` shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobContext {
    /// The job's id, 20 digits, or `req`.
    pub jid: String,
    /// The whole name: `test.ping`.
    pub function: String,
    /// The function that called this one, of another module; none for the job's own.
    #[serde(default)]
    pub called_by: Option<String>,
    /// Who asked.
    pub user: String,
    /// This minion.
    pub minion_id: String,
    /// `test=True`.
    pub test: bool,
    /// The fingerprint of the master that sent it; none for jobs of this host's own (`salt-call`).
    #[serde(default)]
    pub master: Option<String>,
    /// The job's own limit of the wall clock, in milliseconds; it only lowers what its module may take.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
}

/// What one call may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Bytes of linear memory and tables, all of the instance together.
    pub memory: u64,
    /// Milliseconds from start to return, waiting included.
    pub wall_ms: u64,
    /// Bytes of the returned MessagePack value.
    pub output: u64,
    /// Bytes of log lines.
    pub log: u64,
    /// Bytes the host may allocate for the arguments or results of one call between guest and host. A value of dynamic type counts
    /// 40 bytes for each element.
    pub host_bytes: u64,
    /// Calls to the broker.
    pub host_calls: u32,
    /// Milliseconds of CPU time.
    #[serde(default = "default_cpu_ms")]
    pub cpu_ms: u64,
    /// Milliseconds of CPU time of all functions together that the call calls, and of those that these call. The minion counts it.
    #[serde(default = "default_calls_cpu_ms")]
    pub calls_cpu_ms: u64,
    /// Log lines.
    #[serde(default = "default_log_lines")]
    pub log_lines: u32,
    /// Bytes written to files, with what a file gets longer by without.
    #[serde(default = "default_written")]
    pub written: u64,
    /// Files, directories and links that are made.
    #[serde(default = "default_new_files")]
    pub new_files: u64,
}

/// Half of the wall clock: a job that computes all the time is rarely what a minion is for.
fn default_cpu_ms() -> u64 {
    30_000
}

/// Ten functions that compute for as long as each may.
fn default_calls_cpu_ms() -> u64 {
    300_000
}

/// What 64 KiB of ordinary lines are.
fn default_log_lines() -> u32 {
    1_000
}

/// More than a configuration and most of what is deployed, and less than what fills a disk in a second.
fn default_written() -> u64 {
    256 << 20
}

/// Most packages have fewer, and a directory of so many is still listed in no time.
fn default_new_files() -> u64 {
    10_000
}

impl Limits {
    /// What `output` can be at most: the value has to fit into a frame with what stands around it.
    pub const MAX_OUTPUT: u64 = MAX_FRAME as u64 - 64 * 1024;
}

impl Default for Limits {
    /// 64 MiB of memory, 60 s, 4 MiB of output and 64 KiB of log are DESIGN.md's §3.3. 16 MiB of host bytes let a dynamic value of
    /// 400,000 numbers through and any typed one that fits the output.
    fn default() -> Self {
        Self {
            memory: 64 << 20,
            wall_ms: 60_000,
            output: 4 << 20,
            log: 64 << 10,
            host_bytes: 16 << 20,
            host_calls: 10_000,
            cpu_ms: default_cpu_ms(),
            calls_cpu_ms: default_calls_cpu_ms(),
            log_lines: default_log_lines(),
            written: default_written(),
            new_files: default_new_files(),
        }
    }
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// The function returned.
    Returned {
        /// One MessagePack value.
        #[serde(with = "serde_bytes")]
        value: Vec<u8>,
        /// What the guest set with `set-retcode`, else 0.
        retcode: i32,
    },
    /// It did not.
    Failed {
        /// Whose fault.
        kind: FailKind,
        /// One line for the operator.
        message: String,
        /// 1, or what the guest set with `set-retcode` before its function returned an error.
        retcode: i32,
    },
}

/// Why a call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FailKind {
    /// The arguments do not fit the function.
    Arguments,
    /// The function returned `err`.
    Function,
    /// The guest trapped.
    Trap,
    /// The wall clock limit.
    Wall,
    /// The CPU limit.
    Cpu,
    /// The memory limit.
    Memory,
    /// The return is too large.
    Output,
    /// A host call was refused or failed.
    Host,
    /// The minion ended it.
    Killed,
    /// An import that was not granted or does not exist.
    Refused,
    /// No such module loaded, or no such function in it.
    Unknown,
    /// The executor's fault.
    Internal,
}

/// What a call used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Microseconds from start to end.
    pub wall_us: u64,
    /// Microseconds of CPU.
    pub cpu_us: u64,
    /// Most bytes of memory and tables held at once.
    pub memory_peak: u64,
    /// Calls to the broker.
    pub host_calls: u64,
    /// Bytes that went into the guest: arguments and replies of the broker.
    pub bytes_in: u64,
    /// Bytes that came out: the return and the log.
    pub bytes_out: u64,
    /// Log lines dropped because the budget was used up.
    pub log_dropped: u64,
    /// Bytes written to files, as [`Limits::written`] counts them.
    #[serde(default)]
    pub written: u64,
    /// Files made, as [`Limits::new_files`] counts them.
    #[serde(default)]
    pub new_files: u64,
}

/// Why the broker has no answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum HostError {
    /// It may not.
    #[error("{0}")]
    Denied(String),
    /// It went wrong.
    #[error("{0}")]
    Failed(String),
}

/// A log line's level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum LogLevel {
    /// The finest.
    Trace,
    /// For who builds the module.
    Debug,
    /// Ordinary.
    Info,
    /// Something is odd.
    Warning,
    /// Something failed.
    Error,
}

/// A SHA-256, written as 64 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Sha256Hex(#[serde(with = "serde_bytes")] [u8; 32]);

impl Sha256Hex {
    /// The digest.
    #[must_use]
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl From<[u8; 32]> for Sha256Hex {
    fn from(digest: [u8; 32]) -> Self {
        Self(digest)
    }
}

impl fmt::Display for Sha256Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Sha256Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Text that is not 64 hex digits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a SHA-256: 64 hex digits are expected")]
pub struct NotASha256;

impl FromStr for Sha256Hex {
    type Err = NotASha256;

    fn from_str(text: &str) -> Result<Self, NotASha256> {
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|n| u8::try_from(n).ok()).ok_or(NotASha256);
        let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return Err(NotASha256) };
        let mut digest = [0; 32];
        if pairs.len() != digest.len() {
            return Err(NotASha256);
        }
        for (byte, [high, low]) in digest.iter_mut().zip(pairs) {
            *byte = digit(*high)? << 4 | digit(*low)?;
        }
        Ok(Self(digest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sha256_text() {
        let text = "00ff".repeat(16);
        let hash: Sha256Hex = text.parse().unwrap();
        assert_eq!(hash.to_string(), text);
        for bad in ["", "00", &"zz".repeat(32), &"00".repeat(33), &"é".repeat(32), &"0".repeat(63)] {
            assert_eq!(bad.parse::<Sha256Hex>(), Err(NotASha256), "{bad}");
        }
    }
}
