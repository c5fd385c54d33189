//! `brine:host/policy`: what the owner of this host granted and decided, as the sandbox reports it.

use brine_protocol::value::{Value, ValueExt as _};
use brine_sandbox::{Caller, HostError, PolicyOp};

use super::{MinionBroker, Perform};

impl Perform<PolicyOp> for MinionBroker {
    async fn perform(&self, caller: &Caller, op: PolicyOp) -> Result<Value, HostError> {
        let checks = op == PolicyOp::Check;
        let mut answer = self.sandbox()?.policy(caller, op).await.map_err(HostError::Failed)?;
        if checks && let Some(Value::Array(findings)) = answer.get_mut("findings") {
            findings.extend(self.grains.troubles().into_iter().map(Value::from));
        }
        Ok(answer)
    }
}
