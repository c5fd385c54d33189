//! What can be asked of a minion while it runs, and told: by signals, for whoever is on its host.

use std::sync::Arc;

use brine_daemon::profile;
use brine_protocol::value::ValueExt;
use brine_sandbox::{Reloaded, Settings};

use crate::connection::Masters;
use crate::jobs::{Jobs, ProcDir};
use crate::returns::ReturnSender;
use crate::runtime::Runtime;

/// Jobs that a dump names; there may be a thousand.
const JOBS_NAMED: usize = 50;

/// A hold on the parts of a running minion.
#[derive(Clone)]
pub struct MinionControl {
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) procs: Arc<ProcDir>,
    pub(crate) masters: Masters,
    pub(crate) returns: Arc<ReturnSender>,
    pub(crate) jobs: Arc<Jobs>,
}

impl MinionControl {
    /// Takes up what the owner of this host says of modules now: grants, keys, revocations, limits.
    pub async fn reload(&self, settings: Settings) -> Reloaded {
        self.runtime.reload(settings).await
    }

    /// Writes tasks and queues to the log, at a level that is seen: somebody asked.
    pub fn dump(&self) {
        for line in self.lines() {
            tracing::warn!("{line}");
        }
    }

    fn lines(&self) -> Vec<String> {
        let (calls, executors) = self.runtime.load();
        let connected = if self.masters.preferred().is_ok_and(|channel| channel.current_sign_in().is_some()) {
            "signed in"
        } else {
            "not signed in"
        };
        let mut lines = vec![
            format!("state of salt-minion: {}", profile::runtime_line()),
            format!("master: {connected}; {} returns wait for it", self.returns.waiting()),
            format!(
                "sandbox: {} modules, {calls} calls run or wait, executors {executors:?}",
                self.runtime.names().len()
            ),
            format!("jobs: {} run or wait", self.jobs.count()),
        ];
        let jobs = self.procs.running("");
        let named = jobs.iter().take(JOBS_NAMED).map(|job| {
            let text = |key| job.get_text(key).unwrap_or("?");
            format!("job {}: {} for {}", text("jid"), text("fun"), text("user"))
        });
        lines.extend(named);
        lines
    }
}
