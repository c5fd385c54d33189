//! Resolves targets to minions, by their keys and their data (§10).
//!
//! The result is an expectation, because minions decide for themselves. A minion without known data is left out of
//! targets by grains and pillar, as in Salt. With `minion_data_cache: False`, all minions are expected.

use std::sync::Arc;

use brine_protocol::ids::MinionId;
use brine_protocol::keys::KeyState;
use brine_protocol::target::{Resolved, Target, TargetError, TargetType};
use brine_protocol::value::Value;

use crate::fault::Fault;
use crate::keys::MinionKeys;
use crate::live_settings::SharedSettings;
use crate::minion_data::MinionData;

/// Resolves targets.
pub(crate) struct Targets {
    pub(crate) keys: Arc<MinionKeys>,
    pub(crate) data: Arc<MinionData>,
    pub(crate) live: SharedSettings,
    /// `minion_data_cache`.
    pub(crate) has_data: bool,
}

impl Targets {
    /// Parses a target.
    pub(crate) fn parse(&self, tgt_type: &str, tgt: &Value, delimiter: &str) -> Result<Target, TargetError> {
        Target::parse_with(tgt_type.parse::<TargetType>()?, tgt, delimiter, &self.live.load().nodegroups)
    }

    /// Returns the accepted minions that match a target.
    pub(crate) async fn resolve(&self, target: Target) -> Result<Resolved, Fault> {
        let ids = self.keys.list(KeyState::Accepted)?;
        if target.needs_data() && !self.has_data {
            return Ok(Resolved { matched: ids.to_vec(), missing: Vec::new() });
        }
        let data = Arc::clone(&self.data);
        let resolved = tokio::task::spawn_blocking(move || data.resolve(&target, &ids));
        resolved.await.map_err(|_| Fault::new("the target could not be resolved"))
    }

    /// Returns the accepted minions that match a target given as a type and an expression. An invalid target matches no
    /// minion, and the reason is logged.
    pub(crate) async fn find(&self, tgt_type: &str, tgt: &Value) -> Result<Vec<MinionId>, Fault> {
        match self.parse(tgt_type, tgt, ":") {
            Ok(target) => Ok(self.resolve(target).await?.matched),
            Err(error) => {
                tracing::warn!("a target was not resolved: {error}");
                Ok(Vec::new())
            }
        }
    }

    /// Returns the minions that a permission is for. The result is empty if the master does not keep the data that the
    /// target needs.
    pub(crate) async fn permitted(&self, target: String) -> Vec<MinionId> {
        if !self.has_data && target.contains('@') {
            tracing::warn!("a permission for {target:?} allows nothing: minion_data_cache is off");
            return Vec::new();
        }
        self.find("compound", &Value::from(target.as_str())).await.unwrap_or_else(|fault| {
            tracing::error!("a permission for {target:?} allows nothing: {fault}");
            Vec::new()
        })
    }
}
