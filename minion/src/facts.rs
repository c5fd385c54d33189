//! What this minion knows of itself: its grains and its pillar, replaced whole when they are collected again.

use std::sync::{Arc, PoisonError, RwLock};

use brine_protocol::value::{Value, empty_map};

use crate::config::MinionOpts;
use crate::grains;

/// The grains now.
pub struct GrainsStore {
    opts: Arc<MinionOpts>,
    now: RwLock<Arc<Value>>,
}

impl GrainsStore {
    /// Collects them.
    pub fn new(opts: Arc<MinionOpts>) -> Arc<Self> {
        let now = RwLock::new(Arc::new(grains::collect(&opts)));
        Arc::new(Self { opts, now })
    }

    /// The grains as they were collected last.
    pub fn now(&self) -> Arc<Value> {
        Arc::clone(&self.now.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Collects them again; reads files, so not for a thread that must not wait.
    pub fn refresh(&self) {
        let fresh = Arc::new(grains::collect(&self.opts));
        *self.now.write().unwrap_or_else(PoisonError::into_inner) = fresh;
    }
}

/// The pillar now. It holds secrets, so it does not print.
pub struct PillarStore(RwLock<Arc<Value>>);

impl PillarStore {
    /// Empty until the master sends one.
    pub fn new() -> Arc<Self> {
        Arc::new(Self(RwLock::new(Arc::new(empty_map()))))
    }

    /// The pillar as the master sent it last.
    pub fn now(&self) -> Arc<Value> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes over what the master sent.
    pub fn replace(&self, pillar: Value) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(pillar);
    }
}
