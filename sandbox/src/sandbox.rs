//! The sandbox as the minion sees it.

use std::sync::Arc;

use brine_sandbox_wire::{JobContext, Sha256Hex, Usage};
use rmpv::Value;

use crate::{Broker, InstallError, Installed, Module, SandboxConfig};

/// How a job ended.
#[derive(Debug, Clone, PartialEq)]
pub struct JobOutcome {
    /// What the function returned, or one line that says why it did not.
    pub value: Value,
    /// 0, or what the function set, or 1.
    pub retcode: i64,
    /// Whether it returned.
    pub success: bool,
    /// What it used; none where it never started.
    pub usage: Option<Usage>,
    /// The module that ran.
    pub sha256: Option<Sha256Hex>,
}

/// Why there is no sandbox.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A folder cannot be used.
    #[error("{path}: {why}")]
    Folder {
        /// Which.
        path: String,
        /// One line.
        why: String,
    },
}

/// The sandbox of one minion.
pub struct Sandbox {}

impl Sandbox {
    /// Checks the folders, starts the executor and gets the modules ready: those of the package, then those installed.
    /// A module that cannot be used is logged and left out.
    pub async fn start(_config: SandboxConfig, _broker: Arc<dyn Broker>) -> Result<Arc<Self>, StartError> {
        todo!()
    }

    /// Verifies and compiles a module in the cage and switches it in whole; on any error the last good one stays.
    pub async fn install(&self, _name: &str, _wasm: &[u8], _origin: &str) -> Result<Installed, InstallError> {
        todo!()
    }

    /// Names of all modules, sorted.
    pub fn names(&self) -> Vec<String> {
        todo!()
    }

    /// One module.
    pub fn describe(&self, _name: &str) -> Option<Arc<Module>> {
        todo!()
    }

    /// Runs one job to its end. Whatever goes wrong is an outcome.
    pub async fn run(
        &self,
        _job: JobContext,
        _fun: &str,
        _args: Vec<Value>,
        _kwargs: Vec<(String, Value)>,
    ) -> JobOutcome {
        todo!()
    }

    /// Ends the jobs of this id, queued ones too. Says how many there were.
    pub fn kill(&self, _jid: &str) -> usize {
        todo!()
    }

    /// Ends every job and the executor.
    pub async fn shutdown(&self) {
        todo!()
    }

    /// The executor's process id while it runs. For tests and reports.
    pub fn executor_pid(&self) -> Option<u32> {
        todo!()
    }
}
