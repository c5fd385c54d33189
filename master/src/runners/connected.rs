//! Who is connected, by the addresses in its grains (§8.3).

use std::sync::Arc;

use brine_protocol::presence::Connected;
use brine_protocol::value::Value;

use super::{Call, Outcome, cache};
use crate::keys::KeyState;
use crate::master::Master;

/// The accepted minions that are connected, and those that are not or of which no grains are known.
pub(super) async fn list(master: &Arc<Master>) -> Result<(Value, Value), String> {
    let grains = cache::of_minions(master, "grains", &Call::default()).await?;
    let connected = Connected::to(master.publish_port);
    let ids = master.keys.list(KeyState::Accepted).map_err(|e| e.to_string())?;
    let is_there = |id: &str| {
        use brine_protocol::value::ValueExt;
        grains.get(id).is_some_and(|grains| connected.has(grains))
    };
    let (there, not): (Vec<_>, Vec<_>) = ids.iter().partition(|id| is_there(id.as_str()));
    let list = |ids: Vec<_>| Value::Array(ids.into_iter().map(Value::from).collect());
    Ok((list(there), list(not)))
}

/// `manage.alived`, or its contrary.
pub(super) async fn alived(master: &Arc<Master>, yes: bool) -> Outcome {
    let (there, not) = list(master).await?;
    Ok(if yes { there } else { not })
}
