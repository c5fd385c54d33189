//! The trait through which everything outside an instance happens, and the one check before it.
//!
//! An executor is what an escaped guest would speak through, so nothing that it says about itself is believed: which job a
//! call belongs to and what its module was granted is what the minion wrote down when it started the job.
//!
//! - `check.rs`   the check of each call, in the words of a refusal
//! - `answer.rs`  what of an answer is the module's to see

mod answer;
mod check;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use brine_capabilities::{Capability, Grant, Grants};
use brine_sandbox_wire::{HostError, HostOp, JobContext, Limits, LogLevel, Sha256Hex, Usage};
use futures_util::future::BoxFuture;
use rmpv::Value;

pub(crate) use answer::cut_down;
pub use check::{check, check_host};

use crate::ModuleName;

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
    /// How the owner would grant more, for errors.
    remedy: Option<Arc<dyn Remedy>>,
    /// Bytes that it may still write, files that it may still make, as far as is known here, and microseconds of CPU time: what it
    /// calls may no more.
    left: Arc<[AtomicU64; 3]>,
}

/// Says how the owner of this host would grant what was refused.
pub trait Remedy: std::fmt::Debug + Send + Sync {
    /// The end of a refusal, `; the owner of this host grants it by this line …`.
    fn sentence(&self, capability: Capability, grant: Grant) -> String;
}

impl Caller {
    /// A job's own first call, which has so long.
    pub fn new(
        job: Arc<JobContext>,
        module: ModuleName,
        sha256: Sha256Hex,
        grants: Arc<Grants>,
        wall: Duration,
    ) -> Self {
        let chain = Arc::from([job.function.clone()]);
        let left = Arc::new([const { AtomicU64::new(u64::MAX) }; 3]);
        Self { job, module, sha256, grants, ends: Instant::now() + wall, chain, number: u64::MAX, remedy: None, left }
    }

    /// With the words for what was not granted.
    pub fn with_remedy(self, remedy: Arc<dyn Remedy>) -> Self {
        Self { remedy: Some(remedy), ..self }
    }

    /// Before it calls a function: what it says that it may still write and make. That only ever gets less.
    pub fn has_left(&self, written: u64, new_files: u64) {
        for (left, now) in self.left.iter().zip([written, new_files]) {
            left.fetch_min(now, Ordering::Relaxed);
        }
    }

    /// As one of the calls that run.
    pub(crate) fn called(self, chain: Arc<[String]>, number: u64) -> Self {
        Self { chain, number, ..self }
    }

    pub(crate) fn with_limits(self, limits: &Limits) -> Self {
        self.has_left(limits.written, limits.new_files);
        let [_, _, cpu_us] = &*self.left;
        cpu_us.store(limits.calls_cpu_ms.saturating_mul(1_000), Ordering::Relaxed);
        self
    }

    /// Less is left for what it calls: of its module's own limits, no more than that.
    pub(crate) fn bound(&self, limits: &mut Limits) {
        let [written, new_files, _] = &*self.left;
        limits.written = limits.written.min(written.load(Ordering::Relaxed));
        limits.new_files = limits.new_files.min(new_files.load(Ordering::Relaxed));
    }

    /// Whether the functions that it called have used the CPU time of all of them.
    pub(crate) fn is_spent(&self) -> bool {
        let [_, _, cpu_us] = &*self.left;
        cpu_us.load(Ordering::Relaxed) == 0
    }

    /// What it called has used so much.
    pub(crate) fn spend(&self, usage: &Usage) {
        for (left, used) in self.left.iter().zip([usage.written, usage.new_files, usage.cpu_us]) {
            let _ = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| Some(left.saturating_sub(used)));
        }
    }
}

/// What the minion does for modules. Calls arrive here only after [`check`] allowed them.
pub trait Broker: Send + Sync + 'static {
    /// Answers one call of a running instance. Dropped when the job ends: what it started has to end then too.
    fn host_call<'a>(&'a self, caller: &'a Caller, op: HostOp) -> BoxFuture<'a, Result<Value, HostError>>;

    /// One line that a module logs: no control characters, and within the job's budget.
    fn log(&self, job: &JobContext, level: LogLevel, message: &str);
}
