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
/// A call that was not as those before counts for so many that were.
const MARK: u8 = 2;
/// However often it was not, so many make up for it.
const MAX_MARKS: u8 = 8;
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
    /// No call of it has ended yet.
    #[default]
    Unseen,
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
            UNSEEN => Pace::Unseen,
            0 => Pace::Short,
            _ => Pace::Long,
        };
        let small = match record.large.load(Relaxed) {
            UNSEEN => None,
            marks => Some(marks == 0),
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
        (UNSEEN, true) => 0,
        (UNSEEN, false) => MARK,
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
        assert_eq!((pace(), history.expect(1).small), (Pace::Unseen, None));
        history.ended(1, &short);
        assert_eq!((pace(), history.expect(1).small), (Pace::Short, Some(true)));
        history.ended(1, &long);
        history.ended(1, &short);
        assert_eq!(pace(), Pace::Long);
        history.ended(1, &short);
        assert_eq!(pace(), Pace::Short);
        (0..100).for_each(|_| history.is_long(1));
        (1..MAX_MARKS).for_each(|_| history.ended(1, &short));
        assert_eq!(pace(), Pace::Long);
        history.ended(1, &short);
        assert_eq!(pace(), Pace::Short);
        // Computing counts too, and so does memory, by itself.
        history.ended(1, &Usage { cpu_us: 50_000, wall_us: 60_000, memory_peak: SMALL + 1, ..Usage::default() });
        assert_eq!(history.expect(1), Expect { pace: Pace::Long, small: Some(false) });
        // Nobody else's business; and a function that is not there is no harm.
        assert_eq!(history.expect(0), Expect::default());
        history.ended(2, &long);
        assert_eq!(history.expect(2), Expect::default());
    }
}
