//! Dates as people write them in a schedule: `2026-11-24T17:00:00`, `Monday 5:00pm`, `11/29/2026 4pm`, `8:00am`, `January 1, 2027`.
//!
//! What a text leaves out is taken from the day that is asked about, so that `8:00am` is a time of each day, as in Salt.

use jiff::civil::{Date, DateTime, Time, Weekday};
use jiff::fmt::strtime::BrokenDownTime;
use jiff::{Span, ToSpan};

/// Upper bound on the bytes of a date.
const MAX_BYTES: usize = 256;

/// A date that may leave out parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    day: Day,
    time: Time,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Day {
    /// Any day.
    Each,
    /// This day of each week.
    Weekday(Weekday),
    /// Parts of a date; what is none is the day's that is asked about.
    Parts(Option<i16>, Option<i8>, Option<i8>),
}

impl Moment {
    /// Reads a date. `today` decides the century of a year with two digits.
    ///
    /// # Errors
    /// When the text is no date.
    pub fn parse(text: &str, today: Date) -> Result<Self, String> {
        let wrong = || format!("{:?} is no date", text.chars().take(80).collect::<String>());
        if text.len() > MAX_BYTES {
            return Err(wrong());
        }
        let mut reader = Reader::default();
        for word in words(text) {
            reader.take(&word).ok_or_else(wrong)?;
        }
        reader.moment(today).ok_or_else(wrong)
    }

    /// The one moment that a complete date means.
    pub fn at(date: DateTime) -> Self {
        let day = Day::Parts(Some(date.year()), Some(date.month()), Some(date.day()));
        Self { day, time: date.time() }
    }

    /// What the date means on a day: `Monday` is that day or the next Monday. None if there is no such day in that month or year.
    pub fn seen_on(&self, today: Date) -> Option<DateTime> {
        let day = match self.day {
            Day::Each => today,
            Day::Weekday(weekday) => {
                let days = (7 + weekday.to_monday_zero_offset() - today.weekday().to_monday_zero_offset()) % 7;
                today.checked_add(i64::from(days).days()).ok()?
            }
            Day::Parts(year, month, day) => {
                let (year, month) = (year.unwrap_or(today.year()), month.unwrap_or(today.month()));
                let last = Date::new(year, month, 1).ok()?.days_in_month();
                // A day that is not named is at most the month's last.
                Date::new(year, month, day.unwrap_or(today.day().min(last))).ok()?
            }
        };
        Some(day.to_datetime(self.time))
    }

    /// The first time after `after` that the date means on any day.
    pub fn next(&self, after: DateTime) -> Option<DateTime> {
        let step: Span = match self.day {
            Day::Each | Day::Weekday(_) => 1.day(),
            Day::Parts(Some(_), Some(_), Some(_)) => return self.seen_on(after.date()).filter(|date| *date > after),
            Day::Parts(None, _, Some(_)) => 1.month(),
            Day::Parts(..) => 1.day(),
        };
        let mut day = if step.get_months() > 0 { after.date().first_of_month() } else { after.date() };
        // A day of a month may be missing from some months, 29 February from many years.
        for _ in 0..12 * 9 {
            if let Some(date) = self.seen_on(day).filter(|date| *date > after) {
                return Some(date);
            }
            day = day.checked_add(step).ok()?;
        }
        None
    }
}

/// Reads a date in a format of `strptime`.
pub fn by_format(text: &str, format: &str) -> Option<DateTime> {
    if text.len() > MAX_BYTES || format.len() > MAX_BYTES {
        return None;
    }
    let parts = BrokenDownTime::parse(format, text).ok()?;
    let date = parts.to_date().ok()?;
    Some(date.to_datetime(parts.to_time().unwrap_or(Time::midnight())))
}

/// Writes a date in a format of `strftime`; none for a format that is none.
pub fn in_format(date: DateTime, format: &str) -> Option<String> {
    if format.len() > MAX_BYTES {
        return None;
    }
    jiff::fmt::strtime::format(format, date).ok()
}

/// The words of a date: separated by blanks and commas, and a `T` between digits.
fn words(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    let chars: Vec<char> = lower.chars().collect();
    let digit = |at: Option<usize>| at.and_then(|at| chars.get(at)).is_some_and(char::is_ascii_digit);
    let separated: String = (0..chars.len())
        .map(|at| match chars[at] {
            't' if digit(at.checked_sub(1)) && digit(Some(at + 1)) => ' ',
            ',' | ';' => ' ',
            other => other,
        })
        .collect();
    separated.split_whitespace().map(str::to_owned).collect()
}

#[derive(Default)]
struct Reader {
    weekday: Option<Weekday>,
    month: Option<i8>,
    /// Where among the numbers the month's name stood.
    month_at: usize,
    numbers: Vec<(i16, usize)>,
    hour: Option<i8>,
    minute: i8,
    second: i8,
    nanosecond: i32,
    halved: bool,
}

impl Reader {
    fn take(&mut self, word: &str) -> Option<()> {
        let plain = word.trim_end_matches('.');
        if matches!(plain, "at" | "on" | "and" | "of" | "the" | "") {
            return Some(());
        }
        if let Some(weekday) = weekday(plain) {
            return self.weekday.replace(weekday).is_none().then_some(());
        }
        if let Some(month) = month(plain) {
            self.month_at = self.numbers.len();
            return self.month.replace(month).is_none().then_some(());
        }
        match plain {
            "am" | "a.m" | "a" => return self.halve(false),
            "pm" | "p.m" | "p" => return self.halve(true),
            _ => {}
        }
        if let Some(hour) = plain.strip_suffix("am").or_else(|| plain.strip_suffix("a.m")) {
            self.time(hour)?;
            return self.halve(false);
        }
        if let Some(hour) = plain.strip_suffix("pm").or_else(|| plain.strip_suffix("p.m")) {
            self.time(hour)?;
            return self.halve(true);
        }
        if plain.contains(':') {
            return self.time(plain);
        }
        let ordinal = ["st", "nd", "rd", "th"].iter().find_map(|end| plain.strip_suffix(end)).unwrap_or(plain);
        for separator in ['-', '/', '.'] {
            if ordinal.contains(separator) {
                return ordinal.split(separator).try_for_each(|part| self.part(part));
            }
        }
        self.part(ordinal)
    }

    /// A number of a date, or digits that are a date as a whole.
    fn part(&mut self, part: &str) -> Option<()> {
        if let Some(month) = month(part) {
            self.month_at = self.numbers.len();
            return self.month.replace(month).is_none().then_some(());
        }
        if part.is_empty() || !part.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let piece = |from: usize, to: usize| part.get(from..to);
        match part.len() {
            4 | 6 if self.numbers.len() == 3 && self.hour.is_none() => {
                self.hour = Some(piece(0, 2)?.parse().ok()?);
                self.minute = piece(2, 4)?.parse().ok()?;
                self.second = piece(4, 6).map_or(Some(0), |s| s.parse().ok())?;
            }
            1..=4 => {
                if self.numbers.len() == 3 {
                    return None;
                }
                self.numbers.push((part.parse().ok()?, part.len()));
            }
            8 | 12 | 14 if self.numbers.is_empty() => {
                for (from, to) in [(0, 4), (4, 6), (6, 8)] {
                    self.numbers.push((piece(from, to)?.parse().ok()?, to - from));
                }
                if part.len() > 8 {
                    self.hour = Some(piece(8, 10)?.parse().ok()?);
                    self.minute = piece(10, 12)?.parse().ok()?;
                    self.second = piece(12, 14).map_or(Some(0), |s| s.parse().ok())?;
                }
            }
            _ => return None,
        }
        Some(())
    }

    fn time(&mut self, text: &str) -> Option<()> {
        if self.hour.is_some() {
            return None;
        }
        let mut parts = text.split(':');
        let number = |part: &str| -> Option<i8> {
            (!part.is_empty() && part.len() <= 2 && part.bytes().all(|b| b.is_ascii_digit()))
                .then(|| part.parse().ok())?
        };
        self.hour = Some(number(parts.next()?)?);
        if let Some(minute) = parts.next() {
            self.minute = number(minute)?;
        }
        if let Some(second) = parts.next() {
            let (whole, fraction) = second.split_once('.').unwrap_or((second, ""));
            self.second = number(whole)?;
            if !fraction.bytes().all(|b| b.is_ascii_digit()) || fraction.len() > 9 {
                return None;
            }
            self.nanosecond = format!("{fraction:0<9}").parse().ok()?;
        }
        parts.next().is_none().then_some(())
    }

    /// `am` or `pm`, perhaps after a number that it makes an hour.
    fn halve(&mut self, pm: bool) -> Option<()> {
        if self.halved {
            return None;
        }
        self.halved = true;
        let hour = match self.hour {
            Some(hour) => hour,
            None => i8::try_from(self.numbers.pop()?.0).ok()?,
        };
        if !(0..=12).contains(&hour) {
            return None;
        }
        self.hour = Some(hour % 12 + if pm { 12 } else { 0 });
        Some(())
    }

    fn moment(self, today: Date) -> Option<Moment> {
        let time = Time::new(self.hour.unwrap_or(0), self.minute, self.second, self.nanosecond).ok()?;
        if self.hour.is_none() && self.weekday.is_none() && self.month.is_none() && self.numbers.is_empty() {
            return None;
        }
        let (year, month, day) = self.date(today)?;
        let day = match (self.weekday, year, month, day) {
            (None, None, None, None) => Day::Each,
            // A date counts, and its weekday is only said beside it.
            (Some(weekday), _, _, None) => Day::Weekday(weekday),
            (_, year, month, day) => {
                Date::new(year.unwrap_or(2000), month.unwrap_or(1), day.unwrap_or(1)).ok()?;
                Day::Parts(year, month, day)
            }
        };
        Some(Moment { day, time })
    }

    fn date(&self, today: Date) -> Option<(Option<i16>, Option<i8>, Option<i8>)> {
        let year = |(number, digits): (i16, usize)| {
            if digits > 2 {
                return number;
            }
            let near = number + today.year() / 100 * 100;
            if near >= today.year() + 50 {
                near - 100
            } else if near < today.year() - 50 {
                near + 100
            } else {
                near
            }
        };
        let is_year = |(number, digits): (i16, usize)| number > 31 || digits > 2;
        let small = |(number, _): (i16, usize)| i8::try_from(number).ok();
        Some(match (self.month, self.numbers.as_slice()) {
            (month, []) => (None, month, None),
            (month, [one]) if is_year(*one) => (Some(year(*one)), month, None),
            (month, [one]) => (None, month, Some(small(*one)?)),
            (Some(month), [one, two]) if is_year(*one) => (Some(year(*one)), Some(month), Some(small(*two)?)),
            (Some(month), [one, two]) => (Some(year(*two)), Some(month), Some(small(*one)?)),
            (None, [one, two]) if is_year(*one) => (Some(year(*one)), Some(small(*two)?), None),
            (None, [one, two]) if is_year(*two) => (Some(year(*two)), Some(small(*one)?), None),
            (None, [one, two]) if one.0 > 12 => (None, Some(small(*two)?), Some(small(*one)?)),
            (None, [one, two]) => (None, Some(small(*one)?), Some(small(*two)?)),
            (None, [one, two, three]) if is_year(*one) => (Some(year(*one)), Some(small(*two)?), Some(small(*three)?)),
            (None, [one, two, three]) if one.0 > 12 => (Some(year(*three)), Some(small(*two)?), Some(small(*one)?)),
            (None, [one, two, three]) => (Some(year(*three)), Some(small(*one)?), Some(small(*two)?)),
            _ => return None,
        })
    }
}

fn weekday(word: &str) -> Option<Weekday> {
    Some(match word {
        "mon" | "monday" => Weekday::Monday,
        "tue" | "tues" | "tuesday" => Weekday::Tuesday,
        "wed" | "wednesday" => Weekday::Wednesday,
        "thu" | "thur" | "thurs" | "thursday" => Weekday::Thursday,
        "fri" | "friday" => Weekday::Friday,
        "sat" | "saturday" => Weekday::Saturday,
        "sun" | "sunday" => Weekday::Sunday,
        _ => return None,
    })
}

fn month(word: &str) -> Option<i8> {
    const MONTHS: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let at = MONTHS
        .iter()
        .position(|month| *month == word || month[..3] == *word || (word == "sept" && month[..4] == *word));
    at.and_then(|at| i8::try_from(at + 1).ok())
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    /// The right column is what dateutil says, on a Tuesday, for the texts of Salt's documentation and tests.
    #[test]
    fn dates_mean_what_they_mean_in_salt() {
        let today = date(2026, 11, 24);
        for (text, expected) in [
            ("2026-11-24T17:00:00", "2026-11-24T17:00:00"),
            ("2026-11-24 17:00", "2026-11-24T17:00:00"),
            ("20261124T170500", "2026-11-24T17:05:00"),
            ("20261125", "2026-11-25T00:00:00"),
            ("8:00am", "2026-11-24T08:00:00"),
            ("8:00 PM", "2026-11-24T20:00:00"),
            ("12am", "2026-11-24T00:00:00"),
            ("12pm", "2026-11-24T12:00:00"),
            ("5 pm", "2026-11-24T17:00:00"),
            ("Monday 5:00pm", "2026-11-30T17:00:00"),
            ("Tuesday 3:00pm", "2026-11-24T15:00:00"),
            ("sunday", "2026-11-29T00:00:00"),
            ("11/29/2026 4:00pm", "2026-11-29T16:00:00"),
            ("11/29/2026 16:00", "2026-11-29T16:00:00"),
            ("29/11/2026 4pm", "2026-11-29T16:00:00"),
            ("1/5/27", "2027-01-05T00:00:00"),
            ("January 1, 2027 5pm", "2027-01-01T17:00:00"),
            ("Jan 1st 2027 at 5pm", "2027-01-01T17:00:00"),
            ("1 January 2027", "2027-01-01T00:00:00"),
            ("Sunday, November 29, 2026 5:30pm", "2026-11-29T17:30:00"),
            ("13:01:02.5", "2026-11-24T13:01:02.5"),
            ("December 25", "2026-12-25T00:00:00"),
            ("24.12.2026 18:00", "2026-12-24T18:00:00"),
        ] {
            let moment = Moment::parse(text, today).unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(moment.seen_on(today).unwrap().to_string(), expected, "{text}");
        }
        for bad in [
            "",
            "soon",
            "25:00",
            "8:61",
            "13pm",
            "2026-13-01",
            "2026-02-30",
            "Monday Tuesday",
            "5pm 6pm",
            "8::1",
            "a\nb",
            "-5",
            "1.2.3.4",
        ] {
            assert!(Moment::parse(bad, today).is_err(), "{bad:?}");
        }
        assert!(Moment::parse(&"1 ".repeat(1000), today).is_err());
    }

    #[test]
    fn what_a_date_leaves_out_comes_again() {
        let today = date(2026, 11, 24);
        let next = |text: &str, after: &str| {
            let after: DateTime = after.parse().unwrap();
            Moment::parse(text, today).unwrap().next(after).map(|next| next.to_string())
        };
        let is = |text: &str| Some(text.to_owned());
        assert_eq!(next("8:00am", "2026-11-24T07:59:59"), is("2026-11-24T08:00:00"));
        assert_eq!(next("8:00am", "2026-11-24T08:00:00"), is("2026-11-25T08:00:00"));
        assert_eq!(next("Monday 5pm", "2026-11-30T17:00:00"), is("2026-12-07T17:00:00"));
        assert_eq!(next("2026-11-24 17:00", "2026-11-24T16:00:00"), is("2026-11-24T17:00:00"));
        assert_eq!(next("2026-11-24 17:00", "2026-11-24T17:00:00"), None);
        assert_eq!(next("February 29", "2026-11-24T17:00:00"), is("2028-02-29T00:00:00"));
        assert_eq!(by_format("24 11 2026", "%d %m %Y").unwrap().to_string(), "2026-11-24T00:00:00");
        assert_eq!(by_format("24 11", "%d %m %Y"), None);
        assert_eq!(by_format("x", "%Q"), None);
        assert_eq!(in_format(date(2026, 1, 2).at(3, 4, 5, 0), "%Y-%m-%dT%H:%M:%S"), is("2026-01-02T03:04:05"));
        assert_eq!(in_format(date(2026, 1, 2).at(3, 4, 5, 0), "%"), None);
    }
}
