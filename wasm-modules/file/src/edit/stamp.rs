//! The time in a backup's name.

use crate::wasi::clocks::wall_clock;

/// As `2024-01-31-23-59-59`, in UTC: a module does not know the host's zone.
pub(crate) fn now() -> String {
    let seconds = wall_clock::now().seconds;
    let (days, time) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    format!("{year:04}-{month:02}-{day:02}-{:02}-{:02}-{:02}", time / 3600, time / 60 % 60, time % 60)
}

/// The date so many days after 1970.
fn date(days: u64) -> (u64, u64, u64) {
    // Years begin in March, so that the leap day is the last: 400 of them have 146,097 days.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month < 3), month, day)
}

#[cfg(test)]
mod tests {
    #[test]
    fn dates() {
        for (days, expected) in
            [(0, (1970, 1, 1)), (59, (1970, 3, 1)), (11_016, (2000, 2, 29)), (20_000, (2024, 10, 4))]
        {
            assert_eq!(super::date(days), expected);
        }
    }
}
