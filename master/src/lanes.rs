//! Bounds on concurrent requests, so that one kind of request cannot block another.
//!
//! Large requests have lanes of their own and do not delay small ones. Authentications wait in `requests::auths` and
//! log-ins in `access::logins`, without a place here, so strangers delay nobody. The master decodes requests that are
//! large or have many values only after their sender has proved its identity.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bound on the requests taken from the socket and not yet answered.
const IN_WORK_MAX: usize = 4_096;
/// Bound on concurrent requests that are larger than those of strangers. Decoding multiplies their size.
const LARGE_MAX: usize = 8;
/// Bound on concurrent small requests with unusually many values.
const MANY_ITEMS_MAX: usize = 32;

/// A place among the requests in work. Dropping it frees the place.
#[derive(Debug)]
pub(crate) struct Place(Option<OwnedSemaphorePermit>);

impl Place {
    /// Frees the place while its request waits for others of the same sender.
    pub(crate) fn give_back(&mut self) {
        self.0 = None;
    }
}

/// A turn for a request of unusual size. A request of usual size has an empty one.
#[derive(Debug, Default)]
pub(crate) struct Turn(Option<OwnedSemaphorePermit>);

impl Turn {
    pub(crate) fn is_taken(&self) -> bool {
        self.0.is_some()
    }

    /// Frees the turn while its request waits for something else than disk and processor.
    pub(crate) fn give_back(&mut self) {
        self.0 = None;
    }
}

#[derive(Debug)]
pub(crate) struct Lanes {
    in_work: Arc<Semaphore>,
    large: Arc<Semaphore>,
    many_items: Arc<Semaphore>,
}

impl Default for Lanes {
    fn default() -> Self {
        Self {
            in_work: Arc::new(Semaphore::new(IN_WORK_MAX)),
            large: Arc::new(Semaphore::new(LARGE_MAX)),
            many_items: Arc::new(Semaphore::new(MANY_ITEMS_MAX)),
        }
    }
}

impl Lanes {
    /// Describes the places in use, for the log.
    pub(crate) fn line(&self) -> String {
        format!(
            "{} in work of {IN_WORK_MAX}, {} large ones, {} with many values",
            IN_WORK_MAX - self.in_work.available_permits(),
            LARGE_MAX - self.large.available_permits(),
            MANY_ITEMS_MAX - self.many_items.available_permits()
        )
    }

    /// Waits for a place among the requests in work.
    pub(crate) async fn place(&self) -> Place {
        // The semaphores are never closed, so `ok` is always `Some`.
        Place(Arc::clone(&self.in_work).acquire_owned().await.ok())
    }

    /// Waits for a turn for a large request.
    pub(crate) async fn large(&self) -> Turn {
        Turn(Arc::clone(&self.large).acquire_owned().await.ok())
    }

    /// Waits for a turn for a small request with many values.
    pub(crate) async fn many_items(&self) -> Turn {
        Turn(Arc::clone(&self.many_items).acquire_owned().await.ok())
    }
}
