//! Limits how often a log line that unknown peers can cause is written.

use std::time::{Duration, Instant};

const PERIOD: Duration = Duration::from_secs(10);

/// Lets one line pass per [`PERIOD`].
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    last: Option<Instant>,
    suppressed: u64,
}

impl Throttle {
    /// Returns the number of lines held back since the last one if this line may pass; none if not.
    pub(crate) fn pass(&mut self) -> Option<u64> {
        let now = Instant::now();
        if self.last.is_some_and(|last| now - last < PERIOD) {
            self.suppressed += 1;
            return None;
        }
        self.last = Some(now);
        Some(std::mem::take(&mut self.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_passes_and_says_how_many_did_not() {
        let mut throttle = Throttle::default();
        assert_eq!(throttle.pass(), Some(0));
        assert_eq!((throttle.pass(), throttle.pass()), (None, None));
        throttle.last = None;
        assert_eq!(throttle.pass(), Some(2));
    }
}
