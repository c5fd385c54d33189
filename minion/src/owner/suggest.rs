//! The fewest and narrowest lines that would have let refused calls be.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use brine_protocol::value::{Value, list, map};
use brine_sandbox::yaml_text;

use super::journal::Entry;
use super::line::OwnersLine;
use super::refusals::{JOBS_MAX, Refusals, time};
use super::risk;
use super::value::{add, flow};

/// Lines of an answer.
const LINES_MAX: usize = 200;
/// Functions and wishes that are named with a line.
const NAMES_MAX: usize = 20;

/// The answer of `sandbox.suggest`. Blocks on the disk.
pub(crate) fn lines(
    refusals: &Refusals,
    for_master: Option<&str>,
    since_s: Option<u64>,
    module: Option<&str>,
) -> Value {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let from = since_s.map_or(0, |since| now.saturating_sub(since));
    let mut all = refusals.all(for_master);
    all.retain(|entry| entry.last >= from && module.is_none_or(|module| entry.module == module));
    Value::Array(joined(&all).iter().take(LINES_MAX).map(Suggestion::shown).collect())
}

/// A line, and what wanted it.
struct Suggestion<'a> {
    line: OwnersLine,
    of: Vec<&'a Entry>,
}

/// One line for each place in the configuration.
fn joined(entries: &[Entry]) -> Vec<Suggestion<'_>> {
    let mut places: BTreeMap<Vec<String>, Suggestion<'_>> = BTreeMap::new();
    for entry in entries {
        let Some(line) = entry.line.as_deref().and_then(|line| OwnersLine::parse(line).ok()) else { continue };
        match places.get_mut(&line.path) {
            None => drop(places.insert(line.path.clone(), Suggestion { line, of: vec![entry] })),
            Some(known) => {
                let mut both = known.line.entry.clone();
                // Two that say different things of the same, such as other contents: the last one counts.
                if add(&mut both, &line.entry).is_ok() {
                    known.line.entry = both;
                    known.of.push(entry);
                }
            }
        }
    }
    let mut all: Vec<Suggestion<'_>> = places.into_values().collect();
    all.sort_by_key(|one| std::cmp::Reverse(one.of.iter().map(|entry| entry.times).sum::<u64>()));
    all
}

impl Suggestion<'_> {
    fn text(&self) -> String {
        let entry = flow(&self.line.entry);
        match self.line.path.as_slice() {
            [_, _, master, _, key] => {
                format!("masters: {{{}: {{modules: {{{}: {entry}}}}}}}", yaml_text(master), yaml_text(key))
            }
            path => format!("{}: {entry}", yaml_text(path.last().map_or("", String::as_str))),
        }
    }

    fn shown(&self) -> Value {
        let mut functions: Vec<&str> = self.of.iter().map(|entry| entry.function.as_str()).collect();
        functions.sort_unstable();
        functions.dedup();
        let mut jobs: Vec<&str> = Vec::new();
        for jid in self.of.iter().flat_map(|entry| &entry.jids) {
            if jobs.len() < JOBS_MAX && !jobs.contains(&jid.as_str()) {
                jobs.push(jid);
            }
        }
        let times = self.of.iter().fold(0_u64, |sum, entry| sum.saturating_add(entry.times));
        let line = self.text();
        let grant = format!("salt-call --local sandbox.grant '{}'", line.replace('\'', "'\\''"));
        map([
            ("line", Value::from(line)),
            ("risk", Value::from(risk::of(self.line.module(), &self.line.entry))),
            ("wanted", list(self.of.iter().take(NAMES_MAX).map(|entry| entry.what.as_str()))),
            ("functions", list(functions.into_iter().take(NAMES_MAX))),
            ("jobs", list(jobs)),
            ("times", Value::from(times)),
            ("last", self.of.iter().map(|entry| entry.last).max().map_or(Value::Nil, time)),
            ("grant", Value::from(grant)),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_protocol::value::ValueExt as _;

    fn entry(function: &str, what: &str, line: &str, times: u64) -> Entry {
        let module = function.split('.').next().unwrap().to_owned();
        let (function, what, line) = (function.to_owned(), what.to_owned(), Some(line.to_owned()));
        Entry { first: 1, last: 2, times, master: None, module, function, what, line, jids: vec![times.to_string()] }
    }

    #[test]
    fn lines_of_one_place_are_one_line() {
        let all = [
            entry("cmd.run", "run /a", "cmd: {process: [/a]}", 1),
            entry("cmd.shell", "run /b", "cmd: {process: [/b]}", 2),
            entry("cmd.run", "grains", "cmd: {grains: true}", 3),
            entry("file.read", "read", "file: {filesystem: {/srv: ro}}", 1),
            entry("m.f", "x", "masters: {\"aa:bb\": {modules: {m: {grains: true}}}}", 1),
            entry("m.f", "x", "no line", 1),
        ];
        let shown: Vec<Value> = joined(&all).iter().map(Suggestion::shown).collect();
        let lines: Vec<&str> = shown.iter().filter_map(|one| one.get_text("line")).collect();
        assert_eq!(
            lines,
            [
                "cmd: {process: [/a, /b], grains: true}",
                "masters: {\"aa:bb\": {modules: {m: {grains: true}}}}",
                "file: {filesystem: {/srv: ro}}"
            ]
        );
        assert_eq!(shown[0].get("functions"), Some(&list(["cmd.run", "cmd.shell"])));
        assert_eq!(shown[0].get("jobs"), Some(&list(["1", "2", "3"])));
        assert_eq!(shown[0].get_u64("times"), Some(6));
        for line in lines {
            assert!(OwnersLine::parse(line).is_ok(), "{line}");
        }
    }
}
