//! Which minions a target means, by their keys and by what they said of themselves (§10).
//!
//! It is an expectation: minions decide for themselves. So who has said nothing yet is left out of targets by grains and
//! pillar, as with Salt, and with `minion_data_cache: False` everyone is expected.

use std::sync::Arc;

use brine_protocol::target::{Resolved, Target, TargetError, TargetType};
use brine_protocol::value::{Value, ValueExt as _};

use crate::keys::KeyState;
use crate::master::Master;
use crate::requests::Fault;

/// The target of a request.
pub(super) fn parse(master: &Master, tgt_type: &str, load: &Value, delimiter: &str) -> Result<Target, TargetError> {
    let tgt = load.get("tgt").unwrap_or(&Value::Nil);
    Target::parse_with(tgt_type.parse::<TargetType>()?, tgt, delimiter, &master.live.load().nodegroups)
}

/// The accepted minions that are meant. What is no target means nobody; why is in the log.
pub(crate) async fn resolve(
    master: &Arc<Master>,
    tgt_type: &str,
    load: &Value,
    delimiter: &str,
) -> Result<Resolved, Fault> {
    match parse(master, tgt_type, load, delimiter) {
        Ok(target) => resolve_parsed(master, target).await,
        Err(error) => {
            tracing::warn!("a target was not resolved: {error}");
            Ok(Resolved::default())
        }
    }
}

/// The same of a target that has been read.
pub(super) async fn resolve_parsed(master: &Arc<Master>, target: Target) -> Result<Resolved, Fault> {
    let ids = master.keys.list(KeyState::Accepted)?;
    if target.needs_data() && !master.opts.minion_data_cache {
        return Ok(Resolved { matched: ids.to_vec(), missing: Vec::new() });
    }
    let facts = Arc::clone(&master.facts);
    let resolved = tokio::task::spawn_blocking(move || facts.resolve(&target, &ids));
    resolved.await.map_err(|_| Fault::new("the target could not be resolved"))
}
