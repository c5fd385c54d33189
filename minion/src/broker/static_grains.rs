//! `brine:host/static-grains`: writes the grains file beside the minion's configuration.

use std::sync::Arc;

use brine_protocol::msgpack::Limits;
use brine_protocol::value::Value;
use brine_sandbox::{ByteBuf, Caller, HostError, StaticGrainsOp};

use super::events::decode;
use super::{MinionBroker, Perform};

/// Bounds on one value. The file as a whole has a bound of its own.
const VALUE: Limits = Limits { max_bytes: 256 << 10, max_depth: 16, max_items: 20_000 };

impl Perform<StaticGrainsOp> for MinionBroker {
    async fn perform(&self, _: &Caller, op: StaticGrainsOp) -> Result<Value, HostError> {
        let StaticGrainsOp::Write { changes, refresh_pillar } = op;
        let value = |bytes: ByteBuf| decode(&bytes, &VALUE);
        let changes: Vec<_> = changes
            .into_iter()
            .map(|(name, bytes)| Ok((name, bytes.map(value).transpose()?)))
            .collect::<Result<_, HostError>>()?;
        let grains = Arc::clone(&self.grains);
        let changed = tokio::task::spawn_blocking(move || grains.change_file(&changes)).await;
        let changed = changed.map_err(|_| HostError::Failed("the minion failed".to_owned()))?;
        changed.map_err(|e| HostError::Failed(e.to_string()))?;
        if refresh_pillar {
            self.refresh.tell_grains().await;
        }
        Ok(Value::from(true))
    }
}
