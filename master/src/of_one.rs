//! Turns of each minion. A part of the master with a bound on what it does at a time takes one before a place within that bound: what a minion
//! asks for at once then waits for itself, and not before what the others ask for.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use brine_protocol::ids::MinionId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A bound on what is done for one minion at a time.
#[derive(Debug)]
pub(crate) struct OfOne {
    most: usize,
    turns: Mutex<HashMap<MinionId, Arc<Semaphore>>>,
}

impl OfOne {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, turns: Mutex::default() }
    }

    /// Waits for a turn of this minion, free when dropped.
    pub(crate) async fn turn(&self, id: &MinionId) -> Option<OwnedSemaphorePermit> {
        // The semaphores are never closed, so it is always `Some`.
        self.turns_of(id).acquire_owned().await.ok()
    }

    fn turns_of(&self, id: &MinionId) -> Arc<Semaphore> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(of_it) = turns.get(id) {
            return Arc::clone(of_it);
        }
        // Those that nobody has or awaits go. So there are no more than requests in work.
        turns.retain(|_, of_it| Arc::strong_count(of_it) > 1);
        Arc::clone(turns.entry(id.clone()).or_insert_with(|| Arc::new(Semaphore::new(self.most))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_minion_waits_for_itself_and_for_nobody_else() {
        let id = |text: &str| MinionId::try_from(text).unwrap();
        let (of_one, a, b) = (OfOne::new(2), id("a"), id("b"));
        let held = (of_one.turn(&a).await, of_one.turn(&a).await);
        assert!(held.0.is_some() && held.1.is_some() && of_one.turn(&b).await.is_some());
        tokio::select! {
            biased;
            _ = of_one.turn(&a) => panic!("a third turn"),
            () = std::future::ready(()) => {}
        }
        drop(held);
        assert!(of_one.turn(&a).await.is_some());
        drop(of_one.turn(&id("c")).await);
        assert_eq!(of_one.turns.lock().unwrap().len(), 1, "those that are done are forgotten");
    }
}
