//! The time of the day in this host's time zone, and the time since the start of a run.

use crate::wasi::clocks::monotonic_clock::now;

const DAY: u64 = 86_400_000_000;

/// A clock that was set once.
#[derive(Clone)]
pub(crate) struct Clock {
    /// Microseconds since midnight, when it was set.
    at: u64,
    /// Nanoseconds of the monotonic clock, when it was set.
    set: u64,
}

impl Clock {
    /// Sets a clock to `14:03:59.000123`; what is no time counts as midnight.
    pub(crate) fn set(time: &str) -> Self {
        Self { at: microseconds(time).unwrap_or(0), set: now() }
    }

    /// The time of the day, as Python's `isoformat` writes it.
    pub(crate) fn time_of_day(&self) -> String {
        written(self.at + (now() - self.set) / 1_000)
    }

    /// Milliseconds since it was set.
    pub(crate) fn milliseconds(&self) -> u64 {
        (now() - self.set) / 1_000_000
    }
}

fn microseconds(time: &str) -> Option<u64> {
    let (clock, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let mut parts = clock.split(':').map(|part| part.parse::<u64>().ok());
    let (hours, minutes, seconds) = (parts.next()??, parts.next()??, parts.next()??);
    let micros = format!("{fraction:0<6}").get(..6)?.parse::<u64>().ok()?;
    Some(((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + micros)
}

fn written(micros: u64) -> String {
    let micros = micros % DAY;
    let seconds = micros / 1_000_000;
    let clock = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    match micros % 1_000_000 {
        0 => clock,
        fraction => format!("{clock}.{fraction:06}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_go_there_and_back() {
        for time in ["00:00:00", "14:03:59.000123", "23:59:59.999999", "01:02:03.400000"] {
            assert_eq!(microseconds(time).map(written).as_deref(), Some(time));
        }
        assert_eq!(written(DAY + 1), "00:00:00.000001");
        for odd in ["", "x", "1:2", "1:2:x"] {
            assert_eq!(microseconds(odd), None, "{odd}");
        }
    }
}
