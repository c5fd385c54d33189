//! The orchestrations at a time, and what they share.

use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::grains::HostGrains;
use super::opts::OrchestrateOpts;
use super::pauses::Pauses;

/// The orchestrations of a master.
pub(crate) struct Orchestrations {
    pub(super) opts: ArcSwap<OrchestrateOpts>,
    turns: Arc<Semaphore>,
    pub(super) grains: HostGrains,
    pub(super) pauses: Pauses,
}

impl Orchestrations {
    pub(crate) fn new(opts: &OrchestrateOpts) -> Self {
        Self {
            opts: ArcSwap::from_pointee(opts.clone()),
            turns: Arc::new(Semaphore::new(opts.at_once)),
            grains: HostGrains::default(),
            pauses: Pauses::default(),
        }
    }

    /// Takes up new settings.
    pub(crate) fn replace(&self, opts: &OrchestrateOpts) {
        self.opts.store(opts.clone().into());
    }

    /// Takes a place; none waits for one, because those that start others would wait for themselves.
    pub(super) fn turn(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.turns).try_acquire_owned().ok()
    }
}
