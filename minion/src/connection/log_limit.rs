//! Limits the lines in the log about refused publications, so that a flood of them does not fill the disk.

use std::time::Duration;

use tokio::time::Instant;

/// Upper bound on lines ...
const MAX_LINES: u32 = 10;
/// ... within this time.
const WINDOW: Duration = Duration::from_secs(10);

/// Counts lines of one kind.
#[derive(Debug, Default)]
pub(super) struct LogLimit {
    began: Option<Instant>,
    said: u32,
    unsaid: u64,
}

/// Whether to write this line, and how many lines were left out since the last written one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) say: bool,
    pub(super) unsaid: u64,
}

impl LogLimit {
    pub(super) fn count_line(&mut self, now: Instant) -> Turn {
        if self.began.is_none_or(|began| now - began > WINDOW) {
            (self.began, self.said) = (Some(now), 0);
        }
        if self.said >= MAX_LINES {
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
    fn a_flood_of_refusals_is_some_lines_and_a_sum() {
        let (mut log_limit, now) = (LogLimit::default(), Instant::now());
        let said = (0..1000).filter(|_| log_limit.count_line(now).say).count();
        assert_eq!(said, 10);
        let later = now + WINDOW + Duration::from_millis(1);
        assert_eq!(log_limit.count_line(later), Turn { say: true, unsaid: 990 });
        assert_eq!(log_limit.count_line(later), Turn { say: true, unsaid: 0 });
    }
}
