//! The wait of a client before it connects again.

use std::time::Duration;

/// Salt's `recon_default`, `recon_max` and `recon_randomize`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The shortest wait.
    pub initial: Duration,
    /// The longest wait.
    pub max: Duration,
    /// Draw every wait at random between the two, so that the minions of a restarted master do not all connect at once.
    /// Otherwise the wait doubles from `initial` to `max`.
    pub randomize: bool,
}

impl Default for Backoff {
    fn default() -> Backoff {
        Backoff { initial: Duration::from_secs(1), max: Duration::from_secs(10), randomize: true }
    }
}

/// Lower bound on the wait, so that no setting leads to a busy loop of refused connections.
const MIN_WAIT: Duration = Duration::from_millis(10);

impl Backoff {
    /// The wait after `failures` failed attempts in a row (from 1).
    pub(crate) fn wait(&self, failures: u32) -> Duration {
        let initial = self.initial.max(MIN_WAIT);
        let max = self.max.max(initial);
        if self.randomize {
            return rand::random_range(initial..=max);
        }
        initial.saturating_mul(1u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX)).min(max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_up_to_the_longest_wait() {
        let backoff = Backoff { initial: Duration::from_secs(1), max: Duration::from_secs(5), randomize: false };
        let waits = [1, 2, 3, 4, 33, u32::MAX].map(|failures| backoff.wait(failures).as_secs());
        assert_eq!(waits, [1, 2, 4, 5, 5, 5]);
    }

    #[test]
    fn draws_between_the_two_and_never_spins() {
        let backoff = Backoff::default();
        let waits: Vec<Duration> = (0..100).map(|_| backoff.wait(1)).collect();
        assert!(waits.iter().all(|wait| (backoff.initial..=backoff.max).contains(wait)));
        assert!(waits.iter().any(|wait| *wait != waits[0]));
        let zero = Backoff { initial: Duration::ZERO, max: Duration::ZERO, randomize: true };
        assert_eq!(zero.wait(1), MIN_WAIT);
    }
}
