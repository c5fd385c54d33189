//! Bounds the memory of all connections of a kind together.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

/// A bound shared by many connections.
#[derive(Debug)]
pub(crate) struct Budget {
    used: AtomicUsize,
    max: usize,
    /// Bytes of each connection that do not count, so that messages of ordinary size always pass, however much other
    /// connections hold.
    free: usize,
    /// The bytes that the connections of one owner may take, and those that they have taken.
    max_per_owner: usize,
    by_owner: Mutex<HashMap<Owner, usize>>,
}

/// Whose bytes a connection takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    /// A peer that has not proved who it is.
    Address(IpAddr),
    /// The key of a proved identity, wherever it connects from.
    Identity(u64),
}

impl Budget {
    /// A budget of `max` bytes beyond the first `free` of each connection. One owner gets at most `max_per_owner`.
    pub(crate) fn new(max: usize, free: usize, max_per_owner: usize) -> Arc<Budget> {
        Arc::new(Budget { used: AtomicUsize::new(0), max, free, max_per_owner, by_owner: Mutex::default() })
    }

    /// The bytes that all connections have taken.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Makes the empty share of one connection; it counts for the owner if there is one.
    pub(crate) fn share(self: &Arc<Budget>, owner: Option<Owner>) -> Share {
        Share { budget: Arc::clone(self), owner, charged: 0 }
    }

    fn by_owner(&self) -> MutexGuard<'_, HashMap<Owner, usize>> {
        self.by_owner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, owner: Option<Owner>, more: usize) -> bool {
        if let Some(owner) = owner {
            let mut all = self.by_owner();
            let has = all.get(&owner).copied().unwrap_or(0);
            if has.saturating_add(more) > self.max_per_owner {
                return false;
            }
            all.insert(owner, has + more);
        }
        let before = self.used.fetch_add(more, Ordering::Relaxed);
        if before.saturating_add(more) > self.max {
            self.give_back(owner, more);
            return false;
        }
        true
    }

    fn give_back(&self, owner: Option<Owner>, less: usize) {
        self.used.fetch_sub(less, Ordering::Relaxed);
        let Some(owner) = owner else { return };
        let mut all = self.by_owner();
        if let Some(has) = all.get_mut(&owner) {
            *has = has.saturating_sub(less);
            if *has == 0 {
                all.remove(&owner);
            }
        }
    }
}

/// The bytes that one connection has taken of a [`Budget`], given back on drop.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Arc<Budget>,
    owner: Option<Owner>,
    charged: usize,
}

impl Share {
    /// Takes or gives back bytes to cover `held` bytes. Returns false, and takes nothing, if the budget is exhausted.
    #[must_use]
    pub(crate) fn cover(&mut self, held: usize) -> bool {
        let wanted = held.saturating_sub(self.budget.free);
        if wanted > self.charged {
            if !self.budget.take(self.owner, wanted - self.charged) {
                return false;
            }
        } else if wanted < self.charged {
            self.budget.give_back(self.owner, self.charged - wanted);
        }
        self.charged = wanted;
        true
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if self.charged > 0 {
            self.budget.give_back(self.owner, self.charged);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FREE: usize = 1_000;

    #[test]
    fn small_holders_are_free_and_large_ones_share() {
        let budget = Budget::new(100, FREE, usize::MAX);
        let (mut one, mut two) = (budget.share(None), budget.share(None));
        assert!(one.cover(FREE + 80));
        assert!(!two.cover(FREE + 21));
        assert!(two.cover(FREE + 20));
        assert!(one.cover(0) && two.cover(FREE + 100));
        drop((one, two));
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn one_owner_does_not_take_all_of_it() {
        let budget = Budget::new(100, FREE, 40);
        let address = |last: u8| Some(Owner::Address(IpAddr::from([192, 0, 2, last])));
        let (mut one, mut two) = (budget.share(address(1)), budget.share(address(1)));
        assert!(one.cover(FREE + 30) && !two.cover(FREE + 11) && two.cover(FREE + 10));
        let mut other = budget.share(address(2));
        assert!(other.cover(FREE + 40));
        let mut local = budget.share(None);
        assert!(!local.cover(FREE + 21), "nor do all together");
        assert!(local.cover(FREE + 20));
        drop(one);
        assert!(two.cover(FREE + 40));
        drop((two, other, local));
        assert!(budget.used() == 0 && budget.by_owner().is_empty());
    }
}
