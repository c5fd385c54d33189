//! The fewest and narrowest lines that would have let refused calls be.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use brine_protocol::value::{Value, ValueExt, list, map};

use super::journal::Entry;
use super::line::OwnersLine;
use super::refusals::{JOBS_MAX, Refusals, time};
use super::risk;
use super::value::{CONTENT, add, at, same_content};

/// Lines of an answer.
const LINES_MAX: usize = 200;
/// Functions and wishes that are named with a line.
const NAMES_MAX: usize = 20;

/// What there is, apart from what was refused.
pub(crate) struct Now<'a> {
    /// What the configuration says of `sandbox`.
    pub(crate) said: &'a Value,
    /// The content that a module has.
    pub(crate) content: &'a dyn Fn(&str) -> Option<String>,
}

/// The answer of `sandbox.suggest`. Blocks on the disk.
pub(crate) fn lines(
    refusals: &Refusals,
    now: &Now<'_>,
    for_master: Option<&str>,
    since_s: Option<u64>,
    module: Option<&str>,
) -> Value {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let from = since_s.map_or(0, |since| time.saturating_sub(since));
    let mut all = refusals.all(for_master);
    all.retain(|entry| entry.last >= from && module.is_none_or(|module| entry.module == module));
    Value::Array(joined(&all, now).iter().take(LINES_MAX).map(|one| one.shown(now)).collect())
}

/// A line, and what wanted it.
struct Suggestion<'a> {
    line: OwnersLine,
    of: Vec<&'a Entry>,
}

/// One line for each place in the configuration, for the content that its module has now.
fn joined<'a>(entries: &'a [Entry], now: &Now<'_>) -> Vec<Suggestion<'a>> {
    let mut places: BTreeMap<Vec<String>, Suggestion<'_>> = BTreeMap::new();
    for entry in entries {
        let Some(line) = entry.line.as_deref().and_then(|line| OwnersLine::parse(line).ok()) else { continue };
        if !now.is_meant(&line) {
            continue;
        }
        match places.get_mut(&line.path) {
            None => drop(places.insert(line.path.clone(), Suggestion { line, of: vec![entry] })),
            Some(known) => {
                // Two that say different things of the same: the last one counts. None is about another content.
                let same_content = known.line.entry.get(CONTENT).is_some() == line.entry.get(CONTENT).is_some();
                let mut both = known.line.entry.clone();
                if same_content && add(&mut both, &line.entry).is_ok() {
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

impl Now<'_> {
    /// Whether a line is about the content that its module has. A line for every content is not one for an entry that has been bound to
    /// one since.
    fn is_meant(&self, line: &OwnersLine) -> bool {
        match line.entry.get(CONTENT) {
            Some(content) => (self.content)(line.module()).is_some_and(|now| same_content(content, &Value::from(now))),
            None => self.entry(line).is_none_or(|entry| entry.get(CONTENT).is_none()),
        }
    }

    /// What the configuration says in the place of a line.
    fn entry(&self, line: &OwnersLine) -> Option<&Value> {
        at(self.said, line.path.get(1..)?)
    }

    /// What the line can be used for, with what its entry says already.
    fn risk(&self, line: &OwnersLine) -> String {
        let entry = line.added_to(self.entry(line)).unwrap_or_else(|_| line.entry.clone());
        risk::of(line.key(), &entry)
    }
}

impl Suggestion<'_> {
    fn shown(&self, now: &Now<'_>) -> Value {
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
        map([
            ("line", Value::from(self.line.text())),
            ("risk", Value::from(now.risk(&self.line))),
            ("wanted", list(self.of.iter().take(NAMES_MAX).map(|entry| entry.what.as_str()))),
            ("functions", list(functions.into_iter().take(NAMES_MAX))),
            ("jobs", list(jobs)),
            ("times", Value::from(times)),
            ("last", self.of.iter().map(|entry| entry.last).max().map_or(Value::Nil, time)),
            ("grant", Value::from(self.line.command("sandbox.grant"))),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let now = Now { said: &Value::Nil, content: &|_| None };
        let shown: Vec<Value> = joined(&all, &now).iter().map(|one| one.shown(&now)).collect();
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
    fn suggested(all: &[Entry], said: &str, content: &str) -> Vec<(String, String)> {
        let said = brine_protocol::config::yaml::load(said).unwrap();
        let now = Now { said: &said, content: &|module| (module == "st").then(|| content.to_owned()) };
        let shown = |one: &Suggestion<'_>| {
            let shown = one.shown(&now);
            (shown.get_text("line").unwrap().to_owned(), shown.get_text("risk").unwrap().to_owned())
        };
        joined(all, &now).iter().map(shown).collect()
    }

    #[test]
    fn only_what_the_present_content_wanted_is_suggested() {
        let all = [
            entry("st.f", "run states", "st: {sha256: bb, states: [st.slow]}", 1),
            entry("st.f", "read /etc", "st: {sha256: aa, filesystem: {/etc: ro}}", 9),
            entry("st.g", "grains", "st: {sha256: bb, grains: true}", 1),
            entry("st.g", "jobs", "st.g: {sha256: aa, jobs: true}", 1),
            entry("gone.g", "jobs", "gone: {sha256: aa, jobs: true}", 1),
        ];
        let lines =
            |content: &str| suggested(&all, "{}", content).into_iter().map(|(line, _)| line).collect::<Vec<_>>();
        assert_eq!(lines("bb"), ["st: {sha256: bb, states: [st.slow], grains: true}"]);
        assert_eq!(lines("aa"), ["st: {sha256: aa, filesystem: {/etc: ro}}", "st.g: {sha256: aa, jobs: true}"]);
        assert_eq!(lines("cc"), [""; 0]);
        // From the time when the entry was for every content.
        let all = [entry("st.f", "grains", "st: {grains: true}", 1)];
        assert_eq!(suggested(&all, "modules: {st: {pillar: [a]}}", "bb").len(), 1);
        assert_eq!(suggested(&all, "modules: {st: {sha256: bb, pillar: [a]}}", "bb"), []);
    }

    /// The entry that is there counts: alone, the line would look harmless.
    #[test]
    fn the_risk_is_that_of_the_whole_entry() {
        let all = [entry("st.f", "set X", "st: {grains: true}", 1)];
        let risk = |said: &str| suggested(&all, said, "bb").remove(0).1;
        assert!(risk("{}").starts_with("low"), "{}", risk("{}"));
        let whole = risk("modules: {st: {process: any}}");
        assert!(whole.starts_with("high: st could run any program") && whole.contains("grains"), "{whole}");
    }
}
