//! The minion's side of the sandbox: modules, policy, limits and the executors that run instances.
//!
//! The way of a job: [`Sandbox::run`] → admission → the executor process → back. The way of a module:
//! [`Sandbox::install`] → the compiler's cage → the cache → the executor. This crate links neither wasmtime nor a
//! compiler: modules are opaque bytes, and another process without privileges runs them.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//!
//! use brine_sandbox::{
//!     Broker, Caller, HostError, HostOp, JobContext, LogLevel, Sandbox, SandboxConfig, Settings,
//! };
//! use futures_util::future::BoxFuture;
//! use rmpv::Value;
//!
//! /// Performs nothing for modules, whatever the owner granted.
//! struct Nothing;
//!
//! impl Broker for Nothing {
//!     fn host_call<'a>(&'a self, _: &'a Caller, _: HostOp) -> BoxFuture<'a, Result<Value, HostError>> {
//!         Box::pin(async { Err(HostError::Failed("there is nothing here".into())) })
//!     }
//!
//!     fn log(&self, _: &JobContext, _: LogLevel, message: &str) {
//!         eprintln!("{message}");
//!     }
//! }
//!
//! let config = SandboxConfig {
//!     executor: "/usr/lib/brine/brine-executor".into(),
//!     compiler: "/usr/lib/brine/brine-compiler".into(),
//!     cache_dir: "/var/cache/example/compiled".into(),
//!     standard_dir: "/usr/lib/brine/modules".into(),
//!     standard: None,
//!     modules_dir: "/var/cache/example/modules".into(),
//!     recordings_dir: "/var/cache/example/recordings".into(),
//!     settings: Settings::default(),
//! };
//! let sandbox = Sandbox::start(config, Arc::new(Nothing)).await?;
//! sandbox.install("hello", &std::fs::read("hello.wasm")?, None, "base").await?;
//! let job = JobContext { jid: "1".into(), function: "hello.greet".into(), ..JobContext::default() };
//! let outcome = sandbox.run(job, "hello.greet", vec![Value::from("world")], Vec::new()).await;
//! println!("{} (success: {})", outcome.value, outcome.success);
//! sandbox.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! What runs calls is the kernel. It knows calls, grants, limits and contents:
//!
//! - `kernel/`     executors, admission, compiled code, and the broker's seam; its `mod.rs` has a map
//!
//! What belongs to a minion imports the kernel:
//!
//! - `sandbox/`    the front door; `resolve.rs` from the name of a function to a call with grants and limits
//! - `policy/`     decides what a module may do: pure functions of the declarations in `brine_capabilities` and the
//!   owner's settings, which `settings/` reads
//! - `signature/`  verifies module signatures; `report/` reports on modules, policy and walls
//! - `store/`      the installed modules, and how one is switched in
//! - `package.rs`  where the sandbox's programs and the standard modules are
//! - `recordings/` recordings of calls: secrets, the folder, replays
//! - `examine.rs`  one run of the compiler for tools that only inspect a module
//! - `sentence.rs` lists of names in messages

mod examine;
mod kernel;
mod package;
mod policy;
mod recordings;
mod report;
mod resolve;
mod sandbox;
mod sentence;
mod settings;
mod signature;
mod store;
#[cfg(test)]
mod testing;

use std::collections::BTreeSet;
use std::path::PathBuf;

pub use brine_capabilities::WALLS as WALLS_GRAIN;
pub use brine_capabilities::ops::*;
pub use brine_capabilities::yaml_text;
pub use brine_capabilities::{
    Access, BeaconEdit, Capability, Change, Chunk, Content, DirectGrants, Directory, Grant, Grants, Host, HttpRequest,
    ListKind, MAX_PAUSE_BYTES, MAX_REQUESTS_BYTES, Names, NetworkRule, Owner, PROGRAM_FOLDERS, Planned, ProcessGrant,
    ProcessRun, Program, ScheduleChange, SchedulePlace, Tree, Watch, each_capability, innermost, special,
};
pub use brine_component::{Function, ModuleInfo, Param, Rest, signature, state_function};
pub use brine_sandbox_wire::{
    ByteBuf, FailKind, HostError, JobContext, Limits, LogLevel, Outcome, Sha256Hex, StateContext, Usage,
};
pub use examine::{CompileCost, examine};
pub use kernel::admission::Concurrency;
pub use kernel::broker::{Broker, Caller, RefusedCall, Remedy, check, check_and_tell, check_host, tell_of_special};
pub use kernel::cgroup::program_groups;
pub use kernel::compile::CompileLimits;
pub use kernel::lanes::{Lanes, OneEach, SMALL_MODULE};
pub use kernel::link::RunningCall;
pub use kernel::name::{BadName, ModuleName};
pub use kernel::run::JobOutcome;
pub use kernel::supervisor::Restarts;
pub use package::{Package, PackageError};
pub use policy::always as always_granted;
pub use policy::{
    Entry, Granted, LimitChanges, ModuleGrants, Never, Policy, Profile, ProfileWords, Quorum, RecordWhen, Refused,
    Revoked, Rules, Signer, Signers, Subject,
};
pub use recordings::replay::{Difference, Replayed, Replayer};
pub use report::{Basis as SummaryBasis, Provenance};
pub use sandbox::{Preparing, Reloaded, Removed, Sandbox, StartError};
pub use settings::profiles::all as all_profiles;
pub use settings::{Learn, RecordingSettings, Settings, SettingsError, Tell, others_may_write};
pub use signature::{KeyId, MAX_SIGNATURE, MAX_SIGNERS, SignatureError, SigningKey};
pub use store::{ApproveError, Held, InstallError, Installed, Module, RemoveError, RollbackError, Synced, SyncedFrom};

/// The sandbox's programs, folders and settings.
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
    /// The package's modules that are used. None: all.
    pub standard: Option<BTreeSet<ModuleName>>,
    /// Folder of installed modules, `NAME.wasm`, which the next start reads again.
    pub modules_dir: PathBuf,
    /// Folder of recordings of calls. Made with mode 0700 when the first call is recorded.
    pub recordings_dir: PathBuf,
    /// The owner's settings: grants, and the limits of everything.
    pub settings: Settings,
}
