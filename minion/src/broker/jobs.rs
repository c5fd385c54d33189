//! `brine:host/jobs`: the jobs that run on this minion.

use std::sync::Arc;

use brine_protocol::ids::Jid;
use brine_protocol::value::{Value, empty_map};
use brine_sandbox::{Caller, HostError, JobContext, JobsOp, Sandbox};
use tracing::info;

use super::{MinionBroker, Perform};
use crate::jobs::ProcDir;

impl Perform<JobsOp> for MinionBroker {
    async fn perform(&self, caller: &Caller, op: JobsOp) -> Result<Value, HostError> {
        // Reads one file for each job.
        let (procs, sandbox, job) = (Arc::clone(&self.procs), self.sandbox()?, Arc::clone(&caller.job));
        let answer = tokio::task::spawn_blocking(move || answer(&procs, &sandbox, &job, op));
        answer.await.unwrap_or_else(|_| Err(HostError::Failed("the minion failed".to_owned())))
    }
}

fn answer(procs: &ProcDir, sandbox: &Sandbox, job: &JobContext, op: JobsOp) -> Result<Value, HostError> {
    Ok(match op {
        JobsOp::Running => Value::Array(procs.running(&job.jid)),
        JobsOp::Find { jid } => jid_of(&jid).and_then(|jid| procs.find(&jid)).unwrap_or_else(empty_map),
        JobsOp::Kill { jid } => {
            let Some(jid) = jid_of(&jid) else { return Ok(Value::from(false)) };
            if jid.as_str() == job.jid {
                return Err(HostError::Denied("a job cannot end itself".to_owned()));
            }
            // The job may wait for its turn or be between two functions; then it has no instance to kill.
            let told = procs.end(&jid);
            let ended = sandbox.kill(jid.as_str());
            info!(%jid, by = job.jid, "{ended} instances were ended");
            Value::from(told || ended > 0)
        }
    })
}

/// Parses a jid. Jids name files, so other text names no job.
fn jid_of(text: &str) -> Option<Jid> {
    text.parse().ok()
}
