//! Functions as keywords, with lists of arguments.

use brine_guest::states::{is_dry_run, no_changes};
use brine_guest::{Data, Value};

use crate::function::{self, Function};
use crate::{outcome, result};

pub(crate) fn run(mut keywords: Vec<(String, Value)>) -> Result<Data, String> {
    keywords.retain(|(name, _)| name != "name");
    let mut names: Vec<String> = keywords.iter().map(|(name, _)| name.clone()).collect();
    // A watch that fired has both in Salt.
    if names.iter().any(|name| name == "sfun") {
        names.push("__reqs__".into());
    }
    let name: Value = names.into();
    let (mut missing, mut planned, mut calls) = (Vec::new(), Vec::new(), Vec::new());
    for (key, arguments) in keywords.iter().filter(|(name, _)| name.contains('.')) {
        // `test.ping:2` is another call of test.ping.
        let function = key.split(':').next().unwrap_or_default();
        match Function::find(function) {
            None => missing.push(function),
            Some(_) if is_dry_run() => planned.push(function),
            Some(found) => calls.push((key, function, found, arguments)),
        }
    }
    if missing.is_empty() && planned.is_empty() && calls.is_empty() {
        return Ok(result(name, Some(false), "No function provided.", no_changes()));
    }
    if !missing.is_empty() || !planned.is_empty() {
        let comment = [
            sentence("Unavailable function", ": ", &missing, "."),
            sentence("Function", " ", &planned, " to be executed."),
        ];
        let result_of = if missing.is_empty() { None } else { Some(false) };
        return Ok(result(name, result_of, comment.concat().trim(), no_changes()));
    }
    let (mut failures, mut successes, mut changes) = (Vec::new(), Vec::new(), Vec::new());
    for (key, function, found, arguments) in calls {
        let returned = arranged(&found, arguments).and_then(|(args, kwargs)| function::call(function, args, kwargs));
        let comment = |returned: &Value, otherwise: &str| {
            returned.get("comment").map_or_else(|| otherwise.into(), Value::to_text)
        };
        match returned {
            Err(why) => failures.push(format!("'{key}' failed: {why}")),
            Ok(returned) if outcome::is_good(&returned) => {
                let said = match &returned {
                    Value::Dict(_) => comment(&returned, "Success"),
                    other => other.to_text(),
                };
                successes.push(format!("{key}: {said}"));
                changes.push((key.as_str().into(), returned));
            }
            Ok(returned @ Value::Dict(_)) => {
                failures.push(format!("'{key}' failed: {}", comment(&returned, "(error message N/A)")));
            }
            Ok(returned) => failures.push(format!("'{key}': {}", returned.to_text())),
        }
    }
    let is_good = failures.is_empty();
    failures.extend(successes);
    Ok(result(name, Some(is_good), failures.join(", "), Value::Dict(changes)))
}

/// As in Salt, more than one function makes `FunctionTrue` of `Function`.
fn sentence(what: &str, then: &str, functions: &[&str], end: &str) -> String {
    if functions.is_empty() {
        return String::new();
    }
    let many = if functions.len() > 1 { "True" } else { "" };
    format!("{what}{many}{then}{}{end} ", functions.join(", "))
}

type Arranged = (Vec<Value>, Vec<(String, Value)>);

/// Arguments by place and by name from a list of both.
fn arranged(function: &Function, arguments: &Value) -> Result<Arranged, String> {
    let items = match arguments {
        Value::None => Vec::new(),
        Value::List(items) => items.clone(),
        // As in Python, what else can be unpacked is.
        Value::Text(text) => text.chars().map(|c| c.to_string().into()).collect(),
        Value::Dict(entries) => entries.iter().map(|(key, _)| key.clone()).collect(),
        other => return Err(format!("the arguments are to be a list, not {}", other.kind())),
    };
    let (mut positional, mut by_place, mut by_name) = (Vec::new(), Vec::new(), Vec::new());
    for item in items.into_iter().rev() {
        match item {
            Value::Dict(entries) => {
                // As in Salt, one argument that has no default is not given by name, but the others of its dict are.
                for (key, value) in entries {
                    let key = key.to_text();
                    let kind: &mut Vec<(String, Value)> =
                        if function.required.contains(&key) { &mut by_place } else { &mut by_name };
                    kind.retain(|(known, _)| *known != key);
                    kind.push((key, value));
                }
            }
            item => positional.push(item),
        }
    }
    positional.reverse();
    for name in &function.required {
        if let Some(at) = by_place.iter().position(|(known, _)| known == name) {
            positional.push(by_place.remove(at).1);
        }
    }
    let missing: Vec<&str> = function.required.iter().skip(positional.len()).map(String::as_str).collect();
    if !missing.is_empty() {
        return Err(format!("Missing arguments: {}", missing.join(", ")));
    }
    Ok((positional, by_name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(required: &[&str]) -> Function {
        let names = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
        Function { required: names(required), optional: names(&["o"]), args: false, kwargs: false }
    }

    #[test]
    fn arguments_go_to_their_places() {
        let named = |name: &str, value: i64| Value::dict([(name, Value::Int(value))]);
        let list = Value::List(vec![Value::Int(1), named("o", 3), named("b", 2)]);
        let expect = (vec![Value::Int(1), Value::Int(2)], vec![("o".to_owned(), Value::Int(3))]);
        assert_eq!(arranged(&function(&["a", "b"]), &list), Ok(expect));
        assert_eq!(arranged(&function(&[]), &Value::None), Ok((vec![], vec![])));
        assert_eq!(arranged(&function(&["a"]), &"x".into()), Ok((vec!["x".into()], vec![])));
        assert_eq!(arranged(&function(&["a", "b"]), &Value::List(vec![])), Err("Missing arguments: a, b".into()));
        assert!(arranged(&function(&[]), &Value::Int(1)).is_err());
    }

    #[test]
    fn sentences_are_salts() {
        assert_eq!(sentence("Function", " ", &["a.b"], " to be executed."), "Function a.b to be executed. ");
        assert_eq!(sentence("Unavailable function", ": ", &["a", "b"], "."), "Unavailable functionTrue: a, b. ");
    }
}
