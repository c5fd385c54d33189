//! Keeps the grains.

use std::sync::{Arc, PoisonError, RwLock};

use brine_protocol::value::Value;

use super::collect::collect;
use crate::config::MinionOpts;

/// The grains of the last collection.
pub struct GrainsStore {
    opts: Arc<MinionOpts>,
    now: RwLock<Arc<Value>>,
}

impl GrainsStore {
    /// Collects the grains for the first time.
    pub fn new(opts: Arc<MinionOpts>) -> Arc<Self> {
        let now = RwLock::new(Arc::new(collect(&opts)));
        Arc::new(Self { opts, now })
    }

    /// The grains as they were collected last.
    pub fn now(&self) -> Arc<Value> {
        Arc::clone(&self.now.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Collects the grains again. Blocks on files.
    pub fn refresh(&self) {
        let fresh = Arc::new(collect(&self.opts));
        *self.now.write().unwrap_or_else(PoisonError::into_inner) = fresh;
    }
}
