//! Places for things that take long, of which no module gets all: one whose requests or programs hang must not keep others from theirs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A number of places.
#[derive(Debug)]
pub struct Shares {
    all: Arc<Semaphore>,
    most_of_one: usize,
    modules: Mutex<HashMap<String, Weak<Semaphore>>>,
}

/// A place of a module; it is free when this is dropped.
#[derive(Debug)]
pub struct Share {
    _place: OwnedSemaphorePermit,
    _own: OwnedSemaphorePermit,
    /// Kept by the places that are taken of it.
    _module: Arc<Semaphore>,
}

impl Shares {
    /// So many places, of which the last quarter is not for a module that has all others.
    #[must_use]
    pub fn new(places: usize) -> Self {
        let most_of_one = places - places / 4;
        Self { all: Arc::new(Semaphore::new(places)), most_of_one, modules: Mutex::default() }
    }

    /// Waits for a place. None if there will be none.
    pub async fn take(&self, module: &str) -> Option<Share> {
        let own = self.of(module);
        let own_place = Arc::clone(&own).acquire_owned().await.ok()?;
        let place = Arc::clone(&self.all).acquire_owned().await.ok()?;
        Some(Share { _place: place, _own: own_place, _module: own })
    }

    /// Takes a place if one is free.
    pub fn try_take(&self, module: &str) -> Option<Share> {
        let own = self.of(module);
        let own_place = Arc::clone(&own).try_acquire_owned().ok()?;
        let place = Arc::clone(&self.all).try_acquire_owned().ok()?;
        Some(Share { _place: place, _own: own_place, _module: own })
    }

    /// Returns how many places are free.
    pub fn free(&self) -> usize {
        self.all.available_permits()
    }

    fn of(&self, module: &str) -> Arc<Semaphore> {
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = modules.get(module).and_then(Weak::upgrade) {
            return own;
        }
        modules.retain(|_, own| own.strong_count() > 0);
        let own = Arc::new(Semaphore::new(self.most_of_one));
        modules.insert(module.to_owned(), Arc::downgrade(&own));
        own
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_module_that_takes_all_leaves_some_to_others() {
        let shares = Shares::new(8);
        let hog: Vec<Share> = std::iter::from_fn(|| shares.try_take("hog")).collect();
        assert_eq!(hog.len(), 6);
        assert!(shares.take("hog").now_or_never().is_none());
        let others: Vec<Share> = std::iter::from_fn(|| shares.try_take("other")).collect();
        assert_eq!(others.len(), 2);
        drop(hog);
        assert!(shares.take("hog").now_or_never().flatten().is_some());
        assert_eq!(Shares::new(1).most_of_one, 1);
    }

    #[tokio::test]
    async fn modules_without_places_are_forgotten() {
        let shares = Shares::new(8);
        for n in 0..100 {
            drop(shares.try_take(&n.to_string()));
        }
        assert!(shares.modules.lock().unwrap().len() <= 2);
    }
}
