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
/// Requests whose decoding may take much memory.
const LARGE_MAX: usize = 8;

#[derive(Debug)]
pub(super) struct Lanes {
    in_work: Arc<Semaphore>,
    auth: Semaphore,
    auth_waiting: Semaphore,
    large: Semaphore,
}

impl Default for Lanes {
    fn default() -> Self {
        Self {
            in_work: Arc::new(Semaphore::new(IN_WORK_MAX)),
            auth: Semaphore::new(AUTH_MAX),
            auth_waiting: Semaphore::new(AUTH_WAITING_MAX),
            large: Semaphore::new(LARGE_MAX),
        }
    }
}

impl Lanes {
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
    pub(super) async fn large(&self) -> Option<SemaphorePermit<'_>> {
        self.large.acquire().await.ok()
    }
}
