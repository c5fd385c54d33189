//! `strftime`: times as text.

use super::super::error::{JinjaError, Res};
use super::super::interp::{Interp, Passed, check};
use crate::value::{Date, DateTime, Value};

pub(super) const NAMES: [&str; 2] = ["strftime", "date_format"];

pub(super) fn apply(interp: &mut Interp, value: &Value, passed: &Passed) -> Res<Value> {
    check(value)?;
    let format = passed.get(0, "format").unwrap_or_else(|| "%Y-%m-%d".into());
    let format = super::text_arg(&format)?.to_owned();
    let time = match value {
        Value::DateTime(time) => *time,
        Value::None => from_seconds(interp.host.now().ok_or_else(|| JinjaError::python("there is no clock here"))?),
        Value::Int(n) => from_seconds(i64::try_from(*n).unwrap_or(i64::MAX)),
        Value::Float(n) => from_fraction(*n),
        Value::Str(text) => parse(text).ok_or_else(|| JinjaError::python(format!("Unable to parse {text}")))?,
        other => return Err(JinjaError::python(format!("Unable to parse {}", other.short_repr()))),
    };
    interp.charge(format.len() * 12)?;
    Ok(write(&format, &time).into())
}

/// Seconds since 1970, in UTC.
fn from_seconds(seconds: i64) -> DateTime {
    let seconds = seconds.clamp(-62_135_596_800, 253_402_300_799);
    let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // a calendar whose year begins in March
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let date = Date { year: year as u16, month: month as u8, day: day as u8 };
    let (hour, minute, second) = ((rest / 3600) as u8, (rest / 60 % 60) as u8, (rest % 60) as u8);
    DateTime { date, hour, minute, second, microsecond: 0, offset_minutes: None }
}

/// The same, with a part of a second.
fn from_fraction(seconds: f64) -> DateTime {
    let micros = ((seconds - seconds.floor()) * 1e6).round() as u32;
    DateTime { microsecond: micros.min(999_999), ..from_seconds(seconds.floor() as i64) }
}

/// `2002-12-25`, `2002/12/25`, with `T10:20:30` or ` 10:20`, or seconds.
fn parse(text: &str) -> Option<DateTime> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return Some(from_fraction(seconds));
    }
    let (date, time) = text.split_once([' ', 'T']).unwrap_or((text, "00:00:00"));
    let mut parts = date.split(['-', '/']).map(|part| part.parse::<u16>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let clock: Vec<u8> = time.trim_end_matches('Z').split(':').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let fits = (1..=12).contains(&month) && (1..=31).contains(&day) && (1..=9999).contains(&year);
    if parts.next().is_some() || !fits || clock.len() > 3 || clock.len() < 2 {
        return None;
    }
    let at = |place: usize, below: u8| clock.get(place).copied().or(Some(0)).filter(|n| *n < below);
    let date = Date { year, month: month as u8, day: day as u8 };
    Some(DateTime {
        date,
        hour: at(0, 24)?,
        minute: at(1, 60)?,
        second: at(2, 60)?,
        microsecond: 0,
        offset_minutes: None,
    })
}

const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

fn write(format: &str, t: &DateTime) -> String {
    let d = t.date;
    let days = |date: Date| {
        let midnight = DateTime { date, hour: 0, minute: 0, second: 0, microsecond: 0, offset_minutes: None };
        midnight.instant().0 / 1440
    };
    let first = days(Date { year: d.year, month: 1, day: 1 });
    let day_of_year = days(d) - first;
    // 0 is Monday: the 1st of January 2024 is one
    let weekday = (days(d) - days(Date { year: 2024, month: 1, day: 1 })).rem_euclid(7);
    let seconds = (days(d) - days(Date { year: 1970, month: 1, day: 1 })) * 86_400
        + i64::from(t.hour) * 3600
        + i64::from(t.minute) * 60
        + i64::from(t.second);
    let (day_name, month_name) = (DAYS[weekday as usize], MONTHS[usize::from(d.month) - 1]);
    let hour12 = if t.hour.is_multiple_of(12) { 12 } else { t.hour % 12 };
    let mut out = String::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        // glibc's flag: without zeros and blanks in front.
        let is_bare = chars.as_str().starts_with('-') && chars.as_str().len() > 1;
        if is_bare {
            chars.next();
        }
        let field = match chars.next() {
            Some('Y') => d.year.to_string(),
            Some('y') => format!("{:02}", d.year % 100),
            Some('C') => format!("{:02}", d.year / 100),
            Some('m') => format!("{:02}", d.month),
            Some('d') => format!("{:02}", d.day),
            Some('e') => format!("{:2}", d.day),
            Some('H') => format!("{:02}", t.hour),
            Some('I') => format!("{hour12:02}"),
            Some('M') => format!("{:02}", t.minute),
            Some('S') => format!("{:02}", t.second),
            Some('f') => format!("{:06}", t.microsecond),
            Some('p') => if t.hour < 12 { "AM" } else { "PM" }.to_owned(),
            Some('a') => day_name[..3].to_owned(),
            Some('A') => day_name.to_owned(),
            Some('b' | 'h') => month_name[..3].to_owned(),
            Some('B') => month_name.to_owned(),
            Some('j') => format!("{:03}", day_of_year + 1),
            Some('w') => ((weekday + 1) % 7).to_string(),
            Some('u') => (weekday + 1).to_string(),
            Some('U') => format!("{:02}", (day_of_year + 7 - (weekday + 1) % 7) / 7),
            Some('W') => format!("{:02}", (day_of_year + 7 - weekday) / 7),
            Some('s') => seconds.to_string(),
            Some('F') => format!("{}-{:02}-{:02}", d.year, d.month, d.day),
            Some('T' | 'X') => format!("{:02}:{:02}:{:02}", t.hour, t.minute, t.second),
            Some('R') => format!("{:02}:{:02}", t.hour, t.minute),
            Some('D' | 'x') => format!("{:02}/{:02}/{:02}", d.month, d.day, d.year % 100),
            Some('c') => format!(
                "{} {} {:2} {:02}:{:02}:{:02} {}",
                &day_name[..3],
                &month_name[..3],
                d.day,
                t.hour,
                t.minute,
                t.second,
                d.year
            ),
            Some('n') => "\n".to_owned(),
            Some('t') => "\t".to_owned(),
            Some('%') => "%".to_owned(),
            Some('z' | 'Z') => String::new(),
            Some(other) => format!("%{}{other}", if is_bare { "-" } else { "" }),
            None => "%".to_owned(),
        };
        let bare = field.trim_start_matches(['0', ' ']);
        out.push_str(match (is_bare, bare.is_empty()) {
            (false, _) => &field,
            (true, true) => &field[field.len().saturating_sub(1)..],
            (true, false) => bare,
        });
    }
    out
}
