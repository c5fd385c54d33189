//! The module `process`: states of processes, made of the functions of `ps`. Their documentation is in `wit/world.wit`.
//! Comments, changes and results are Salt's.

#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "process",
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

const NONE: &str = "No matching processes running";

/// Of a list, how many it has.
fn count(list: Option<&Value>) -> usize {
    if let Some(Value::List(items)) = list { items.len() } else { 0 }
}

/// Sends a signal to the processes whose command line has a text in it.
fn send(pattern: &Data, keywords: &Keywords) -> Result<Value, String> {
    let named = keywords.iter().map(|(name, value)| (name.into(), value.clone()));
    let named = named.chain([("full".into(), Value::Bool(true))]).collect();
    functions::call("ps.pkill", std::slice::from_ref(pattern), &Value::Dict(named).into())?.value()
}

fn planned(status: &Value) -> StateResult {
    match count(status.get("killed")) {
        0 => StateResult::would(NONE, no_changes()),
        count => StateResult::would(format!("{count} processes will be killed"), no_changes()),
    }
}

fn done(status: Value) -> StateResult {
    match count(status.get("killed")) {
        0 => StateResult::good(NONE),
        count => StateResult::changed(format!("Killed {count} processes"), status),
    }
}

impl Guest for Module {
    fn absent(name: Data, user: Option<Data>, signal: Option<Data>) -> Result<StateResult, String> {
        // As in Salt, a signal of 0 is the usual one.
        let signal = signal.map(|signal| signal.value()).transpose()?.filter(Value::truthy);
        let is_dry_run = is_dry_run();
        // The signal 0 reaches the same processes, and changes none of them.
        let signal = if is_dry_run { Some(Value::Int(0)) } else { signal };
        let none = Value::Dict(Vec::new()).into();
        let status = send(&name, &Keywords::new(&none, [("user", user), ("signal", signal.map(Data::from))])?)?;
        Ok(if is_dry_run { planned(&status) } else { done(status) })
    }
}

#[cfg(target_family = "wasm")]
export!(Module);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_counted() {
        let two = Value::List(vec![Value::Int(7), Value::Int(8)]);
        let would = planned(&Value::dict([("killed", two.clone())]));
        assert_eq!((would.result, would.comment.as_str()), (None, "2 processes will be killed"));
        assert_eq!(planned(&Value::None).comment, NONE);
        let killed = done(Value::dict([("killed", two.clone())]));
        assert_eq!((killed.result, killed.comment.as_str()), (Some(true), "Killed 2 processes"));
        assert_eq!(killed.changes.value().unwrap(), Value::dict([("killed", two)]));
        let none = done(Value::None);
        assert_eq!((none.result, none.comment.as_str()), (Some(true), NONE));
    }
}
