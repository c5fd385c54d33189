//! The module `beacon`: states of this minion's beacons, made of the functions of `beacons`. Their documentation is in
//! `wit/world.wit`. Comments and changes are Salt's; so is a result of True in a dry run.

#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "beacon",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/state-types@1.0.0": brine_guest::host::state_types,
        "brine:host/functions@1.0.0": brine_guest::host::functions,
        "brine:host/job@1.0.0": brine_guest::host::job,
    },
    generate_all,
});

use brine_guest::host::functions;
use brine_guest::keywords::Keywords;
use brine_guest::states::{StateResult, is_dry_run, no_changes};
use brine_guest::{Data, Value};

use exports::states::Guest;

struct Module;

type Done = Result<StateResult, String>;

/// What a function of `beacons` said.
struct Said {
    is_done: bool,
    comment: String,
    changes: Option<Value>,
}

impl Said {
    fn of(answer: &Value) -> Self {
        Self {
            is_done: answer.get("result").is_some_and(Value::truthy),
            comment: answer.get("comment").map(Value::to_text).unwrap_or_default(),
            changes: answer.get("changes").cloned(),
        }
    }
}

fn change(function: &str, args: Vec<Value>) -> Result<Said, String> {
    let args: Vec<Data> = args.into_iter().map(Data::from).collect();
    let none = Value::Dict(Vec::new()).into();
    Ok(Said::of(&functions::call(&format!("beacons.{function}"), &args, &none)?.value()?))
}

/// The beacon of this name, as it is configured; `include_pillar` and `include_opts` say where.
fn current(name: &str, keywords: &Keywords) -> Result<Option<Value>, String> {
    let mut asked = vec![(Value::from("return_yaml"), Value::Bool(false))];
    for source in ["include_pillar", "include_opts"] {
        asked.extend(keywords.get(source).map(|value| (source.into(), value.clone())));
    }
    let all = functions::call("beacons.list", &[], &Value::Dict(asked).into())?.value()?;
    Ok(all.get(name).cloned())
}

/// The configuration that a state describes: a list of dicts with one setting each.
fn configuration(keywords: &Keywords) -> Value {
    Value::List(keywords.iter().map(|(key, value)| Value::dict([(key, value.clone())])).collect())
}

/// The result of a change. `done` is said of one that was made.
fn after(said: Said, done: String, save: bool, name: &str) -> Done {
    if !said.is_done {
        return Ok(StateResult::bad(said.comment));
    }
    let comment = if is_dry_run() { said.comment } else { done };
    saved(comment, said.changes.unwrap_or_else(no_changes), save, name)
}

/// The result, with the beacons saved if that was wanted.
fn saved(mut comment: String, changes: Value, save: bool, name: &str) -> Done {
    if save && is_dry_run() {
        comment.push_str(&format!("\nBeacon {name} would be saved"));
    } else if save {
        let said = change("save", Vec::new())?;
        if !said.is_done {
            return Ok(StateResult::new(Some(false), format!("{comment}\n{}", said.comment), changes));
        }
        comment.push_str(&format!("\nBeacon {name} saved"));
    }
    Ok(StateResult::new(Some(true), comment, changes))
}

fn turn(name: &str, kwargs: &Data, function: &str, done: String, missing: String) -> Done {
    match current(name, &Keywords::new(kwargs, [])?)? {
        None => Ok(StateResult::good(missing)),
        Some(_) => after(change(function, vec![name.into()])?, done, false, name),
    }
}

impl Guest for Module {
    fn present(name: String, save: Option<bool>, kwargs: Data) -> Done {
        let (keywords, save) = (Keywords::new(&kwargs, [])?, save == Some(true));
        let wanted = configuration(&keywords);
        match current(&name, &keywords)? {
            None => {
                let said = change("add", vec![name.as_str().into(), wanted])?;
                after(said, format!("Adding {name} to beacons"), save, &name)
            }
            Some(there) if there == wanted => saved(format!("Job {name} in correct state"), no_changes(), save, &name),
            Some(_) => {
                let said = change("modify", vec![name.as_str().into(), wanted])?;
                let done = match said.changes {
                    Some(_) => format!("Modifying {name} in beacons"),
                    None => said.comment.clone(),
                };
                after(said, done, save, &name)
            }
        }
    }

    fn absent(name: String, save: Option<bool>, kwargs: Data) -> Done {
        let save = save == Some(true);
        match current(&name, &Keywords::new(&kwargs, [])?)? {
            None => saved(format!("{name} not configured in beacons"), no_changes(), save, &name),
            Some(_) => {
                let said = change("delete", vec![name.as_str().into()])?;
                after(said, format!("Removed {name} from beacons"), save, &name)
            }
        }
    }

    fn enabled(name: String, kwargs: Data) -> Done {
        let missing = format!("{name} not a configured beacon");
        turn(&name, &kwargs, "enable_beacon", format!("Enabled {name} from beacons"), missing)
    }

    fn disabled(name: String, kwargs: Data) -> Done {
        let missing = format!("Job {name} is not configured.");
        turn(&name, &kwargs, "disable_beacon", format!("Disabled beacon {name}."), missing)
    }
}

#[cfg(target_family = "wasm")]
export!(Module);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_a_dict_of_its_own() {
        let kwargs = Value::dict([("interval", Value::Int(5)), ("services", Value::dict([("a", "running".into())]))]);
        let expected = Value::List(vec![
            Value::dict([("interval", Value::Int(5))]),
            Value::dict([("services", Value::dict([("a", "running".into())]))]),
        ]);
        assert_eq!(configuration(&Keywords::new(&kwargs.into(), []).unwrap()), expected);
    }

    #[test]
    fn what_a_function_said() {
        let said = Said::of(&Value::dict([("comment", "x".into()), ("result", Value::Bool(true))]));
        assert!(said.is_done && said.comment == "x" && said.changes.is_none());
        assert!(!Said::of(&Value::None).is_done);
    }
}
