//! How much happens at a time. One kind of request cannot take the place of another: large requests do not keep small ones waiting, and
//! strangers that knock, who wait in [`super::auths`], do not keep an operator waiting.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

/// Requests taken from the socket and not yet answered.
const IN_WORK_MAX: usize = 4_096;
/// Requests of more bytes than strangers usually send; decoding multiplies them.
const LARGE_MAX: usize = 8;
/// Small requests with unusually many values in them.
const MANY_ITEMS_MAX: usize = 32;

#[derive(Debug)]
pub(crate) struct Lanes {
    in_work: Arc<Semaphore>,
    large: Arc<Semaphore>,
    many_items: Semaphore,
}

impl Default for Lanes {
    fn default() -> Self {
        Self {
            in_work: Arc::new(Semaphore::new(IN_WORK_MAX)),
            large: Arc::new(Semaphore::new(LARGE_MAX)),
            many_items: Semaphore::new(MANY_ITEMS_MAX),
        }
    }
}

impl Lanes {
    /// What is taken, for the log.
    pub(crate) fn line(&self) -> String {
        format!(
            "{} in work of {IN_WORK_MAX}, {} large ones, {} with many values",
            IN_WORK_MAX - self.in_work.available_permits(),
            LARGE_MAX - self.large.available_permits(),
            MANY_ITEMS_MAX - self.many_items.available_permits()
        )
    }

    /// A place among the requests in work.
    pub(super) async fn place(&self) -> Option<OwnedSemaphorePermit> {
        // The semaphores are never closed.
        Arc::clone(&self.in_work).acquire_owned().await.ok()
    }

    /// A turn for a large request.
    pub(super) async fn large(lanes: &Arc<Self>) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&lanes.large).acquire_owned().await.ok()
    }

    /// A turn for a request with many values.
    pub(super) async fn many_items(&self) -> Option<SemaphorePermit<'_>> {
        self.many_items.acquire().await.ok()
    }
}
