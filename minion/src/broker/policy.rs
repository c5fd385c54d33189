//! `brine:host/policy`: what the owner of this host granted and decides, as the sandbox itself says it.

use brine_protocol::value::Value;
use brine_sandbox::{Caller, HostError, PolicyOp};

use crate::runtime::Runtime;

pub(super) async fn answer(runtime: &dyn Runtime, caller: &Caller, op: PolicyOp) -> Result<Value, HostError> {
    runtime.policy(caller, op).await.map_err(HostError::Failed)
}
