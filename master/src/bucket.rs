//! A token bucket: an allowance with a bound on what is taken at once, which refills at an even rate.

use std::time::{Duration, Instant};

/// The size of a bucket.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    /// The level of a full bucket.
    pub(crate) most: f64,
    /// What a bucket regains each second.
    pub(crate) each_second: f64,
}

/// The level of one bucket.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bucket {
    /// Negative while a caller of [`Bucket::owe`] waits.
    level: f64,
    at: Instant,
}

impl Bucket {
    pub(crate) const fn full(size: Size, now: Instant) -> Self {
        Self { level: size.most, at: now }
    }

    /// Takes `amount` if at least `rest` then remains. Returns false if not.
    pub(crate) fn take(&mut self, size: Size, amount: f64, rest: f64, now: Instant) -> bool {
        let enough = self.missing(size, amount, rest, now).is_zero();
        if enough {
            self.level -= amount;
        }
        enough
    }

    /// Returns the wait until `amount` can be taken with `rest` remaining.
    pub(crate) fn missing(&mut self, size: Size, amount: f64, rest: f64, now: Instant) -> Duration {
        let gained = now.saturating_duration_since(self.at).as_secs_f64() * size.each_second;
        self.level = (self.level + gained).min(size.most);
        self.at = self.at.max(now);
        let missing = amount + rest - self.level;
        if missing <= 0.0 {
            return Duration::ZERO;
        }
        // With a rate near zero the wait is too long for a `Duration`.
        Duration::try_from_secs_f64(missing / size.each_second).unwrap_or(Duration::MAX)
    }

    /// Takes `amount` even if the level becomes negative. The caller waits for [`Bucket::missing`] first.
    pub(crate) const fn owe(&mut self, amount: f64) {
        self.level -= amount;
    }

    /// Gives back an amount that was taken and not needed.
    pub(crate) fn give(&mut self, size: Size, amount: f64) {
        self.level = (self.level + amount).min(size.most);
    }

    /// Returns whether the bucket is full, and so equal to an unused one.
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
