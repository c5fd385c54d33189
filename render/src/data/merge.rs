//! Dicts into dicts (`salt.utils.dictupdate`).

use super::{Budget, CallError, deep_copy};
use crate::value::{Dict, Entries, MAX_DEPTH, Value};

/// How much one dict is merged into another.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// Dicts under the same key are merged too.
    pub recursive: bool,
    /// Lists under the same key are joined.
    pub merge_lists: bool,
    /// A dict in place of a list is an error when lists are joined.
    pub strict: bool,
}

/// Python's `TypeError` for what is no dict.
fn no_dict() -> CallError {
    CallError::python("Cannot update using non-dict types in dictupdate.update()")
}

fn dict(value: &Value) -> Result<&Dict, CallError> {
    match value {
        Value::Dict(dict) => Ok(dict),
        _ => Err(no_dict()),
    }
}

/// Changes `dest`, and gives it back.
///
/// # Errors
/// One of the two is no dict, or they are too deep or too large.
pub fn update(dest: &Value, upd: &Value, how: How, budget: &Budget) -> Result<Value, CallError> {
    update_dict(dict(dest)?, dict(upd)?, how, budget, 0)?;
    Ok(dest.clone())
}

fn update_dict(dest: &Dict, upd: &Dict, how: How, budget: &Budget, depth: usize) -> Result<(), CallError> {
    if depth > MAX_DEPTH {
        return Err(CallError::python("maximum recursion depth exceeded"));
    }
    let entries: Entries = upd.borrow().clone();
    budget.take_steps(entries.len() + 1)?;
    budget.take_values(entries.len())?;
    let recursive = how.recursive && entries.keys().any(|key| dest.borrow().contains_key(key));
    if !recursive {
        dest.borrow_mut().extend(entries);
        return Ok(());
    }
    for (key, value) in entries {
        let below = dest.borrow().get(&key).cloned();
        let made = match (below, &value) {
            (Some(Value::Dict(below)), Value::Dict(inner)) => {
                let how = How { recursive: true, strict: false, ..how };
                update_dict(&below, inner, how, budget, depth + 1)?;
                Value::Dict(below)
            }
            (Some(below @ Value::List(_)), Value::List(more)) if how.merge_lists => {
                join(&below, &more.borrow().clone(), budget)?
            }
            (Some(Value::List(_)), Value::Dict(inner)) if how.strict && how.merge_lists => {
                let keys: Vec<String> = inner.borrow().keys().map(|key| key.value().short_repr()).collect();
                return Err(CallError::python(format!(
                    "With merge_lists=True we cannot update list under key={} with mapping containing keys \
                     val.keys()=dict_keys([{}]) in dictupdate.update()",
                    key.value().short_repr(),
                    keys.join(", ")
                )));
            }
            _ => value,
        };
        dest.borrow_mut().insert(key, made);
    }
    Ok(())
}

/// A copy of a list with those items of another that it does not have.
fn join(list: &Value, more: &[Value], budget: &Budget) -> Result<Value, CallError> {
    let merged = deep_copy(list, budget)?;
    if let Value::List(merged) = &merged {
        let mut new = Vec::new();
        for item in more {
            budget.take_steps(merged.borrow().len() + 1)?;
            if !merged.borrow().iter().any(|own| own == item) {
                new.push(item.clone());
            }
        }
        budget.take_values(new.len())?;
        merged.borrow_mut().append(&mut new);
    }
    Ok(merged)
}

/// Merges by a strategy: `recurse`, `overwrite`, `list`, `aggregate`, `none`, and `smart`, which is `recurse`. Another
/// name is `recurse` without joining lists. Gives a new dict, but `overwrite` changes the first one also, as in Salt.
///
/// # Errors
/// As [`update`].
pub fn merge(a: &Value, b: &Value, strategy: &str, merge_lists: bool, budget: &Budget) -> Result<Value, CallError> {
    let recurse = |merge_lists| {
        let copied = deep_copy(a, budget)?;
        update(&copied, b, How { recursive: true, merge_lists, strict: false }, budget)
    };
    match strategy {
        "list" => {
            let no_items = || CallError::python(format!("'{}' object has no attribute 'items'", a.type_name()));
            let a = dict(a).map_err(|_| no_items())?.borrow();
            let no_place = || CallError::python(format!("argument of type '{}' is not iterable", b.type_name()));
            let b = dict(b).map_err(|_| no_place());
            if a.is_empty() {
                return Ok(Value::dict([]));
            }
            let b = b?.borrow();
            budget.take_values(a.len() * 3)?;
            Ok(Value::dict(a.iter().map(|(key, value)| {
                let both = b.get(key).map(|other| Value::list([value.clone(), other.clone()]));
                (key.clone(), both.unwrap_or_else(|| value.clone()))
            })))
        }
        "overwrite" => {
            if let (Value::Dict(own), Value::Dict(other)) = (a, b) {
                let other = other.borrow().clone();
                for (key, value) in other {
                    let mut own = own.borrow_mut();
                    if own.contains_key(&key) {
                        own.insert(key, value);
                    }
                }
            } else if matches!(b, Value::None | Value::Bool(_) | Value::Int(_) | Value::Float(_)) {
                return Err(CallError::python(format!("'{}' object is not iterable", b.type_name())));
            }
            recurse(merge_lists)
        }
        "aggregate" => aggregate(a, b, budget),
        "smart" | "recurse" => recurse(merge_lists),
        _ => recurse(false),
    }
}

/// What Salt's `aggregate` makes of two values at its first level: dicts are merged with the second's values, lists (and
/// what is neither, as a list of one) are joined.
fn aggregate(a: &Value, b: &Value, budget: &Budget) -> Result<Value, CallError> {
    let items = |value: &Value| match value {
        Value::List(list) => Some(list.borrow().clone()),
        Value::Tuple(items) => Some(items.to_vec()),
        Value::Set(set) => Some(set.borrow().iter().map(|key| key.value().clone()).collect()),
        Value::Dict(_) => None,
        other => Some(vec![other.clone()]),
    };
    match (a, b) {
        (Value::Dict(a), Value::Dict(b)) => {
            budget.take_values(a.borrow().len() + b.borrow().len())?;
            let mut entries = a.borrow().clone();
            entries.extend(b.borrow().iter().map(|(key, value)| (key.clone(), value.clone())));
            Ok(Dict::from_entries(entries, true).into())
        }
        _ => match (items(a), items(b)) {
            (Some(a), Some(b)) => {
                budget.take_values(a.len() + b.len())?;
                budget.take_steps(a.len().saturating_mul(b.len()))?;
                let new: Vec<Value> = b.into_iter().filter(|item| !a.contains(item)).collect();
                Ok(Value::list(a.into_iter().chain(new)))
            }
            (_, Some(b)) => Ok(Value::list(b)),
            _ => match b {
                Value::Dict(b) => Ok(Dict::from_entries(b.borrow().clone(), true).into()),
                other => Ok(other.clone()),
            },
        },
    }
}
