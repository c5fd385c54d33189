//! Statistics of a function's past calls: whether they are short, and whether they need little memory.
//!
//! They only decide which calls may overtake others. A function that is not short any more loses its quick place after
//! a moment.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::time::Duration;

use brine_sandbox_wire::Usage;

use super::memory::SMALL;

/// A short call uses less CPU time than this, a hundred times that of an ordinary call …
const SHORT_CPU: Duration = Duration::from_millis(50);
/// … and less wall-clock time than this, on a machine that does other things too.
pub(super) const SHORT_WALL: Duration = Duration::from_millis(500);
/// Marks added by a long or large call. Every other call removes one mark.
const MARK: u8 = 2;
/// A function with at most this many marks is expected to be short. A function whose calls were all short has no marks,
/// so three stalls of the machine in a row do not make it long.
/// stops for a moment three times in a row makes it no long one.
const CREDIT: u8 = 6;
/// Upper bound on marks, reached by a function whose calls were all long.
const MAX_MARKS: u8 = CREDIT + 8;
/// In place of a mark count: no call has ended yet.
const UNSEEN: u8 = u8::MAX;

/// The marks of one function.
#[derive(Debug)]
struct Record {
    long: AtomicU8,
    large: AtomicU8,
}

/// The records of a module's functions, in their order. Another content starts a new history.
#[derive(Debug, Default)]
pub(crate) struct History(Box<[Record]>);

/// The expected duration of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Pace {
    /// No call has ended yet, or the past calls differ.
    #[default]
    Unknown,
    Short,
    Long,
}

/// The expectations of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Expect {
    pub(crate) pace: Pace,
    /// Whether it will stay within [`SMALL`]. None if no call has ended yet.
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

    /// Records a call that was ended from outside with this usage. If it was not long by then, it might have become so.
    pub(crate) fn cut_off(&self, function: usize, usage: &Usage) {
        if let Some(record) = self.0.get(function) {
            if !is_short(usage) {
                mark(&record.long, false);
            }
            mark(&record.large, usage.memory_peak <= SMALL);
        }
    }

    /// Records a call that ended by itself with this usage.
    pub(crate) fn ended(&self, function: usize, usage: &Usage) {
        let Some(record) = self.0.get(function) else { return };
        mark(&record.long, is_short(usage));
        mark(&record.large, usage.memory_peak <= SMALL);
    }

    /// Records that a running call is not short.
    pub(crate) fn is_long(&self, function: usize) {
        if let Some(record) = self.0.get(function) {
            mark(&record.long, false);
        }
    }
}

fn is_short(usage: &Usage) -> bool {
    u128::from(usage.cpu_us) < SHORT_CPU.as_micros() && u128::from(usage.wall_us) < SHORT_WALL.as_micros()
}

/// Updates the marks. Of two calls that end at the same moment, one may be lost.
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
    fn what_was_cut_off_was_not_short() {
        let history = History::new(1);
        history.cut_off(0, &Usage::default());
        assert_eq!(history.expect(0), Expect { pace: Pace::Unknown, small: Some(true) });
        history.cut_off(0, &Usage { wall_us: 2_000_000, memory_peak: SMALL + 1, ..Usage::default() });
        assert_eq!(history.expect(0).pace, Pace::Long);
        history.cut_off(0, &Usage::default());
        assert_eq!(history.expect(0).pace, Pace::Long);
        history.cut_off(1, &Usage::default());
    }

    #[test]
    fn what_was_long_has_to_be_short_more_often() {
        let history = History::new(2);
        let pace = || history.expect(1).pace;
        let (short, long) = (Usage::default(), Usage { wall_us: 2_000_000, ..Usage::default() });
        assert_eq!((pace(), history.expect(1).small), (Pace::Unknown, None));
        history.ended(1, &short);
        assert_eq!((pace(), history.expect(1).small), (Pace::Short, Some(true)));
        // One long call makes a function with few short calls uncertain. Two short calls, equal in weight, restore the
        // expectation.
        history.ended(1, &long);
        history.ended(1, &short);
        assert_eq!(pace(), Pace::Unknown);
        history.ended(1, &short);
        assert_eq!(pace(), Pace::Short);
        // A function that was short often may be long a few times.
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
        // CPU time and memory count too, each separately.
        let large = Usage { cpu_us: 50_000, wall_us: 60_000, memory_peak: SMALL + 1, ..Usage::default() };
        history.ended(1, &large);
        assert_eq!(history.expect(1), Expect { pace: Pace::Unknown, small: Some(true) });
        (0..CREDIT).for_each(|_| history.ended(1, &large));
        assert_eq!(history.expect(1), Expect { pace: Pace::Long, small: Some(false) });
        // An unknown function number is ignored.
        history.ended(2, &long);
        assert_eq!(history.expect(2), Expect::default());
    }
}
