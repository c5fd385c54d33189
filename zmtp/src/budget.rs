//! What all connections of a kind may hold together.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// Bytes of each connection that do not count: requests of ordinary size always go through, however much others hold.
const FREE_PER_CONNECTION: usize = 16 << 10;

/// A bound shared by many connections.
#[derive(Debug)]
pub(crate) struct Budget {
    used: AtomicUsize,
    max: usize,
}

impl Budget {
    pub(crate) fn new(max: usize) -> Arc<Budget> {
        Arc::new(Budget { used: AtomicUsize::new(0), max })
    }

    /// What all connections have taken.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// The share of one connection, empty at first.
    pub(crate) fn share(self: &Arc<Budget>) -> Share {
        Share { budget: Arc::clone(self), charged: 0 }
    }
}

/// What one connection has taken of a [`Budget`]; given back on drop.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Arc<Budget>,
    charged: usize,
}

impl Share {
    /// Takes or gives back, so that it covers `held` bytes; false, and nothing is taken, when the budget is spent.
    #[must_use]
    pub(crate) fn cover(&mut self, held: usize) -> bool {
        let wanted = held.saturating_sub(FREE_PER_CONNECTION);
        if wanted > self.charged {
            let more = wanted - self.charged;
            let before = self.budget.used.fetch_add(more, Ordering::Relaxed);
            if before.saturating_add(more) > self.budget.max {
                self.budget.used.fetch_sub(more, Ordering::Relaxed);
                return false;
            }
        } else {
            self.budget.used.fetch_sub(self.charged - wanted, Ordering::Relaxed);
        }
        self.charged = wanted;
        true
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.charged, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_holders_are_free_and_large_ones_share() {
        let budget = Budget::new(100);
        let (mut one, mut two) = (budget.share(), budget.share());
        assert!(one.cover(FREE_PER_CONNECTION + 80));
        assert!(!two.cover(FREE_PER_CONNECTION + 21));
        assert!(two.cover(FREE_PER_CONNECTION + 20));
        assert!(one.cover(0) && two.cover(FREE_PER_CONNECTION + 100));
        drop((one, two));
        assert_eq!(budget.used(), 0);
    }
}
