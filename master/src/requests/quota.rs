//! Whether a minion may make the master keep or tell something more ([`crate::quotas`]), and the line and event when it may not.

use brine_protocol::ids::MinionId;
use brine_protocol::value::{Value, map};

use super::lanes::Turn;
use crate::master::Master;
use crate::quotas::{Admitted, Kind, Met};
use crate::refusals::Who;

/// Waits until `id` may send `what`, which is `amount` things and bytes.
pub(super) async fn admit(
    master: &Master,
    id: &MinionId,
    what: &str,
    kind: Kind,
    amount: (u64, u64),
    turn: &mut Turn,
) -> Result<Admitted, Met> {
    let live = master.live.load();
    let settings = (live.quotas, live.keep_jobs);
    drop(live);
    let heavy = turn.is_taken();
    // Who waits for its own rate keeps no large request of others waiting.
    let admitted = master.quotas.admit(id, kind, amount, settings, (heavy, || turn.give_back())).await;
    match &admitted {
        Ok(admitted) if admitted.tell_slow => {
            let why = "it sends more than minion_rate or minion_rate_bytes";
            tracing::warn!("{what} of {id} waits: {why}");
            master.bus.fire(format!("brine/slowed/{id}"), data(id, what, Met::Rate, why));
        }
        Ok(_) => {}
        Err(met) => refuse(master, id, what, *met),
    }
    admitted
}

/// Whether `id` may send it now; what may not is left out.
pub(super) fn admit_now(master: &Master, id: &MinionId, what: &str, kind: Kind, amount: (u64, u64)) -> bool {
    let admitted = master.quotas.admit_now(id, kind, amount, master.live.load().quotas);
    admitted.inspect_err(|met| refuse(master, id, what, *met)).is_ok()
}

fn refuse(master: &Master, id: &MinionId, what: &str, met: Met) {
    let why = met.to_string();
    let said = format!("{what} of {id} was refused: {why}");
    let data = data(id, what, met, &why);
    master.refusals.tell(&master.bus, Who::Minion(id), &said, format!("brine/refused/quota/{id}"), data);
}

fn data(id: &MinionId, what: &str, met: Met, why: &str) -> Value {
    map([("id", id.as_str()), ("cmd", what), ("setting", met.setting()), ("error", why)])
}
