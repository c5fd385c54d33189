//! `datetime.date` and `datetime.datetime`.

use std::fmt;

/// `datetime.date`
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date {
    /// 1 to 9999
    pub year: u16,
    /// 1 to 12
    pub month: u8,
    /// 1 to 31
    pub day: u8,
}

/// `datetime.datetime`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DateTime {
    /// The day.
    pub date: Date,
    /// 0 to 23
    pub hour: u8,
    /// 0 to 59
    pub minute: u8,
    /// 0 to 59
    pub second: u8,
    /// 0 to 999,999
    pub microsecond: u32,
    /// The distance from UTC; none is a naive one.
    pub offset_minutes: Option<i16>,
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

impl DateTime {
    /// Minutes and microseconds of an order in time.
    pub(crate) fn instant(&self) -> (i64, u32) {
        let (year, month) = (i64::from(self.date.year), i64::from(self.date.month));
        // days of a calendar whose year begins in March
        let year = if month <= 2 { year - 1 } else { year };
        let day = (153 * ((month + 9) % 12) + 2) / 5 + i64::from(self.date.day);
        let days = 365 * year + year / 4 - year / 100 + year / 400 + day;
        let minutes = days * 1440 + i64::from(self.hour) * 60 + i64::from(self.minute);
        let offset = i64::from(self.offset_minutes.unwrap_or_default());
        (minutes - offset, u32::from(self.second) * 1_000_000 + self.microsecond)
    }
}

/// Python's `str`, which is `isoformat(" ")`.
impl fmt::Display for DateTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:02}:{:02}:{:02}", self.date, self.hour, self.minute, self.second)?;
        if self.microsecond > 0 {
            write!(f, ".{:06}", self.microsecond)?;
        }
        match self.offset_minutes {
            Some(offset) => {
                let sign = if offset < 0 { '-' } else { '+' };
                write!(f, "{sign}{:02}:{:02}", offset.unsigned_abs() / 60, offset.unsigned_abs() % 60)
            }
            None => Ok(()),
        }
    }
}
