//! How much happens at a time. One kind of request cannot take the place of another: strangers that knock do not keep an operator
//! waiting, and large requests do not keep small ones waiting.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

/// Requests taken from the socket and not yet answered.
const IN_WORK_MAX: usize = 4_096;
/// `_auth` requests that are looked at together; each takes some RSA.
const AUTH_MAX: usize = 64;
/// `_auth` requests that wait for that. Who comes when they are taken is told at once, and tries again.
const AUTH_WAITING_MAX: usize = 1_024;
/// Requests of more bytes than strangers usually send; decoding multiplies them.
const LARGE_MAX: usize = 8;
/// Small requests with unusually many values in them.
const MANY_ITEMS_MAX: usize = 32;

#[derive(Debug)]
pub(crate) struct Lanes {
    in_work: Arc<Semaphore>,
    auth: Semaphore,
    auth_waiting: Semaphore,
    large: Arc<Semaphore>,
    many_items: Semaphore,
}

impl Default for Lanes {
    fn default() -> Self {
        Self {
            in_work: Arc::new(Semaphore::new(IN_WORK_MAX)),
            auth: Semaphore::new(AUTH_MAX),
            auth_waiting: Semaphore::new(AUTH_WAITING_MAX),
            large: Arc::new(Semaphore::new(LARGE_MAX)),
            many_items: Semaphore::new(MANY_ITEMS_MAX),
        }
    }
}

impl Lanes {
    /// What is taken, for the log.
    pub(crate) fn line(&self) -> String {
        format!(
            "{} in work of {IN_WORK_MAX}, {} that authenticate and {} that wait to, {} large ones, {} with many values",
            IN_WORK_MAX - self.in_work.available_permits(),
            AUTH_MAX - self.auth.available_permits(),
            (AUTH_WAITING_MAX - self.auth_waiting.available_permits())
                .saturating_sub(AUTH_MAX - self.auth.available_permits()),
            LARGE_MAX - self.large.available_permits(),
            MANY_ITEMS_MAX - self.many_items.available_permits()
        )
    }

    /// A place among the requests in work.
    pub(super) async fn place(&self) -> Option<OwnedSemaphorePermit> {
        // The semaphores are never closed.
        Arc::clone(&self.in_work).acquire_owned().await.ok()
    }

    /// A turn for an `_auth` request, or nothing if too many wait already.
    pub(super) async fn auth(&self) -> Option<SemaphorePermit<'_>> {
        let _waiting = self.auth_waiting.try_acquire().ok()?;
        self.auth.acquire().await.ok()
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

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    /// Strangers that authenticate, however many, keep nobody else from working, and are told when they are too many.
    #[tokio::test]
    async fn one_kind_does_not_take_anothers_place() {
        let lanes = Arc::new(Lanes::default());
        let mut turns = Vec::new();
        for _ in 0..AUTH_MAX {
            turns.push(lanes.auth().now_or_never().flatten().unwrap());
        }
        let mut waiting: Vec<_> = (0..AUTH_WAITING_MAX).map(|_| Box::pin(lanes.auth())).collect();
        for next in &mut waiting {
            assert!(next.as_mut().now_or_never().is_none(), "it waits");
        }
        assert!(lanes.auth().now_or_never().unwrap().is_none(), "too many wait: told at once");
        assert!(lanes.place().now_or_never().flatten().is_some());
        assert!(Lanes::large(&lanes).now_or_never().flatten().is_some());
        turns.pop();
        assert!(waiting[0].as_mut().now_or_never().flatten().is_some(), "the first in line is next");
    }
}
