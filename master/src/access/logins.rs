//! How fast passwords can be tried.
//!
//! A wrong one is answered a second later, as in Salt, and keeps its place until then: so many a second are wrong at most, however many
//! connections try. Callers of this host (salt-api among them) have places of their own: strangers cannot keep them waiting.

use std::future::Future;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Instant;

/// A wrong password is answered so late.
const WRONG_TAKES: Duration = Duration::from_secs(1);
/// Log-ins that are looked at together, from this host and from the network each.
const PLACES: usize = 4;
/// Log-ins that wait for a place; who comes then is refused at once.
const WAITING_MAX: usize = 64;

/// Where a request came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum From {
    /// This host.
    Here,
    /// The network.
    Network,
}

#[derive(Debug)]
pub(super) struct Logins {
    wrong_takes: Duration,
    here: Lane,
    network: Lane,
}

#[derive(Debug)]
struct Lane {
    places: Semaphore,
    waiting: Semaphore,
}

impl Default for Logins {
    fn default() -> Self {
        Self::new(WRONG_TAKES)
    }
}

impl Logins {
    fn new(wrong_takes: Duration) -> Self {
        let lane = || Lane { places: Semaphore::new(PLACES), waiting: Semaphore::new(WAITING_MAX) };
        Self { wrong_takes, here: lane(), network: lane() }
    }

    /// What `check` says, in its turn; false at once when too many wait.
    pub(super) async fn attempt(&self, from: From, check: impl Future<Output = bool>) -> bool {
        let lane = match from {
            From::Here => &self.here,
            From::Network => &self.network,
        };
        let Ok(waiting) = lane.waiting.try_acquire() else {
            tracing::warn!("a log-in was refused: {WAITING_MAX} wait already");
            return false;
        };
        let Ok(_place) = lane.places.acquire().await else { return false };
        drop(waiting);
        let answer_at = Instant::now() + self.wrong_takes;
        let right = check.await;
        if !right {
            tokio::time::sleep_until(answer_at).await;
        }
        right
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[tokio::test]
    async fn wrong_passwords_are_slow_however_many_try() {
        let takes = Duration::from_millis(100);
        let logins = Arc::new(Logins::new(takes));
        let began = Instant::now();
        let mut guesses = tokio::task::JoinSet::new();
        for _ in 0..20 {
            let logins = Arc::clone(&logins);
            guesses.spawn(async move { logins.attempt(From::Network, async { false }).await });
        }
        tokio::task::yield_now().await;
        assert!(logins.attempt(From::Here, async { true }).await, "this host has places of its own");
        assert!(began.elapsed() < takes);
        assert!(guesses.join_all().await.iter().all(|right| !right));
        assert!(began.elapsed() >= takes * 5, "four at a time");
    }

    #[tokio::test]
    async fn who_comes_when_too_many_wait_is_refused_at_once() {
        let logins = Arc::new(Logins::new(Duration::from_secs(60)));
        let mut guesses = tokio::task::JoinSet::new();
        for _ in 0..PLACES + WAITING_MAX {
            let logins = Arc::clone(&logins);
            guesses.spawn(async move { logins.attempt(From::Network, async { false }).await });
        }
        while logins.network.waiting.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        let began = Instant::now();
        assert!(!logins.attempt(From::Network, async { true }).await);
        assert!(began.elapsed() < Duration::from_secs(30));
    }
}
