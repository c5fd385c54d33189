//! The messages between minion and executor.

use std::fmt;
use std::str::FromStr;

use brine_capabilities::{DirectGrants, HostOp, Wanted};
use brine_sandbox_walls::Walls;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_bytes::ByteBuf;

/// Upper bound on a frame's body. A job's arguments came from the master in one message, and [`Limits::output`] bounds
/// its return; both are far below this. It also bounds the memory that a hostile peer can occupy.
pub const MAX_FRAME: usize = 32 << 20;

/// A message of one direction.
pub trait Message: Serialize + DeserializeOwned + fmt::Debug + Send {
    /// Checks whether the message carries an open file.
    fn carries_file(&self) -> bool {
        false
    }
}

/// From the minion to an executor.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum ToExecutor {
    /// Load a module; an open, read-only `.cwasm` file comes with it. The answer is `Loaded` or `LoadFailed`.
    Load {
        /// The component's hash, which `Run` and `Unload` refer to.
        module: Sha256Hex,
        /// The name for errors: `test`.
        name: String,
        /// The granted interfaces, as in [`Run`]. If linking fails with them, the answer is `LoadFailed`. None: linking
        /// is checked when the module is called.
        #[serde(default)]
        imports_granted: Option<Vec<String>>,
    },
    /// Unload a module. Its running calls continue.
    Unload {
        /// The component's hash.
        module: Sha256Hex,
    },
    /// Call a function. The answer is exactly one `Done`.
    Run(Box<Run>),
    /// Call a function with less memory than its limit until the call asks for all of it by `Grow`.
    RunWithin {
        /// The call.
        run: Box<Run>,
        /// Memory in bytes.
        lease: u64,
    },
    /// End a call. The answer is its `Done` with [`FailKind::Killed`], unless the call has already ended.
    Kill {
        /// The call's number.
        call: u64,
        /// The reason, in the words of the return: "killed by saltutil.kill_job".
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
        /// Why it gets no more memory. None: it got it.
        refused: Option<String>,
    },
    /// Check that the executor responds. The answer is `Pong`.
    Ping {
        /// Number of the ping, repeated in the `Pong`.
        n: u64,
    },
    /// Ask which calls wait. The answer is `Looked`.
    Look {
        /// Number of the question, repeated in the answer.
        n: u64,
        /// Calls that wait and hold at most this many bytes of memory give back the rest of their lease.
        lease: u64,
    },
    /// Ask what the running calls use. The answer is `Measured`.
    Measure {
        /// Number of the question, repeated in the answer.
        n: u64,
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
        /// The walls that the executor has raised around itself.
        walls: Walls,
    },
    /// A module is ready to run.
    Loaded {
        /// The component's hash.
        module: Sha256Hex,
    },
    /// A module cannot be loaded. An earlier one under the same hash is unloaded too.
    LoadFailed {
        /// The component's hash.
        module: Sha256Hex,
        /// One line.
        error: String,
    },
    /// A call has ended.
    Done {
        /// The call's number.
        call: u64,
        /// The result of the call.
        outcome: Outcome,
        /// The resources it used.
        usage: Usage,
    },
    /// A line for the minion's log, without control characters. All lines of a call come before its `Done`.
    Log {
        /// The call's number.
        call: u64,
        /// The severity.
        level: LogLevel,
        /// The line.
        message: String,
    },
    /// The next part of a call's recording: frames of `brine-recording`. All parts of a call come before its `Done`.
    Recorded {
        /// The call's number.
        call: u64,
        /// The frames.
        part: ByteBuf,
    },
    /// The first difference between a replayed call and its recording. It comes before the call's `Done`.
    Differs {
        /// The call's number.
        call: u64,
        /// How many calls of the host were the same before it.
        at: u64,
        /// What was asked in the recording: name and MessagePack. None: nothing more.
        recorded: Option<(String, ByteBuf)>,
        /// What the replayed call asks. None: it ended.
        asked: Option<(String, ByteBuf)>,
    },
    /// A guest's request to the host. The answer is `HostReply`.
    HostCall {
        /// The call's number.
        call: u64,
        /// The request's number within the call.
        request: u64,
        /// The operation.
        op: HostOp,
    },
    /// The executor itself refused a guest something that it was not granted. There is no answer.
    Refused {
        /// The call's number.
        call: u64,
        /// What the guest wanted.
        wanted: Wanted,
    },
    /// A call needs more memory than its lease. It waits for `Grown`.
    Grow {
        /// The call's number.
        call: u64,
    },
    /// The answer to `Ping`.
    Pong {
        /// The number in the `Ping`.
        n: u64,
    },
    /// The answer to `Look`.
    Looked {
        /// The number in the `Look`.
        n: u64,
        /// Calls that, since the previous `Look`, have only waited for something outside their instance and have not
        /// computed.
        waits: Vec<u64>,
        /// Calls among them that hold no more than the lease of this `Look` from now on, and ask before they hold more.
        gave_back: Vec<u64>,
    },
    /// The answer to `Measure`. It is shown to people and decides nothing.
    Measured {
        /// The number in the `Measure`.
        n: u64,
        /// Each call that has not ended.
        calls: Vec<InUse>,
    },
}

impl Message for FromExecutor {}

/// What a running call uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct InUse {
    /// The call's number.
    pub call: u64,
    /// Bytes of memory that its instance holds now.
    pub memory: u64,
    /// Microseconds of CPU time until its last turn ended.
    pub cpu_us: u64,
}

/// A call of a function.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Run {
    /// Number of this call, chosen by the minion and used only once on a connection.
    pub call: u64,
    /// The component's hash.
    pub module: Sha256Hex,
    /// The function's name in calls, without the module: `get_or_default`.
    pub function: String,
    /// Positional arguments: a MessagePack array.
    #[serde(with = "serde_bytes")]
    pub args: Vec<u8>,
    /// Keyword arguments: a MessagePack map with text keys.
    #[serde(with = "serde_bytes")]
    pub kwargs: Vec<u8>,
    /// The job it belongs to.
    pub context: JobContext,
    /// The limits of the call.
    pub limits: Limits,
    /// The granted interfaces, in addition to those that every module may import: `brine:host/grains`, with or without
    /// `@version`.
    pub imports_granted: Vec<String>,
    /// The host's directories and networks that the instance may access; a subset of those of the executor's process.
    #[serde(default)]
    pub direct: DirectGrants,
    /// In plan mode, the directories that are writable otherwise: the first change there ends the call.
    #[serde(default)]
    pub would_write: Vec<String>,
    /// Whether the call is recorded, or replayed from a recording. None: neither.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<Record>,
    /// Answers to the questions that the guest is expected to ask first, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub foreseen: Vec<Foreseen>,
}

/// The answer to a question that the guest is expected to ask. It is the guest's if it asks exactly this.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Foreseen {
    /// The question, as the guest asks it.
    pub op: HostOp,
    /// One MessagePack value, as in a `HostReply`.
    pub answer: ByteBuf,
}

/// What to do with the calls of the host that a call makes, beside performing them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Record {
    /// Record them in at most this many bytes.
    Keep {
        /// Bytes.
        bytes: u64,
    },
    /// Answer them from a recording, without a host.
    Replay {
        /// The file of `brine-recording`.
        recording: ByteBuf,
    },
}

/// The job that a call belongs to, as the guest's `brine:host/job` shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobContext {
    /// The job's id, 20 digits, or `req`.
    pub jid: String,
    /// The full name: `test.ping`.
    pub function: String,
    /// The function of another module that made this nested call. None for the job's own function.
    #[serde(default)]
    pub called_by: Option<String>,
    /// The user who requested the job.
    pub user: String,
    /// This minion's id.
    pub minion_id: String,
    /// Whether the job has `test=True`.
    pub test: bool,
    /// The fingerprint of the master that sent the job. None for jobs of this host (`salt-call`).
    #[serde(default)]
    pub master: Option<String>,
    /// The job's own limit of wall-clock time in milliseconds. It can only lower the module's limit.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// The state that the call is. None for functions.
    #[serde(default)]
    pub state: Option<StateContext>,
    /// The number of the call that runs the states to which this call belongs. None outside of runs of states.
    #[serde(default)]
    pub run: Option<u64>,
    /// Whether the job asks for recordings of its calls, which the owner of the host may permit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub record: bool,
    /// Whether somebody typed this call on this host (`salt-call`). False for what a master, a schedule, a beacon or the minion
    /// itself starts, whoever configured it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub typed: bool,
}

/// What a state is told of itself, beside its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StateContext {
    /// `__id__`: its id in the SLS file.
    pub id: String,
    /// `__sls__`: the SLS file.
    pub sls: String,
    /// `__env__`: the environment.
    pub saltenv: String,
    /// `__run_num__`: its place in the run.
    pub run_number: u32,
    /// The watched states that changed, as `MODULE: ID`.
    #[serde(default)]
    pub changed: Vec<String>,
}

/// The limits of one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Bytes of linear memory and tables of the whole instance.
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
    /// Milliseconds of CPU time of all nested calls together. The minion counts it.
    #[serde(default = "default_calls_cpu_ms")]
    pub calls_cpu_ms: u64,
    /// Log lines.
    #[serde(default = "default_log_lines")]
    pub log_lines: u32,
    /// Bytes written to files, including growth without written data.
    #[serde(default = "default_written")]
    pub written: u64,
    /// Files, directories and links that are created.
    #[serde(default = "default_new_files")]
    pub new_files: u64,
}

/// Half of the wall-clock time: few jobs on a minion compute all the time.
fn default_cpu_ms() -> u64 {
    30_000
}

/// Ten functions that each use their own CPU time up.
fn default_calls_cpu_ms() -> u64 {
    300_000
}

/// About 64 KiB of ordinary lines.
fn default_log_lines() -> u32 {
    1_000
}

/// More than a configuration and most deployed files, but less than what fills a disk within a second.
fn default_written() -> u64 {
    256 << 20
}

/// Most packages have fewer files, and a directory of this size still lists quickly.
fn default_new_files() -> u64 {
    10_000
}

impl Limits {
    /// The largest value of `output`: the return and its envelope must fit into a frame.
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

/// The result of a call.
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
    /// The function did not return.
    Failed {
        /// The cause.
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
    /// The limit of wall-clock time was reached.
    Wall,
    /// The limit of CPU time was reached.
    Cpu,
    /// The memory limit was reached.
    Memory,
    /// The return is too large.
    Output,
    /// A host call was refused or failed.
    Host,
    /// The minion ended the call.
    Killed,
    /// In plan mode, the call came to something that it would change.
    Planned,
    /// An import was not granted or does not exist.
    Refused,
    /// The module is not loaded, or has no such function.
    Unknown,
    /// A fault of the executor.
    Internal,
}

/// The resources used by a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Microseconds from start to end.
    pub wall_us: u64,
    /// Microseconds of CPU.
    pub cpu_us: u64,
    /// Peak of the bytes of memory and tables.
    pub memory_peak: u64,
    /// Calls to the broker.
    pub host_calls: u64,
    /// Bytes passed into the guest: arguments and the broker's replies.
    pub bytes_in: u64,
    /// Bytes passed out of the guest: the return and the log.
    pub bytes_out: u64,
    /// Log lines dropped after the budget was used up.
    pub log_dropped: u64,
    /// Bytes written to files, as [`Limits::written`] counts them.
    #[serde(default)]
    pub written: u64,
    /// Files created, as [`Limits::new_files`] counts them.
    #[serde(default)]
    pub new_files: u64,
    /// How many of [`Run::foreseen`] the guest asked for. They are among `host_calls` and `bytes_in`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub foreseen: u32,
    /// Whether the guest learned nothing of its host but [`Run::foreseen`], and told nobody anything: another call with the same arguments
    /// and answers would return the same.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeatable: bool,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// Why the broker returns no result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum HostError {
    /// The request is not allowed.
    #[error("{0}")]
    Denied(String),
    /// The request failed.
    #[error("{0}")]
    Failed(String),
    /// In plan mode: what would be done. It ends the call.
    #[error("{0}")]
    Planned(String),
}

/// A log line's level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum LogLevel {
    /// The finest detail.
    Trace,
    /// Details for the module's author.
    Debug,
    /// Ordinary messages.
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
    /// Returns the digest.
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

/// An error: the text is not 64 hex digits.
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
