//! Limits the lines in the log about one kind of thing, so that a flood of them does not fill the disk.

use std::time::{Duration, Instant};

/// Time of a window.
const WINDOW: Duration = Duration::from_secs(10);

/// Counts lines of one kind.
#[derive(Debug)]
pub struct LogLimit {
    max_lines: u32,
    began: Option<Instant>,
    said: u32,
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
    pub const fn new(max_lines: u32) -> Self {
        Self { max_lines, began: None, said: 0, unsaid: 0 }
    }

    /// Counts a line.
    pub fn count_line(&mut self, now: Instant) -> Turn {
        if self.began.is_none_or(|began| now - began > WINDOW) {
            (self.began, self.said) = (Some(now), 0);
        }
        if self.said >= self.max_lines {
            self.unsaid += 1;
            return Turn { say: false, unsaid: 0 };
        }
        self.said += 1;
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
}
