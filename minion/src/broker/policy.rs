//! `brine:host/policy`: what the owner of this host granted and decided, as the sandbox reports it, and what was refused.

use std::sync::Arc;

use brine_protocol::value::{Value, ValueExt as _};
use brine_sandbox::{Caller, HostError, PolicyOp};

use super::{MinionBroker, Perform};
use crate::owner::conf::{self, Deed};
use crate::owner::{running, suggest};

impl Perform<PolicyOp> for MinionBroker {
    async fn perform(&self, caller: &Caller, op: PolicyOp) -> Result<Value, HostError> {
        let master = caller.job.master.clone();
        match op {
            PolicyOp::Running => {
                let sandbox = self.sandbox()?;
                Ok(running::list(&self.procs, &sandbox, master.as_deref(), &caller.job.jid).await)
            }
            PolicyOp::Refusals => self.of_disk(move |this| Ok(this.refusals.list(master.as_deref()))).await,
            PolicyOp::Suggest { since_s, module } => {
                let sandbox = self.sandbox()?;
                let lines = move |this: &OfDisk| {
                    let said = this.opts.sandbox_on_disk()?;
                    let content = |module: &str| sandbox.content(module).map(|content| content.to_string());
                    let now = suggest::Now { said: &said, content: &content };
                    Ok(suggest::lines(&this.refusals, &now, master.as_deref(), since_s, module.as_deref()))
                };
                self.of_disk(lines).await
            }
            PolicyOp::Grant { line } => self.change(caller, Deed::Grant, line).await,
            PolicyOp::Revoke { line } => self.change(caller, Deed::Revoke, line).await,
            PolicyOp::Check => {
                let mut answer = self.report(caller, op).await?;
                let counts = self.of_disk(move |this| Ok(this.refusals.counts(master.as_deref()))).await?;
                if let Some(Value::Array(findings)) = answer.get_mut("findings") {
                    findings.extend(self.grains.troubles().into_iter().map(Value::from));
                }
                answer.insert("refusals", counts);
                Ok(answer)
            }
            op => self.report(caller, op).await,
        }
    }
}

/// What asks the disk needs of the broker.
struct OfDisk {
    refusals: Arc<crate::owner::Refusals>,
    opts: Arc<crate::config::MinionOpts>,
}

impl MinionBroker {
    async fn report(&self, caller: &Caller, op: PolicyOp) -> Result<Value, HostError> {
        self.sandbox()?.policy(caller, op).await.map_err(HostError::Failed)
    }

    async fn change(&self, caller: &Caller, deed: Deed, line: String) -> Result<Value, HostError> {
        let test = caller.plans();
        self.of_disk(move |this| conf::carry_out(&this.opts, deed, &line, test)).await
    }

    async fn of_disk(
        &self,
        work: impl FnOnce(&OfDisk) -> Result<Value, String> + Send + 'static,
    ) -> Result<Value, HostError> {
        let this = OfDisk { refusals: Arc::clone(&self.refusals), opts: Arc::clone(&self.opts) };
        let done = tokio::task::spawn_blocking(move || work(&this)).await;
        done.map_err(|error| HostError::Failed(error.to_string()))?.map_err(HostError::Failed)
    }
}
