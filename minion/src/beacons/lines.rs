//! How much beacons write to the log.
//!
//! Each call of a module has a budget of its own, and a beacon is called as long as the minion runs, ten times a second if it waits by
//! itself. So its lines have a bound over time too.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use brine_protocol::text::{LogLimit, Turn};

/// Upper bound on what one beacon writes in the time of `WINDOW`: as much as one call may, which no beacon that works comes near.
const BYTES: u64 = 64 << 10;
const WINDOW: Duration = Duration::from_secs(60);
/// Counted for each line beside its text: the log adds time, level, job and function.
const OVERHEAD: u64 = 100;

/// What each beacon has written, by name.
#[derive(Debug, Default)]
pub(super) struct Lines(Mutex<HashMap<String, LogLimit>>);

impl Lines {
    /// Counts a line of a beacon.
    pub(super) fn count(&self, beacon: &str, message: &str, now: Instant) -> Turn {
        let size = OVERHEAD.saturating_add(message.len() as u64);
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match all.get_mut(beacon) {
            Some(limit) => limit.count(size, now),
            None => all.entry(beacon.to_owned()).or_insert(LogLimit::within(BYTES, WINDOW)).count(size, now),
        }
    }

    /// Forgets others than these.
    pub(super) fn retain(&self, keep: impl Fn(&str) -> bool) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|name, _| keep(name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a beacon writes that is called each second for an hour, with the whole budget of a call each time.
    #[test]
    fn a_beacon_that_is_called_without_end_writes_little() {
        let (lines, start, line) = (Lines::default(), Instant::now(), "x".repeat(1_000));
        let (mut written, mut left_out, mut all) = (0, 0, 0);
        for call in 0..60 * 60_u64 {
            for _ in 0..60 {
                let turn = lines.count("flood", &line, start + Duration::from_secs(call));
                written += if turn.say { line.len() } else { 0 };
                left_out += turn.unsaid;
                all += 1;
            }
        }
        assert!(written < 4_000_000, "{written}");
        assert!(all - left_out < 10_000, "what was left out is said with the next line: {left_out} of {all}");
        let empty = (0..10_000).filter(|_| lines.count("empty", "", start).say).count();
        assert!(empty < 1_000, "empty lines are lines too: {empty}");
    }

    #[test]
    fn each_beacon_has_a_budget_of_its_own() {
        let (lines, now, line) = (Lines::default(), Instant::now(), "x".repeat(1_000));
        for _ in 0..1_000 {
            lines.count("flood", &line, now);
        }
        assert!(!lines.count("flood", "a word", now).say, "a line after those that are missing would mislead");
        assert_eq!(lines.count("other", &line, now), Turn { say: true, unsaid: 0 });
        lines.retain(|name| name != "other");
        assert!(!lines.count("flood", &line, now).say);
        let later = lines.count("flood", &line, now + WINDOW + Duration::from_millis(1));
        assert_eq!(later, Turn { say: true, unsaid: 943 });
    }
}
