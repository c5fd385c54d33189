//! Waiting for events and conditions. Nothing sleeps to wait for an outcome: each wait ends with its event, or fails the
//! test at its deadline.

use std::panic::Location;
use std::time::{Duration, Instant};

/// The usual deadline. It is generous, because the machines are busy.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// The pause between two checks of a condition without an event.
const PAUSE: Duration = Duration::from_millis(5);

/// Waits with a deadline other than [`DEADLINE`]: a shorter one where the product has time limits that a test must not
/// wait for.
pub trait Deadline {
    /// Waits for a future.
    fn within<T>(self, future: impl Future<Output = T>) -> impl Future<Output = T>;

    /// Polls until a condition holds.
    fn until(self, what: &str, holds: impl FnMut() -> bool) -> impl Future<Output = ()>;

    /// Polls in this thread until a condition returns a value.
    fn wait_for<T>(self, what: &str, condition: impl FnMut() -> Option<T>) -> T;
}

impl Deadline for Duration {
    #[track_caller]
    fn within<T>(self, future: impl Future<Output = T>) -> impl Future<Output = T> {
        let place = Location::caller();
        // On the heap, because futures of tests are large.
        let future = Box::pin(future);
        async move {
            match tokio::time::timeout(self, future).await {
                Ok(done) => done,
                Err(_) => panic!("not within {self:?}: what {place} waits for"),
            }
        }
    }

    fn until(self, what: &str, mut holds: impl FnMut() -> bool) -> impl Future<Output = ()> {
        let end = Instant::now() + self;
        async move {
            while !holds() {
                assert!(Instant::now() < end, "not within {self:?}: {what}");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    #[track_caller]
    fn wait_for<T>(self, what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
        let end = Instant::now() + self;
        loop {
            if let Some(answer) = condition() {
                return answer;
            }
            assert!(Instant::now() < end, "not within {self:?}: {what}");
            std::thread::sleep(PAUSE);
        }
    }
}

/// [`Deadline::within`] with the usual deadline.
#[track_caller]
pub fn within<T>(future: impl Future<Output = T>) -> impl Future<Output = T> {
    DEADLINE.within(future)
}

/// [`Deadline::until`] with the usual deadline.
pub fn until(what: &str, holds: impl FnMut() -> bool) -> impl Future<Output = ()> {
    DEADLINE.until(what, holds)
}

/// [`Deadline::wait_for`] with the usual deadline.
#[track_caller]
pub fn wait_for<T>(what: &str, condition: impl FnMut() -> Option<T>) -> T {
    DEADLINE.wait_for(what, condition)
}
