//! `brine:host/policy`: what the owner of this host granted and decided, as the sandbox reports it.

use brine_protocol::value::Value;
use brine_sandbox::{Caller, HostError, PolicyOp};

use super::{MinionBroker, Perform};

impl Perform<PolicyOp> for MinionBroker {
    async fn perform(&self, caller: &Caller, op: PolicyOp) -> Result<Value, HostError> {
        self.sandbox()?.policy(caller, op).await.map_err(HostError::Failed)
    }
}
