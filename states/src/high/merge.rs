//! Brings the high data of files together.

use brine_render::{Dict, Value};

use crate::fault::{Fault, Res};
use crate::limits::Budget;
use crate::python;

/// Adds the ids of a file to those that are there. Ids are unique. What is no dict is an error, unless Python takes it
/// for pairs.
pub(super) fn merge(high: &Dict, state: &Value, errors: &mut Vec<String>, budget: &Budget) -> Res<()> {
    let Value::Dict(state) = state else {
        return match python::update(high, state) {
            Err(Fault::Python { class: "ValueError", .. }) => {
                let shown = python::text(state, budget.limits.text);
                errors.push(format!("Error when rendering state with contents: {shown}"));
                Ok(())
            }
            other => other,
        };
    };
    for name in ["__extend__", "__exclude__"] {
        if let Some(items) = python::pop(state, name) {
            python::extend(&python::default_list(high, name), &items)?;
        }
    }
    for (id, body) in python::entries(state) {
        let there = high.borrow().get(&python::key(&id)?).cloned();
        if let Some(there) = there
            && there != body
        {
            errors.push(format!(
                "Detected conflicting IDs, SLS IDs need to be globally unique.\n    The conflicting ID is '{}' and is \
                 found in SLS '{}:{}' and SLS '{}:{}'",
                python::name(&id),
                python::name(&python::field(&there, "__env__")?),
                python::name(&python::field(&there, "__sls__")?),
                python::name(&python::field(&body, "__env__")?),
                python::name(&python::field(&body, "__sls__")?),
            ));
        }
    }
    python::update(high, &state.clone().into())
}

/// Makes a list of extensions of one id each, and leaves out those that are there twice.
pub(super) fn unique_extensions(high: &Dict, budget: &Budget) -> Res<()> {
    let Some(all) = high.get("__extend__") else { return Ok(()) };
    let mut unique: Vec<(Value, Value)> = Vec::new();
    for extension in python::iterate(&all)? {
        for (id, body) in python::entries(python::dict_method(&extension, "items")?) {
            budget.search(unique.len())?;
            if !unique.iter().any(|(other, there)| *other == id && *there == body) {
                unique.push((id, body));
            }
        }
    }
    let mut list = Vec::with_capacity(unique.len());
    for (id, body) in unique {
        list.push(Value::dict([(python::key(&id)?, body)]));
    }
    high.set("__extend__", Value::list(list));
    Ok(())
}
