//! An allowance that comes back evenly: so much at once, and so much each second after that.

use std::time::{Duration, Instant};

/// How large a bucket is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    /// What a full one holds.
    pub(crate) most: f64,
    /// What comes back each second.
    pub(crate) each_second: f64,
}

/// What is left.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bucket {
    /// Below zero while somebody waits who was told for how long.
    level: f64,
    at: Instant,
}

impl Bucket {
    pub(crate) const fn full(size: Size, now: Instant) -> Self {
        Self { level: size.most, at: now }
    }

    /// Takes `amount` if that leaves `rest`.
    pub(crate) fn take(&mut self, size: Size, amount: f64, rest: f64, now: Instant) -> bool {
        let enough = self.missing(size, amount, rest, now).is_zero();
        if enough {
            self.level -= amount;
        }
        enough
    }

    /// How long it takes until `amount` can be taken and `rest` is left.
    pub(crate) fn missing(&mut self, size: Size, amount: f64, rest: f64, now: Instant) -> Duration {
        let gained = now.saturating_duration_since(self.at).as_secs_f64() * size.each_second;
        self.level = (self.level + gained).min(size.most);
        self.at = self.at.max(now);
        let missing = amount + rest - self.level;
        if missing <= 0.0 {
            return Duration::ZERO;
        }
        // A rate of almost nothing is never.
        Duration::try_from_secs_f64(missing / size.each_second).unwrap_or(Duration::MAX)
    }

    /// Takes what may not be there yet: its taker waits.
    pub(crate) const fn owe(&mut self, amount: f64) {
        self.level -= amount;
    }

    /// Gives back what was not needed.
    pub(crate) fn give(&mut self, size: Size, amount: f64) {
        self.level = (self.level + amount).min(size.most);
    }

    /// Whether nothing is missing: it is as good as one that was never used.
    pub(crate) fn is_full(&mut self, size: Size, now: Instant) -> bool {
        self.missing(size, size.most, 0.0, now).is_zero()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_empties_at_once_and_fills_evenly() {
        let (size, now) = (Size { most: 10.0, each_second: 2.0 }, Instant::now());
        let mut bucket = Bucket::full(size, now);
        assert_eq!((0..100).filter(|_| bucket.take(size, 1.0, 4.0, now)).count(), 6, "the rest stays");
        assert_eq!((0..100).filter(|_| bucket.take(size, 1.0, 0.0, now)).count(), 4);
        assert_eq!(bucket.missing(size, 3.0, 0.0, now), Duration::from_millis(1_500));
        bucket.owe(4.0);
        assert_eq!(bucket.missing(size, 2.0, 0.0, now), Duration::from_secs(3), "behind who waits already");
        let later = now + Duration::from_secs(60);
        assert!(bucket.is_full(size, later) && !bucket.take(size, 11.0, 0.0, later));
        let never = Size { most: 1.0, each_second: 0.0 };
        assert_eq!(Bucket::full(never, now).missing(never, 2.0, 0.0, now), Duration::MAX);
    }
}
