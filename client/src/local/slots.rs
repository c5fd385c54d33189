//! The minions of a batch that run the job at present, without sockets and clocks: a fixed number at once; the next
//! minion begins when one has ended.

use std::collections::{HashSet, VecDeque};
use std::str::FromStr;
use std::time::{Duration, Instant};

/// The number of minions that run a batch's job at once: `10`, or `25%` of the target.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum BatchSize {
    /// A number of minions.
    Count(usize),
    /// A percentage of the target.
    Percent(f64),
}

/// A text that is not a batch size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Invalid batch data sent: {0}\nData must be in the form of %10, 10% or 3")]
pub struct BadBatchSize(String);

impl FromStr for BatchSize {
    type Err = BadBatchSize;
    fn from_str(text: &str) -> Result<Self, BadBatchSize> {
        let bad = || BadBatchSize(text.to_owned());
        if !text.contains('%') {
            return text.trim().parse::<i64>().map(|n| Self::Count(n.try_into().unwrap_or(0))).map_err(|_| bad());
        }
        let percent = text.trim_matches('%').trim().parse::<f64>().ok().filter(|n| n.is_finite());
        percent.map(|percent| Self::Percent(percent.max(0.0))).ok_or_else(bad)
    }
}

impl BatchSize {
    /// The number for this many minions; at least one.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "a part of a count"
    )]
    pub fn count_among(self, minions: usize) -> usize {
        match self {
            Self::Count(count) => count.max(1),
            Self::Percent(percent) => ((percent / 100.0 * minions as f64) as usize).max(1),
        }
    }
}

/// The options of a batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BatchOptions {
    /// The number of minions at once.
    pub size: BatchSize,
    /// The time for which the slot of a minion that returned stays empty.
    pub wait: Duration,
    /// Whether a failed return prevents further minions from beginning.
    pub failhard: bool,
}

/// Which minions of a batch run its job, and which are still to come.
#[derive(Debug)]
pub struct Slots {
    size: usize,
    wait: Duration,
    failhard: bool,
    pending: VecDeque<String>,
    active: HashSet<String>,
    /// The times at which the slots of returned minions become free.
    empty_until: Vec<Instant>,
    halted: bool,
}

impl Slots {
    /// All minions are still to come.
    pub fn new(minions: Vec<String>, options: BatchOptions) -> Self {
        let BatchOptions { size, wait, failhard } = options;
        let size = size.count_among(minions.len());
        let (active, empty_until) = (HashSet::new(), Vec::new());
        Self { size, wait, failhard, pending: minions.into(), active, empty_until, halted: false }
    }

    /// Takes the minions that begin now.
    pub fn begin(&mut self, now: Instant) -> Vec<String> {
        self.empty_until.retain(|until| *until > now);
        let free = self.size.saturating_sub(self.active.len() + self.empty_until.len());
        let free = if self.halted { 0 } else { free.min(self.pending.len()) };
        let ids: Vec<String> = self.pending.drain(..free).collect();
        self.active.extend(ids.iter().cloned());
        ids
    }

    /// Records that a minion returned or is given up.
    pub fn ended(&mut self, id: &str, failed: bool, now: Instant) {
        if self.active.remove(id) && !self.wait.is_zero() {
            self.empty_until.push(now + self.wait);
        }
        self.halted |= self.failhard && failed;
    }

    /// The time at which a slot becomes free without a return.
    pub fn next_free(&self) -> Option<Instant> {
        self.empty_until.iter().min().copied().filter(|_| !self.pending.is_empty())
    }

    /// Whether a failed return has halted the batch.
    pub const fn is_halted(&self) -> bool {
        self.halted
    }

    /// Whether no minion runs it, and none is to come.
    pub fn is_done(&self) -> bool {
        self.halted || (self.pending.is_empty() && self.active.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(count: usize, wait: u64, failhard: bool) -> (Slots, Instant) {
        let ids = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
        let options = BatchOptions { size: BatchSize::Count(count), wait: Duration::from_secs(wait), failhard };
        (Slots::new(ids, options), Instant::now())
    }

    #[test]
    fn sizes_are_salts() {
        for (text, of_four) in
            [("1", 1), ("3", 3), ("0", 1), ("-2", 1), ("50%", 2), ("%50", 2), ("10%", 1), ("74%", 2), ("1000%", 40)]
        {
            assert_eq!(text.parse::<BatchSize>().unwrap().count_among(4), of_four, "{text}");
        }
        for text in ["", "x", "%", "5x", "nan%", "1.5"] {
            assert!(text.parse::<BatchSize>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_next_begins_when_one_ended() {
        let (mut slots, now) = slots(2, 0, false);
        assert_eq!(slots.begin(now), ["a", "b"]);
        assert!(slots.begin(now).is_empty());
        slots.ended("b", true, now);
        assert_eq!(slots.begin(now), ["c"]);
        slots.ended("x", false, now);
        assert!(slots.begin(now).is_empty(), "who was not asked frees nobody's place");
        slots.ended("a", false, now);
        slots.ended("c", false, now);
        assert_eq!(slots.begin(now), ["d"]);
        assert!(!slots.is_done());
        slots.ended("d", false, now);
        assert!(slots.is_done() && slots.begin(now).is_empty());
    }

    #[test]
    fn places_stay_empty_for_a_while() {
        let (mut slots, now) = slots(2, 5, false);
        slots.begin(now);
        slots.ended("a", false, now);
        let later = now + Duration::from_secs(5);
        assert!(slots.begin(now).is_empty());
        assert_eq!(slots.next_free(), Some(later));
        assert_eq!(slots.begin(later), ["c"]);
        assert_eq!(slots.next_free(), None);
    }

    #[test]
    fn a_failure_ends_it_where_that_is_wanted() {
        let (mut slots, now) = slots(1, 0, true);
        slots.begin(now);
        slots.ended("a", false, now);
        assert_eq!(slots.begin(now), ["b"]);
        slots.ended("b", true, now);
        assert!(slots.is_done() && slots.is_halted() && slots.begin(now).is_empty());
    }
}
