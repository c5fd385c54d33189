//! Firings that did not happen: a line in the log for each, and an event for the master.

use brine_protocol::value::{Value, map};
use brine_schedule::Missed;
use tracing::warn;

use crate::lines::Lines;

/// Upper bound on the entries that a step's lines and an event name; both say how many there were.
const MAX_NAMED: usize = 100;

/// Firings that did not happen, and why.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Lost {
    pub(super) name: String,
    pub(super) missed: Missed,
    pub(super) why: &'static str,
}

/// Those of the entries since the last event.
#[derive(Debug)]
pub(super) struct LostFirings {
    found: Vec<Lost>,
    told: Vec<Lost>,
    number: usize,
    /// A schedule with more jobs than this host can run misses some in each step.
    lines: Lines,
}

impl Default for LostFirings {
    fn default() -> Self {
        let lines = Lines::about("jobs of the schedule that missed times");
        Self { found: Vec::new(), told: Vec::new(), number: 0, lines }
    }
}

impl LostFirings {
    pub(super) fn add(&mut self, name: &str, missed: Missed, why: &'static str) {
        self.found.push(Lost { name: name.to_owned(), missed, why });
    }

    /// Writes into the log what was added. Afterwards, and no sooner, the journal may note what comes after it.
    pub(super) fn tell(&mut self) {
        let number = self.found.len();
        for lost in self.found.drain(..).take(MAX_NAMED) {
            let Lost { name, missed, why } = &lost;
            if self.lines.may() {
                warn!(
                    "the job {name:?} of the schedule missed {} of its times, the first at {}: {why}",
                    missed.count, missed.first
                );
            }
            if self.told.len() < MAX_NAMED {
                self.told.push(lost);
            }
        }
        if number > MAX_NAMED && self.lines.may() {
            warn!("{} further jobs of the schedule missed times", number - MAX_NAMED);
        }
        self.number += number;
    }

    /// The data of an event about what is in the log since the last one; none if that is nothing.
    pub(super) fn take_event(&mut self) -> Option<Value> {
        let number = std::mem::take(&mut self.number);
        let jobs = self.told.drain(..).map(|Lost { name, missed, why }| {
            map([
                ("name", Value::from(name)),
                ("count", missed.count.into()),
                ("first", Value::from(missed.first.to_string())),
                ("why", Value::from(why)),
            ])
        });
        let jobs = Value::Array(jobs.collect());
        (number > 0).then(|| map([("number", Value::from(number)), ("jobs", jobs)]))
    }
}

#[cfg(test)]
mod tests {
    use brine_kit::logs::Log;
    use brine_protocol::value::ValueExt;
    use jiff::Timestamp;

    use super::*;

    /// A schedule of a master with more jobs than this host can run: the event has their number, the log has some.
    #[test]
    fn a_flood_of_missed_times_is_few_lines() {
        let log = Log::capture(tracing::Level::WARN);
        let mut lost = LostFirings::default();
        for step in 0..100 {
            for job in 0..200 {
                lost.add(&format!("{step}-{job}"), Missed { first: Timestamp::UNIX_EPOCH, count: 1 }, "it was late");
            }
            lost.tell();
        }
        assert!(log.text().lines().count() <= 200, "{}", log.text().lines().count());
        assert_eq!(lost.take_event().and_then(|event| event.get_u64("number")), Some(20_000));
    }
}
