//! The minion's side of the sandbox: modules, policy, limits and the executors that run instances.
//!
//! The way of a job: [`Sandbox::run`] → admission → the executor process → back. The way of a module:
//! [`Sandbox::install`] → the compiler's cage → the cache → the executor. This crate links neither wasmtime nor a
//! compiler: modules are opaque bytes, and another process without privileges runs them.
//!
//! - `name.rs`     checked names of modules
//! - `policy/`     decides what a module may do: pure functions of the declarations in `brine_capabilities` and the
//!   owner's settings, which `settings/` reads
//! - `broker/`     the trait that performs everything outside an instance, and the one check before it
//! - `signature/`  verifies module signatures; `report.rs` reports on modules, policy and walls
//! - `compile.rs`  one run of the compiler in its cage; `examine.rs` the same for tools that only inspect a module
//! - `cache.rs`    compiled code by content; `lanes.rs` the queues for fetching and compiling
//! - `store.rs`    the installed modules, and how one is switched in
//! - `spawn.rs`    starts the two programs; `user.rs` selects their user; `cgroup.rs` their control groups, if
//!   available
//! - `process.rs`  one executor process; `link.rs` the conversation with it; `supervisor.rs` restarts it; `suspects.rs`
//!   tracks modules that kill it; `executors.rs` the set of executors
//! - `admission/`  decides which job runs, waits or is refused; `job.rs` one call from arguments to outcome
//! - `memory.rs`   the memory available to all instances; `trim.rs` returns freed memory to the host
//! - `value.rs`    MessagePack from an executor, checked against bounds before it is built
//! - `sentence.rs` lists of names in messages

mod examine;
mod kernel;
mod policy;
mod report;
mod resolve;
mod sandbox;
mod sentence;
mod settings;
mod signature;
mod store;
#[cfg(test)]
mod testing;

use std::path::PathBuf;
use std::time::Duration;

pub use brine_capabilities::hosts::{Host as NetworkHost, plain as plain_address};
pub use brine_capabilities::ops::*;
pub use brine_capabilities::{
    Capability, DirectGrants, Directory, Grant, Grants, Host, HttpRequest, ListKind, Names, NetworkRule,
    PROGRAM_FOLDERS, ProcessGrant, ProcessRun, Program, each_capability,
};
pub use brine_component::{Function, ModuleInfo, Param, Rest, signature};
pub use brine_sandbox_wire::{ByteBuf, FailKind, HostError, JobContext, Limits, LogLevel, Sha256Hex, Usage};
pub use examine::{Compiled, examine};
pub use kernel::admission::Concurrency;
pub use kernel::broker::{Broker, Caller, Remedy, check, check_host};
pub use kernel::cgroup::program_groups;
pub use kernel::compile::CompileLimits;
pub use kernel::lanes::{Lanes, OneEach, SMALL_MODULE};
pub use kernel::name::{BadName, ModuleName};
pub use kernel::run::JobOutcome;
pub use kernel::supervisor::Restarts;
pub use policy::always as always_granted;
pub use policy::{
    Entry, Granted, LimitChanges, ModuleGrants, Policy, Quorum, Refused, Revoked, Rules, Signer, Signers, Subject,
};
pub use sandbox::{Reloaded, Removed, Sandbox, StartError};
pub use settings::{Settings, SettingsError, others_may_write};
pub use signature::{KeyId, MAX_SIGNATURE, MAX_SIGNERS, SignatureError, SigningKey};
pub use store::{ApproveError, Held, InstallError, Installed, Module, RemoveError, RollbackError, Synced, SyncedFrom};

/// The sandbox's programs, folders and limits.
#[derive(Debug, Clone)]
pub struct SandboxConfig {
    /// The program `brine-executor`.
    pub executor: PathBuf,
    /// The program `brine-compiler`.
    pub compiler: PathBuf,
    /// Folder of compiled code by content. Made with mode 0700; its owner and mode are checked.
    pub cache_dir: PathBuf,
    /// Folder of the package's modules, `NAME.wasm`. Never written.
    pub standard_dir: PathBuf,
    /// Folder of installed modules, `NAME.wasm`, which the next start reads again.
    pub modules_dir: PathBuf,
    /// The limits of one job.
    pub limits: Limits,
    /// The owner's grants.
    pub policy: Policy,
    /// Upper bound on the jobs that compute at the same time.
    pub max_running: usize,
    /// Upper bound on the jobs that have begun and wait for something (a sleep, a program, another server), in addition
    /// to `max_running`.
    pub max_waiting: usize,
    /// Upper bound on the jobs that wait to begin. Further jobs are refused at once.
    pub max_queued: usize,
    /// Bytes of memory lent to the instances of all jobs together. Jobs wait for free memory.
    pub total_memory: u64,
    /// Idle time after which an executor with direct grants ends.
    pub executor_idle: Duration,
    /// The limits of one compilation.
    pub compile: CompileLimits,
    /// The user of executors and compiler if this process is root: a name or a number. None: the sandbox's own user.
    pub user: Option<String>,
    /// Whether to refuse to start if the second wall is incomplete.
    pub require_second_wall: bool,
}
