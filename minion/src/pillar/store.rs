//! The pillar as the master sent it last.

use std::sync::{Arc, PoisonError, RwLock};

use brine_protocol::value::{Value, empty_map};

/// The present pillar. It holds secrets, so it does not print.
pub struct PillarStore(RwLock<Arc<Value>>);

impl PillarStore {
    /// Empty until the master sends a pillar.
    pub fn new() -> Arc<Self> {
        Arc::new(Self(RwLock::new(Arc::new(empty_map()))))
    }

    /// The pillar as the master sent it last.
    pub fn now(&self) -> Arc<Value> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the pillar by a new one.
    pub fn replace(&self, pillar: Value) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(pillar);
    }
}
