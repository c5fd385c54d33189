//! Which minions a caller may see: those that its permissions for jobs reach.

use std::collections::HashSet;

use brine_protocol::ids::MinionId;

use super::Queries;
use crate::access::Allowed;

/// The minions that a caller may see.
pub(super) enum Sight {
    All,
    These(HashSet<MinionId>),
}

impl Sight {
    /// Resolves the targets of permissions. None, if there are none.
    pub(super) async fn of(parts: &Queries, reach: Allowed) -> Option<Self> {
        let targets = match reach {
            Allowed::Everywhere => return Some(Self::All),
            Allowed::On(targets) if targets.is_empty() => return None,
            Allowed::On(targets) => targets,
        };
        let mut seen = HashSet::new();
        for target in targets {
            seen.extend(parts.targets.permitted(target).await);
        }
        Some(Self::These(seen))
    }

    pub(super) fn has(&self, id: &MinionId) -> bool {
        match self {
            Self::All => true,
            Self::These(seen) => seen.contains(id),
        }
    }
}
