//! A sandbox in a temporary folder, brokers that tests control, and the two programs.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use brine_kit::wait::within;
use brine_kit::wat::wasm;
use brine_kit_sandbox::{config, job, policy};
use brine_sandbox::{
    Broker, Caller, HostError, HostOp, JobContext, JobOutcome, JobsOp, LogLevel, Restarts, Sandbox, SandboxConfig,
    StartError,
};
use futures_util::future::BoxFuture;
use rmpv::Value;
use serde_json::json;
use tokio::sync::{mpsc, watch};

/// A broker that answers `true` to every request when the test permits it.
pub(crate) struct Hand {
    arrived: mpsc::UnboundedSender<HostOp>,
    gate: watch::Receiver<bool>,
    dropped: mpsc::UnboundedSender<()>,
    pub(crate) lines: Mutex<Vec<(LogLevel, String)>>,
}

/// The test's side of a [`Hand`].
pub(crate) struct Grip {
    pub(crate) arrived: mpsc::UnboundedReceiver<HostOp>,
    pub(crate) dropped: mpsc::UnboundedReceiver<()>,
    pub(crate) gate: watch::Sender<bool>,
}

impl Broker for Hand {
    fn host_call<'a>(&'a self, _caller: &'a Caller, op: HostOp) -> BoxFuture<'a, Result<Value, HostError>> {
        struct Dropped<'a>(&'a mpsc::UnboundedSender<()>);
        impl Drop for Dropped<'_> {
            fn drop(&mut self) {
                let _ = self.0.send(());
            }
        }
        Box::pin(async move {
            let _dropped = Dropped(&self.dropped);
            let _ = self.arrived.send(op);
            let _ = self.gate.clone().wait_for(|open| *open).await;
            Ok(Value::from(true))
        })
    }

    fn log(&self, _job: &JobContext, level: LogLevel, message: &str) {
        self.lines.lock().unwrap().push((level, message.to_owned()));
    }
}

/// A broker that calls a function named in place of the job to kill: `mine.call0`, or with one argument
/// `mine.call0|argument`. It answers whether the call succeeded.
#[derive(Default)]
pub(crate) struct Nesting {
    sandbox: OnceLock<Weak<Sandbox>>,
    /// The outcomes of the functions, in the order in which they ended.
    pub(crate) outcomes: Mutex<Vec<JobOutcome>>,
}

impl Broker for Nesting {
    fn host_call<'a>(&'a self, caller: &'a Caller, op: HostOp) -> BoxFuture<'a, Result<Value, HostError>> {
        Box::pin(async move {
            let HostOp::Jobs(JobsOp::Kill { jid }) = op else { panic!("{op:?}") };
            let (fun, args) = match jid.split_once('|') {
                Some((fun, argument)) => (fun, vec![Value::from(argument)]),
                None => (jid.as_str(), vec![]),
            };
            let sandbox = self.sandbox.get().unwrap().upgrade().unwrap();
            let outcome = sandbox.call(caller, fun, args, vec![]).await;
            let success = outcome.success;
            self.outcomes.lock().unwrap().push(outcome);
            Ok(Value::from(success))
        })
    }

    fn log(&self, _job: &JobContext, _level: LogLevel, _message: &str) {}
}

/// A folder with the parts of a sandbox.
pub(crate) struct Home {
    /// Removes the folder on drop.
    _dir: tempfile::TempDir,
    pub(crate) config: SandboxConfig,
    pub(crate) restarts: Restarts,
}

impl Home {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self { config: config(dir.path()), _dir: dir, restarts: Restarts::default() }
    }

    /// Grants one capability to one module, or to all (`*`).
    pub(crate) fn grant(self, module: &str, capability: &str) -> Self {
        self.policy(&json!({ "modules": { module: { capability: true } } }))
    }

    /// Sets the policy from the `sandbox:` section of a configuration.
    pub(crate) fn policy(mut self, sandbox: &serde_json::Value) -> Self {
        self.config.settings.policy = policy(sandbox);
        self
    }

    pub(crate) fn standard(self, name: &str, wat: &str) -> Self {
        std::fs::write(self.config.standard_dir.join(format!("{name}.wasm")), wasm(wat)).unwrap();
        self
    }

    pub(crate) async fn try_start(&self) -> Result<(Arc<Sandbox>, Grip), StartError> {
        let (arrived_sender, arrived) = mpsc::unbounded_channel();
        let (dropped_sender, dropped) = mpsc::unbounded_channel();
        let (gate, gate_receiver) = watch::channel(false);
        let hand =
            Hand { arrived: arrived_sender, gate: gate_receiver, dropped: dropped_sender, lines: Mutex::default() };
        let sandbox = self.try_start_with(Arc::new(hand)).await?;
        Ok((sandbox, Grip { arrived, dropped, gate }))
    }

    pub(crate) async fn try_start_with(&self, broker: Arc<dyn Broker>) -> Result<Arc<Sandbox>, StartError> {
        Sandbox::start_with(self.config.clone(), broker, self.restarts.clone()).await
    }

    /// Starts the sandbox with a broker that calls functions.
    pub(crate) async fn start_nesting(&self) -> (Arc<Sandbox>, Arc<Nesting>) {
        let broker = Arc::new(Nesting::default());
        let sandbox = self.try_start_with(broker.clone()).await.unwrap_or_else(|error| panic!("{error}"));
        broker.sandbox.set(Arc::downgrade(&sandbox)).unwrap();
        (sandbox, broker)
    }

    pub(crate) async fn start(&self) -> (Arc<Sandbox>, Grip) {
        self.try_start().await.unwrap_or_else(|error| panic!("{error}"))
    }

    /// Returns the files of compiled code.
    pub(crate) fn compiled(&self) -> Vec<PathBuf> {
        files(&self.config.cache_dir, "cwasm")
    }
}

pub(crate) fn files(dir: &Path, extension: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|it| it == extension));
    files.sort();
    files
}

pub(crate) async fn call(sandbox: &Sandbox, fun: &str) -> JobOutcome {
    within(sandbox.run(job("20261120000000000001", fun), fun, vec![], vec![])).await
}

/// Starts a job in a task.
pub(crate) fn spawn(sandbox: &Arc<Sandbox>, jid: &str, fun: &'static str) -> tokio::task::JoinHandle<JobOutcome> {
    let (sandbox, context) = (Arc::clone(sandbox), job(jid, fun));
    tokio::spawn(async move { sandbox.run(context, fun, vec![], vec![]).await })
}

/// Returns the error line of a failed outcome.
pub(crate) fn failure(outcome: &JobOutcome) -> &str {
    assert!(!outcome.success && outcome.retcode != 0, "{outcome:?}");
    outcome.value.as_str().unwrap()
}
