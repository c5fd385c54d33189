//! Streams of events that are open: a bounded number.

use std::sync::Arc;

use axum::http::StatusCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::problem::Problem;

/// Upper bound on the streams of events.
const STREAMS_MAX: usize = 1_024;

/// The streams that are open.
#[derive(Debug)]
pub struct Watchers {
    free: Arc<Semaphore>,
    closing: CancellationToken,
}

/// A stream's place, which is free again when it is dropped.
#[derive(Debug)]
pub struct Watcher {
    _free: OwnedSemaphorePermit,
    /// Cancelled when the process ends.
    pub closing: CancellationToken,
}

impl Default for Watchers {
    fn default() -> Self {
        Self { free: Arc::new(Semaphore::new(STREAMS_MAX)), closing: CancellationToken::new() }
    }
}

impl Watchers {
    /// Takes a place.
    ///
    /// # Errors
    /// When there is none.
    pub fn take(&self) -> Result<Watcher, Problem> {
        let full =
            |_| Problem::new(StatusCode::SERVICE_UNAVAILABLE, "There are as many streams of events as there may be");
        let free = Arc::clone(&self.free).try_acquire_owned().map_err(full)?;
        Ok(Watcher { _free: free, closing: self.closing.clone() })
    }

    /// Returns how many streams there are.
    pub fn taken(&self) -> usize {
        STREAMS_MAX - self.free.available_permits()
    }

    /// Ends all streams.
    pub fn close(&self) {
        self.closing.cancel();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_streams_are_bounded() {
        let places = Watchers::default();
        let mut taken: Vec<Watcher> = (0..STREAMS_MAX).map(|_| places.take().unwrap()).collect();
        assert_eq!(places.take().unwrap_err().status(), StatusCode::SERVICE_UNAVAILABLE);
        taken.pop();
        assert!(places.take().is_ok());
    }
}
