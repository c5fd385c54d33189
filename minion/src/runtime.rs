//! What the minion needs of a sandbox.
//!
//! The product has one implementation, [`Sandbox`]: no function runs anywhere else. The trait is there so that what
//! surrounds it (the connection, admission, the spool, fetching modules) can be tested against a scripted master without
//! the engine's two programs.

use std::sync::Arc;

use brine_protocol::value::Value;
use brine_sandbox::{
    Caller, Held, Installed, JobContext, JobOutcome, Module, PolicyOp, Reloaded, Removed, Sandbox, Settings,
};
use futures_util::future::BoxFuture;

/// Runs functions of modules and keeps the modules.
pub trait Runtime: Send + Sync + 'static {
    /// Names of all modules, sorted.
    fn names(&self) -> Vec<String>;
    /// One module.
    fn describe(&self, name: &str) -> Option<Arc<Module>>;
    /// Verifies a module and switches it in whole, or says in one line why not; then the last good one stays. `signature` is what
    /// lies beside it as `NAME.wasm.minisig`.
    fn install<'a>(
        &'a self,
        name: &'a str,
        wasm: &'a [u8],
        signature: Option<&'a [u8]>,
        origin: &'a str,
    ) -> BoxFuture<'a, Result<Installed, String>>;
    /// The signature that a module was installed with, whoever's it is.
    fn signature(&self, name: &str) -> Option<Vec<u8>>;
    /// The modules that were installed, not the package's, each with the environment it is from.
    fn installed(&self) -> Vec<(String, String)>;
    /// Takes an installed module away; says whether there was one, or in one line why it stays.
    fn remove<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<bool, String>>;
    /// Runs a function to its end; whatever goes wrong is an outcome.
    fn run<'a>(
        &'a self,
        job: JobContext,
        fun: &'a str,
        args: Vec<Value>,
        kwargs: Vec<(String, Value)>,
    ) -> BoxFuture<'a, JobOutcome>;
    /// Runs a function that a running function calls, within the calling job; whatever goes wrong is an outcome.
    fn call<'a>(
        &'a self,
        caller: &'a Caller,
        fun: &'a str,
        args: Vec<Value>,
        kwargs: Vec<(String, Value)>,
    ) -> BoxFuture<'a, JobOutcome>;
    /// Ends the instances of a job; says how many there were.
    fn kill(&self, jid: &str) -> usize;
    /// Whether a function is expected to be over after a moment, from those calls of it that have ended.
    fn is_short(&self, _fun: &str) -> bool {
        false
    }
    /// What the owner of this host granted, what there is of it, and what is decided; the error is one line.
    fn policy<'a>(&'a self, caller: &'a Caller, op: PolicyOp) -> BoxFuture<'a, Result<Value, String>>;
    /// What waits for the owner's word of a module.
    fn held(&self, name: &str) -> Option<Arc<Held>>;
    /// Installs what is held of a module, if it would be let in by now.
    fn install_held<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Installed, String>>;
    /// What there is to tell of what is held: as `sandbox.diff` has it.
    fn difference<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Option<Value>>;
    /// Writes down a successful sync of these environments with the master of this fingerprint, and whether it changed anything.
    fn synced(&self, environments: &[&str], master: &str, changed: bool) -> std::io::Result<()>;
    /// Takes up what the owner of this host says now; answers the modules that may do something else, and those that are refused.
    fn reload(&self, settings: Settings) -> BoxFuture<'_, Reloaded>;
    /// Calls that run or wait, and the executors' process ids.
    fn load(&self) -> (usize, Vec<u32>);
    /// Ends everything.
    fn shutdown(&self) -> BoxFuture<'_, ()>;
}

impl Runtime for Sandbox {
    fn names(&self) -> Vec<String> {
        Sandbox::names(self)
    }

    fn describe(&self, name: &str) -> Option<Arc<Module>> {
        Sandbox::describe(self, name)
    }

    fn install<'a>(
        &'a self,
        name: &'a str,
        wasm: &'a [u8],
        signature: Option<&'a [u8]>,
        origin: &'a str,
    ) -> BoxFuture<'a, Result<Installed, String>> {
        Box::pin(async move { Sandbox::install(self, name, wasm, signature, origin).await.map_err(|e| e.to_string()) })
    }

    fn signature(&self, name: &str) -> Option<Vec<u8>> {
        Sandbox::signature(self, name)
    }

    fn installed(&self) -> Vec<(String, String)> {
        Sandbox::installed(self)
    }

    fn remove<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<bool, String>> {
        Box::pin(async move {
            let removed = Sandbox::remove(self, name).await.map_err(|e| e.to_string())?;
            Ok(removed != Removed::Absent)
        })
    }

    fn run<'a>(
        &'a self,
        job: JobContext,
        fun: &'a str,
        args: Vec<Value>,
        kwargs: Vec<(String, Value)>,
    ) -> BoxFuture<'a, JobOutcome> {
        Box::pin(Sandbox::run(self, job, fun, args, kwargs))
    }

    fn call<'a>(
        &'a self,
        caller: &'a Caller,
        fun: &'a str,
        args: Vec<Value>,
        kwargs: Vec<(String, Value)>,
    ) -> BoxFuture<'a, JobOutcome> {
        Box::pin(Sandbox::call(self, caller, fun, args, kwargs))
    }

    fn kill(&self, jid: &str) -> usize {
        Sandbox::kill(self, jid)
    }

    fn is_short(&self, fun: &str) -> bool {
        Sandbox::is_short(self, fun)
    }

    fn policy<'a>(&'a self, caller: &'a Caller, op: PolicyOp) -> BoxFuture<'a, Result<Value, String>> {
        Box::pin(Sandbox::policy(self, caller, op))
    }

    fn held(&self, name: &str) -> Option<Arc<Held>> {
        Sandbox::held(self, name)
    }

    fn install_held<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Installed, String>> {
        Box::pin(async move { Sandbox::install_held(self, name).await.map_err(|e| e.to_string()) })
    }

    fn difference<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Option<Value>> {
        Box::pin(async move { self.report(PolicyOp::Diff { name: name.to_owned() }).await.ok() })
    }

    fn synced(&self, environments: &[&str], master: &str, changed: bool) -> std::io::Result<()> {
        Sandbox::synced(self, environments, master, changed)
    }

    fn reload(&self, settings: Settings) -> BoxFuture<'_, Reloaded> {
        Box::pin(Sandbox::reload(self, settings.policy, settings.limits))
    }

    fn load(&self) -> (usize, Vec<u32>) {
        (self.instances(), self.executor_pids())
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        Box::pin(Sandbox::shutdown(self))
    }
}
