//! Limits what the log has about one kind of thing, so that a flood of it does not fill the disk.

use std::time::{Duration, Instant};

/// Time of a window for lines.
const WINDOW: Duration = Duration::from_secs(10);

/// Counts lines of one kind, or their bytes.
#[derive(Debug)]
pub struct LogLimit {
    most: u64,
    window: Duration,
    began: Option<Instant>,
    said: u64,
    unsaid: u64,
}

/// Whether to write this line, and how many lines were left out since the last written one.
#[derive(Debug, PartialEq, Eq)]
pub struct Turn {
    /// Write it.
    pub say: bool,
    /// Lines that were left out before it.
    pub unsaid: u64,
}

impl LogLimit {
    /// So many lines in ten seconds.
    #[must_use]
    pub fn new(max_lines: u32) -> Self {
        Self::within(u64::from(max_lines), WINDOW)
    }

    /// So much in each time.
    #[must_use]
    pub const fn within(most: u64, window: Duration) -> Self {
        Self { most, window, began: None, said: 0, unsaid: 0 }
    }

    /// Changes how much fits into each time.
    pub fn set_most(&mut self, most: u64) {
        self.most = most;
    }

    /// Counts a line.
    pub fn count_line(&mut self, now: Instant) -> Turn {
        self.count(1, now)
    }

    /// Counts a line of this size. After the first that does not fit, all others of that time are left out: without it, they would mislead.
    pub fn count(&mut self, size: u64, now: Instant) -> Turn {
        if self.began.is_none_or(|began| now - began > self.window) {
            (self.began, self.said) = (Some(now), 0);
        }
        let said = self.said.saturating_add(size);
        if said > self.most {
            self.said = self.most;
            self.unsaid += 1;
            return Turn { say: false, unsaid: 0 };
        }
        self.said = said;
        Turn { say: true, unsaid: std::mem::take(&mut self.unsaid) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_some_lines_and_a_sum() {
        let (mut log_limit, now) = (LogLimit::new(10), Instant::now());
        let said = (0..1000).filter(|_| log_limit.count_line(now).say).count();
        assert_eq!(said, 10);
        let later = now + WINDOW + Duration::from_millis(1);
        assert_eq!(log_limit.count_line(later), Turn { say: true, unsaid: 990 });
        assert_eq!(log_limit.count_line(later), Turn { say: true, unsaid: 0 });
    }

    #[test]
    fn sizes_are_counted_and_what_follows_a_gap_is_left_out() {
        let minute = Duration::from_secs(60);
        let (mut log_limit, now) = (LogLimit::within(100, minute), Instant::now());
        let say = Turn { say: true, unsaid: 0 };
        assert_eq!([log_limit.count(60, now), log_limit.count(40, now)], [say, Turn { say: true, unsaid: 0 }]);
        let mut log_limit = LogLimit::within(100, minute);
        assert!(log_limit.count(60, now).say && !log_limit.count(41, now).say && !log_limit.count(1, now).say);
        assert!(!log_limit.count(1, now + minute).say);
        let later = now + minute + Duration::from_millis(1);
        assert!(!log_limit.count(101, later).say, "one that never fits");
        assert_eq!(log_limit.count(1, later + minute + Duration::from_millis(1)), Turn { say: true, unsaid: 4 });
    }
}
