//! The last good pillar that the master sent.

use std::sync::{Arc, PoisonError, RwLock};

use brine_protocol::value::{Value, ValueExt, empty_map};
use tokio::sync::watch;

/// The key under which a master says what it could not make. What runs states looks there.
const ERRORS: &str = "_errors";

/// The present pillar. It holds secrets, so it does not print.
pub struct PillarStore {
    kept: RwLock<Kept>,
    /// Counts the pillars that came.
    came: watch::Sender<u64>,
}

struct Kept {
    pillar: Arc<Value>,
    /// Whether it came without errors.
    is_good: bool,
}

/// What became of an answer of the master.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// It is the pillar now.
    Whole,
    /// The master could not make so many parts. The last good pillar stays, with these errors under `_errors`.
    KeptLast(usize),
    /// The same, and there is no good pillar yet: what there is counts, as in Salt.
    InPart(usize),
}

impl PillarStore {
    /// Empty until the master sends a pillar.
    pub fn new() -> Arc<Self> {
        let kept = RwLock::new(Kept { pillar: Arc::new(empty_map()), is_good: false });
        Arc::new(Self { kept, came: watch::Sender::new(0) })
    }

    /// The last good pillar.
    pub fn now(&self) -> Arc<Value> {
        Arc::clone(&self.kept.read().unwrap_or_else(PoisonError::into_inner).pillar)
    }

    /// Replaces the pillar by a new one, unless that has errors and the present one has none.
    pub fn replace(&self, pillar: Value) -> Taken {
        let taken = self.put(pillar);
        self.came.send_modify(|came| *came += 1);
        taken
    }

    /// Changes with each pillar that comes.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.came.subscribe()
    }

    fn put(&self, pillar: Value) -> Taken {
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        let errors = pillar.get(ERRORS).filter(|errors| errors.truthy()).cloned();
        let Some(errors) = errors else {
            *kept = Kept { pillar: Arc::new(pillar), is_good: true };
            return Taken::Whole;
        };
        let count = errors.list().map_or(1, <[Value]>::len);
        if !kept.is_good {
            kept.pillar = Arc::new(pillar);
            return Taken::InPart(count);
        }
        let mut last = Value::clone(&kept.pillar);
        last.insert(ERRORS, errors);
        kept.pillar = Arc::new(last);
        Taken::KeptLast(count)
    }
}

#[cfg(test)]
mod tests {
    use brine_protocol::value::{list, map};

    use super::*;

    #[test]
    fn errors_do_not_replace_what_was_good() {
        let store = PillarStore::new();
        let broken = |role: &str| map([("role", Value::from(role)), (ERRORS, list(["Rendering SLS 'a' failed."]))]);
        let role = || store.now().get_text("role").map(str::to_owned);
        assert_eq!((store.replace(broken("part")), role().as_deref()), (Taken::InPart(1), Some("part")));
        assert_eq!((store.replace(map([("role", "good")])), role().as_deref()), (Taken::Whole, Some("good")));
        for _ in 0..2 {
            assert_eq!((store.replace(broken("bad")), role().as_deref()), (Taken::KeptLast(1), Some("good")));
            assert!(store.now().has(ERRORS), "states are to see that the pillar is not the master's latest");
        }
        assert_eq!((store.replace(map([("role", "new")])), role().as_deref()), (Taken::Whole, Some("new")));
        assert!(!store.now().has(ERRORS));
    }
}
