//! `brine:host/policy`: what the owner of this host granted, as the sandbox itself says it.

use brine_protocol::value::Value;
use brine_sandbox::{HostError, PolicyOp};

use crate::runtime::Runtime;

pub(super) async fn answer(runtime: &dyn Runtime, op: PolicyOp) -> Result<Value, HostError> {
    Ok(runtime.report(op).await)
}
