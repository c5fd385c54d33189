//! What was refused, told to the operator: in the log and on the bus, and not more often than anyone can read.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use brine_protocol::value::Value;

use crate::bus::Bus;

/// Refusals told of in each [`PERIOD`]; a stranger can cause them as fast as the network goes.
const TOLD_MAX: u32 = 50;
const PERIOD: Duration = Duration::from_secs(1);

/// Counts and tells.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    period: Mutex<Option<Period>>,
}

#[derive(Debug)]
struct Period {
    began: Instant,
    told: u32,
    untold: u64,
}

impl Refusals {
    /// Logs `why` and fires `tag` with `data`, unless there were too many just before.
    pub(crate) fn tell(&self, bus: &Bus, why: &str, tag: impl Into<String>, data: Value) {
        if self.log(why) {
            bus.fire(tag, data);
        }
    }

    /// Logs `why` unless there were too many just before; whether it did.
    pub(crate) fn log(&self, why: &str) -> bool {
        let (tell, untold) = self.turn(Instant::now());
        if untold > 0 {
            tracing::warn!("{untold} more requests were refused within a second");
        }
        if tell {
            tracing::warn!("{why}");
        }
        tell
    }

    /// Whether to tell, and how many were not told of in a period that is over.
    fn turn(&self, now: Instant) -> (bool, u64) {
        let mut period = self.period.lock().unwrap_or_else(PoisonError::into_inner);
        let mut untold = 0;
        match &mut *period {
            Some(current) if now.duration_since(current.began) < PERIOD => {
                if current.told >= TOLD_MAX {
                    current.untold += 1;
                    return (false, 0);
                }
                current.told += 1;
            }
            over => {
                untold = over.as_ref().map_or(0, |period| period.untold);
                *over = Some(Period { began: now, told: 1, untold: 0 });
            }
        }
        (true, untold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_counted_and_not_told() {
        let refusals = Refusals::default();
        let now = Instant::now();
        let told = (0..1_000).filter(|_| refusals.turn(now).0).count();
        assert_eq!(told, 50);
        assert_eq!(refusals.turn(now + PERIOD), (true, 950));
        assert_eq!(refusals.turn(now + PERIOD), (true, 0));
    }
}
