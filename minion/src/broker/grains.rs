//! `brine:host/grains`: facts about this host.

use brine_protocol::value::Value;
use brine_sandbox::{GrainsOp, HostError};

use super::checked_key;

pub(super) fn answer(grains: &Value, op: GrainsOp) -> Result<Value, HostError> {
    Ok(match op {
        GrainsOp::Items => grains.clone(),
        GrainsOp::Get { key, delimiter } => {
            let delimiter = checked_key(delimiter.as_deref().unwrap_or(":"))?;
            crate::grains::lookup(grains, checked_key(&key)?, delimiter).unwrap_or(Value::Nil)
        }
    })
}
