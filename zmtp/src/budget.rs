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
    /// The bytes that the connections of one address may take, and those that they have taken.
    max_per_address: usize,
    by_address: Mutex<HashMap<IpAddr, usize>>,
}

impl Budget {
    /// A budget of `max` bytes beyond the first `free` of each connection. One address gets at most `max_per_address`.
    pub(crate) fn new(max: usize, free: usize, max_per_address: usize) -> Arc<Budget> {
        Arc::new(Budget { used: AtomicUsize::new(0), max, free, max_per_address, by_address: Mutex::default() })
    }

    /// The bytes that all connections have taken.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Makes the empty share of one connection; it counts for the address if there is one.
    pub(crate) fn share(self: &Arc<Budget>, address: Option<IpAddr>) -> Share {
        Share { budget: Arc::clone(self), address, charged: 0 }
    }

    fn by_address(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.by_address.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, address: Option<IpAddr>, more: usize) -> bool {
        if let Some(address) = address {
            let mut all = self.by_address();
            let has = all.get(&address).copied().unwrap_or(0);
            if has.saturating_add(more) > self.max_per_address {
                return false;
            }
            all.insert(address, has + more);
        }
        let before = self.used.fetch_add(more, Ordering::Relaxed);
        if before.saturating_add(more) > self.max {
            self.give_back(address, more);
            return false;
        }
        true
    }

    fn give_back(&self, address: Option<IpAddr>, less: usize) {
        self.used.fetch_sub(less, Ordering::Relaxed);
        let Some(address) = address else { return };
        let mut all = self.by_address();
        if let Some(has) = all.get_mut(&address) {
            *has = has.saturating_sub(less);
            if *has == 0 {
                all.remove(&address);
            }
        }
    }
}

/// The bytes that one connection has taken of a [`Budget`], given back on drop.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Arc<Budget>,
    address: Option<IpAddr>,
    charged: usize,
}

impl Share {
    /// Takes or gives back bytes to cover `held` bytes. Returns false, and takes nothing, if the budget is exhausted.
    #[must_use]
    pub(crate) fn cover(&mut self, held: usize) -> bool {
        let wanted = held.saturating_sub(self.budget.free);
        if wanted > self.charged {
            if !self.budget.take(self.address, wanted - self.charged) {
                return false;
            }
        } else if wanted < self.charged {
            self.budget.give_back(self.address, self.charged - wanted);
        }
        self.charged = wanted;
        true
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if self.charged > 0 {
            self.budget.give_back(self.address, self.charged);
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
    fn one_address_does_not_take_all_of_it() {
        let budget = Budget::new(100, FREE, 40);
        let address = |last: u8| Some(IpAddr::from([192, 0, 2, last]));
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
        assert!(budget.used() == 0 && budget.by_address().is_empty());
    }
}
