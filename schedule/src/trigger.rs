//! When an entry is due.

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::cron::Cron;
use crate::dates::Moment;

/// Steps over local times that a change of the clock puts at or before the time that is asked about.
const MAX_STEPS: usize = 10_000;

/// When an entry is due.
#[derive(Debug, Clone)]
pub enum Trigger {
    /// This long after the last time.
    Every(Duration),
    /// At a date, once.
    Once(DateTime),
    /// At each of these.
    When(Vec<Moment>),
    /// As a cron expression says.
    Cron(Cron),
}

impl Trigger {
    /// The first local time after `after` for all but intervals.
    fn local(&self, after: DateTime) -> Option<DateTime> {
        match self {
            Self::Every(_) => None,
            Self::Once(at) => Some(*at).filter(|at| *at > after),
            Self::When(moments) => moments.iter().filter_map(|moment| moment.next(after)).min(),
            Self::Cron(cron) => cron.next(after),
        }
    }

    /// The first time after `after` at which an entry is due that goes by the clock on the wall; none for an interval.
    pub fn next(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let mut local = zone.to_datetime(after);
        for _ in 0..MAX_STEPS {
            local = self.local(local)?;
            let at = instant(local, zone)?;
            if at > after {
                return Some(at);
            }
        }
        None
    }
}

/// The instant of a local time: after a gap as long as before it, and the first of two.
pub fn instant(local: DateTime, zone: &TimeZone) -> Option<Timestamp> {
    zone.to_ambiguous_zoned(local).compatible().ok().map(|zoned| zoned.timestamp())
}
