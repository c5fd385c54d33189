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
            let passed = last.map(late);
            let (wait, missed) = match passed {
                None if self.run_on_start => return self.with_extra(Some(Fire::Up(now.up)), None, now),
                None => (every, None),
                Some(passed) if passed.is_negative() => (every, None),
                Some(passed) => {
                    let passed = passed.unsigned_abs();
                    let count = passed.as_secs() / every.as_secs().max(1);
                    let first = last.and_then(|last| last.saturating_add(every).ok());
                    // One of them is made up for now.
                    let missed =
                        first.filter(|_| count > 1).map(|first| Missed { first, count: (count - 1).min(MAX_COUNTED) });
                    (every.saturating_sub(passed), missed)
                }
            };
            return self.with_extra(Some(Fire::Up(now.up + wait + self.splayed(random))), missed, now);
        }
        if self.run_on_start {
            return Armed { fire: Some(Fire::Wall(now.wall)), missed: self.missed_since(last, now) };
        }
        let since = last.filter(|_| matches!(self.trigger, Trigger::Cron(_))).unwrap_or(now.wall).max(now.wall);
        let graced = match (&self.trigger, last) {
            // A date that has just passed still counts, unless it has been seen.
            (Trigger::Once(_) | Trigger::When(_), None) => now.wall.saturating_sub(2.seconds()).unwrap_or(now.wall),
            (Trigger::Once(_) | Trigger::When(_), Some(last)) => {
                now.wall.saturating_sub(GRACE).unwrap_or(now.wall).max(last)
            }
            _ => since,
        };
        Armed { fire: self.wall(graced, now, random), missed: self.missed_between(last, graced, now) }
    }

    /// The next firing after one that was due at `due`. It is known whether that one came too late to count.
    pub fn after(&self, due: Fire, now: &Now, random: u64) -> Armed {
        match (due, &self.trigger) {
            (Fire::Up(at), Trigger::Every(every)) => {
                let late = now.up.saturating_sub(at);
                let count = late.as_secs() / every.as_secs().max(1);
                let first = Fire::Up(at + *every).on_wall(now);
                let missed = (count > 0).then_some(Missed { first, count: count.min(MAX_COUNTED) });
                self.with_extra(Some(Fire::Up(now.up + *every + self.splayed(random))), missed, now)
            }
            (Fire::Wall(at), Trigger::Every(every)) => {
                // One of `run_explicit`: the interval goes on.
                let _ = at;
                self.with_extra(Some(Fire::Up(now.up + *every)), None, now)
            }
            (due, _) => {
                let due = due.on_wall(now);
                let graced = match self.trigger {
                    Trigger::Cron(_) => now.wall,
                    _ => now.wall.saturating_sub(GRACE).unwrap_or(now.wall),
                };
                let from = due.max(graced);
                Armed { fire: self.wall(from, now, random), missed: self.missed_between(Some(due), from, now) }
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

    /// The first time on the wall after `from`, splayed.
    fn wall(&self, from: Timestamp, now: &Now, random: u64) -> Option<Fire> {
        let regular = self.trigger.next(from, &now.zone);
        let regular = regular.and_then(|at| at.saturating_add(self.splayed(random)).ok());
        regular.into_iter().chain(self.extra_after(from, now)).min().map(Fire::Wall)
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
        Armed { fire, missed }
    }

    fn missed_since(&self, last: Seen, now: &Now) -> Option<Missed> {
        self.missed_between(last, now.wall, now)
    }

    /// The times after `from` and up to `to`.
    fn missed_between(&self, from: Seen, to: Timestamp, now: &Now) -> Option<Missed> {
        let first = self.trigger.next(from?, &now.zone).filter(|at| *at <= to)?;
        let (mut at, mut count) = (first, 0);
        while count < MAX_COUNTED && at <= to {
            count += 1;
            let Some(next) = self.trigger.next(at, &now.zone) else { break };
            at = next;
        }
        Some(Missed { first, count })
    }
}
