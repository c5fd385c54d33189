//! A handle to a running minion, for signals of this host's users.

use std::sync::Arc;

use brine_daemon::profile;
use brine_protocol::config::Config;
use brine_protocol::value::ValueExt;
use brine_sandbox::{Reloaded, Sandbox, Settings};

use crate::connection::Masters;
use crate::jobs::{Jobs, ProcDir};
use crate::returns::ReturnSender;
use crate::schedule::Schedule;

/// Upper bound on the jobs in a dump; there may be a thousand.
const JOBS_NAMED: usize = 50;

/// A handle to the parts of a running minion.
#[derive(Clone)]
pub struct MinionControl {
    pub(crate) sandbox: Arc<Sandbox>,
    pub(crate) procs: Arc<ProcDir>,
    pub(crate) masters: Masters,
    pub(crate) returns: Arc<ReturnSender>,
    pub(crate) jobs: Arc<Jobs>,
    pub(crate) schedule: Arc<Schedule>,
}

impl MinionControl {
    /// Applies the owner's present settings of modules: grants, keys, revocations, limits.
    pub async fn reload(&self, settings: Settings) -> Reloaded {
        self.sandbox.reload(settings.policy, settings.limits).await
    }

    /// Takes the jobs of the schedule that the owner's files have now.
    ///
    /// # Errors
    /// A sentence; then those before stay.
    pub fn reload_schedule(&self, config: &Config) -> Result<(), String> {
        self.schedule.reload(config)
    }

    /// Writes tasks and queues to the log, at a level that is always shown, because a user asked for them.
    pub fn dump(&self) {
        for line in self.lines() {
            tracing::warn!("{line}");
        }
    }

    fn lines(&self) -> Vec<String> {
        let (calls, executors) = (self.sandbox.instances(), self.sandbox.executor_pids());
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
                self.sandbox.names().len()
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
