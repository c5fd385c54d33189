//! `highstate`: the results of states, with one block for each state and a summary for each minion.
//!
//! - `compress.rs`  `state_compress_ids`
//! - `settings.rs`  the settings · `state.rs` one state · `wrap.rs` Python's `textwrap.fill`

mod compress;
mod settings;
mod state;
mod wrap;

use std::borrow::Cow;

use brine_protocol::pyrepr;
use brine_protocol::value::{Value, ValueExt};

use super::color::Palette;
use super::nested::strip_escapes;
use super::{Style, pprint};
pub use settings::{StateOutput, StateSettings};
use state::{Changed, State};
pub(super) use wrap::fill;

/// Columns before each line of the changes.
const CHANGES_INDENT: usize = 14;
/// Upper bound on nested states; a deeper return is shown down to this level.
const DEPTH_MAX: usize = 8;

pub(super) fn render(value: &Value, style: &Style) -> String {
    let view = View { style, palette: Palette::new(style.color) };
    match unwrapped(value) {
        Value::Map(entries) => view.returns(&without_retcode(entries)),
        other => style.pass(&pyrepr::str(other)).into_owned(),
    }
}

/// The returns of minions in `value`: within an orchestration's return, a runner's, or one of the job store's.
fn unwrapped(value: &Value) -> &Value {
    let mut value = value.get("return").unwrap_or(value);
    value = value.get("data").unwrap_or(value);
    if let Some([(_, job)]) = value.entries()
        && job.has("jid")
        && job.has("fun")
    {
        value = job.get("return").and_then(|ret| ret.get("data")).unwrap_or(value);
    }
    value
}

/// The entries without the `retcode` that an orchestration puts beside the return of its master.
fn without_retcode(entries: &[(Value, Value)]) -> Cow<'_, [(Value, Value)]> {
    let masters = entries.iter().filter(|(key, _)| key.text().is_some_and(|key| key.ends_with("_master"))).count();
    let is_code = |key: &Value| key.text() == Some("retcode");
    if masters == 1 && entries.iter().any(|(key, _)| is_code(key)) {
        return entries.iter().filter(|(key, _)| !is_code(key)).cloned().collect();
    }
    Cow::Borrowed(entries)
}

struct View<'a> {
    style: &'a Style,
    palette: Palette,
}

/// The numbers of results, counted as Python's dict does.
#[derive(Default)]
struct Counts {
    succeeded: usize,
    failed: usize,
    not_run: usize,
    other: usize,
    warnings: usize,
    changed: usize,
    run_ms: f64,
    /// The longest duration of the states that ran in parallel.
    parallel_ms: Option<f64>,
}

impl Counts {
    fn states(&self) -> usize {
        self.succeeded + self.failed + self.not_run + self.other
    }

    /// Counts a block of `many` states.
    fn add(&mut self, state: &State<'_>, many: usize) {
        match state.result {
            Value::Boolean(true) => self.succeeded += many,
            Value::Boolean(false) => self.failed += many,
            Value::Nil => self.not_run += many,
            _ => self.other += many,
        }
        let ms = state.milliseconds();
        if state.parallel {
            self.parallel_ms = Some(self.parallel_ms.map_or(ms, |longest| longest.max(ms)));
        } else {
            self.run_ms += ms;
        }
    }
}

impl View<'_> {
    fn returns(&self, entries: &[(Value, Value)]) -> String {
        let compressed = if self.style.state.compress_ids { compress::compressed(entries) } else { None };
        self.hosts(compressed.as_deref().unwrap_or(entries), 1)
    }

    fn hosts(&self, entries: &[(Value, Value)], depth: usize) -> String {
        entries.iter().map(|(host, data)| self.host(&pyrepr::str(host), data, depth).0).collect::<Vec<_>>().join("\n")
    }

    fn colored(&self, color: &str, text: &str) -> String {
        format!("{color}{text}{}", self.palette.end)
    }

    /// The lines of a minion, and whether it has changes.
    fn host(&self, host: &str, data: &Value, depth: usize) -> (String, bool) {
        let p = &self.palette;
        let mut lines = Vec::new();
        let (mut color, mut changed) = (p.green, 0);
        match data {
            Value::Boolean(_) | Value::Integer(_) => {
                changed = 1;
                lines.push(self.colored(p.green, &format!("    {}", pyrepr::str(data))));
                color = p.cyan;
            }
            Value::String(_) => {
                changed = 1;
                for line in pyrepr::split_lines(&pyrepr::str(data)) {
                    lines.push(self.colored(p.green, &format!("    {}", self.style.pass(line))));
                }
                color = p.cyan;
            }
            Value::Array(errors) => {
                color = p.light_red;
                lines.push(format!("    {}", self.colored(color, "Data failed to compile:")));
                for error in errors {
                    let error = pyrepr::str(error);
                    let error = if self.style.strip_colors { strip_escapes(&error) } else { (&*error).into() };
                    lines.push(self.colored(color, &format!("----------\n    {}", self.style.pass(&error))));
                }
            }
            Value::Map(entries) => {
                let (failed, counts) = self.states(entries, depth, &mut lines);
                color = failed;
                changed = counts.changed;
                self.summary(host, &counts, &mut lines);
            }
            _ => {}
        }
        let host = if self.style.strip_colors { strip_escapes(host) } else { host.into() };
        lines.insert(0, self.colored(color, &format!("{}:", self.style.pass(&host))));
        (lines.join("\n"), changed > 0)
    }

    /// Adds the lines of every state. Returns the colour of the minion's name, and the counts.
    fn states(&self, entries: &[(Value, Value)], depth: usize, lines: &mut Vec<String>) -> (&'static str, Counts) {
        let p = &self.palette;
        let set = &self.style.state;
        let mut color = p.green;
        let mut counts = Counts::default();
        let mut states = Vec::new();
        for (tag, info) in entries {
            let Value::Map(fields) = info else { continue };
            let tag = pyrepr::str(tag);
            let state = State::new(tag, fields);
            if !fields.is_empty() && state.tag != "changes" && !state.has("__run_num__") {
                lines.insert(0, self.style.pass(&pprint::format(info, 1)).trim_end().to_owned());
                lines.insert(
                    0,
                    "The State execution failed to record the order in which all states were executed. The state return \
                     missing data is:"
                        .to_owned(),
                );
            }
            if state.has("result") {
                states.push(state);
            }
        }
        states.sort_by(|a, b| a.run_num.total_cmp(&b.run_num));
        for state in &states {
            let many = if set.compress_ids { compress::count(&state.tag) } else { 1 };
            counts.add(state, many);
            let Changed { any, text } = self.changes(state, depth);
            counts.changed += match (any, many) {
                (false, _) => 0,
                (true, 1) => 1,
                (true, _) => compress::changes(state.changes),
            };
            if !any && state.succeeded() && (set.diff || !set.verbose) {
                continue;
            }
            let mut line_color = if any { p.cyan } else { p.green };
            match state.result {
                Value::Boolean(false) => (color, line_color) = (p.red, p.red),
                Value::Nil => (color, line_color) = (p.light_yellow, p.light_yellow),
                _ => {}
            }
            let result = pyrepr::str(state.result);
            let is_terse = match set.output {
                StateOutput::Full => false,
                StateOutput::Terse => true,
                StateOutput::Mixed => *state.result != Value::Boolean(false),
                StateOutput::Changes => state.succeeded() && !any,
                StateOutput::Filter => set.terse.contains(&result),
            };
            if is_terse {
                lines.push(state.terse(self, line_color));
            } else if set.output != StateOutput::Filter || !set.exclude.contains(&result) {
                state.full(self, line_color, &text, lines);
                counts.warnings += usize::from(state.has("warnings"));
            }
        }
        (color, counts)
    }

    /// The changes of a state as text below `Changes:`.
    fn changes(&self, state: &State<'_>, depth: usize) -> Changed {
        let nested = || {
            let style = Style { nested_indent: CHANGES_INDENT, retcode: 0, ..self.style.clone() };
            format!("\n{}", super::Outputter::Nested.render(state.changes, &style))
        };
        let pad = |text: &str, by: usize| {
            let pad = " ".repeat(by);
            text.split('\n').map(|line| format!("{pad}{line}")).collect::<Vec<_>>().join("\n")
        };
        match state.changes {
            Value::Map(hosts) if state.runs_states() && depth < DEPTH_MAX => {
                Changed { any: true, text: pad(&format!("\n{}", self.hosts(hosts, depth + 1)), 14 * depth) }
            }
            changes if !State::is_true(changes) => Changed::default(),
            Value::Map(fields) => {
                let field = |name: &str| fields.iter().find(|(key, _)| key.as_str() == Some(name)).map(|(_, v)| v);
                let is_highstate = field("out").and_then(Value::as_str) == Some("highstate");
                match field("ret").filter(|ret| is_highstate && depth < DEPTH_MAX && !ret.is_nil()) {
                    Some(Value::Map(hosts)) => {
                        let mut all = Changed::default();
                        for (host, data) in hosts {
                            let (text, any) = self.host(&pyrepr::str(host), data, depth + 1);
                            all.any |= any;
                            let lines = pyrepr::split_lines(&text).map(|line| pad(line, CHANGES_INDENT));
                            all.text += &format!("\n{}", lines.collect::<Vec<_>>().join("\n"));
                        }
                        all
                    }
                    _ => Changed { any: true, text: nested() },
                }
            }
            other => {
                let text = format!("Invalid Changes data: {}", self.style.pass(&pyrepr::str(other)));
                Changed { any: true, text }
            }
        }
    }

    fn summary(&self, host: &str, counts: &Counts, lines: &mut Vec<String>) {
        let p = &self.palette;
        let all = [counts.succeeded, counts.failed, counts.not_run, counts.other, counts.warnings];
        let digits = all.iter().filter(|n| **n > 0).map(|n| n.to_string().len()).max().unwrap_or(0);
        let width = "Succeeded".len() + digits + 2;
        let count = |label: &str, n: &dyn std::fmt::Display| {
            format!("{label}: {:>width$}", n.to_string(), width = width.saturating_sub(label.len() + 2))
        };
        let rule = "-".repeat(width);
        lines.push(self.colored(p.cyan, &format!("\nSummary for {}\n{rule}", self.style.pass(host))));
        let mut stats = Vec::new();
        if counts.not_run > 0 {
            stats.push(self.colored(p.light_yellow, &format!("unchanged={}", counts.not_run)));
        }
        if counts.changed > 0 {
            stats.push(self.colored(p.green, &format!("changed={}", counts.changed)));
        }
        let stats = if stats.is_empty() { String::new() } else { format!(" ({})", stats.join(", ")) };
        let good = counts.succeeded + counts.not_run;
        lines.push(self.colored(p.green, &count("Succeeded", &good)) + &stats);
        let failed_color = if counts.failed > 0 { p.red } else { p.cyan };
        lines.push(self.colored(failed_color, &count("Failed", &counts.failed)));
        if self.style.state.percent && counts.states() > 0 {
            lines.push(self.colored(p.green, &count("Success %", &percent(good, counts.states()))));
            lines.push(self.colored(failed_color, &count("Failure %", &percent(counts.failed, counts.states()))));
        }
        if counts.warnings > 0 {
            lines.push(self.colored(p.light_red, &count("Warnings", &counts.warnings)));
        }
        let total = format!("{rule}\nTotal states run: {:>width$}", counts.states(), width = width - 7);
        lines.push(self.colored(p.cyan, &total));
        if self.style.state.profile {
            let ms = counts.run_ms + counts.parallel_ms.unwrap_or(0.0);
            let (time, unit) = if ms > 999.0 { (ms / 1000.0, "s") } else { (ms, "ms") };
            let total = format!("Total run time: {:>width$} {unit}", format!("{time:.3}"), width = width - 5);
            lines.push(self.colored(p.cyan, &total));
        }
    }
}

/// A percentage with two decimals, as Python prints it.
#[allow(clippy::cast_precision_loss, reason = "counts of states are small")]
fn percent(part: usize, whole: usize) -> String {
    pyrepr::float((part as f64 / whole as f64 * 10_000.0).round() / 100.0)
}
