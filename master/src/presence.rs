//! Finds the connected minions by the addresses in their grains (§8.3), and fires the events of presence.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use brine_protocol::ids::MinionId;
use brine_protocol::keys::KeyState;
use brine_protocol::presence::Connected;
use brine_protocol::target::{Keys, read_entries};
use brine_protocol::value::{Value, map};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::bus::Bus;
use crate::keys::{MinionKeyError, MinionKeys};
use crate::minion_data::MinionData;

/// Finds the connected minions.
pub(crate) struct Presence {
    pub(crate) keys: Arc<MinionKeys>,
    pub(crate) data: Arc<MinionData>,
    pub(crate) cachedir: PathBuf,
    /// The publish port, to which minions are connected.
    pub(crate) port: u16,
}

impl Presence {
    /// Returns the accepted minions that are connected, and the others, among them those without known grains.
    pub(crate) async fn partition(&self) -> Result<(Vec<MinionId>, Vec<MinionId>), MinionKeyError> {
        let ids = self.keys.list(KeyState::Accepted)?.to_vec();
        let (data, port) = (Arc::clone(&self.data), self.port);
        let look = move || {
            let connected = Connected::to(port);
            let addresses = Keys::These(["ipv4", "ipv6"].map(str::to_owned).into());
            let there = data.having(&addresses, &ids, |grains| connected.has(grains));
            let there: BTreeSet<MinionId> = there.into_iter().cloned().collect();
            ids.into_iter().partition(|id| there.contains(id))
        };
        Ok(tokio::task::spawn_blocking(look).await.unwrap_or_default())
    }

    /// Returns the addresses that these minions are connected from, as far as they are known.
    pub(crate) async fn addresses(&self, ids: &[MinionId]) -> BTreeMap<MinionId, String> {
        let (cachedir, port, ids) = (self.cachedir.clone(), self.port, ids.to_vec());
        let look = move || {
            let connected = Connected::to(port);
            let keys = Keys::These(["ipv4", "ipv6"].map(str::to_owned).into());
            let address = |id: &MinionId| {
                let grains = read_entries(&cachedir.join("grains").join(format!("{id}.p")), &keys)?;
                Some(connected.address_of(&grains)?.to_string())
            };
            ids.into_iter().filter_map(|id| address(&id).map(|address| (id, address))).collect()
        };
        tokio::task::spawn_blocking(look).await.unwrap_or_default()
    }
}

/// With `presence_events`: fires each `loop_interval` the connected minions and the changes since the last time.
pub(crate) async fn tell(presence: &Presence, bus: &Bus, every: Duration, stop: CancellationToken) {
    let mut tick = tokio::time::interval(every);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut before = BTreeSet::new();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = tick.tick() => {}
        }
        match presence.partition().await {
            Ok((there, _)) => fire_changes(bus, &mut before, there.into_iter().collect()),
            Err(error) => tracing::error!("who is connected is not known: {error}"),
        }
    }
}

fn fire_changes(bus: &Bus, before: &mut BTreeSet<MinionId>, there: BTreeSet<MinionId>) {
    let new: Vec<&MinionId> = there.difference(before).collect();
    let lost: Vec<&MinionId> = before.difference(&there).collect();
    if !new.is_empty() || !lost.is_empty() {
        bus.fire("salt/presence/change", map([("new", list(new)), ("lost", list(lost))]));
    }
    bus.fire("salt/presence/present", map([("present", list(&there))]));
    *before = there;
}

fn list<'a>(ids: impl IntoIterator<Item = &'a MinionId>) -> Value {
    Value::Array(ids.into_iter().map(Value::from).collect())
}
