//! `salt.parallel_runners`: several runners at once.

use std::sync::Arc;

use brine_cli::output::{Style, render};
use brine_protocol::value::{Value, ValueExt as _, empty_map, map};
use futures_util::future::join_all;

use super::in_master;
use super::result::StateResult;
use super::table::{Actor, Done, StateCall};

/// Runners of one state.
const RUNNERS_MAX: usize = 100;

/// A runner that is to run.
struct Planned {
    id: String,
    name: String,
    kwarg: Value,
}

/// Reads `runners`: a name, or a dict of ids with lists of dicts.
fn planned(runners: &Value) -> Option<Vec<Planned>> {
    if let Some(name) = runners.text() {
        return Some(vec![Planned { id: name.to_owned(), name: name.to_owned(), kwarg: empty_map() }]);
    }
    let all = runners.entries()?.iter().map(|(id, config)| {
        let id = id.python_str();
        let mut merged = empty_map();
        for part in config.list().unwrap_or(std::slice::from_ref(config)) {
            for (key, value) in part.entries().unwrap_or_default() {
                merged.insert(&key.python_str(), value.clone());
            }
        }
        let name = merged.get("name").map_or_else(|| id.clone(), |name| name.python_str());
        let kwarg = merged.remove("kwarg").filter(|kwarg| kwarg.entries().is_some()).unwrap_or_else(empty_map);
        Planned { id, name, kwarg }
    });
    Some(all.collect())
}

/// `salt.parallel_runners`
pub(super) async fn runners(actor: Arc<Actor>, call: StateCall) -> Done {
    let name = call.arguments.get("name").cloned().unwrap_or(Value::Nil);
    let failed = |comment: String| Ok(StateResult::new(name.clone(), Some(false), comment).to_value());
    let Some(planned) = call.arguments.get("runners").and_then(planned) else {
        return failed("The runners parameter must be a string or dict.".to_owned());
    };
    if planned.len() > RUNNERS_MAX {
        return failed(format!("more than {RUNNERS_MAX} runners"));
    }
    if call.test {
        let names: Vec<&str> = planned.iter().map(|runner| runner.name.as_str()).collect();
        let comment = format!("Runner functions would be executed: {}", names.join(", "));
        return Ok(StateResult::new(name, None, comment).to_value());
    }
    let runs = planned
        .iter()
        .map(|runner| in_master::run(&actor, &call.saltenv, &runner.name, Vec::new(), runner.kwarg.clone()));
    let mut outs = Vec::new();
    for (runner, done) in planned.iter().zip(join_all(runs).await) {
        match done {
            Ok(mut data) => {
                let is_good = data.get_bool("success").unwrap_or(true);
                outs.push((runner.id.as_str(), data.remove("return").unwrap_or(Value::Nil), is_good));
            }
            Err(why) => return failed(format!("One of the runners raised an exception: {why}")),
        }
    }
    Ok(judged(name.clone(), &outs).to_value())
}

/// What the returns of runners, by id, come to; each with whether it succeeded.
fn judged(name: Value, outs: &[(&str, Value, bool)]) -> StateResult {
    let of_states = outs.iter().all(|(_, out, _)| out.get_text("outputter") == Some("highstate") && out.has("data"));
    let failed: Vec<&(&str, Value, bool)> = outs
        .iter()
        .filter(|(_, out, is_good)| !is_good || out.get("exit_code").is_some_and(|code| code.truthy()))
        .collect();
    let comment = if failed.is_empty() {
        "All runner functions executed successfully.".to_owned()
    } else if of_states {
        let style = Style { nested_indent: 2, ..Style::default() };
        let line =
            |id: &str, out: &Value| format!("Runner {id} failed with return value:\n{}", render("nested", out, &style));
        failed.iter().map(|(id, out, _)| line(id, out)).collect::<Vec<_>>().join("\n")
    } else {
        let ids: Vec<&str> = failed.iter().map(|(id, ..)| *id).collect();
        match ids.as_slice() {
            [one] => format!("Runner {one} failed."),
            many => format!("Runners {} failed.", many.join(", ")),
        }
    };
    let mut result = StateResult::new(name, Some(failed.is_empty()), comment);
    result.changes = if of_states {
        let changes = outs.iter().map(|(id, out, _)| (*id, changes(out.get("data").unwrap_or(&Value::Nil))));
        map(changes.filter(|(_, changes)| changes.truthy()).collect::<Vec<_>>())
    } else {
        map([("ret", map(outs.iter().map(|(id, out, _)| (*id, out.clone()))))])
    };
    result
}

/// What states of states changed, without what lies between.
fn changes(value: &Value) -> Value {
    let Some(entries) = value.entries() else { return empty_map() };
    if let Some(changes) = value.get("changes") {
        let inner = changes.get("ret").filter(|_| changes.get_text("out") == Some("highstate"));
        return inner.unwrap_or(changes).clone();
    }
    let mut found = empty_map();
    for (key, value) in entries {
        let change = changes(value);
        if change.truthy() {
            found.insert(&key.python_str(), change);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use brine_protocol::config::yaml;

    use super::*;

    #[test]
    fn runners_are_written_in_several_ways() {
        let read = |text: &str| {
            let planned = planned(&yaml::load(text).unwrap())?;
            Some(planned.into_iter().map(|p| (p.id, p.name, p.kwarg)).collect::<Vec<_>>())
        };
        let one = |id: &str, name: &str, kwarg: Value| (id.to_owned(), name.to_owned(), kwarg);
        assert_eq!(read("manage.up"), Some(vec![one("manage.up", "manage.up", empty_map())]));
        let two = "{a: [{name: test.arg}, {kwarg: {x: 1}}], test.sleep: null}";
        let expect = vec![one("a", "test.arg", map([("x", 1)])), one("test.sleep", "test.sleep", empty_map())];
        assert_eq!(read(two), Some(expect));
        assert_eq!(read("[a]"), None);
    }

    #[test]
    fn one_failure_fails_all() {
        let run = |text: &str| yaml::load(&format!("{{outputter: highstate, data: {{m: {{t: {text}}}}}}}")).unwrap();
        let changed = run("{result: true, changes: {out: highstate, ret: {web1: {x: 1}}}}");
        let result = judged("p".into(), &[("a", changed.clone(), true)]);
        let expect = yaml::load("{a: {m: {t: {web1: {x: 1}}}}}").unwrap();
        assert_eq!((result.result, &result.changes), (Some(true), &expect));
        let bad = judged("p".into(), &[("a", changed, true), ("b", run("{result: false, changes: {}}"), false)]);
        assert_eq!((bad.result, bad.comment.starts_with("Runner b failed with return value:")), (Some(false), true));
        let plain = judged("p".into(), &[("a", true.into(), true), ("b", "x".into(), false)]);
        assert_eq!(plain.comment, "Runner b failed.");
        assert_eq!(plain.changes, map([("ret", map([("a", Value::from(true)), ("b", "x".into())]))]));
    }
}
