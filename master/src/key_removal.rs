//! The consequences of a key's removal.

use std::sync::Arc;

use brine_protocol::ids::MinionId;
use brine_protocol::value::{Value, map};
use tokio::sync::Notify;

use crate::bus::Bus;
use crate::sandbox_reports::SandboxReports;
use crate::sessions::Sessions;

/// Ends the session of a minion whose key was removed, and requests a new publish key, because that minion knows the
/// current one.
pub(crate) struct KeyRemoval {
    sessions: Arc<Sessions>,
    reports: Arc<SandboxReports>,
    bus: Bus,
    rotates: bool,
    /// Wakes the maintenance, which then replaces the publish key.
    pub(crate) rotate: Notify,
}

impl KeyRemoval {
    /// Makes the handler of removed keys. `rotates` is `rotate_aes_key`.
    pub(crate) fn new(sessions: Arc<Sessions>, reports: Arc<SandboxReports>, bus: Bus, rotates: bool) -> Self {
        Self { sessions, reports, bus, rotates, rotate: Notify::new() }
    }

    /// Handles the removal of the key of `id`.
    pub(crate) fn removed(&self, id: &MinionId) {
        self.forget(id);
        let data = map([("result", Value::from(true)), ("act", Value::from("delete")), ("id", Value::from(id))]);
        self.bus.fire("salt/key", data);
        self.ask_for_rotation();
    }

    /// Handles that the key of `id` is accepted no longer but still there. Whoever moved it fires the event of that.
    pub(crate) fn revoked(&self, id: &MinionId) {
        self.forget(id);
        self.ask_for_rotation();
    }

    fn forget(&self, id: &MinionId) {
        self.sessions.forget(id);
        self.reports.forget(id);
    }

    fn ask_for_rotation(&self) {
        if self.rotates {
            self.rotate.notify_one();
        }
    }
}
