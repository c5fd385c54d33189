//! Who is connected, by the addresses in the minions' grains (§8.3), and the events that tell of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use brine_protocol::ids::MinionId;
use brine_protocol::presence::Connected;
use brine_protocol::target::{Keys, read_entries};
use brine_protocol::value::{Value, map};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::bus::Bus;
use crate::keys::{KeyState, MinionKeyError, MinionKeys};
use crate::minion_data::MinionData;

/// Finds who is connected.
pub(crate) struct Presence {
    pub(crate) keys: Arc<MinionKeys>,
    pub(crate) data: Arc<MinionData>,
    pub(crate) cachedir: PathBuf,
    /// The port that minions listen to.
    pub(crate) port: u16,
}

impl Presence {
    /// The accepted minions that are connected, and those that are not or of which no grains are known.
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

    /// From which address these minions are connected, as far as that is known.
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

/// With `presence_events`: tells each `loop_interval` who is connected, and who came and went since the last time.
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
