//! How often a dead executor is restarted.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// Upper bound of the backoff after deaths that are no module's fault. Jobs wait meanwhile; a higher rate of restarts
/// would load the host.
const LONGEST_BACKOFF: Duration = Duration::from_secs(1);

/// How often a dead executor is restarted.
///
/// `suspects.rs` deals with the modules that ran or were loading at the death. The other modules get a new process at
/// once.
#[derive(Debug, Clone)]
pub struct Restarts {
    /// This many failed starts …
    pub deaths: usize,
    /// … within this time …
    pub within: Duration,
    /// … mean that this host cannot run the executor. A pause of this length follows; jobs are refused at once during
    /// the pause.
    pub pause: Duration,
    /// Delay before the second start after deaths that are no module's fault. Each further death doubles it, up to a
    /// second.
    pub backoff: Duration,
}

impl Default for Restarts {
    fn default() -> Self {
        Self {
            deaths: 5,
            within: Duration::from_secs(30),
            pause: Duration::from_secs(30),
            backoff: Duration::from_millis(50),
        }
    }
}

/// The times of recent events.
#[derive(Default)]
pub(super) struct Recent(VecDeque<Instant>);

impl Recent {
    /// Records one more event. Returns the number of events within this time.
    pub(super) fn one_more(&mut self, within: Duration) -> usize {
        let now = Instant::now();
        self.0.push_back(now);
        while self.0.front().is_some_and(|before| now.duration_since(*before) > within) {
            self.0.pop_front();
        }
        self.0.len()
    }
}

impl Restarts {
    /// Returns the delay after so many deaths. The first death causes none, so that the next job does not wait.
    pub(super) fn backoff(&self, deaths: usize) -> Duration {
        match u32::try_from(deaths).unwrap_or(u32::MAX).checked_sub(2) {
            Some(more) => (self.backoff * 2u32.pow(more.min(8))).min(LONGEST_BACKOFF),
            None => Duration::ZERO,
        }
    }
}
