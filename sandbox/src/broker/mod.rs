//! The trait through which everything outside an instance happens, and the one check before it.
//!
//! An executor is what an escaped guest would speak through, so nothing that it says about itself is believed: which job a
//! call belongs to and what its module was granted is what the minion wrote down when it started the job.

//!
//! - `check.rs`   the check of each call; `process.rs`, `names.rs`, `http.rs` parts of it
//! - `answer.rs`  what of an answer is the module's to see

mod answer;
mod check;
mod http;
mod names;
mod process;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::{Duration, Instant};

use brine_sandbox_wire::{HostError, HostOp, JobContext, LogLevel, Sha256Hex};
use futures_util::future::BoxFuture;
use rmpv::Value;

pub(crate) use answer::Shown;
pub use check::{check, check_host};
pub(crate) use process::is_variable;

use crate::ModuleName;
use crate::grants::Grants;

/// Who asks: what the minion wrote down when it started the call.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The job.
    pub job: Arc<JobContext>,
    /// The module whose instance it is.
    pub module: ModuleName,
    /// Its content.
    pub sha256: Sha256Hex,
    /// What its function was granted.
    pub grants: Arc<Grants>,
    /// When the call's wall clock is over.
    pub ends: Instant,
    /// The functions from the job's own to this one, each called by the one before it.
    pub chain: Arc<[String]>,
    /// Its number among the calls that run, to which what it calls belongs.
    pub(crate) number: u64,
}

impl Caller {
    /// A job's own first call, which has so long.
    pub fn new(
        job: Arc<JobContext>,
        module: ModuleName,
        sha256: Sha256Hex,
        grants: Arc<Grants>,
        left: Duration,
    ) -> Self {
        let chain = Arc::from([job.function.clone()]);
        Self { job, module, sha256, grants, ends: Instant::now() + left, chain, number: u64::MAX }
    }

    /// Whether somebody called just this function on this host itself: no master's job, and nothing that another function calls with
    /// arguments of its own choice (`mine.update` does with those of the pillar, which is the master's word).
    pub fn is_typed_here(&self, function: &str) -> bool {
        self.job.master.is_none() && *self.chain == [function]
    }
}

/// What the minion does for modules. Calls arrive here only after [`check`] allowed them.
pub trait Broker: Send + Sync + 'static {
    /// Answers one call of a running instance. Dropped when the job ends: what it started has to end then too.
    fn host_call<'a>(&'a self, caller: &'a Caller, op: HostOp) -> BoxFuture<'a, Result<Value, HostError>>;

    /// One line that a module logs: no control characters, and within the job's budget.
    fn log(&self, job: &JobContext, level: LogLevel, message: &str);
}
