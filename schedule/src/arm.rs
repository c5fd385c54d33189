//! The next firing of an entry, and which firings were missed.
//!
//! Two clocks count: intervals go by the time since the machine started, which no change of the clock touches and which goes on in a
//! suspended machine; dates and cron go by the clock on the wall.

use std::time::Duration;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

use crate::entry::Entry;
use crate::trigger::{Trigger, instant};

/// A firing at a date that is later than this is one that was missed.
const GRACE: Duration = Duration::from_secs(60);
/// A last firing that lies further in the future was noted by a clock that was wrong.
const WRONG_CLOCK: Duration = Duration::from_secs(86_400);
/// Missed firings are counted up to here.
const MAX_COUNTED: u64 = 1_000;

/// The time.
#[derive(Debug, Clone)]
pub struct Now {
    /// By the clock on the wall.
    pub wall: Timestamp,
    /// The host's time zone.
    pub zone: TimeZone,
    /// Since the machine started.
    pub up: Duration,
}

impl Now {
    /// The local time.
    pub fn local(&self) -> DateTime {
        self.zone.to_datetime(self.wall)
    }
}

/// When an entry fires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fire {
    /// At this time since the machine started.
    Up(Duration),
    /// At this time on the wall.
    Wall(Timestamp),
}

impl Fire {
    /// Whether it is time.
    pub fn is_due(&self, now: &Now) -> bool {
        match self {
            Self::Up(at) => *at <= now.up,
            Self::Wall(at) => *at <= now.wall,
        }
    }

    /// The time on the wall.
    pub fn on_wall(&self, now: &Now) -> Timestamp {
        match self {
            Self::Up(at) if *at >= now.up => now.wall.saturating_add(*at - now.up).unwrap_or(now.wall),
            Self::Up(at) => now.wall.saturating_sub(now.up - *at).unwrap_or(now.wall),
            Self::Wall(at) => *at,
        }
    }
}

/// Firings that did not happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missed {
    /// When the first of them was due.
    pub first: Timestamp,
    /// How many, up to a thousand.
    pub count: u64,
}

/// An entry that waits for its next firing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Armed {
    /// When it fires; none is never.
    pub fire: Option<Fire>,
    /// What was missed until now.
    pub missed: Option<Missed>,
    /// Each firing that was due until then has happened or is in `missed`: to be kept for the next start. None: as it was.
    pub settled: Option<Timestamp>,
    /// Dates before `fire` that do not fire because its splay reaches beyond them.
    pub passed_over: Option<Missed>,
}

/// What is known of an entry's last firing.
pub type Seen = Option<Timestamp>;

impl Entry {
    /// The first firing after a start. `last` is when an earlier run of the minion last let the entry fire, or first saw it.
    pub fn at_start(&self, last: Seen, now: &Now, random: u64) -> Armed {
        let late = |last: Timestamp| now.wall.duration_since(last);
        let is_wrong = |last: &Timestamp| late(*last).is_negative() && late(*last).unsigned_abs() > WRONG_CLOCK;
        let last = last.filter(|last| !is_wrong(last));
        if let Trigger::Every(every) = self.trigger {
            let Some(last) = last.filter(|last| *last <= now.wall) else {
                if last.is_none() && self.run_on_start {
                    return self.with_extra(Some(Fire::Up(now.up)), None, now);
                }
                // The wait begins now, and goes on over further starts.
                let fire = Fire::Up(now.up + every + self.splayed(random));
                return Armed { settled: Some(now.wall), ..self.with_extra(Some(fire), None, now) };
            };
            let passed = late(last).unsigned_abs();
            let wait = (every + self.splayed(random)).saturating_sub(passed);
            // One of them is made up for now.
            let count = (passed.as_secs() / every.as_secs().max(1)).saturating_sub(1);
            let missed = (count > 0).then(|| Missed { first: after(last, every, 1), count: count.min(MAX_COUNTED) });
            let settled = missed.map(|_| after(last, every, count));
            let missed = both(missed, self.missed_extra(last, now));
            return Armed { settled, ..self.with_extra(Some(Fire::Up(now.up + wait)), missed, now) };
        }
        if self.run_on_start {
            let missed = self.missed_since(last, now);
            return Armed { fire: Some(Fire::Wall(now.wall)), missed, settled: Some(now.wall), passed_over: None };
        }
        let graced = match (&self.trigger, last) {
            // A date that has just passed still counts, unless it has been seen.
            (Trigger::Once(_) | Trigger::When(_), None) => now.wall.saturating_sub(2.seconds()).unwrap_or(now.wall),
            (Trigger::Once(_) | Trigger::When(_), Some(last)) => {
                now.wall.saturating_sub(GRACE).unwrap_or(now.wall).max(last)
            }
            (_, last) => last.unwrap_or(now.wall).max(now.wall),
        };
        let missed = self.missed_between(last, graced, now);
        let settled = (last.is_none() || missed.is_some()).then_some(graced);
        let (fire, passed_over) = self.wall(graced, now, random);
        Armed { fire, missed, settled, passed_over }
    }

    /// The next firing after one that was due at `due`. It is known whether that one came too late to count.
    pub fn after(&self, due: Fire, now: &Now, random: u64) -> Armed {
        match (due, &self.trigger) {
            (Fire::Up(at), Trigger::Every(every)) => {
                let late = now.up.saturating_sub(at);
                let count = late.as_secs() / every.as_secs().max(1);
                let (due, every) = (due.on_wall(now), *every);
                let missed = (count > 0).then(|| Missed { first: after(due, every, 1), count: count.min(MAX_COUNTED) });
                let missed = both(missed, self.missed_extra(due, now));
                let next = Fire::Up(now.up + every + self.splayed(random));
                Armed { settled: Some(after(due, every, count)), ..self.with_extra(Some(next), missed, now) }
            }
            // One of `run_explicit`: the interval goes on.
            (Fire::Wall(at), Trigger::Every(every)) => {
                let missed = self.missed_extra(at, now);
                Armed { settled: Some(at), ..self.with_extra(Some(Fire::Up(now.up + *every)), missed, now) }
            }
            (due, _) => {
                let due = due.on_wall(now);
                let graced = match self.trigger {
                    Trigger::Cron(_) => now.wall,
                    _ => now.wall.saturating_sub(GRACE).unwrap_or(now.wall),
                };
                let from = due.max(graced);
                let missed = self.missed_between(Some(due), from, now);
                let (fire, passed_over) = self.wall(from, now, random);
                Armed { fire, missed, settled: Some(from), passed_over }
            }
        }
    }

    /// Whether a firing at a date comes too late to count. Cron and intervals are made up for once.
    pub fn is_too_late(&self, due: Fire, now: &Now) -> bool {
        let late = now.wall.duration_since(due.on_wall(now));
        let bound = GRACE + Duration::from_secs(self.splay.map_or(0, |(_, most)| most.unsigned_abs()));
        matches!(self.trigger, Trigger::Once(_) | Trigger::When(_))
            && !late.is_negative()
            && late.unsigned_abs() > bound
    }

    fn splayed(&self, random: u64) -> Duration {
        let Some((from, to)) = self.splay else { return Duration::ZERO };
        let span = (to - from).unsigned_abs() + 1;
        Duration::from_secs(from.unsigned_abs() + random % span)
    }

    /// The first time on the wall after `from`, splayed, and the dates that are passed over until then.
    fn wall(&self, from: Timestamp, now: &Now, random: u64) -> (Option<Fire>, Option<Missed>) {
        let next = |from| self.trigger.next(from, &now.zone);
        let regular = next(from).and_then(|at| Some((at, at.saturating_add(self.splayed(random)).ok()?)));
        let extra = self.extra_after(from, now);
        let is_first = |splayed: Timestamp| extra.is_none_or(|extra| splayed <= extra);
        let (at, passed_over) = match regular {
            Some((at, splayed)) if is_first(splayed) => {
                (Some(splayed), count(at, |from| next(from).filter(|at| *at <= splayed)))
            }
            // A splayed date gives way to one of `run_explicit`, which also stands for an equal one.
            _ => (extra, extra.and_then(|extra| count(from, |from| next(from).filter(|at| *at < extra)))),
        };
        (at.map(Fire::Wall), passed_over)
    }

    fn extra_after(&self, from: Timestamp, now: &Now) -> Option<Timestamp> {
        self.extra.iter().filter_map(|at| instant(*at, &now.zone)).filter(|at| *at > from).min()
    }

    /// An interval's firing, or a date of `run_explicit` that comes before it.
    fn with_extra(&self, fire: Option<Fire>, missed: Option<Missed>, now: &Now) -> Armed {
        let extra = self.extra_after(now.wall, now);
        let fire = match (fire, extra) {
            (Some(fire), Some(extra)) if extra < fire.on_wall(now) => Some(Fire::Wall(extra)),
            (fire, _) => fire,
        };
        Armed { fire, missed, settled: None, passed_over: None }
    }

    fn missed_since(&self, last: Seen, now: &Now) -> Option<Missed> {
        self.missed_between(last, now.wall, now)
    }

    /// The times after `from` and up to `to`.
    fn missed_between(&self, from: Seen, to: Timestamp, now: &Now) -> Option<Missed> {
        let next = |from| {
            let regular = self.trigger.next(from, &now.zone);
            regular.into_iter().chain(self.extra_after(from, now)).min().filter(|at| *at <= to)
        };
        count(from?, next)
    }

    /// The dates of an interval's `run_explicit` after `from` and until now.
    fn missed_extra(&self, from: Timestamp, now: &Now) -> Option<Missed> {
        let instants = self.extra.iter().filter_map(|at| instant(*at, &now.zone));
        let passed = instants.filter(|at| *at > from && *at <= now.wall);
        passed.map(|first| Missed { first, count: 1 }).fold(None, |all, one| both(all, Some(one)))
    }
}

/// Counts the times after `from`, each found by `next` from the one before.
fn count(from: Timestamp, next: impl Fn(Timestamp) -> Option<Timestamp>) -> Option<Missed> {
    let first = next(from)?;
    let (mut at, mut count) = (first, 1);
    while let Some(further) = next(at).filter(|_| count < MAX_COUNTED) {
        (at, count) = (further, count + 1);
    }
    Some(Missed { first, count })
}

fn both(one: Option<Missed>, other: Option<Missed>) -> Option<Missed> {
    let joined = one.zip(other).map(|(one, other)| Missed {
        first: one.first.min(other.first),
        count: (one.count + other.count).min(MAX_COUNTED),
    });
    joined.or(one).or(other)
}

/// The time of the n-th firing of an interval after `from`.
fn after(from: Timestamp, every: Duration, nth: u64) -> Timestamp {
    let passed = Duration::from_secs(every.as_secs().saturating_mul(nth));
    from.saturating_add(passed).unwrap_or(Timestamp::MAX)
}
