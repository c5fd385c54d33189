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
    /// Half the distance of the largest from the smallest of repeated figures, in percent of their median.
    pub(crate) spread: Option<f64>,
}

/// Minimum of runs for a 99th percentile, which would otherwise be the largest value.
const RUNS_FOR_P99: usize = 20;

impl Figure {
    /// Returns the figure of one run.
    pub(crate) const fn one(value: f64) -> Self {
        Self { median: value, p99: None, runs: 1, spread: None }
    }

    /// Returns the figure of many runs.
    pub(crate) fn of(mut values: Vec<f64>) -> Self {
        assert!(!values.is_empty(), "a figure has runs");
        values.sort_by(f64::total_cmp);
        let at = |part: usize| values[(values.len() * part / 100).min(values.len() - 1)];
        let p99 = (values.len() >= RUNS_FOR_P99).then(|| at(99));
        Self { median: at(50), p99, runs: values.len(), spread: None }
    }

    /// Returns the figure of the same measurement made several times: medians of the medians and of the percentiles.
    pub(crate) fn repeated(figures: &[Self]) -> Self {
        if let [one] = figures {
            return *one;
        }
        let medians = Self::of(figures.iter().map(|figure| figure.median).collect());
        let p99s: Vec<f64> = figures.iter().filter_map(|figure| figure.p99).collect();
        let p99 = (!p99s.is_empty()).then(|| Self::of(p99s).median);
        let all = || figures.iter().map(|figure| figure.median);
        let (least, most) = (all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max));
        let spread = Some((most - least) / 2.0 / medians.median.abs() * 100.0).filter(|percent| percent.is_finite());
        Self { median: medians.median, p99, runs: figures.iter().map(|figure| figure.runs).sum(), spread }
    }

    fn spread_text(figure: Option<Self>) -> String {
        figure.and_then(|figure| figure.spread).map_or("-".into(), |percent| format!("±{percent:.0}%"))
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

    fn cells(&self) -> [String; COLUMNS] {
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
            Figure::spread_text(self.brine),
            p99(self.brine),
            median(self.python),
            Figure::spread_text(self.python),
            p99(self.python),
            ratio,
            self.goal_text(),
            met.into(),
        ]
    }
}

const COLUMNS: usize = 10;
const HEAD: [&str; COLUMNS] = ["", "Brine p50", "spread", "p99", "Python p50", "spread", "p99", "ratio", "goal", ""];

/// Formats the table for a terminal.
pub(crate) fn text(rows: &[Row]) -> String {
    let head = HEAD.map(str::to_owned).to_vec();
    align(&std::iter::once(head).chain(rows.iter().map(|row| row.cells().to_vec())).collect::<Vec<_>>(), 7)
}

/// Formats two builds beside each other for a terminal: what is measured, unit, direction, and the figures of both.
pub(crate) fn comparison(rows: &[(&str, &str, Better, Figure, Figure)]) -> String {
    let head = ["", "A p50", "spread", "B p50", "spread", "B is", ""].map(str::to_owned).to_vec();
    let cells = rows.iter().map(|(what, unit, better, a, b)| {
        let times = if *better == Better::Less { a.median / b.median } else { b.median / a.median };
        // A difference within what repeating the same measurement changes says nothing.
        let noise = (a.spread.unwrap_or(0.0) + b.spread.unwrap_or(0.0)) / 100.0;
        let says = if (times.max(1.0 / times) - 1.0) <= noise { "within the spread" } else { "" };
        vec![
            format!("{what} ({unit})"),
            number(a.median),
            Figure::spread_text(Some(*a)),
            number(b.median),
            Figure::spread_text(Some(*b)),
            if times.is_finite() { format!("{times:.2}× as good") } else { "-".into() },
            says.into(),
        ]
    });
    align(&std::iter::once(head).chain(cells).collect::<Vec<_>>(), 5)
}

/// Pads the cells of a table. The first column and those after the column number `last_number` are aligned to the left.
fn align(cells: &[Vec<String>], last_number: usize) -> String {
    let columns = cells.first().map_or(0, Vec::len);
    let width = |at: usize| cells.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in cells {
        for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let gap = " ".repeat(width - cell.chars().count());
            let left = at == 0 || at > last_number;
            let _ = if left { write!(out, "{cell}{gap}  ") } else { write!(out, "{gap}{cell}  ") };
        }
        out.truncate(out.trim_end().len());
        out.push('\n');
    }
    out
}

/// Formats the table in Markdown.
pub(crate) fn markdown(rows: &[Row]) -> String {
    let mut out = String::from(
        "| | Brine p50 | spread | p99 | Python p50 | spread | p99 | ratio | goal | | runs |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|---|---|---:|\n",
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
