//! Cron expressions as Salt reads them: five fields, a sixth for seconds, a seventh for years.
//!
//! `croner` finds the times. Salt's croniter means something else by a few notations (`5-5` is the whole cycle, `Fri-Mon` goes on over the
//! week's end, a `#` leaves the day of the month aside), so the lists of values are made here, as croniter makes them.

use std::collections::BTreeSet;

use croner::parser::{CronParser, Seconds, Year};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// Upper bound on the bytes of an expression.
const MAX_BYTES: usize = 512;
const MINUTE: Field = Field { low: 0, high: 59, all: 60, names: &[] };
const HOUR: Field = Field { low: 0, high: 23, all: 24, names: &[] };
const DAY: Field = Field { low: 1, high: 31, all: 31, names: &[] };
const MONTH: Field = Field {
    low: 1,
    high: 12,
    all: 12,
    names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
};
const WEEKDAY: Field = Field { low: 0, high: 6, all: 7, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] };
const YEAR: Field = Field { low: 1970, high: 2099, all: 130, names: &[] };

/// A cron expression.
#[derive(Debug, Clone)]
pub struct Cron {
    cron: Box<croner::Cron>,
    /// Days of the month beside a `#`: where no day is both, the expression is never due.
    both: Option<Box<croner::Cron>>,
}

impl Cron {
    /// Reads an expression.
    ///
    /// # Errors
    /// When it is none. An expression that names no day that exists is one: it is never due.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MAX_BYTES {
            return Err(format!("a cron expression has at most {MAX_BYTES} bytes"));
        }
        let lower = text.trim().to_ascii_lowercase();
        let lower = match lower.as_str() {
            "@midnight" | "@daily" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            "@weekly" => "0 0 * * 0",
            "@monthly" => "0 0 1 * *",
            "@yearly" | "@annually" => "0 0 1 1 *",
            other => other,
        };
        let fields: Vec<&str> = lower.split_whitespace().collect();
        let [minute, hour, day, month, weekday, more @ ..] = fields.as_slice() else {
            return Err("a cron expression has five, six or seven fields".to_owned());
        };
        let (day, weekday) = (if *day == "?" { "*" } else { day }, if *weekday == "?" { "*" } else { weekday });
        // A list of all days is a `*` only where the other field says `*` too.
        let (star_day, star_weekday) = (weekday.contains('*'), day.contains('*'));
        let days = if day == "l" { "L".to_owned() } else { DAY.values(day, star_day)? };
        let nth = nth(weekday)?;
        let both = nth.is_some() && days != "*";
        let weekdays = nth.map_or_else(|| WEEKDAY.values(weekday, star_weekday), Ok)?;
        let mut all =
            vec![MINUTE.values(minute, true)?, HOUR.values(hour, true)?, days, MONTH.values(month, true)?, weekdays];
        let (mut seconds, mut year) = (Seconds::Disallowed, Year::Disallowed);
        match more {
            [] => {}
            [second] | [second, _] => {
                // Salt has the seconds after the weekdays; here they are first.
                all.insert(0, MINUTE.values(second, true)?);
                seconds = Seconds::Required;
                if let [_, years] = more {
                    all.push(YEAR.values(years, true)?);
                    year = Year::Required;
                }
            }
            _ => return Err("a cron expression has five, six or seven fields".to_owned()),
        }
        let parse = |fields: &[String], dom_and_dow: bool| {
            let parser = CronParser::builder().seconds(seconds).year(year).dom_and_dow(dom_and_dow).build();
            parser.parse(&fields.join(" ")).map(Box::new).map_err(|e| e.to_string())
        };
        if !both {
            return Ok(Self { cron: parse(&all, false)?, both: None });
        }
        let both = parse(&all, true)?;
        let at = 2 + usize::from(!more.is_empty());
        "*".clone_into(&mut all[at]);
        Ok(Self { cron: parse(&all, false)?, both: Some(both) })
    }

    /// The first local time after `after`; none if there is none within the years that can be looked at.
    pub fn next(&self, after: DateTime) -> Option<DateTime> {
        // The calendar alone counts here; what the clock does is for the caller.
        let after = after.to_zoned(TimeZone::UTC).ok()?;
        if let Some(both) = &self.both {
            both.find_next_occurrence(&after, false).ok()?;
        }
        self.cron.find_next_occurrence(&after, false).ok().map(|next| next.datetime())
    }
}

/// A field's bounds, and how many values are all of them.
struct Field {
    low: u16,
    high: u16,
    all: usize,
    names: &'static [&'static str],
}

impl Field {
    /// The values of a field as a list, or `*`.
    fn values(&self, text: &str, may_star: bool) -> Result<String, String> {
        let mut values = BTreeSet::new();
        for part in text.split(',') {
            if part == "*" {
                return Ok("*".to_owned());
            }
            self.part(part, &mut values).ok_or_else(|| format!("{part:?} is nothing in this field"))?;
        }
        if values.len() == self.all && may_star {
            return Ok("*".to_owned());
        }
        Ok(values.iter().map(u16::to_string).collect::<Vec<_>>().join(","))
    }

    /// One part of a list: `5`, `5-9`, `5-9/2`, `*/2`, `5/2`.
    fn part(&self, part: &str, values: &mut BTreeSet<u16>) -> Option<()> {
        let (range, step) = match part.split_once('/') {
            None => (part, None),
            Some((range, step)) => (range, Some(step)),
        };
        let by: u16 = step.map_or(Some(1), |step| digits(step)?.parse().ok()).filter(|by| *by > 0)?;
        let (low, high, from_start) = match range.split_once('-') {
            None if range == "*" => (self.low, self.high, false),
            None if step.is_some() => (self.value(range)?, self.high, true),
            None => {
                values.insert(self.value(range)?);
                return Some(());
            }
            Some((low, high)) => (self.value(low)?, self.value(high)?, false),
        };
        // `5-5` is the whole cycle, but `5/n` of the last value is that value.
        let (low, high) = if low == high && !from_start { (self.low, self.high) } else { (low, high) };
        let mut add = |from: u16, to: u16| {
            let mut last = None;
            for value in (from..=to).step_by(usize::from(by)) {
                values.insert(value);
                last = Some(value);
            }
            last
        };
        if low <= high {
            add(low, high);
            return Some(());
        }
        // Over the end of the week or year; the steps go on where they were.
        let mut skip = 0;
        if let Some(last) = add(low, self.high) {
            let left = self.high - last;
            if last - self.low + by > self.high - self.low + 1 && left < by {
                skip = by - left;
            }
        }
        add(self.low + skip, high);
        Some(())
    }

    fn value(&self, text: &str) -> Option<u16> {
        if let Some(at) = self.names.iter().position(|name| *name == text) {
            return u16::try_from(at).ok().map(|at| at + self.low);
        }
        let value = digits(text)?.parse().ok()?;
        // 7 is Sunday, as 0 is.
        let value = if self.high == 6 && value == 7 { 0 } else { value };
        (self.low..=self.high).contains(&value).then_some(value)
    }
}

fn digits(text: &str) -> Option<&str> {
    (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())).then_some(text)
}

/// Weekdays of a month, `5#3` and `l5`, in the form of croner; none if the field has none.
fn nth(text: &str) -> Result<Option<String>, String> {
    let special = |part: &str| part.contains('#') || (part.starts_with('l') && part.len() > 1);
    if !text.split(',').any(special) {
        return Ok(None);
    }
    let wrong = || format!("{text:?} mixes weekdays and weekdays of a month, or is none");
    let mut parts = Vec::new();
    for part in text.split(',') {
        parts.push(match part.split_once('#') {
            Some((day, nth)) => {
                let (day, nth) = (WEEKDAY.value(day).ok_or_else(wrong)?, digits(nth).ok_or_else(wrong)?);
                if !matches!(nth, "1" | "2" | "3" | "4" | "5") {
                    return Err(wrong());
                }
                format!("{day}#{nth}")
            }
            None => {
                let day = part.strip_prefix('l').and_then(|day| WEEKDAY.value(day)).ok_or_else(wrong)?;
                format!("{day}#L")
            }
        });
    }
    Ok(Some(parts.join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_expression_is_refused() {
        for bad in [
            "",
            "* * * *",
            "* * * * * * * *",
            "61 * * * *",
            "* * 0 * *",
            "@reboot",
            "1,,2 * * * *",
            "*/0 * * * *",
            "* * * * 1#6",
            "\n",
            "R * * * *",
            "-1 * * * *",
        ] {
            assert!(Cron::parse(bad).is_err(), "{bad:?}");
        }
        assert!(Cron::parse(&"1,".repeat(1000)).is_err());
    }

    #[test]
    fn a_day_that_never_comes_is_never_due() {
        let start = jiff::civil::date(2026, 1, 1).at(0, 0, 0, 0);
        assert_eq!(Cron::parse("0 0 30 2 *").unwrap().next(start), None);
        assert_eq!(Cron::parse("0 0 29 2 *").unwrap().next(start), Some(jiff::civil::date(2028, 2, 29).at(0, 0, 0, 0)));
        assert_eq!(Cron::parse("0 0 * * l5").unwrap().next(start), Some(jiff::civil::date(2026, 1, 30).at(0, 0, 0, 0)));
        // The time of a step over the year's end.
        assert_eq!(
            Cron::parse("0 0 1 nov-feb *").unwrap().next(start),
            Some(jiff::civil::date(2026, 2, 1).at(0, 0, 0, 0))
        );
    }
}
