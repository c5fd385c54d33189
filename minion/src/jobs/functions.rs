//! What jobs ask of the sandbox when they run.

use brine_protocol::value::Value;
use brine_sandbox::{JobContext, JobOutcome, Sandbox};
use futures_util::future::BoxFuture;

/// Runs functions and ends them. The sandbox is the only implementation of the product.
///
/// Tests of admission, returns and the end of a minion replace it, because they need two functions that no module can have: one that
/// ends when the test says so, and one that fails as the minion itself could.
pub trait Functions: Send + Sync + 'static {
    /// Runs a function to its end. Whatever goes wrong is an outcome.
    fn run<'a>(
        &'a self,
        job: JobContext,
        fun: &'a str,
        args: Vec<Value>,
        kwargs: Vec<(String, Value)>,
    ) -> BoxFuture<'a, JobOutcome>;
    /// Ends the instances of a job. Returns their number.
    fn kill(&self, jid: &str) -> usize;
    /// Whether a function is expected to be short, from its earlier calls.
    fn is_short(&self, fun: &str) -> bool;
}

impl Functions for Sandbox {
    fn run<'a>(
        &'a self,
        job: JobContext,
        fun: &'a str,
        args: Vec<Value>,
        kwargs: Vec<(String, Value)>,
    ) -> BoxFuture<'a, JobOutcome> {
        Box::pin(Sandbox::run(self, job, fun, args, kwargs))
    }

    fn kill(&self, jid: &str) -> usize {
        Sandbox::kill(self, jid)
    }

    fn is_short(&self, fun: &str) -> bool {
        Sandbox::is_short(self, fun)
    }
}
