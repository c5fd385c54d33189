//! The minion's side of the sandbox: modules, policy, limits and the executors that run instances.
//!
//! A job goes [`Sandbox::run`] → admission → the executor process → back; a module goes [`Sandbox::install`] → the
//! compiler's cage → the cache → the executor. Neither wasmtime nor a compiler is linked here: modules are opaque bytes
//! and what runs them is another process without privileges.
//!
//! - `name.rs`     checked names of modules
//! - `policy/`     what a module may do: pure, the declarations of `brine_capabilities` and the owner's word; `settings/` reads it
//! - `broker/`     the trait through which everything outside an instance happens, and the one check before it
//! - `signature/`  who signed a module, and when; `report.rs` what owners are told of all that
//! - `compile.rs`  one run of the compiler in its cage
//!   `examine.rs` the same for who only wants to know
//! - `cache.rs`    what it made, by content; `lanes.rs` who waits for whom meanwhile
//! - `store.rs`    the modules there are, and how one is switched in
//! - `spawn.rs`    how the two programs are started; `user.rs` as whom; `cgroup.rs` control groups, where there are any
//! - `process.rs`  one executor process; `link.rs` the conversation with it; `supervisor.rs` its life after death;
//!   `suspects.rs` modules that kill it; `executors.rs` which there are
//! - `admission/` who runs, who waits, who is refused; `job.rs` one call from arguments to outcome
//! - `memory.rs`   how much memory all instances may have; `trim.rs` gives back what they used
//! - `value.rs`    MessagePack from an executor, bounded before it is built
//! - `sentence.rs` names in a sentence

mod admission;
mod broker;
mod cache;
mod cgroup;
mod compile;
mod directories;
mod examine;
mod executors;
mod job;
mod lanes;
mod link;
mod memory;
mod name;
mod policy;
mod process;
mod report;
mod sandbox;
mod sentence;
mod settings;
mod signature;
mod spawn;
mod store;
mod supervisor;
mod suspects;
#[cfg(test)]
mod testing;
mod trim;
mod user;
mod value;

use std::path::PathBuf;
use std::time::Duration;

pub use admission::Concurrency;
pub use brine_capabilities::hosts::{Host as NetworkHost, plain as plain_address};
pub use brine_capabilities::ops::*;
pub use brine_capabilities::{
    Capability, DirectGrants, Directory, Grant, Grants, Host, HttpRequest, ListKind, Names, NetworkRule,
    PROGRAM_FOLDERS, ProcessGrant, ProcessRun, Program, each_capability,
};
pub use brine_component::{Function, ModuleInfo, Param, Rest, signature};
pub use brine_sandbox_wire::{ByteBuf, FailKind, HostError, JobContext, Limits, LogLevel, Sha256Hex, Usage};
pub use broker::{Broker, Caller, Remedy, check, check_host};
pub use cgroup::program_groups;
pub use examine::{Compiled, examine};
pub use job::JobOutcome;
pub use lanes::{Lanes, OneEach, SMALL_MODULE};
pub use name::{BadName, ModuleName};
pub use policy::always as always_granted;
pub use policy::{
    Entry, Granted, LimitChanges, ModuleGrants, Policy, Quorum, Refused, Revoked, Rules, Signer, Signers, Subject,
};
pub use sandbox::{Reloaded, Removed, Sandbox, StartError};
pub use settings::{Settings, SettingsError, others_may_write};
pub use signature::{KeyId, MAX_SIGNATURE, MAX_SIGNERS, SignatureError, SigningKey};
pub use store::{ApproveError, Held, InstallError, Installed, Module, RemoveError, RollbackError, Synced, SyncedFrom};
pub use supervisor::Restarts;

/// Where the sandbox finds its parts, and its bounds.
#[derive(Debug, Clone)]
pub struct SandboxConfig {
    /// The program `brine-executor`.
    pub executor: PathBuf,
    /// The program `brine-compiler`.
    pub compiler: PathBuf,
    /// Compiled code by content. Made with mode 0700; its owner and mode are checked.
    pub cache_dir: PathBuf,
    /// The modules of the package, `NAME.wasm`. Never written.
    pub standard_dir: PathBuf,
    /// Modules that were installed, `NAME.wasm`; read again at the next start.
    pub modules_dir: PathBuf,
    /// What one job may use.
    pub limits: Limits,
    /// The owner's grants.
    pub policy: Policy,
    /// Jobs that compute at the same time.
    pub max_running: usize,
    /// Jobs that have begun and wait for something (a sleep, a program, another server), beside those.
    pub max_waiting: usize,
    /// Jobs that wait for their turn; one more is refused at once.
    pub max_queued: usize,
    /// Bytes of memory that the instances of all jobs may have together: the sum of what is lent to them. Jobs wait for room.
    pub total_memory: u64,
    /// For an executor with direct grants that no job needs, before it ends.
    pub executor_idle: Duration,
    /// What compiling one module may use.
    pub compile: CompileLimits,
    /// The user of executors and compiler where this process is root: a name or a number; none: the sandbox's own.
    pub user: Option<String>,
    /// Whether to refuse to start where something of the second wall is missing.
    pub require_second_wall: bool,
}

/// What compiling one module may use; the engine itself bounds nothing there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompileLimits {
    /// Bytes of a module before the compiler is even started.
    pub module: u64,
    /// Bytes of address space. An interpreter of 18 MB needs 400 MB.
    pub memory: u64,
    /// Seconds of CPU. An interpreter of 18 MB needs 11 to 15 of a fast processor that does nothing else; there is room here for one that
    /// is four times as slow.
    pub cpu_s: u64,
    /// Bytes of compiled code.
    pub file: u64,
    /// Time on the clock, for a machine that is busy: the compiler steps back behind everything else.
    pub wall: Duration,
}

impl Default for CompileLimits {
    fn default() -> Self {
        Self { module: 32 << 20, memory: 1 << 30, cpu_s: 60, file: 128 << 20, wall: Duration::from_secs(300) }
    }
}
