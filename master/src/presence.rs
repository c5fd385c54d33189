//! Who is connected, by the addresses in the minions' grains (§8.3), and the events that tell of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use brine_protocol::ids::MinionId;
use brine_protocol::presence::Connected;
use brine_protocol::target::{Keys, read_entries};
use brine_protocol::value::{Value, map};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::keys::{KeyError, KeyState};
use crate::master::Master;

/// The accepted minions that are connected, and those that are not or of which no grains are known.
pub(crate) async fn partition(master: &Arc<Master>) -> Result<(Vec<MinionId>, Vec<MinionId>), KeyError> {
    let ids = master.keys.list(KeyState::Accepted)?.to_vec();
    let (facts, port) = (Arc::clone(&master.facts), master.publish_port);
    let look = move || {
        let connected = Connected::to(port);
        let addresses = Keys::These(["ipv4", "ipv6"].map(str::to_owned).into());
        let there = facts.having(&addresses, &ids, |grains| connected.has(grains));
        let there: BTreeSet<MinionId> = there.into_iter().cloned().collect();
        ids.into_iter().partition(|id| there.contains(id))
    };
    Ok(tokio::task::spawn_blocking(look).await.unwrap_or_default())
}

/// From which address these minions are connected, as far as that is known.
pub(crate) async fn addresses(master: &Arc<Master>, ids: &[MinionId]) -> BTreeMap<MinionId, String> {
    let (cachedir, port, ids) = (master.opts.cachedir.clone(), master.publish_port, ids.to_vec());
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

/// With `presence_events`: tells each `loop_interval` who is connected, and who came and went since the last time.
pub(crate) async fn run(master: Arc<Master>, stop: CancellationToken) {
    if !master.opts.presence_events {
        return;
    }
    let mut tick = tokio::time::interval(master.opts.loop_interval);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut before = BTreeSet::new();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = tick.tick() => {}
        }
        match partition(&master).await {
            Ok((there, _)) => tell(&master, &mut before, there.into_iter().collect()),
            Err(error) => tracing::error!("who is connected is not known: {error}"),
        }
    }
}

fn tell(master: &Master, before: &mut BTreeSet<MinionId>, there: BTreeSet<MinionId>) {
    let new: Vec<&MinionId> = there.difference(before).collect();
    let lost: Vec<&MinionId> = before.difference(&there).collect();
    if !new.is_empty() || !lost.is_empty() {
        master.bus.fire("salt/presence/change", map([("new", list(new)), ("lost", list(lost))]));
    }
    master.bus.fire("salt/presence/present", map([("present", list(&there))]));
    *before = there;
}

fn list<'a>(ids: impl IntoIterator<Item = &'a MinionId>) -> Value {
    Value::Array(ids.into_iter().map(Value::from).collect())
}
