//! `brine:host/grains`: facts about this host.

use brine_protocol::value::Value;
use brine_sandbox::{Caller, GrainsOp, HostError};

use super::{MinionBroker, Perform, checked_key};

impl Perform<GrainsOp> for MinionBroker {
    async fn perform(&self, _: &Caller, op: GrainsOp) -> Result<Value, HostError> {
        let grains = self.grains.now();
        Ok(match op {
            GrainsOp::Items => Value::clone(&grains),
            GrainsOp::Get { key, delimiter } => {
                let delimiter = checked_key(delimiter.as_deref().unwrap_or(":"))?;
                crate::grains::lookup(&grains, checked_key(&key)?, delimiter).unwrap_or(Value::Nil)
            }
        })
    }
}
