//! Rows of figures, in text and in Markdown.

use std::fmt::Write as _;
use std::time::Duration;

/// A measurement of one side: the median and, with enough runs, the 99th percentile.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Figure {
    pub(crate) median: f64,
    pub(crate) p99: Option<f64>,
    /// The number of runs.
    pub(crate) runs: usize,
}

/// Minimum of runs for a 99th percentile, which would otherwise be the largest value.
const RUNS_FOR_P99: usize = 20;

impl Figure {
    /// Returns the figure of one run.
    pub(crate) const fn one(value: f64) -> Self {
        Self { median: value, p99: None, runs: 1 }
    }

    /// Returns the figure of many runs.
    pub(crate) fn of(mut values: Vec<f64>) -> Self {
        assert!(!values.is_empty(), "a figure has runs");
        values.sort_by(f64::total_cmp);
        let at = |part: usize| values[(values.len() * part / 100).min(values.len() - 1)];
        let p99 = (values.len() >= RUNS_FOR_P99).then(|| at(99));
        Self { median: at(50), p99, runs: values.len() }
    }

    /// Returns the figure of durations in milliseconds.
    pub(crate) fn ms(times: &[Duration]) -> Self {
        Self::of(times.iter().map(|time| time.as_secs_f64() * 1000.0).collect())
    }
}

/// Which direction is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Better {
    Less,
    More,
}

/// A row of the table.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) what: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) better: Better,
    /// The goal of Brine's figure.
    pub(crate) goal: Option<f64>,
    /// The goal of the ratio.
    pub(crate) times: Option<f64>,
    pub(crate) brine: Option<Figure>,
    pub(crate) python: Option<Figure>,
}

impl Row {
    /// Returns how many times better Brine's figure is.
    pub(crate) fn ratio(&self) -> Option<f64> {
        let (brine, python) = (self.brine?.median, self.python?.median);
        let ratio = if self.better == Better::Less { python / brine } else { brine / python };
        ratio.is_finite().then_some(ratio)
    }

    fn goal_text(&self) -> String {
        let sign = if self.better == Better::Less { "≤" } else { "≥" };
        let own = self.goal.map(|goal| format!("{sign} {goal}"));
        let times = self.times.map(|times| format!("≥ {times}×"));
        [own, times].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// Checks whether all goals are met. None if there is no goal, or nothing to compare with.
    pub(crate) fn met(&self) -> Option<bool> {
        let own = self.goal.zip(self.brine).map(|(goal, figure)| {
            if self.better == Better::Less { figure.median <= goal } else { figure.median >= goal }
        });
        let times = self.times.zip(self.ratio()).map(|(times, ratio)| ratio >= times);
        [own, times].into_iter().flatten().reduce(|a, b| a && b)
    }

    fn cells(&self) -> [String; 8] {
        let median = |figure: Option<Figure>| figure.map_or("-".into(), |figure| number(figure.median));
        let p99 = |figure: Option<Figure>| figure.and_then(|figure| figure.p99).map_or("-".into(), number);
        let ratio = self.ratio().map_or("-".into(), |ratio| format!("{}×", number(ratio)));
        let met = match self.met() {
            Some(true) => "met",
            Some(false) => "not met",
            None => "",
        };
        let what = format!("{} ({})", self.what, self.unit);
        [
            what,
            median(self.brine),
            p99(self.brine),
            median(self.python),
            p99(self.python),
            ratio,
            self.goal_text(),
            met.into(),
        ]
    }
}

const HEAD: [&str; 8] = ["", "Brine p50", "p99", "Python p50", "p99", "ratio", "goal", ""];

/// Formats the table for a terminal.
pub(crate) fn text(rows: &[Row]) -> String {
    let cells: Vec<[String; 8]> = std::iter::once(HEAD.map(str::to_owned)).chain(rows.iter().map(Row::cells)).collect();
    let width = |at: usize| cells.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..8).map(width).collect();
    let mut out = String::new();
    for row in &cells {
        for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let gap = " ".repeat(width - cell.chars().count());
            let _ = if at == 0 || at > 5 { write!(out, "{cell}{gap}  ") } else { write!(out, "{gap}{cell}  ") };
        }
        out.truncate(out.trim_end().len());
        out.push('\n');
    }
    out
}

/// Formats the table in Markdown.
pub(crate) fn markdown(rows: &[Row]) -> String {
    let mut out = String::from(
        "| | Brine p50 | p99 | Python p50 | p99 | ratio | goal | | runs |\n|---|---:|---:|---:|---:|---:|---|---|---:|\n",
    );
    for row in rows {
        let runs = |figure: Option<Figure>| figure.map_or("-".into(), |figure| figure.runs.to_string());
        let runs = format!("{}, {}", runs(row.brine), runs(row.python));
        let _ = writeln!(out, "| {} | {runs} |", row.cells().join(" | "));
    }
    out
}

/// Formats a number with three significant digits.
pub(crate) fn number(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.digits$}");
    let (whole, rest) = text.split_once('.').map_or((text.as_str(), None), |(whole, rest)| (whole, Some(rest)));
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        let left = whole.len() - at;
        if at > 0 && left.is_multiple_of(3) && !grouped.ends_with('-') {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    rest.map_or(grouped.clone(), |rest| format!("{grouped}.{rest}"))
}
