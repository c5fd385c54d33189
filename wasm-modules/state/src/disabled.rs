//! Runs that are disabled (`state.disable`): names of SLS files, or `highstate`, in the static grain
//! `state_runs_disabled`.

use brine_guest::Data;
use brine_guest::host::{functions, grains};
use brine_render::Value;

use crate::arguments::{items, split, text};
use crate::session::Session;
use crate::wire;

/// The grain.
const GRAIN: &str = "state_runs_disabled";

fn grain() -> Option<Value> {
    wire::dict(&grains::items()).ok()?.get(GRAIN)
}

fn names() -> Vec<String> {
    match grain() {
        Some(names @ Value::List(_)) => items(&names).iter().map(text).collect(),
        _ => Vec::new(),
    }
}

pub(crate) fn is_disabled(name: &str) -> bool {
    names().iter().any(|known| says(known, name).is_some())
}

/// What an entry says of a run; none if it is not about it.
fn says(entry: &str, name: &str) -> Option<String> {
    if entry.contains(".*") {
        let start = format!("{}.", entry.split('.').next().unwrap_or_default());
        let meant = name.starts_with(&start);
        return meant.then(|| {
            format!("The state file \"{name}\" is currently disabled by \"{entry}\", to re-enable, run state.enable {entry}.")
        });
    }
    (entry == name)
        .then(|| format!("The state file \"{entry}\" is currently disabled, to re-enable, run state.enable {entry}."))
}

/// A sentence for each disabled one among these SLS files.
pub(crate) fn among(session: &Session, mods: &[Value]) -> Vec<String> {
    let disabled: Vec<String> = match &session.options.grains {
        Value::Dict(grains) => match grains.get(GRAIN) {
            Some(names @ Value::List(_)) => items(&names).iter().map(text).collect(),
            _ => Vec::new(),
        },
        _ => Vec::new(),
    };
    mods.iter().flat_map(|name| disabled.iter().filter_map(move |entry| says(entry, &text(name)))).collect()
}

/// What a highstate returns that is disabled.
pub(crate) fn highstate() -> Value {
    Value::dict([
        ("name".into(), "Salt highstate run is disabled. To re-enable, run state.enable highstate".into()),
        ("result".into(), "False".into()),
        ("comment".into(), "Disabled".into()),
    ])
}

pub(crate) fn list() -> Result<Data, String> {
    wire::data(&grain().unwrap_or_else(|| "".into()))
}

pub(crate) fn disable(states: &Value) -> Result<Data, String> {
    let mut names = names();
    let mut lines = Vec::new();
    let before = names.len();
    for state in split(states).iter().map(text) {
        if names.contains(&state) {
            lines.push(format!("Info: {state} state already disabled."));
        } else {
            lines.push(format!("Info: {state} state disabled."));
            names.push(state);
        }
    }
    changed(&names, names.len() != before, lines)
}

pub(crate) fn enable(states: &Value) -> Result<Data, String> {
    let mut names = names();
    let mut lines = Vec::new();
    let before = names.len();
    for state in split(states).iter().map(text) {
        match names.iter().position(|known| *known == state) {
            Some(place) => {
                lines.push(format!("Info: {state} state enabled."));
                names.remove(place);
            }
            None => lines.push(format!("Info: {state} state already enabled.")),
        }
    }
    changed(&names, names.len() != before, lines)
}

fn changed(names: &[String], is_changed: bool, lines: Vec<String>) -> Result<Data, String> {
    if is_changed {
        let value = Value::list(names.iter().map(|name| Value::from(name.as_str())));
        let arguments = [wire::data(&GRAIN.into())?, wire::data(&value)?];
        functions::call("grains.setval", &arguments, &wire::data(&Value::dict([]))?)?;
    }
    let result = [("res", Value::from(true)), ("msg", lines.join("\n").as_str().into())];
    wire::data(&Value::dict(result.map(|(key, value)| (key.into(), value))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_or_all_of_a_folder_is_disabled() {
        assert!(says("bind", "bind").is_some() && says("bind", "bind.config").is_none());
        assert_eq!(
            says("bind.*", "bind.config").as_deref(),
            Some(
                "The state file \"bind.config\" is currently disabled by \"bind.*\", to re-enable, run state.enable bind.*."
            )
        );
        assert!(says("bind.*", "binder").is_none());
    }
}
