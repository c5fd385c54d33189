//! `filter_by` of grains and of the pillar (`salt.utils.data.filter_by`).

use brine_patterns::fnmatch;

use super::Answer;
use super::call::Call;
use crate::data::merge::{How, update};
use crate::data::{CallError, deep_copy, text, traverse};
use crate::value::{Key, Value};

const ALL: How = How { recursive: true, merge_lists: false, strict: false };

pub(super) fn filter_by(call: &Call<'_>, lookup: &Value, data: &Value) -> Answer {
    let budget = &call.surroundings.budget;
    let choices = call.need("lookup_dict");
    let value = traverse(data, lookup, ":")?.unwrap_or_else(|| Value::list([]));
    let values = match value {
        Value::List(list) => list.borrow().clone(),
        other => vec![other],
    };
    let Value::Dict(choices) = &choices else {
        let name = choices.type_name();
        return Err(CallError::python(match &choices {
            Value::None | Value::Bool(_) | Value::Int(_) | Value::Float(_) => {
                format!("'{name}' object is not iterable")
            }
            Value::List(list) if list.borrow().iter().any(|item| is_among(&values, item)) => {
                "list indices must be integers or slices, not str".to_owned()
            }
            _ => format!("'{name}' object has no attribute 'get'"),
        }));
    };
    let mut found = Value::None;
    for each in &values {
        let each = text(each)?;
        let keys: Vec<Key> = choices.borrow().keys().cloned().collect();
        budget.take_steps(keys.len())?;
        for key in keys {
            if fnmatch(&text(key.value())?, &each) {
                found = choices.borrow().get(&key).cloned().unwrap_or_default();
                break;
            }
        }
        if !matches!(found, Value::None) {
            break;
        }
    }
    let under = |key: &Value| {
        let key = Key::new(key.clone()).map_err(|why| CallError::python(why.to_string()))?;
        Ok(choices.borrow().get(&key).cloned())
    };
    if matches!(found, Value::None) {
        found = under(&call.get("default").cloned().unwrap_or_else(|| "default".into()))?.unwrap_or_default();
    }
    if let Some(base) = call.get("base").filter(|base| base.truthy())
        && let Some(base) = under(base)?
    {
        if matches!(found, Value::None) {
            found = base;
        } else if matches!(base, Value::Dict(_)) {
            if !matches!(found, Value::Dict(_)) {
                return Err(CallError::python("filter_by default and look-up values must both be dictionaries."));
            }
            found = update(&deep_copy(&base, budget)?, &found, ALL, budget)?;
        }
    }
    if let Some(merge) = call.get("merge").filter(|merge| merge.truthy()) {
        if !matches!(merge, Value::Dict(_)) {
            return Err(CallError::python("filter_by merge argument must be a dictionary."));
        }
        if matches!(found, Value::None) {
            found = merge.clone();
        } else {
            // changes the dict that the template gave, as in Salt
            update(&found, &deep_copy(merge, budget)?, ALL, budget)?;
        }
    }
    Ok(found)
}

/// Whether a pattern fits one of the values.
fn is_among(values: &[Value], pattern: &Value) -> bool {
    values.iter().any(|value| match (text(pattern), text(value)) {
        (Ok(pattern), Ok(value)) => fnmatch(&pattern, &value),
        _ => false,
    })
}
