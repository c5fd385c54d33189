//! The module `environ`: the environment of the process that runs a job. In Salt, what a state sets is seen by the states
//! after it, because all run in one process. Here each state is an instance with no environment, and each program that it
//! starts gets one of its own: nothing set here could reach anything, so that setting is refused.

#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "environ",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/state-types@1.0.0": brine_guest::host::state_types,
        "brine:host/job@1.0.0": brine_guest::host::job,
    },
    generate_all,
});

use brine_guest::Value;
use brine_guest::states::{StateResult, is_dry_run};

const REFUSED: &str = "states and jobs share no environment here: name a variable where it is used, as in `env` of cmd.run, \
                       or in a file, such as /etc/environment or a service's";

struct Module;

/// What would change in an empty environment: variables by name, as Salt's changes.
fn changes(variables: &[(Value, Value)], false_unsets: bool) -> Vec<(Value, Value)> {
    let change = |(name, value): &(Value, Value)| match value {
        // It is not there.
        Value::Bool(false) if false_unsets => None,
        Value::Bool(false) => Some((name.clone(), "".into())),
        Value::Text(text) if text.is_empty() => None,
        value => Some((name.clone(), value.clone())),
    };
    variables.iter().filter_map(change).collect()
}

impl Guest for Module {
    fn setval(_key: Data, _val: Data, _false_unsets: Option<bool>, _permanent: Option<Data>) -> Result<Data, String> {
        Err(REFUSED.into())
    }

    fn setenv(
        _environ: Data,
        _false_unsets: Option<bool>,
        _clear_all: Option<bool>,
        _update_minion: Option<bool>,
        _permanent: Option<Data>,
    ) -> Result<Data, String> {
        Err(REFUSED.into())
    }

    fn get(key: Data, default: Option<Data>) -> Result<Data, String> {
        let is_text = key.value()?.text().is_some();
        Ok(if is_text { default.unwrap_or_else(|| "".into()) } else { Value::Bool(false).into() })
    }

    fn has_value(_key: Data, _value: Option<Data>) -> bool {
        false
    }

    fn item(keys: Data, default: Option<Data>) -> Result<Data, String> {
        let keys = match keys.value()? {
            Value::List(keys) => keys,
            key @ Value::Text(_) => vec![key],
            _ => Vec::new(),
        };
        let default = default.map_or_else(|| Ok("".into()), |default| default.value())?;
        Ok(Value::Dict(keys.into_iter().map(|key| (key, default.clone())).collect()).into())
    }

    fn items() -> Data {
        Value::Dict(Vec::new()).into()
    }
}

impl exports::states::Guest for Module {
    fn setenv(
        name: String,
        value: Data,
        false_unsets: Option<bool>,
        _clear_all: Option<bool>,
        _update_minion: Option<bool>,
        _permanent: Option<Data>,
    ) -> Result<StateResult, String> {
        let variables = match value.value()? {
            Value::Dict(variables) => variables,
            value @ (Value::Text(_) | Value::Bool(false)) => vec![(name.into(), value)],
            _ => return Ok(StateResult::bad("Environ value must be string, dict or False")),
        };
        // What a dry run says is what the run will say.
        if !changes(&variables, false_unsets == Some(true)).is_empty() {
            return Ok(StateResult::bad(format!("Failed to set environ variables: {REFUSED}")));
        }
        let already = if is_dry_run() { "are already" } else { "were already" };
        Ok(StateResult::good(format!("Environ values {already} set with the correct values")))
    }
}

#[cfg(target_family = "wasm")]
export!(Module);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_an_empty_environment_a_value_is_a_change() {
        let unset = vec![("a".into(), Value::Bool(false)), ("b".into(), "".into())];
        assert!(changes(&unset, true).is_empty());
        assert_eq!(changes(&unset, false), vec![("a".into(), "".into())]);
        let set = vec![("a".into(), "x".into())];
        assert_eq!(changes(&set, true), set);
    }
}
