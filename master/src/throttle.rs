//! Whether a minion may make the master keep or tell something more ([`crate::quotas`]), and the line and event when it may not.

use std::sync::Arc;

use brine_protocol::ids::MinionId;
use brine_protocol::value::{Value, map};

use crate::bus::Bus;
use crate::lanes::Turn;
use crate::live_settings::SharedSettings;
use crate::quotas::{Admitted, Kind, Met, Quotas};
use crate::refusals::{Refusals, Who};

/// Admits what minions send.
pub(crate) struct Throttle {
    quotas: Quotas,
    live: SharedSettings,
    refusals: Arc<Refusals>,
    bus: Bus,
}

impl Throttle {
    /// By the quotas of these settings.
    pub(crate) fn new(live: SharedSettings, refusals: Arc<Refusals>, bus: Bus) -> Self {
        Self { quotas: Quotas::default(), live, refusals, bus }
    }

    /// Waits until `id` may send `what`, which is `amount` things and bytes.
    pub(crate) async fn admit(
        &self,
        id: &MinionId,
        what: &str,
        kind: Kind,
        amount: (u64, u64),
        turn: &mut Turn,
    ) -> Result<Admitted, Met> {
        let live = self.live.load();
        let settings = (live.quotas, live.keep_jobs);
        drop(live);
        let heavy = turn.is_taken();
        // Who waits for its own rate keeps no large request of others waiting.
        let admitted = self.quotas.admit(id, kind, amount, settings, (heavy, || turn.give_back())).await;
        match &admitted {
            Ok(admitted) if admitted.tell_slow => {
                let why = "it sends more than minion_rate or minion_rate_bytes";
                tracing::warn!("{what} of {id} waits: {why}");
                self.bus.fire(format!("brine/slowed/{id}"), data(id, what, Met::Rate, why));
            }
            Ok(_) => {}
            Err(met) => self.refuse(id, what, *met),
        }
        admitted
    }

    /// Whether `id` may send it now; what may not is left out.
    pub(crate) fn admit_now(&self, id: &MinionId, what: &str, kind: Kind, amount: (u64, u64)) -> bool {
        let admitted = self.quotas.admit_now(id, kind, amount, self.live.load().quotas);
        admitted.inspect_err(|met| self.refuse(id, what, *met)).is_ok()
    }

    /// What was admitted was not kept after all.
    pub(crate) fn give_back(&self, id: &MinionId, admitted: &Admitted) {
        self.quotas.give_back(id, admitted);
    }

    /// Forgets minions that have all that they may have.
    pub(crate) fn upkeep(&self) {
        let live = self.live.load();
        self.quotas.upkeep(live.quotas, live.keep_jobs);
    }

    fn refuse(&self, id: &MinionId, what: &str, met: Met) {
        let why = met.to_string();
        let said = format!("{what} of {id} was refused: {why}");
        let data = data(id, what, met, &why);
        self.refusals.tell(Who::Minion(id), &said, format!("brine/refused/quota/{id}"), data);
    }
}

fn data(id: &MinionId, what: &str, met: Met, why: &str) -> Value {
    map([("id", id.as_str()), ("cmd", what), ("setting", met.setting()), ("error", why)])
}
