//! What is known of a function from the calls of it that have ended: whether it is short, and whether it needs little memory.
//!
//! It decides who is let by, and nothing else: a function that was short and is not any more gives its place back after a moment.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::time::Duration;

use brine_sandbox_wire::Usage;

use super::memory::SMALL;

/// A short call computes for less than this: a hundred times what an ordinary one takes …
const SHORT_CPU: Duration = Duration::from_millis(50);
/// … and is over after this, on a machine that does other things too.
pub(super) const SHORT_WALL: Duration = Duration::from_millis(500);
/// A long or large call adds this many marks; each other call takes one away.
const MARK: u8 = 2;
/// A function with at most this many marks is expected to be short. One whose calls were all short has none, so that a machine that
/// stops for a moment three times in a row makes it no long one.
const CREDIT: u8 = 6;
/// Marks are counted up to this. A function whose calls were all long has this many.
const MAX_MARKS: u8 = CREDIT + 8;
/// In place of marks: no call has ended yet.
const UNSEEN: u8 = u8::MAX;

/// Of one function of one content.
#[derive(Debug)]
struct Record {
    long: AtomicU8,
    large: AtomicU8,
}

/// Of all functions of a module, in their order. It ends with the module's entry: other content is another history.
#[derive(Debug, Default)]
pub(crate) struct History(Box<[Record]>);

/// How long a call will take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Pace {
    /// No call of it has ended yet, or some were short and some were long.
    #[default]
    Unknown,
    Short,
    Long,
}

/// What a call is expected to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Expect {
    pub(crate) pace: Pace,
    /// Whether it will stay within [`SMALL`]; none where no call has ended yet.
    pub(crate) small: Option<bool>,
}

impl History {
    pub(crate) fn new(functions: usize) -> Self {
        Self((0..functions).map(|_| Record { long: AtomicU8::new(UNSEEN), large: AtomicU8::new(UNSEEN) }).collect())
    }

    pub(crate) fn expect(&self, function: usize) -> Expect {
        let Some(record) = self.0.get(function) else { return Expect::default() };
        let pace = match record.long.load(Relaxed) {
            0..=CREDIT => Pace::Short,
            MAX_MARKS => Pace::Long,
            _ => Pace::Unknown,
        };
        let small = match record.large.load(Relaxed) {
            UNSEEN => None,
            marks => Some(marks <= CREDIT),
        };
        Expect { pace, small }
    }

    /// A call has ended, which used so much.
    pub(crate) fn ended(&self, function: usize, usage: &Usage) {
        let Some(record) = self.0.get(function) else { return };
        let short =
            u128::from(usage.cpu_us) < SHORT_CPU.as_micros() && u128::from(usage.wall_us) < SHORT_WALL.as_micros();
        mark(&record.long, short);
        mark(&record.large, usage.memory_peak <= SMALL);
    }

    /// A call is not short, and may go on for long.
    pub(crate) fn is_long(&self, function: usize) {
        if let Some(record) = self.0.get(function) {
            mark(&record.long, false);
        }
    }
}

/// What was there is known; two that end at the same moment may count as one.
fn mark(marks: &AtomicU8, good: bool) {
    let before = marks.load(Relaxed);
    let now = match (before, good) {
        // The first call decides until others have ended.
        (UNSEEN, true) => CREDIT,
        (UNSEEN, false) => MAX_MARKS,
        (marks, true) => marks.saturating_sub(1),
        (marks, false) => (marks + MARK).min(MAX_MARKS),
    };
    if now != before {
        marks.store(now, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_long_has_to_be_short_more_often() {
        let history = History::new(2);
        let pace = || history.expect(1).pace;
        let (short, long) = (Usage::default(), Usage { wall_us: 2_000_000, ..Usage::default() });
        assert_eq!((pace(), history.expect(1).small), (Pace::Unknown, None));
        history.ended(1, &short);
        assert_eq!((pace(), history.expect(1).small), (Pace::Short, Some(true)));
        // It was short once: one long call casts doubt on it, and as many short ones as that counts for remove the doubt.
        history.ended(1, &long);
        history.ended(1, &short);
        assert_eq!(pace(), Pace::Unknown);
        history.ended(1, &short);
        assert_eq!(pace(), Pace::Short);
        // It was short often: it may be long some times.
        (0..CREDIT).for_each(|_| history.ended(1, &short));
        (0..CREDIT / MARK).for_each(|_| history.ended(1, &long));
        assert_eq!(pace(), Pace::Short);
        history.ended(1, &long);
        assert_eq!(pace(), Pace::Unknown);
        (0..100).for_each(|_| history.is_long(1));
        assert_eq!(pace(), Pace::Long);
        (CREDIT + 1..MAX_MARKS).for_each(|_| history.ended(1, &short));
        assert_eq!(pace(), Pace::Unknown);
        history.ended(1, &short);
        assert_eq!(pace(), Pace::Short);
        history.ended(0, &long);
        assert_eq!(history.expect(0).pace, Pace::Long);
        // Computing counts too, and so does memory, by itself.
        let large = Usage { cpu_us: 50_000, wall_us: 60_000, memory_peak: SMALL + 1, ..Usage::default() };
        history.ended(1, &large);
        assert_eq!(history.expect(1), Expect { pace: Pace::Unknown, small: Some(true) });
        (0..CREDIT).for_each(|_| history.ended(1, &large));
        assert_eq!(history.expect(1), Expect { pace: Pace::Long, small: Some(false) });
        // A function that is not there does no harm.
        history.ended(2, &long);
        assert_eq!(history.expect(2), Expect::default());
    }
}
