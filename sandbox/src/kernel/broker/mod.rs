//! The trait that performs everything outside an instance, and the one check before it.
//!
//! An escaped guest controls its executor, so the minion believes nothing that an executor says about itself: it uses
//! its own record of the call's job and of the module's grants.
//!
//! - `check.rs`   checks each call and words the refusal
//! - `answer.rs`  filters answers
//! - `plan.rs`    what a job with `test=True` would have done

mod answer;
mod check;
mod plan;
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
pub use check::{check, check_and_tell, check_host, tell_of_special};
pub(crate) use check::{permitted, tell_of};
pub(crate) use plan::{Next, Plan};

use crate::kernel::name::ModuleName;
use crate::kernel::record::Frames;

/// The caller of a request, as recorded by the minion when it started the call.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The job.
    pub job: Arc<JobContext>,
    /// The module of the calling instance.
    pub module: ModuleName,
    /// The module's content.
    pub sha256: Sha256Hex,
    /// The grants of the called function.
    pub grants: Arc<Grants>,
    /// When the call's wall-clock limit is reached.
    pub ends: Instant,
    /// The chain of functions from the job's own to this one.
    pub chain: Arc<[String]>,
    /// The number of the call, to which its nested calls belong.
    pub(crate) number: u64,
    /// Whether it is the module that runs states for jobs.
    pub(crate) runs_states: bool,
    /// In a job with `test=True`: what it would have done. The calls of a job share it.
    pub(crate) plan: Option<Arc<Plan>>,
    /// Where the parts of the call's recording go. None: the call is not recorded.
    pub(crate) frames: Option<Arc<Frames>>,
    /// For errors: how the owner would grant more.
    remedy: Option<Arc<dyn Remedy>>,
    /// The bytes that it may still write and the files that it may still create, as far as known here, and the
    /// microseconds of CPU time that its nested calls may still use. They bound its nested calls.
    left: Arc<[AtomicU64; 3]>,
}

/// Explains how the owner of this host would grant what was refused.
pub trait Remedy: std::fmt::Debug + Send + Sync {
    /// Returns the end of a refusal's message, `; the owner of this host grants it by this line …`.
    fn sentence(&self, capability: Capability, grant: Grant) -> String;

    /// Returns the line that grants this and nothing that its place grants already. None if no line does.
    fn line(&self, capability: Capability, grant: Grant) -> Option<String>;
}

/// Something that was refused, for the owner of this host.
pub struct RefusedCall<'a> {
    /// The job.
    pub job: &'a JobContext,
    /// The module.
    pub module: &'a str,
    /// `run /usr/bin/whoami`
    pub what: &'a str,
    /// Makes the line that would grant it, if one would. This costs more than all the rest.
    pub line: &'a dyn Fn() -> Option<String>,
}

impl Caller {
    /// Returns the caller for a job's own first call, with this much time.
    pub fn new(
        job: Arc<JobContext>,
        module: ModuleName,
        sha256: Sha256Hex,
        grants: Arc<Grants>,
        wall: Duration,
    ) -> Self {
        let chain = Arc::from([job.function.clone()]);
        let left = Arc::new([const { AtomicU64::new(u64::MAX) }; 3]);
        let ends = Instant::now() + wall;
        Self {
            job,
            module,
            sha256,
            grants,
            ends,
            chain,
            number: u64::MAX,
            runs_states: false,
            plan: None,
            frames: None,
            remedy: None,
            left,
        }
    }

    /// Adds the explanation of how to grant more.
    pub fn with_remedy(self, remedy: Arc<dyn Remedy>) -> Self {
        Self { remedy: Some(remedy), ..self }
    }

    /// Records, before a nested call, how much the executor says the caller may still write and create. The recorded
    /// values never increase.
    pub fn has_left(&self, written: u64, new_files: u64) {
        for (left, now) in self.left.iter().zip([written, new_files]) {
            left.fetch_min(now, Ordering::Relaxed);
        }
    }

    /// The bytes that the call may still write, as far as known here: what it wrote since its last nested call is known to its executor.
    pub fn may_write(&self) -> u64 {
        let [written, ..] = &*self.left;
        written.load(Ordering::Relaxed)
    }

    /// The number of the call, which no other call of this minion has while it runs.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Says whether it is the module that runs states for jobs, by [`crate::Policy::runs_states`].
    pub fn running_states(self, runs_states: bool) -> Self {
        Self { runs_states, ..self }
    }

    /// Puts the caller into plan mode.
    pub(crate) fn planning(self, plan: Option<Arc<Plan>>) -> Self {
        Self { plan, ..self }
    }

    /// Has the call recorded.
    pub(crate) fn recording(self, frames: Option<Arc<Frames>>) -> Self {
        Self { frames, ..self }
    }

    /// Whether the job is to change nothing (`test=True`).
    pub fn plans(&self) -> bool {
        self.plan.is_some()
    }

    /// Returns the caller as one of the running calls.
    pub(crate) fn called(self, chain: Arc<[String]>, number: u64) -> Self {
        Self { chain, number, ..self }
    }

    pub(crate) fn with_limits(self, limits: &Limits) -> Self {
        self.has_left(limits.written, limits.new_files);
        let [_, _, cpu_us] = &*self.left;
        cpu_us.store(limits.calls_cpu_ms.saturating_mul(1_000), Ordering::Relaxed);
        self
    }

    /// Lowers the limits of a nested call to what its caller has left.
    pub(crate) fn bound(&self, limits: &mut Limits) {
        let [written, new_files, _] = &*self.left;
        limits.written = limits.written.min(written.load(Ordering::Relaxed));
        limits.new_files = limits.new_files.min(new_files.load(Ordering::Relaxed));
    }

    /// Whether the nested calls have used up their CPU time.
    pub(crate) fn is_spent(&self) -> bool {
        let [_, _, cpu_us] = &*self.left;
        cpu_us.load(Ordering::Relaxed) == 0
    }

    /// Subtracts the usage of a nested call.
    pub(crate) fn spend(&self, usage: &Usage) {
        for (left, used) in self.left.iter().zip([usage.written, usage.new_files, usage.cpu_us]) {
            let _ = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| Some(left.saturating_sub(used)));
        }
    }
}

/// Performs calls for modules. Calls arrive here only after [`check`] allowed them.
pub trait Broker: Send + Sync + 'static {
    /// Performs one call of a running instance. The future is dropped when the job ends, and must end what it started.
    ///
    /// # Errors
    ///
    /// The refusal or failure, for the guest.
    fn host_call<'a>(&'a self, caller: &'a Caller, op: HostOp) -> BoxFuture<'a, Result<Value, HostError>>;

    /// Logs one line of a module. The line has no control characters and is within the job's budget.
    fn log(&self, job: &JobContext, level: LogLevel, message: &str);

    /// Takes note of a refusal. Called for each, so it must be quick.
    fn refused(&self, _refused: &RefusedCall<'_>) {}

    /// Returns the values that recordings of calls of this job must not contain: its pillar.
    fn secrets(&self, _job: &JobContext) -> Vec<Value> {
        Vec::new()
    }
}
