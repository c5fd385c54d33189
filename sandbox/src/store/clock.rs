//! Times in a form for people.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Returns the seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Formats a time as `2026-11-22 05:00:00 UTC`. Times beyond the calendar's range are clamped.
pub(crate) fn text(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX));
    jiff::Timestamp::from_second(seconds).unwrap_or(jiff::Timestamp::MAX).strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// Returns the time that is this many seconds after 1970.
pub(crate) fn of(seconds: u64) -> SystemTime {
    UNIX_EPOCH.checked_add(Duration::from_secs(seconds)).unwrap_or(UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_text_whatever_they_are() {
        assert_eq!(text(of(0)), "1970-01-01 00:00:00 UTC");
        assert_eq!(text(of(1_763_672_400)), "2025-11-20 21:00:00 UTC");
        assert!(!text(of(u64::MAX)).is_empty() && !text(of(1 << 60)).is_empty());
    }
}
