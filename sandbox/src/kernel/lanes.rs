//! The queues for fetching and compiling modules: modules of one name wait for each other, large modules for large
//! ones, small modules for a few small ones. So a job that needs a small module does not wait for an interpreter of
//! many megabytes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedMutexGuard, Semaphore, SemaphorePermit};

use crate::kernel::name::ModuleName;

/// Largest size of a small component in bytes: far above the output of native-code compilers for one module's source
/// (the standard modules have 30 to 300 KB), far below an interpreter with a module in it (10 MB and more).
pub const SMALL_MODULE: u64 = 1 << 20;

/// Two queues for work, selected by the module's size.
#[derive(Debug)]
pub struct Lanes {
    small: Semaphore,
    large: Semaphore,
}

impl Lanes {
    /// Returns lanes for this many small modules at once, and one large module.
    #[must_use]
    pub const fn new(small: usize) -> Self {
        Self { small: Semaphore::const_new(small), large: Semaphore::const_new(1) }
    }

    /// Waits for a place in the lane and holds it until the permit is dropped. The boolean says whether it had to wait.
    ///
    /// # Panics
    /// Never: nobody closes a lane.
    pub async fn enter(&self, size: u64) -> (SemaphorePermit<'_>, bool) {
        let lane = if size <= SMALL_MODULE { &self.small } else { &self.large };
        match lane.try_acquire() {
            Ok(turn) => (turn, false),
            Err(_) => (lane.acquire().await.expect("nobody closes a lane"), true),
        }
    }
}

/// A lock for each name.
#[derive(Debug, Default)]
pub struct OneEach(Mutex<HashMap<ModuleName, Arc<tokio::sync::Mutex<()>>>>);

impl OneEach {
    /// Waits for earlier users of this name, and excludes others until the guard is dropped.
    pub async fn enter(&self, name: &ModuleName) -> OwnedMutexGuard<()> {
        let turn = {
            let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            // A holder or waiter has a reference of its own.
            names.retain(|_, turn| Arc::strong_count(turn) > 1);
            Arc::clone(names.entry(name.clone()).or_default())
        };
        turn.lock_owned().await
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::testing::name;

    #[test]
    fn large_ones_wait_for_each_other_and_nobody_else() {
        let lanes = Lanes::new(2);
        let enter = |size| lanes.enter(size).now_or_never();
        let (large, waited) = enter(SMALL_MODULE + 1).unwrap();
        assert!(!waited);
        assert!(enter(18 << 20).is_none());
        let one = enter(SMALL_MODULE).unwrap();
        let two = enter(0).unwrap();
        assert!(enter(5).is_none());
        drop(one);
        assert!(enter(5).is_some());
        drop((large, two));
        assert!(enter(18 << 20).is_some());
    }

    #[test]
    fn those_of_one_name_wait_for_each_other() {
        let each = OneEach::default();
        let (a, b) = (name("a"), name("b"));
        let enter = |name| each.enter(name).now_or_never();
        let first = enter(&a).unwrap();
        assert!(enter(&a).is_none());
        assert!(enter(&b).is_some());
        drop(first);
        assert!(enter(&a).is_some());
        // Unused locks are removed.
        drop(enter(&b));
        assert_eq!(each.0.lock().unwrap().len(), 1);
    }
}
