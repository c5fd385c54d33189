//! How much happens at a time. One kind of request cannot take the place of another: large requests do not keep small ones waiting, and
//! strangers that knock keep nobody waiting: who authenticates waits in `requests::auths`, who logs in in `access::logins`, both without a
//! place here, and what is large or has many values is decoded for those only who have proved who they are.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Requests taken from the socket and not yet answered.
const IN_WORK_MAX: usize = 4_096;
/// Requests of more bytes than strangers usually send; decoding multiplies them.
const LARGE_MAX: usize = 8;
/// Small requests with unusually many values in them.
const MANY_ITEMS_MAX: usize = 32;

/// One of the requests in work; free for the next one when dropped.
#[derive(Debug)]
pub(crate) struct Place(#[expect(dead_code, reason = "it is free when dropped")] Option<OwnedSemaphorePermit>);

/// One of the requests of an unusual size; none has a usual one.
#[derive(Debug, Default)]
pub(crate) struct Turn(Option<OwnedSemaphorePermit>);

impl Turn {
    pub(crate) fn is_taken(&self) -> bool {
        self.0.is_some()
    }

    /// For who waits for something else than the disk and the processor: it keeps nobody waiting meanwhile.
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
    pub(crate) async fn place(&self) -> Place {
        // The semaphores are never closed.
        Place(Arc::clone(&self.in_work).acquire_owned().await.ok())
    }

    /// A turn for a large request.
    pub(crate) async fn large(&self) -> Turn {
        Turn(Arc::clone(&self.large).acquire_owned().await.ok())
    }

    /// A turn for a request with many values.
    pub(crate) async fn many_items(&self) -> Turn {
        Turn(Arc::clone(&self.many_items).acquire_owned().await.ok())
    }
}
