//! Whether an entry that is due may run: `range`, `skip_during_range`, `skip_explicit`, `until`, `after`.

use brine_values::{Value, ValueExt};
use jiff::ToSpan;
use jiff::civil::{Date, DateTime};

use crate::dates::{Moment, by_format};

/// How long a skipped time lasts: an entry that is due within it is skipped.
const SKIP_SECONDS: i64 = 1;
/// Upper bound on the dates in one list.
const MAX_DATES: usize = 1_000;

/// What becomes of an entry that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It runs.
    Run,
    /// Another function runs in its place (`skip_function`).
    Instead(String),
    /// It does not run; the reason is Salt's word.
    Skip(&'static str),
}

/// The gates of an entry.
#[derive(Debug, Clone, Default)]
pub struct Gates {
    range: Option<(Range, bool)>,
    skip: Option<Range>,
    skip_explicit: Vec<DateTime>,
    until: Option<Moment>,
    after: Option<Moment>,
    skip_function: Option<String>,
}

/// From one date to another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    start: Moment,
    end: Moment,
}

impl Range {
    /// Reads `{start: …, end: …}`. `what` names it in errors.
    fn read(value: &Value, what: &str, name: &str, today: Date) -> Result<Self, String> {
        if value.entries().is_none() {
            let gap = if what == "range" { "" } else { " " };
            return Err(format!(
                "schedule.handle_func: Invalid, range must be specified as a dictionary.{gap}Ignoring job {name}."
            ));
        }
        let of = if what == "range" { String::new() } else { format!(" in {what}") };
        let date = |key: &str| {
            let text = value.get_text(key).unwrap_or_default();
            Moment::parse(text, today).map_err(|_| format!("Invalid date string for {key}{of}. Ignoring job {name}."))
        };
        let (start, end) = (date("start")?, date("end")?);
        match (start.seen_on(today), end.seen_on(today)) {
            (Some(from), Some(to)) if to <= from => {
                Err(format!("schedule.handle_func: Invalid range, end must be larger than start. Ignoring job {name}."))
            }
            _ => Ok(Self { start, end }),
        }
    }

    /// The end, as of a day.
    pub(crate) fn end(&self) -> Moment {
        self.end
    }

    fn on(&self, today: Date) -> Option<(DateTime, DateTime)> {
        Some((self.start.seen_on(today)?, self.end.seen_on(today)?))
    }
}

impl Gates {
    /// Reads the gates of an entry; `skip_all` is the schedule's own `skip_during_range`.
    ///
    /// # Errors
    /// Salt's sentence for a gate that cannot be read.
    pub(crate) fn read(
        data: &Value,
        name: &str,
        today: Date,
        skip_all: Option<&Value>,
        skip_function: Option<String>,
    ) -> Result<Self, String> {
        let some = |key: &str| data.get(key).filter(|value| value.truthy());
        let range = match some("range") {
            None => None,
            Some(range) => {
                let invert = range.get("invert").is_some_and(ValueExt::truthy);
                Some((Range::read(range, "range", name, today)?, invert))
            }
        };
        let skip = some("skip_during_range").or(skip_all);
        let skip = skip.map(|range| Range::read(range, "skip_during_range", name, today)).transpose()?;
        let date = |key: &str| match data.get(key) {
            None => Ok(None),
            Some(value) => Moment::parse(value.text().unwrap_or_default(), today)
                .map(Some)
                .map_err(|_| format!("Invalid date string for {key}. Ignoring job {name}.")),
        };
        Ok(Self {
            range,
            skip,
            skip_explicit: explicit(data, "skip_explicit", name)?,
            until: date("until")?,
            after: date("after")?,
            skip_function,
        })
    }

    pub(crate) fn skip_range(&self) -> Option<Range> {
        self.skip
    }

    /// Judges an entry that is due at this local time.
    pub fn judge(&self, due: DateTime) -> Verdict {
        let today = due.date();
        let skipped = |reason| match &self.skip_function {
            Some(function) => Verdict::Instead(function.clone()),
            None => Verdict::Skip(reason),
        };
        let seen = |moment: &Option<Moment>| moment.and_then(|moment| moment.seen_on(today));
        if seen(&self.until).is_some_and(|until| until <= due) {
            return Verdict::Skip("until_passed");
        }
        if seen(&self.after).is_some_and(|after| after >= due) {
            return Verdict::Skip("after_not_passed");
        }
        if let Some((range, invert)) = &self.range
            && let Some((start, end)) = range.on(today)
        {
            match invert {
                true if start < due && due < end => return Verdict::Skip("in_skip_range"),
                false if !(start..=end).contains(&due) => return skipped("not_in_range"),
                _ => {}
            }
        }
        if self.skip.as_ref().and_then(|range| range.on(today)).is_some_and(|(start, end)| (start..=end).contains(&due))
        {
            return skipped("in_skip_range");
        }
        let until = |at: &DateTime| at.checked_add(SKIP_SECONDS.seconds()).unwrap_or(*at);
        if self.skip_explicit.iter().any(|at| (*at..=until(at)).contains(&due)) {
            return skipped("skip_explicit");
        }
        Verdict::Run
    }
}

/// Reads a list of `{time: …, time_fmt: …}`.
pub(crate) fn explicit(data: &Value, key: &str, name: &str) -> Result<Vec<DateTime>, String> {
    let items = match data.get(key) {
        None => return Ok(Vec::new()),
        Some(value) => value.list().ok_or_else(|| format!("{key} must be a list. Ignoring job {name}."))?,
    };
    if items.len() > MAX_DATES {
        return Err(format!("{key} has more than {MAX_DATES} dates. Ignoring job {name}."));
    }
    let date = |item: &Value| {
        let text = item.get_text("time").or(item.text())?;
        by_format(text, item.get_text("time_fmt").unwrap_or("%Y-%m-%dT%H:%M:%S"))
    };
    let dates = items.iter().map(|item| {
        date(item).ok_or_else(|| format!("Date string could not be parsed in {key}. Ignoring job {name}."))
    });
    dates.collect()
}
