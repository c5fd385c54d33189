//! The filters of `jobs.list_jobs`.

use brine_protocol::target::fnmatch;
use brine_protocol::value::{Value, ValueExt};

use crate::jobs::StoredJob;

/// A search; all of its filters must match.
#[derive(Debug, Default)]
pub(super) struct Search {
    /// One of these entries must be in the job's metadata. A value that is no map matches nothing.
    pub(super) metadata: Option<Value>,
    /// Globs, one of which must match; empty: all functions.
    pub(super) functions: Vec<String>,
    /// Globs, one of which must match one of the job's targets; empty: all targets.
    pub(super) targets: Vec<String>,
    /// The earliest start, in the form of [`time`].
    pub(super) from: Option<String>,
    /// The latest start, in the form of [`time`].
    pub(super) to: Option<String>,
}

impl Search {
    pub(super) fn is_empty(&self) -> bool {
        self.metadata.is_none()
            && self.functions.is_empty()
            && self.targets.is_empty()
            && self.from.is_none()
            && self.to.is_none()
    }

    /// Returns the function to search for, if there is exactly one and it is no glob.
    pub(super) fn one_function(&self) -> Option<String> {
        match self.functions.as_slice() {
            [one] if !one.contains(['*', '?', '[']) => Some(one.clone()),
            _ => None,
        }
    }

    /// Returns whether a job matches; `shown` is its formatted form.
    pub(super) fn fits(&self, job: &StoredJob, shown: &Value) -> bool {
        let any = |globs: &[String], texts: &[String]| {
            globs.is_empty() || globs.iter().any(|glob| texts.iter().any(|text| fnmatch(glob, text)))
        };
        let texts = |key: &str| match shown.get(key) {
            Some(Value::Array(items)) => items.iter().map(ValueExt::python_str).collect(),
            Some(one) => vec![one.python_str()],
            None => Vec::new(),
        };
        let metadata = |wanted: &Value| {
            let has = shown.get("Metadata");
            let same = |(key, value): &(Value, Value)| key.text().and_then(|key| has?.get(key)) == Some(value);
            wanted.entries().is_some_and(|wanted| wanted.iter().any(same))
        };
        self.metadata.as_ref().is_none_or(metadata)
            && any(&self.targets, &texts("Target"))
            && any(&self.functions, &texts("Function"))
            // A jid starts with the digits of its time, the year first, so texts can be compared.
            && self.from.as_deref().is_none_or(|from| job.jid.as_str() >= from)
            && self.to.as_deref().is_none_or(|to| job.jid.as_str().get(..to.len()).unwrap_or_default() <= to)
    }
}

/// Splits a list, or a comma-separated text.
pub(super) fn words(given: Option<&Value>) -> Vec<String> {
    match given {
        None => Vec::new(),
        Some(Value::Array(items)) => items.iter().map(ValueExt::python_str).collect(),
        Some(one) => {
            one.python_str().split(',').map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).collect()
        }
    }
}

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// Parses a time into the first digits of a jid of that time. Returns `None` if it is invalid. Forms: `2026-11-20`,
/// `2026-11-20 13:05:09.5`, `2026-11-20T13:05`, `20261120`, `20261120130509`, `2026, Nov 20 13:05`, `Nov 20 2026`.
pub(super) fn time(text: &str) -> Option<String> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let text = text.trim().to_ascii_lowercase();
    if digits(&text) {
        return matches!(text.len(), 8 | 14 | 20).then(|| format!("{text:0<20}"));
    }
    let mut words: Vec<&str> =
        text.split(|c: char| c.is_whitespace() || c == ',').filter(|word| !word.is_empty()).collect();
    let mut split = None;
    if let [one, ..] = words.as_slice()
        && let Some((date, clock)) =
            one.split_once('t').filter(|(date, _)| date.starts_with(|c: char| c.is_ascii_digit()))
    {
        split = Some((date, clock));
    }
    if let Some((date, clock)) = split {
        words.splice(..1, [date, clock]);
    }
    let clock = match words.last() {
        Some(last) if last.contains(':') => words.pop()?,
        _ => "0:00",
    };
    let (year, month, day) = match words.as_slice() {
        [date] => {
            let mut parts = date.splitn(3, ['-', '/']);
            (parts.next()?, parts.next()?.parse().ok()?, parts.next()?)
        }
        [a, b, c] => {
            let named = |word: &str| MONTHS.iter().position(|month| word.starts_with(month)).map(|at| at + 1);
            match (named(a), named(b)) {
                (Some(month), _) => (*c, month, *b),
                (None, Some(month)) if a.len() == 4 => (*a, month, *c),
                (None, Some(month)) => (*c, month, *a),
                (None, None) => return None,
            }
        }
        _ => return None,
    };
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let mut clock = clock.split(':');
    let mut next = |most: u32| -> Option<u32> {
        clock.next().map_or(Some(0), |part| part.parse().ok()).filter(|part| *part <= most)
    };
    let (hour, minute, second) = (next(23)?, next(59)?, next(60)?);
    let day: u32 = day.parse().ok()?;
    let whole = year.len() == 4 && digits(year) && digits(fraction) && fraction.len() <= 6 && clock.next().is_none();
    (whole && (1..=12).contains(&month) && (1..=31).contains(&day))
        .then(|| format!("{year}{month:02}{day:02}{hour:02}{minute:02}{second:02}{fraction:0<6}"))
}

#[cfg(test)]
mod tests {
    use brine_protocol::value::{empty_map, list, map, text};

    use super::*;

    #[test]
    fn times() {
        for (given, read) in [
            ("2026-11-20", "20261120000000000000"),
            ("2026-11-20 13:05", "20261120130500000000"),
            ("2026-11-20T13:05:09.25", "20261120130509250000"),
            ("2026/1/2", "20260102000000000000"),
            ("20261120", "20261120000000000000"),
            ("20261120130509", "20261120130509000000"),
            ("2026, Nov 20 13:05:09.123456", "20261120130509123456"),
            ("2026, Nov 20 13:05", "20261120130500000000"),
            ("November 20, 2026", "20261120000000000000"),
            ("20 Nov 2026", "20261120000000000000"),
        ] {
            assert_eq!(time(given).as_deref(), Some(read), "{given}");
        }
        for given in
            ["", "yesterday", "13:05", "2026-13-01", "2026-11-20 25:00", "2026-11", "1:2:3:4", "2026-11-20 1:2:3:4"]
        {
            assert_eq!(time(given), None, "{given}");
        }
    }

    #[test]
    fn everything_that_is_set_must_fit() {
        let job = StoredJob {
            jid: "20261120130509123456".parse().unwrap(),
            fun: "test.ping".to_owned(),
            user: "root".to_owned(),
            tgt: String::new(),
            tgt_type: "list".to_owned(),
            started_ms: 0,
            minions: Vec::new(),
            load: Vec::new(),
        };
        let shown = map([
            ("Function", text("test.ping")),
            ("Target", list(["web1", "db1"])),
            ("Metadata", map([("ticket", 7)])),
        ]);
        let fits = |search: Search| search.fits(&job, &shown);
        let some = |word: &str| vec![word.to_owned()];
        assert!(fits(Search::default()));
        assert!(fits(Search { functions: some("test.*"), ..Search::default() }));
        assert!(!fits(Search { functions: some("test"), ..Search::default() }));
        assert!(fits(Search { targets: vec!["x".to_owned(), "db?".to_owned()], ..Search::default() }));
        assert!(!fits(Search { functions: some("test.*"), targets: some("x"), ..Search::default() }));
        assert!(fits(Search { metadata: Some(map([("x", 1), ("ticket", 7)])), ..Search::default() }));
        assert!(!fits(Search { metadata: Some(map([("ticket", 8)])), ..Search::default() }));
        assert!(!fits(Search { metadata: Some(empty_map()), ..Search::default() }));
        let at = |text: &str| time(text);
        assert!(fits(Search { from: at("2026-11-20"), to: at("2026-11-21"), ..Search::default() }));
        assert!(!fits(Search { from: at("2026-11-20 13:06"), ..Search::default() }));
        assert!(!fits(Search { to: at("2026-11-20 13:05:09"), ..Search::default() }));
    }

    #[test]
    fn words_are_a_list_or_text_with_commas() {
        assert_eq!(words(Some(&text("a, b,"))), ["a", "b"]);
        assert_eq!(words(Some(&list(["a,b"]))), ["a,b"]);
        assert!(words(None).is_empty());
    }
}
