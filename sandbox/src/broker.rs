//! The trait through which everything outside an instance happens, and the one check before it.

use brine_sandbox_wire::{HostError, HostOp, JobContext, LogLevel};
use futures_util::future::BoxFuture;
use rmpv::Value;

/// What the minion does for modules. Calls arrive here only after the module's grant allowed them.
pub trait Broker: Send + Sync + 'static {
    /// Answers one call of a running instance. Dropped when the job's time is up.
    fn host_call<'a>(&'a self, job: &'a JobContext, op: HostOp) -> BoxFuture<'a, Result<Value, HostError>>;

    /// One line that a module logs: no control characters, and within the job's budget.
    fn log(&self, job: &JobContext, level: LogLevel, message: &str);
}
