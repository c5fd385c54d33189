//! What follows from a key's removal.

use std::sync::Arc;

use brine_protocol::ids::MinionId;
use brine_protocol::value::{Value, map};
use tokio::sync::Notify;

use crate::bus::Bus;
use crate::sessions::Sessions;

/// Ends the sessions of keys that are removed, and has the publish key replaced that their minions know.
pub(crate) struct KeyRemoval {
    sessions: Arc<Sessions>,
    bus: Bus,
    rotates: bool,
    /// Wakes the maintenance, which replaces the publish key.
    pub(crate) rotate: Notify,
}

impl KeyRemoval {
    /// `rotates` is `rotate_aes_key`.
    pub(crate) fn new(sessions: Arc<Sessions>, bus: Bus, rotates: bool) -> Self {
        Self { sessions, bus, rotates, rotate: Notify::new() }
    }

    /// The accepted key of this minion was removed.
    pub(crate) fn removed(&self, id: &MinionId) {
        self.sessions.forget(id);
        let data = map([("result", Value::from(true)), ("act", Value::from("delete")), ("id", Value::from(id))]);
        self.bus.fire("salt/key", data);
        if self.rotates {
            self.rotate.notify_one();
        }
    }
}
