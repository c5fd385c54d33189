//! Bounds what the log has about things that others cause: a master that asks for jobs without end, or refuses each return, must not fill
//! the disk of this host.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use brine_protocol::text::LogLimit;
use tracing::warn;

/// Upper bound on the lines of one kind in a minute: more than anybody reads, and some 30 MB a day.
const LINES: u64 = 100;
const WINDOW: Duration = Duration::from_secs(60);

/// The lines of one kind.
#[derive(Debug)]
pub(crate) struct Lines {
    about: &'static str,
    limit: Mutex<LogLimit>,
}

impl Lines {
    /// Lines about this, in words that follow "more lines about".
    pub(crate) fn about(about: &'static str) -> Self {
        Self { about, limit: Mutex::new(LogLimit::within(LINES, WINDOW)) }
    }

    /// Counts a line. Returns whether to write it. Says first how many were left out before it.
    pub(crate) fn may(&self) -> bool {
        let turn = self.limit.lock().unwrap_or_else(PoisonError::into_inner).count_line(Instant::now());
        if turn.unsaid > 0 {
            warn!("{} more lines about {} were left out", turn.unsaid, self.about);
        }
        turn.say
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_a_hundred_lines() {
        let lines = Lines::about("floods");
        assert_eq!((0..10_000).filter(|_| lines.may()).count(), 100);
    }
}
