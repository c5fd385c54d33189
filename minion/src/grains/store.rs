//! The grains as they were collected last.

use std::sync::{Arc, PoisonError, RwLock};

use brine_protocol::value::Value;

use super::collect::collect;
use crate::config::MinionOpts;

/// The grains now.
pub struct GrainsStore {
    opts: Arc<MinionOpts>,
    now: RwLock<Arc<Value>>,
}

impl GrainsStore {
    /// Collects them.
    pub fn new(opts: Arc<MinionOpts>) -> Arc<Self> {
        let now = RwLock::new(Arc::new(collect(&opts)));
        Arc::new(Self { opts, now })
    }

    /// The grains as they were collected last.
    pub fn now(&self) -> Arc<Value> {
        Arc::clone(&self.now.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Collects them again; reads files, so not for a thread that must not wait.
    pub fn refresh(&self) {
        let fresh = Arc::new(collect(&self.opts));
        *self.now.write().unwrap_or_else(PoisonError::into_inner) = fresh;
    }
}
