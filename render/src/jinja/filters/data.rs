//! Salt's filters on dicts and lists.

use super::super::error::{ErrorKind, JinjaError, Res};
use super::super::interp::{Interp, Passed, check, hashed};
use super::super::methods::dict::update;
use super::super::ops;
use crate::value::{Dict, Key, List, MAX_DEPTH, Value};

pub(super) const NAMES: [&str; 15] = [
    "append_dict_key_value",
    "extend_dict_key_value",
    "set_dict_key_value",
    "update_dict_key_value",
    "compare_dicts",
    "compare_lists",
    "exactly_n_true",
    "exactly_one_true",
    "to_entries",
    "from_entries",
    "mysql_to_dict",
    "json_decode_dict",
    "json_decode_list",
    "json_encode_dict",
    "json_encode_list",
];

pub(super) fn apply(interp: &mut Interp, name: &str, value: &Value, passed: &Passed) -> Res<Value> {
    check(value)?;
    match name {
        "append_dict_key_value" | "extend_dict_key_value" | "set_dict_key_value" | "update_dict_key_value" => {
            change(interp, name, value, passed)
        }
        "compare_dicts" => {
            let (old, new) = (dict(value)?, passed.get(0, "new").unwrap_or_default());
            let new = dict(&new)?;
            let (old, new) = (old.borrow().clone(), new.borrow().clone());
            interp.charge_values((old.len() + new.len()) * 4)?;
            let made = Dict::default();
            let pair = |old: Value, new: Value| Value::dict([("old".into(), old), ("new".into(), new)]);
            for (key, value) in &new {
                match old.get(key) {
                    None => made.borrow_mut().insert(key.clone(), pair("".into(), value.clone())),
                    Some(before) if !ops::equal(interp, before, value)? => {
                        made.borrow_mut().insert(key.clone(), pair(before.clone(), value.clone()))
                    }
                    Some(_) => None,
                };
            }
            for (key, value) in old.iter().filter(|(key, _)| !new.contains_key(*key)) {
                let gone = Value::dict([("new".into(), "".into()), ("old".into(), value.clone())]);
                made.borrow_mut().insert(key.clone(), gone);
            }
            Ok(made.into())
        }
        "compare_lists" => {
            let new = passed.get(0, "new").unwrap_or_default();
            let made = Dict::default();
            for (name, list, other) in [("new", &new, value), ("old", value, &new)] {
                let mut own = Vec::new();
                for item in ops::iterate(interp, list)? {
                    if !ops::contains(interp, other, &item)? {
                        own.push(item);
                    }
                }
                if !own.is_empty() {
                    made.set(name, Value::list(own));
                }
            }
            Ok(made.into())
        }
        "exactly_n_true" | "exactly_one_true" => {
            let amount = passed.get(0, "amount").filter(|_| name == "exactly_n_true").unwrap_or(Value::Int(1));
            let items = ops::iterate(interp, value)?;
            let count = items.iter().filter(|item| item.truthy()).count();
            Ok((ops::integer(&amount).unwrap_or_default().max(0) == count as i128).into())
        }
        "to_entries" => {
            let pairs: Vec<(Value, Value)> = match value {
                Value::Dict(dict) => dict.borrow().iter().map(|(k, v)| (k.value().clone(), v.clone())).collect(),
                Value::List(list) => {
                    list.borrow().iter().enumerate().map(|(at, v)| (Value::Int(at as i128), v.clone())).collect()
                }
                _ => return Err(JinjaError::python("Input data must be a dict or list")),
            };
            interp.charge_values(pairs.len() * 6)?;
            let entry = |(key, value)| Value::dict([("key".into(), key), ("value".into(), value)]);
            Ok(Value::list(pairs.into_iter().map(entry)))
        }
        "from_entries" => {
            let made = Dict::default();
            for entry in ops::iterate(interp, value)? {
                let entry = dict(&entry)?.borrow().clone();
                let under = |name: &str| {
                    let mut found = entry.iter().filter(|(k, _)| k.as_str().is_some_and(|k| k.to_lowercase() == name));
                    found.next_back().map(|(_, value)| value.clone())
                };
                let key = ["key", "name"].iter().find_map(|name| under(name).filter(Value::truthy));
                if let Some(key) = key {
                    made.borrow_mut().insert(hashed(key)?, under("value").unwrap_or_default());
                }
            }
            Ok(made.into())
        }
        "mysql_to_dict" => mysql(interp, value, passed),
        _ => {
            let is_dict = matches!(value, Value::Dict(_));
            if name.ends_with("dict") && !is_dict {
                let name = value.type_name();
                return Err(JinjaError::python(format!("'{name}' object has no attribute 'items'")));
            }
            if name.ends_with("list") && is_dict {
                let items = ops::iterate(interp, value)?;
                return encode(interp, &Value::list(items), 0);
            }
            encode(interp, value, 0)
        }
    }
}

fn dict(value: &Value) -> Res<&Dict> {
    match value {
        Value::Dict(dict) => Ok(dict),
        other => Err(JinjaError::python(format!("argument of type '{}' is not iterable", other.type_name()))),
    }
}

fn invocation(message: String) -> Box<JinjaError> {
    JinjaError::new(ErrorKind::Function, message)
}

fn class(value: &Value) -> String {
    match value.type_name() {
        "OrderedDict" => "<class 'collections.OrderedDict'>".to_owned(),
        name => format!("<class '{name}'>"),
    }
}

/// `{} | set_dict_key_value("a:b", 1)` and its like: dicts on the way are made.
fn change(interp: &mut Interp, name: &str, value: &Value, passed: &Passed) -> Res<Value> {
    let (keys, given) = (passed.need(0, "keys", name)?, passed.need(1, "value", name)?);
    check(&given)?;
    let keys = super::text_arg(&keys)?.to_owned();
    let delimiter = passed.get(2, "delimiter").unwrap_or_else(|| ":".into());
    let delimiter = super::text_arg(&delimiter)?.to_owned();
    let ordered = passed.get(3, "ordered_dict").is_some_and(|v| v.truthy());
    let fresh = || if ordered { Dict::ordered() } else { Dict::default() };
    let mut parts: Vec<&str> = keys.split(&*delimiter).collect();
    interp.charge_values(parts.len() * 4)?;
    let last = parts.pop().unwrap_or_default();
    let mut at = dict(value)?.clone();
    for part in parts {
        let next = at.get(part);
        at = match next {
            Some(Value::Dict(inner)) => inner,
            _ => {
                let made = fresh();
                at.set(part, made.clone().into());
                made
            }
        };
    }
    let own = at.get(last).filter(|own| !matches!(own, Value::None));
    match name {
        "set_dict_key_value" => at.set(last, given),
        "update_dict_key_value" => {
            let own = own.unwrap_or_else(|| {
                let made = Value::from(fresh());
                at.set(last, made.clone());
                made
            });
            let Value::Dict(inner) = &own else {
                return Err(invocation(format!("The last key contains a {}, which cannot update.", class(&own))));
            };
            let cannot = format!("Cannot update {} with a {}.", class(&own), class(&given));
            update(interp, inner, &given).map_err(|_| invocation(cannot))?;
        }
        _ => {
            let verb = if name == "append_dict_key_value" { "append" } else { "extend" };
            let own = own.unwrap_or_else(|| {
                let made = Value::from(List::default());
                at.set(last, made.clone());
                made
            });
            let Value::List(list) = &own else {
                return Err(invocation(format!("The last key contains a {}, which cannot {verb}.", class(&own))));
            };
            if verb == "append" {
                interp.charge_values(1)?;
                list.borrow_mut().push(given);
            } else {
                let cannot = format!("Cannot extend {} with a {}.", class(&own), class(&given));
                let items = ops::iterate(interp, &given).map_err(|_| invocation(cannot))?;
                interp.charge_values(items.len())?;
                list.borrow_mut().extend(items);
            }
        }
    }
    Ok(value.clone())
}

/// The table that the client of MySQL prints, as dict of its rows.
fn mysql(interp: &mut Interp, value: &Value, passed: &Passed) -> Res<Value> {
    let key = passed.need(0, "key", "mysql_to_dict")?;
    let made = Dict::default();
    let mut headers: Vec<String> = Vec::new();
    for line in ops::iterate(interp, value)? {
        let Some(line) = line.as_str().filter(|line| !line.is_empty() && !line.starts_with('+')) else { continue };
        let cells: Vec<String> = line.split('|').map(|cell| cell.trim().to_owned()).collect();
        if headers.len() <= 1 {
            headers = cells;
            continue;
        }
        interp.charge_values(headers.len() * 3)?;
        let row = Dict::default();
        for (field, name) in headers.iter().enumerate().take(headers.len() - 1).skip(1) {
            let cell = cells.get(field).ok_or_else(|| JinjaError::python("list index out of range"))?;
            row.set(name, super::salt::to_number(cell));
        }
        let own = row.borrow().get(&hashed(key.clone())?).cloned();
        let own = own.ok_or_else(|| JinjaError::python(key.short_repr()))?;
        made.borrow_mut().insert(hashed(own)?, row.into());
    }
    Ok(made.into())
}

/// Text becomes bytes, also in keys (`salt.utils.data.encode`).
fn encode(interp: &mut Interp, value: &Value, depth: usize) -> Res<Value> {
    if depth > MAX_DEPTH {
        return Err(JinjaError::limit("maximum recursion depth exceeded"));
    }
    interp.step()?;
    Ok(match value {
        Value::Str(text) => {
            interp.charge(text.len())?;
            Value::Bytes(text.as_bytes().into())
        }
        Value::Dict(dict) => {
            let entries = dict.borrow().clone();
            interp.charge_values(entries.len() * 2)?;
            let made = Dict::default();
            for (key, item) in entries {
                let key = encode(interp, key.value(), depth + 1)?;
                let item = encode(interp, &item, depth + 1)?;
                made.borrow_mut().insert(Key::new(key).map_err(|why| JinjaError::python(why.to_string()))?, item);
            }
            made.into()
        }
        Value::List(_) | Value::Tuple(_) => {
            let items = ops::iterate(interp, value)?;
            Value::list(items.iter().map(|item| encode(interp, item, depth + 1)).collect::<Res<Vec<_>>>()?)
        }
        other => other.clone(),
    })
}
