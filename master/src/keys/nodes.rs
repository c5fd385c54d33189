//! The keys of nodes (salt-api on other hosts), in folders of their own: `nodes`, `nodes_pre`, `nodes_rejected` and `nodes_denied`.
//!
//! A node is believed whom it asks for, and a minion is not, so a key counts for one of them alone. No rule accepts a
//! node's key (`auto_accept`, `open_mode`, `autosign_file` are about minions), and no request does: an operator of this host, by
//! `salt-key --nodes`.

use std::path::Path;

use brine_protocol::ids::MinionId;
use brine_protocol::keys::{KeyKind, KeyState, PublicKey};

use super::minions::{MinionKey, MinionKeyError, MinionKeys};
use super::strangers::Room;

/// Bound on the keys of strangers that wait. The oldest make room for new ones, those of the same address first.
const ROOM: Room = Room { all: 100, of_address: 4 };

/// What an operator has decided about a node's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NodeStanding {
    Accepted,
    /// It waits.
    Pending {
        /// Whether it was not known before.
        is_new: bool,
    },
    Rejected,
    /// There is another key of this name.
    OtherKey,
}

/// The store of nodes' keys. Calls block for short file operations.
#[derive(Debug)]
pub(crate) struct NodeKeys(MinionKeys);

impl NodeKeys {
    /// Opens the folders, and makes missing ones.
    ///
    /// # Errors
    /// If a folder cannot be made or listed.
    pub(crate) fn open(pki: &Path) -> Result<Self, MinionKeyError> {
        MinionKeys::open_kind(KeyKind::Nodes, pki).map(Self)
    }

    /// Returns whether this is the accepted key of this name.
    pub(crate) fn is_accepted(&self, name: &MinionId, key: &PublicKey) -> bool {
        // While a key is moved it may be in both folders: rejected counts.
        self.0.accepted(name).is_some_and(|stored| is(&stored, key))
            && matches!(self.0.find(KeyState::Rejected, name), Ok(None))
    }

    /// Returns what an operator has decided about a key that somebody at `origin` has proved, and keeps a new one for a decision.
    ///
    /// # Errors
    /// If a key cannot be read or written.
    pub(crate) fn judge(
        &self,
        name: &MinionId,
        key: &PublicKey,
        origin: Option<u64>,
    ) -> Result<NodeStanding, MinionKeyError> {
        let keys = &self.0;
        if keys.find(KeyState::Rejected, name)?.is_some() {
            return Ok(NodeStanding::Rejected);
        }
        if let Some(stored) = keys.find(KeyState::Accepted, name)? {
            return if is(&stored, key) { Ok(NodeStanding::Accepted) } else { self.deny(name, key) };
        }
        // A file without a key was torn by a crash or put there by hand.
        match keys.find(KeyState::Pending, name)?.filter(|stored| stored.public.is_some()) {
            Some(stored) if is(&stored, key) => Ok(NodeStanding::Pending { is_new: false }),
            Some(_) => self.deny(name, key),
            None => {
                for gone in keys.put_pending(name, key.clean_pem(), origin, ROOM)? {
                    // Otherwise denied keys could outnumber the known names.
                    if keys.find(KeyState::Accepted, &gone)?.is_none() {
                        keys.remove(KeyState::Denied, &gone)?;
                    }
                }
                Ok(NodeStanding::Pending { is_new: true })
            }
        }
    }

    /// Keeps the last other key of a known name, for the operator to see.
    fn deny(&self, name: &MinionId, key: &PublicKey) -> Result<NodeStanding, MinionKeyError> {
        let known = self.0.find(KeyState::Denied, name)?;
        if known.is_none_or(|stored| !is(&stored, key)) {
            self.0.put(KeyState::Denied, name, key.clean_pem())?;
        }
        Ok(NodeStanding::OtherKey)
    }
}

fn is(stored: &MinionKey, key: &PublicKey) -> bool {
    stored.public.as_ref() == Some(key)
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use brine_protocol::keys::PrivateKey;

    use super::*;

    static KEYS: LazyLock<[PublicKey; 2]> = LazyLock::new(|| {
        [0, 1].map(|n| PrivateKey::from_pem(brine_kit::keys::PEM[n]).expect("a key").public().clone())
    });
    const PENDING: NodeStanding = NodeStanding::Pending { is_new: false };
    const NEW: NodeStanding = NodeStanding::Pending { is_new: true };

    fn id(text: &str) -> MinionId {
        text.parse().unwrap()
    }

    fn store() -> (tempfile::TempDir, NodeKeys) {
        let dir = tempfile::tempdir().unwrap();
        let keys = NodeKeys::open(&dir.path().join("pki")).unwrap();
        (dir, keys)
    }

    #[test]
    fn a_key_waits_and_is_decided_about() {
        let (_dir, nodes) = store();
        let [one, two] = &*KEYS;
        let api = id("api1");
        let judge = |key| nodes.judge(&api, key, None).unwrap();
        assert_eq!((judge(one), judge(one), judge(two)), (NEW, PENDING, NodeStanding::OtherKey));
        assert!(!nodes.is_accepted(&api, one), "it waits");
        nodes.0.move_to(KeyState::Pending, KeyState::Accepted, &api).unwrap();
        assert_eq!((judge(one), judge(two)), (NodeStanding::Accepted, NodeStanding::OtherKey));
        assert!(nodes.is_accepted(&api, one) && !nodes.is_accepted(&api, two));
        assert_eq!(nodes.0.list(KeyState::Denied).unwrap().len(), 1);
        nodes.0.move_to(KeyState::Accepted, KeyState::Rejected, &api).unwrap();
        assert_eq!((judge(one), judge(two)), (NodeStanding::Rejected, NodeStanding::Rejected));
        assert!(!nodes.is_accepted(&api, one));
        nodes.0.put(KeyState::Accepted, &api, one.clean_pem()).unwrap();
        assert_eq!((judge(one), nodes.is_accepted(&api, one)), (NodeStanding::Rejected, false), "rejected counts");
        for state in [KeyState::Accepted, KeyState::Rejected] {
            nodes.0.remove(state, &api).unwrap();
        }
        assert_eq!(judge(one), NEW, "deleted is unknown");
    }

    #[test]
    fn minions_and_nodes_are_strangers_to_each_other() {
        let (dir, nodes) = store();
        let [one, _] = &*KEYS;
        let minions = MinionKeys::open(&dir.path().join("pki")).unwrap();
        for state in KeyState::ALL {
            minions.put(state, &id("api1"), one.clean_pem()).unwrap();
        }
        assert!(!nodes.is_accepted(&id("api1"), one));
        assert_eq!(nodes.judge(&id("api1"), one, None).unwrap(), NEW);
        nodes.0.put(KeyState::Accepted, &id("api2"), one.clean_pem()).unwrap();
        assert!(minions.accepted(&id("api2")).is_none());
        assert!(minions.list(KeyState::Accepted).unwrap().iter().all(|minion| minion.as_str() == "api1"));
    }

    #[test]
    fn strangers_do_not_fill_the_disk() {
        let (_dir, nodes) = store();
        let [one, two] = &*KEYS;
        for n in 0..ROOM.all + 20 {
            let name = id(&format!("n{n}"));
            let origin = Some(u64::try_from(n / 8).unwrap());
            assert_eq!(nodes.judge(&name, one, origin).unwrap(), NEW);
            assert_eq!(nodes.judge(&name, two, origin).unwrap(), NodeStanding::OtherKey);
        }
        let count = |state| nodes.0.list(state).unwrap().len();
        assert!(count(KeyState::Pending) <= ROOM.all && count(KeyState::Pending) >= ROOM.all / 2);
        assert!(count(KeyState::Denied) <= count(KeyState::Pending), "of known names alone");
    }
}
