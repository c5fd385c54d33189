//! Applies the bounds of [`crate::quotas`] to minions, and reports refusals in the log and by an event.

use std::sync::Arc;

use brine_protocol::ids::MinionId;
use brine_protocol::value::{Value, map};

use crate::bus::Bus;
use crate::lanes::Turn;
use crate::live_settings::SharedSettings;
use crate::quotas::{Admitted, Met, QuotaKind, Quotas};
use crate::refusals::{Refusals, Who};

/// Admits what minions send.
pub(crate) struct Throttle {
    quotas: Quotas,
    live: SharedSettings,
    refusals: Arc<Refusals>,
    bus: Bus,
}

impl Throttle {
    /// Makes a throttle with the bounds of these settings.
    pub(crate) fn new(live: SharedSettings, refusals: Arc<Refusals>, bus: Bus) -> Self {
        Self { quotas: Quotas::default(), live, refusals, bus }
    }

    /// Waits until `id` may send `what`; `amount` is the number and the bytes.
    pub(crate) async fn admit(
        &self,
        id: &MinionId,
        what: &str,
        kind: QuotaKind,
        amount: (u64, u64),
        turn: &mut Turn,
    ) -> Result<Admitted, Met> {
        let live = self.live.load();
        let settings = (live.quotas, live.keep_jobs);
        drop(live);
        let heavy = turn.is_taken();
        // A request that waits for its own rate frees its turn for large requests of others.
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

    /// Returns whether `id` may send it now. The caller drops it if not.
    pub(crate) fn admit_now(&self, id: &MinionId, what: &str, kind: QuotaKind, amount: (u64, u64)) -> bool {
        let admitted = self.quotas.admit_now(id, kind, amount, self.live.load().quotas);
        admitted.inspect_err(|met| self.refuse(id, what, *met)).is_ok()
    }

    /// Gives back what was admitted and then not kept.
    pub(crate) fn give_back(&self, id: &MinionId, admitted: &Admitted) {
        self.quotas.give_back(id, admitted);
    }

    /// Forgets minions with full buckets.
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
