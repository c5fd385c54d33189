//! The broker: what modules get from this host, one file an interface of `wit/`.
//!
//! Calls arrive here after the sandbox checked the module's grant. Every argument is still a guest's: it is checked again
//! before anything is done with it.

mod config;
mod grains;
mod jobs;
mod modules;

use std::sync::{Arc, OnceLock, Weak};

use brine_protocol::value::Value;
use brine_sandbox::{Broker, Caller, HostError, HostOp, JobContext, LogLevel};
use futures_util::future::BoxFuture;
use tracing::{debug, error, info, trace, warn};

use crate::config::MinionOpts;
use crate::facts::GrainsStore;
use crate::jobs::ProcDir;
use crate::modules::Modules;
use crate::runtime::Runtime;

/// Longer keys than this name nothing.
const MAX_KEY_BYTES: usize = 4096;

/// Answers modules.
pub struct MinionBroker {
    opts: Arc<MinionOpts>,
    grains: Arc<GrainsStore>,
    procs: Arc<ProcDir>,
    modules: Arc<Modules>,
    runtime: OnceLock<Weak<dyn Runtime>>,
}

impl MinionBroker {
    /// Of this minion.
    pub fn new(
        opts: Arc<MinionOpts>,
        grains: Arc<GrainsStore>,
        procs: Arc<ProcDir>,
        modules: Arc<Modules>,
    ) -> Arc<Self> {
        Arc::new(Self { opts, grains, procs, modules, runtime: OnceLock::new() })
    }

    /// The sandbox that asks. Called once, when it is there.
    pub fn attach(&self, runtime: &Arc<dyn Runtime>) {
        let _ = self.runtime.set(Arc::downgrade(runtime));
    }

    fn runtime(&self) -> Result<Arc<dyn Runtime>, HostError> {
        let runtime = self.runtime.get().and_then(Weak::upgrade);
        runtime.ok_or_else(|| HostError::Failed("the sandbox is ending".to_owned()))
    }
}

impl Broker for MinionBroker {
    fn host_call<'a>(&'a self, caller: &'a Caller, op: HostOp) -> BoxFuture<'a, Result<Value, HostError>> {
        Box::pin(async move {
            let job = &*caller.job;
            trace!(jid = job.jid, function = job.function, "asks for {}", op.interface());
            match op {
                HostOp::Grains(op) => grains::answer(&self.grains.now(), op),
                HostOp::Config(op) => config::answer(self.opts.config.opts(), op),
                HostOp::Jobs(op) => {
                    // Reads a file a job.
                    let (procs, runtime, job) = (Arc::clone(&self.procs), self.runtime()?, job.clone());
                    let answer = tokio::task::spawn_blocking(move || jobs::answer(&procs, &*runtime, &job, op));
                    answer.await.unwrap_or_else(|_| Err(HostError::Failed("the minion failed".to_owned())))
                }
                HostOp::Modules(op) => modules::answer(&self.modules, &*self.runtime()?, op).await,
                other => Err(HostError::Denied(format!("{} is not there yet", other.interface()))),
            }
        })
    }

    fn log(&self, job: &JobContext, level: LogLevel, message: &str) {
        let (jid, function) = (&job.jid, &job.function);
        match level {
            LogLevel::Trace => trace!(jid, function, "module: {message}"),
            LogLevel::Debug => debug!(jid, function, "module: {message}"),
            LogLevel::Info => info!(jid, function, "module: {message}"),
            LogLevel::Warning => warn!(jid, function, "module: {message}"),
            LogLevel::Error => error!(jid, function, "module: {message}"),
        }
    }
}

fn checked_key(key: &str) -> Result<&str, HostError> {
    if key.len() > MAX_KEY_BYTES {
        return Err(HostError::Denied(format!("a key of {} bytes names nothing", key.len())));
    }
    Ok(key)
}
