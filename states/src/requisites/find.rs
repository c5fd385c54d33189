//! Looks for states by module and name.

use brine_render::{Dict, Value};

use crate::fault::Res;
use crate::limits::Budget;
use crate::python;

/// The ids, each with a module, that `module: name` means. `strict`: an id has to have that module.
pub(super) fn by_name(
    name: &Value,
    module: &Value,
    high: &Dict,
    strict: bool,
    budget: &Budget,
) -> Res<Vec<(Value, Value)>> {
    let there = high.borrow().get(&python::key(name)?).cloned();
    if let Some(body) = &there
        && (!strict || python::contains(body, module)?)
    {
        return Ok(vec![(name.clone(), module.clone())]);
    }
    let mut found = Vec::new();
    for (id, body) in python::entries(high) {
        budget.search(1)?;
        if module.as_str() == Some("sls") {
            if python::field(&body, "__sls__")? == *name {
                found.push((id, python::first(&body)?));
            }
            continue;
        }
        if !python::contains(&body, module)? {
            continue;
        }
        let Value::List(arguments) = python::item(&body, module)? else { continue };
        budget.search(arguments.borrow().len())?;
        for argument in arguments.borrow().iter() {
            if let Value::Dict(argument) = argument
                && argument.borrow().len() == 1
                && argument.borrow().values().next() == Some(name)
            {
                found.push((id.clone(), module.clone()));
            }
        }
    }
    Ok(found)
}

/// The states of an SLS: ids with each of their modules.
pub(super) fn of_sls(sls: &Value, high: &Dict, budget: &Budget) -> Res<Vec<(Value, Value)>> {
    let mut found = Vec::new();
    budget.search(high.borrow().len())?;
    for (id, body) in python::entries(high) {
        let Value::Dict(body) = body else { continue };
        if python::field(&body.clone().into(), "__sls__")? != *sls {
            continue;
        }
        for module in python::keys(&body) {
            if !python::starts_with(&module, "__")? {
                found.push((id.clone(), module));
            }
        }
    }
    Ok(found)
}

/// The names of a state's arguments.
pub(super) fn arguments(id: &Value, module: &Value, high: &Dict) -> Res<Vec<Value>> {
    let Some(body) = high.borrow().get(&python::key(id)?).cloned() else { return Ok(Vec::new()) };
    if !python::contains(&body, module)? {
        return Ok(Vec::new());
    }
    let single = |argument: Value| match argument {
        Value::Dict(argument) if argument.borrow().len() == 1 => python::keys(&argument).pop(),
        _ => None,
    };
    Ok(python::iterate(&python::item(&body, module)?)?.into_iter().filter_map(single).collect())
}
