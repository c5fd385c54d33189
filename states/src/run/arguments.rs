//! What a state function is called with: the arguments of its chunk without Salt's own.

use brine_render::{Dict, Value};

use crate::host::Parameters;
use crate::keywords;
use crate::python;

/// The arguments of a call; a sentence if there are some that the function does not take.
pub(super) fn of(low: &Dict, function: &str, parameters: &Parameters) -> Result<Dict, String> {
    let arguments = Dict::default();
    let named = parameters.required.iter().chain(&parameters.optional);
    for name in named.clone() {
        if let Some(value) = low.get(name) {
            arguments.set(name, value);
        } else if let (true, Some(Value::Int(umask))) = (name == "umask", low.get("__umask__")) {
            // The run has read it from the chunk already: Salt sets it around the state. A function that names it gets it.
            arguments.set(name, format!("{umask:03o}").into());
        }
    }
    let mut unknown = Vec::new();
    for (name, value) in python::entries(low) {
        let text = python::name(&name);
        if named.clone().any(|known| *known == text) || keywords::is_internal(&text) {
            continue;
        }
        if parameters.open {
            arguments.set(&text, value);
        } else {
            unknown.push(format!("'{text}'"));
        }
    }
    match unknown.split_last() {
        None => Ok(arguments),
        Some((only, [])) => Err(format!("{only} is an invalid keyword argument for '{function}'")),
        Some((last, others)) => {
            Err(format!("{} and {last} are invalid keyword arguments for '{function}'", others.join(", ")))
        }
    }
}

/// What of the required arguments is missing.
pub(super) fn missing(low: &Dict, function: &str, parameters: &Parameters) -> Vec<String> {
    let missing = parameters.required.iter().filter(|name| !python::has(low, name));
    missing.map(|name| format!("Missing parameter {name} for state {function}")).collect()
}
