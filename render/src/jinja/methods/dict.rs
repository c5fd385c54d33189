//! `dict`

use super::super::error::{ErrorKind, JinjaError, Res};
use super::super::interp::{Interp, Passed, check, hashed};
use super::super::object::{Iter, IterKind};
use super::super::ops;
use crate::value::{Dict, Key, Value};

pub(super) const NAMES: [&str; 10] =
    ["get", "items", "keys", "values", "update", "pop", "setdefault", "copy", "clear", "popitem"];

pub(super) fn call(interp: &mut Interp, dict: &Dict, name: &'static str, passed: Passed) -> Res<Value> {
    let need = |at: usize| {
        passed.positional.get(at).cloned().ok_or_else(|| {
            JinjaError::python(match name {
                "get" | "pop" | "setdefault" => format!("{name} expected at least 1 argument, got 0"),
                _ => format!("{name}() needs an argument"),
            })
        })
    };
    let second = || passed.get(1, "default").unwrap_or_default();
    match name {
        "get" => Ok(dict.borrow().get(&hashed(need(0)?)?).cloned().unwrap_or_else(second)),
        "items" | "keys" | "values" => {
            interp.charge_values(dict.borrow().len() * 3)?;
            interp.take_steps(dict.borrow().len())?;
            let entries = dict.borrow();
            let (kind, items) = match name {
                "keys" => ("dict_keys", entries.keys().map(|key| key.value().clone()).collect()),
                "values" => ("dict_values", entries.values().cloned().collect()),
                _ => {
                    let pairs = entries.iter().map(|(key, value)| Value::tuple([key.value().clone(), value.clone()]));
                    ("dict_items", pairs.collect())
                }
            };
            Ok(Iter::of(IterKind::View(kind), items))
        }
        "update" => {
            if passed.positional.len() > 1 {
                let count = passed.positional.len();
                return Err(JinjaError::python(format!("update expected at most 1 argument, got {count}")));
            }
            if let Some(other) = passed.positional.first() {
                update(interp, dict, other)?;
            }
            for (name, value) in passed.keyword {
                dict.set(&name, value);
            }
            Ok(Value::None)
        }
        "setdefault" => {
            let key = hashed(need(0)?)?;
            interp.charge_values(2)?;
            let default = second();
            Ok(dict.borrow_mut().entry(key).or_insert(default).clone())
        }
        "pop" => {
            let key = need(0)?;
            let found = dict.borrow_mut().shift_remove(&hashed(key.clone())?);
            match found.or_else(|| passed.positional.get(1).cloned()) {
                Some(value) => Ok(value),
                None => Err(JinjaError::new(ErrorKind::Lookup, key.short_repr())),
            }
        }
        "popitem" => match dict.borrow_mut().pop() {
            Some((key, value)) => Ok(Value::tuple([key.into_value(), value])),
            None => Err(JinjaError::new(ErrorKind::Lookup, "'popitem(): dictionary is empty'")),
        },
        "copy" => {
            interp.charge_values(dict.borrow().len() * 3)?;
            Ok(Dict::from_entries(dict.borrow().clone(), dict.is_ordered()).into())
        }
        _ => {
            dict.borrow_mut().clear();
            Ok(Value::None)
        }
    }
}

/// `dict.update(other)`
pub(in crate::jinja) fn update(interp: &mut Interp, dict: &Dict, other: &Value) -> Res<()> {
    check(other)?;
    let entries: Vec<(Key, Value)> = match other {
        Value::Dict(other) => other.borrow().iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
        _ => {
            let mut entries = Vec::new();
            for (at, pair) in ops::iterate(interp, other)?.iter().enumerate() {
                let pair = ops::iterate(interp, pair).map_err(|_| {
                    JinjaError::python(format!("cannot convert dictionary update sequence element #{at} to a sequence"))
                })?;
                let count = pair.len();
                let [key, value] = <[Value; 2]>::try_from(pair).map_err(|_| {
                    JinjaError::python(format!(
                        "dictionary update sequence element #{at} has length {count}; 2 is required"
                    ))
                })?;
                entries.push((hashed(key)?, value));
            }
            entries
        }
    };
    interp.charge_values(entries.len() * 3)?;
    dict.borrow_mut().extend(entries);
    Ok(())
}
