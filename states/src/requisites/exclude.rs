//! `exclude`: takes ids, or all ids of an SLS, out of the run.

use brine_render::value::TextKey;
use brine_render::{Dict, Set, Value};

use crate::fault::Res;
use crate::limits::Budget;
use crate::python;

/// Takes out what `__exclude__` names.
pub(crate) fn exclude(high: &Dict, budget: &Budget) -> Res<()> {
    let Some(entries) = python::pop(high, "__exclude__") else { return Ok(()) };
    let (mut sls, mut ids) = (Vec::new(), Vec::new());
    for entry in python::iterate(&entries)? {
        match &entry {
            Value::Str(_) => sls.push(entry),
            Value::Dict(dict) if dict.borrow().len() == 1 => {
                let (what, name) = python::entries(dict).swap_remove(0);
                match what.as_str() {
                    Some("sls") => sls.push(name),
                    Some("id") => ids.push(python::key(&name)?),
                    _ => {}
                }
            }
            _ => {}
        }
    }
    if !sls.is_empty() {
        for (id, body) in python::entries(high) {
            if python::starts_with(&id, "__")? {
                continue;
            }
            let of = python::dict_method(&body, "get")?.get("__sls__").unwrap_or_else(|| "".into());
            if !of.truthy() {
                continue;
            }
            budget.search(sls.len())?;
            for pattern in &sls {
                if python::fnmatch(&of, pattern)? {
                    ids.push(python::key(&id)?);
                }
            }
        }
    }
    let excluded: Set = ids.into_iter().collect();
    high.borrow_mut().retain(|id, _| !excluded.borrow().contains(id));
    Ok(())
}

/// The SLS names that are excluded whole: nothing of them extends other states.
pub(super) fn excluded_sls(high: &Dict) -> Res<Vec<Value>> {
    let mut names = Vec::new();
    let Some(entries) = high.borrow().get(&TextKey("__exclude__")).cloned() else { return Ok(names) };
    for entry in python::iterate(&entries)? {
        match &entry {
            Value::Str(_) => names.push(entry),
            other => names.extend(python::dict_method(other, "get")?.get("sls").filter(Value::truthy)),
        }
    }
    Ok(names)
}
