//! `salt-module run --state`: one state of the module, run by the standard module `state` as `state.single` does.

use brine_cli::print;
use brine_component::Function;
use brine_protocol::args::{condition_input, split_input};
use brine_protocol::value::{Value, ValueExt};
use brine_sandbox::ModuleName;

use crate::failure::Failure;
use crate::grants::{self, Merged};

/// The standard modules that it takes.
pub(super) const MODULES: [&str; 1] = ["state"];
/// The function that runs one state.
pub(super) const SINGLE: &str = "state.single";
/// Functions of the interface that the run itself calls.
const NO_STATES: [&str; 3] = ["mod_watch", "mod_init", "mod_aggregate"];

/// Finds the state among those that the module has: `deploy.installed` for `installed`.
pub(super) fn full_name(module: &ModuleName, full: &str, states: &[Function]) -> Result<String, Failure> {
    let asked = full.split_once('.').map_or(full, |(_, state)| state);
    let names: Vec<&str> = states.iter().filter_map(Function::state).filter(|name| !NO_STATES.contains(name)).collect();
    if names.contains(&asked) {
        return Ok(format!("{module}.{asked}"));
    }
    Err(Failure::failed(match &*names {
        [] => format!("{module} has no states: it exports no interface `states`; without --state a function is called"),
        names => format!("'{module}.{asked}' is not available. States of {module}: {}.", names.join(", ")),
    }))
}

/// The arguments of `state.single` from the words after the state: its name, and `ARGUMENT=VALUE`.
pub(super) fn arguments(state: &str, words: &[String], test: bool) -> Result<Vec<Value>, Failure> {
    let (names, mut keywords) = split_input(words);
    // More would be other arguments of `state.single`.
    if names.len() + usize::from(keywords.iter().any(|(name, _)| name == "name")) != 1 {
        return Err(Failure::usage(format!(
            "a state has a name, which comes first, and other arguments by name: {state} NAME [ARGUMENT=VALUE…]"
        )));
    }
    if test {
        keywords.retain(|(name, _)| name != "test");
        keywords.push(("test".to_owned(), Value::from(true)));
    }
    Ok(condition_input(std::iter::once(Value::from(state)).chain(names).collect(), keywords))
}

/// Prints what a dry run stopped, which the outputter `highstate` does not show.
pub(super) fn print_plan(value: &Value) {
    let lines: Vec<String> = results(value)
        .filter_map(|result| result.get("plan").and_then(Value::as_array))
        .flatten()
        .map(|entry| format!("    {}: {}", entry.get_text("fun").unwrap_or("?"), words(entry)))
        .collect();
    if !lines.is_empty() {
        print::stdout("\nPlan, which was not done:");
        for line in lines {
            print::stdout(&line);
        }
    }
}

fn words(entry: &Value) -> String {
    let would = entry.get_text("would").unwrap_or("?");
    if would.starts_with("would ") { would.to_owned() } else { format!("would {would}") }
}

/// Says on standard error which options lift refusals that results tell of.
pub(super) fn print_hints(value: &Value, granted: &Merged) {
    let mut hints: Vec<String> = results(value)
        .filter_map(|result| grants::lacking(result.get_text("comment").unwrap_or_default(), granted))
        .collect();
    hints.dedup();
    for options in hints {
        print::stderr(&format!("Here it is granted by: {options}"));
    }
}

fn results(value: &Value) -> impl Iterator<Item = &Value> {
    value.entries().unwrap_or_default().iter().map(|(_, result)| result)
}

#[cfg(test)]
mod tests {
    use brine_protocol::value::map;

    use super::*;

    #[test]
    fn a_plan_reads_as_a_sentence() {
        for (would, expect) in [("run: x", "would run: x"), ("would run: x", "would run: x")] {
            assert_eq!(words(&map([("would", Value::from(would))])), expect);
        }
        assert_eq!(words(&map([("fun", Value::from("a.b"))])), "would ?");
    }

    #[test]
    fn a_state_has_one_name_and_arguments_by_name() {
        let of = |words: &[&str], test| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            arguments("a.b", &words, test)
        };
        for bad in [&[][..], &["version=2"], &["x", "y"], &["x", "name=y"]] {
            assert!(of(bad, true).is_err(), "{bad:?}");
        }
        assert_eq!(of(&["x"], false).unwrap(), [Value::from("a.b"), Value::from("x")]);
        assert_eq!(of(&["name=x"], false).unwrap()[1].get_text("name"), Some("x"));
        let all = of(&["x", "version=2", "test=False"], true).unwrap();
        assert_eq!((all.len(), all[2].get_bool("test"), all[2].get_i64("version")), (3, Some(true), Some(2)));
    }
}
