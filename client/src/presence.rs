//! The minions that are connected to the master. This only affects a message: "[Not connected]" instead of "[No
//! response]".

use std::path::PathBuf;

use brine_protocol::ids::MinionId;
use brine_protocol::keys::{KeyState, KeyStore};
use brine_protocol::msgpack::{self, Limits};
use brine_protocol::presence::Connected;

use crate::ClientOpts;

/// The known connections; by default none, and then no minion counts as disconnected.
#[derive(Debug, Default)]
pub(crate) struct Presence {
    cachedir: PathBuf,
    connected: Connected,
    anyone: bool,
}

impl Presence {
    pub(crate) fn read(opts: &ClientOpts) -> Self {
        if !opts.minion_data_cache {
            return Self::default();
        }
        let mut out =
            Self { cachedir: opts.cachedir.clone(), connected: Connected::to(opts.publish_port), anyone: false };
        let accepted = KeyStore::new(&opts.pki_dir).list(KeyState::Accepted).unwrap_or_default();
        out.anyone = accepted.iter().any(|id| out.is_connected(id) == Some(true));
        out
    }

    /// Whether the minion is known to be disconnected: its addresses are known and not connected, and other minions are
    /// connected.
    pub(crate) fn is_disconnected(&self, id: &str) -> bool {
        self.anyone && id.parse().is_ok_and(|id| self.is_connected(&id) == Some(false))
    }

    /// Whether the minion is connected; none if its grains are not cached.
    fn is_connected(&self, id: &MinionId) -> Option<bool> {
        let path = self.cachedir.join("grains").join(format!("{id}.p"));
        let packed = brine_files::read_own(&path, Limits::DISK.max_bytes as u64).ok()?;
        let grains = msgpack::decode_disk(&packed, &Limits::DISK).ok()?;
        Some(self.connected.has(&grains))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_disconnected_when_nothing_is_known() {
        assert!(!Presence::default().is_disconnected("m1"));
    }
}
