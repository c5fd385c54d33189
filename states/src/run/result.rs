//! The form of a result.

use brine_render::{Dict, Value};

use super::core::Core;
use crate::python;

/// The parts that each result needs.
const PARTS: [&str; 4] = ["name", "result", "changes", "comment"];

/// A result as Salt takes it: comments in a list are lines, and `result` is true, false or None. What has another form
/// is a failure that says so.
pub(super) fn unified(result: Value) -> Dict {
    let result = match checked(result) {
        Ok(result) => result,
        Err(why) => {
            return new("later".into(), false.into(), &format!("An exception occurred in this state: {why}"));
        }
    };
    if let Some(parts) = result.get("sub_state_run")
        && let Ok(parts) = python::iterate(&parts)
    {
        result.set("sub_state_run", Value::list(parts.into_iter().map(|part| Value::Dict(unified(part)))));
    }
    if let Some(Value::List(lines)) = result.get("comment") {
        let lines: Vec<String> = lines.borrow().iter().map(|line| python::text(line, usize::MAX)).collect();
        result.set("comment", lines.join("\n").into());
    }
    match result.get("result") {
        None | Some(Value::None) => {}
        Some(value) => result.set("result", value.truthy().into()),
    }
    result
}

fn checked(result: Value) -> Result<Dict, String> {
    let Value::Dict(result) = result else {
        return Err("Malformed state return. Data must be a dictionary type.".to_owned());
    };
    if !matches!(result.get("changes"), Some(Value::Dict(_))) {
        return Err("'Changes' should be a dictionary.".to_owned());
    }
    let missing: Vec<&str> = PARTS.into_iter().filter(|part| !python::has(&result, part)).collect();
    if !missing.is_empty() {
        let missing = missing.join(", ");
        return Err(format!("The following keys were not present in the state return: {missing}."));
    }
    if let Some(parts) = result.get("sub_state_run") {
        for part in python::iterate(&parts).map_err(|fault| fault.to_string())? {
            checked(part)?;
        }
    }
    Ok(result)
}

/// A result of a state that did nothing.
pub(super) fn new(name: Value, result: Value, comment: &str) -> Dict {
    let dict = Dict::default();
    dict.set("name", name);
    dict.set("result", result);
    dict.set("changes", Value::dict([]));
    dict.set("comment", comment.into());
    dict
}

/// Whether a result failed: false, and not None.
pub(super) fn failed(result: &Dict) -> bool {
    matches!(result.get("result"), Some(Value::Bool(false)))
}

/// Whether a result has changes.
pub(super) fn changed(result: &Dict) -> bool {
    result.get("changes").is_some_and(|changes| changes.truthy())
}

/// The text of `comment`.
pub(super) fn comment(result: &Dict) -> String {
    match result.get("comment") {
        Some(value) if value.truthy() => python::text(&value, usize::MAX),
        _ => String::new(),
    }
}

impl Core<'_> {
    /// Copies what a result has of its chunk.
    pub(super) fn mark(result: &Dict, low: &Dict) {
        for name in ["__sls__", "__id__", "name"] {
            result.set(name, low.get(name).unwrap_or_default());
        }
    }

    /// A result of a state that was not run.
    pub(super) fn not_run(&self, low: &Dict, result: bool, comment: &str) -> Dict {
        let dict = Dict::default();
        dict.set("changes", Value::dict([]));
        dict.set("result", result.into());
        dict.set("duration", 0.0.into());
        dict.set("start_time", self.now.borrow().as_str().into());
        dict.set("comment", comment.into());
        dict.set("__state_ran__", false.into());
        dict.set("__run_num__", self.next_number());
        Self::mark(&dict, low);
        dict
    }
}
