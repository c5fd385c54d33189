//! Turns of each minion. A part of the master with a bound on what it does at a time takes one before a place within that bound: what a minion
//! asks for at once then waits for itself, and not before what the others ask for.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use brine_protocol::ids::MinionId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The least number of minions at which those that are done are looked for.
const LOOKED_AT: usize = 64;

/// A bound on what is done for one minion at a time.
#[derive(Debug)]
pub(crate) struct OfOne {
    most: usize,
    turns: Mutex<Turns>,
}

#[derive(Debug)]
struct Turns {
    of: HashMap<MinionId, Arc<Semaphore>>,
    /// The number of minions at which those that are done go: twice as many as were not the last time, so that a request of one of ten
    /// thousand does not look at all others.
    look_at: usize,
}

impl OfOne {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, turns: Mutex::new(Turns { of: HashMap::new(), look_at: LOOKED_AT }) }
    }

    /// Waits for a turn of this minion, free when dropped.
    pub(crate) async fn turn(&self, id: &MinionId) -> Option<OwnedSemaphorePermit> {
        // The semaphores are never closed, so it is always `Some`.
        self.turns_of(id).acquire_owned().await.ok()
    }

    fn turns_of(&self, id: &MinionId) -> Arc<Semaphore> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(of_it) = turns.of.get(id) {
            return Arc::clone(of_it);
        }
        if turns.of.len() >= turns.look_at {
            // Those that nobody has or awaits.
            turns.of.retain(|_, of_it| Arc::strong_count(of_it) > 1);
            turns.look_at = LOOKED_AT.max(2 * turns.of.len());
        }
        Arc::clone(turns.of.entry(id.clone()).or_insert_with(|| Arc::new(Semaphore::new(self.most))))
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
        // Those that are done are forgotten, and who has a turn is not.
        let held = of_one.turn(&a).await;
        for n in 0..10 * LOOKED_AT {
            drop(of_one.turn(&id(&format!("m{n}"))).await);
        }
        let turns = of_one.turns.lock().unwrap();
        assert!(turns.of.len() <= LOOKED_AT && turns.of.contains_key(&a), "{}", turns.of.len());
        drop((turns, held));
    }
}
