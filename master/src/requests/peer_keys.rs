//! The keys by which the port bounds what the connections of one proved identity hold together.

use std::hash::{BuildHasher as _, RandomState};

use brine_protocol::ids::MinionId;

/// Makes the keys. The hash has a secret, so that nobody can choose an id whose key is another minion's.
#[derive(Debug, Default)]
pub(crate) struct PeerKeys {
    hasher: RandomState,
}

impl PeerKeys {
    /// The key of a minion that has proved its id. The word keeps it apart from other kinds of identities.
    pub(super) fn minion(&self, id: &MinionId) -> u64 {
        self.hasher.hash_one(("minion", id.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minion_has_one_key_that_others_cannot_foresee() {
        let keys = PeerKeys::default();
        let [web, db] = ["web", "db"].map(|id| MinionId::new(id).unwrap());
        assert_eq!(keys.minion(&web), keys.minion(&web));
        assert_ne!(keys.minion(&web), keys.minion(&db));
        assert_ne!(keys.minion(&web), PeerKeys::default().minion(&web));
    }
}
