//! `list`, `tuple` and `set`

use std::cmp::Ordering;

use super::super::error::{JinjaError, Res};
use super::super::interp::{Interp, Passed, hashed};
use super::super::ops;
use crate::value::{List, Set, Value};

pub(super) const NAMES: [&str; 11] =
    ["append", "extend", "insert", "pop", "remove", "index", "count", "sort", "reverse", "copy", "clear"];
pub(super) const SET_NAMES: [&str; 12] = [
    "add",
    "update",
    "remove",
    "discard",
    "union",
    "intersection",
    "difference",
    "symmetric_difference",
    "issubset",
    "issuperset",
    "copy",
    "clear",
];

/// The one argument of a method.
fn need(passed: &Passed, name: &str) -> Res<Value> {
    match &passed.positional[..] {
        [one] => Ok(one.clone()),
        other => Err(JinjaError::python(format!("list.{name}() takes exactly one argument ({} given)", other.len()))),
    }
}

pub(super) fn call(interp: &mut Interp, list: &List, name: &'static str, passed: &Passed) -> Res<Value> {
    let find = |interp: &mut Interp, item: &Value| {
        let items = list.borrow().clone();
        for (at, other) in items.iter().enumerate() {
            if ops::equal(interp, other, item)? {
                return Ok(Some(at));
            }
        }
        Ok::<_, Box<JinjaError>>(None)
    };
    match name {
        "append" => {
            let item = need(passed, name)?;
            interp.charge_values(1)?;
            list.borrow_mut().push(item);
        }
        "extend" => {
            let items = ops::iterate(interp, &need(passed, name)?)?;
            interp.charge_values(items.len())?;
            list.borrow_mut().extend(items);
        }
        "insert" => {
            let item = passed.need(1, "object", "insert")?;
            let count = list.borrow().len() as i128;
            let at = passed.positional.first().and_then(ops::integer).unwrap_or_default();
            let at = (if at < 0 { at + count } else { at }).clamp(0, count) as usize;
            interp.charge(32 + list.borrow().len() / 8)?;
            list.borrow_mut().insert(at, item);
        }
        "pop" => {
            let count = list.borrow().len();
            if count == 0 {
                return Err(JinjaError::python("pop from empty list"));
            }
            let at = passed.positional.first().map_or(Some(-1), ops::integer).and_then(|n| ops::place(n, count));
            let Some(at) = at else { return Err(JinjaError::python("pop index out of range")) };
            return Ok(list.borrow_mut().remove(at));
        }
        "remove" => {
            let item = need(passed, name)?;
            match find(interp, &item)? {
                Some(at) => drop(list.borrow_mut().remove(at)),
                None => return Err(JinjaError::python("list.remove(x): x not in list")),
            }
        }
        "index" => {
            let Some(item) = passed.positional.first() else {
                return Err(JinjaError::python("index expected at least 1 argument, got 0"));
            };
            return match find(interp, item)? {
                Some(at) => Ok(Value::from(at as u64)),
                None => Err(JinjaError::python(format!("{} is not in list", item.short_repr()))),
            };
        }
        "count" => {
            let item = need(passed, name)?;
            let items = list.borrow().clone();
            let mut count = 0u64;
            for other in &items {
                count += u64::from(ops::equal(interp, other, &item)?);
            }
            return Ok(count.into());
        }
        "sort" => {
            let items = list.borrow().clone();
            let keys = match passed.named("key") {
                Some(key) => {
                    let call =
                        |item: &Value| interp.call(key, Passed { positional: vec![item.clone()], keyword: vec![] });
                    items.iter().map(call).collect::<Res<Vec<_>>>()?
                }
                None => items.clone(),
            };
            let reverse = passed.named("reverse").is_some_and(Value::truthy);
            let sorted = sort_by(interp, &items, &keys, reverse)?;
            *list.borrow_mut() = sorted;
        }
        "reverse" => list.borrow_mut().reverse(),
        "copy" => {
            interp.charge_values(list.borrow().len())?;
            return Ok(Value::list(list.borrow().iter().cloned()));
        }
        _ => list.borrow_mut().clear(),
    }
    Ok(Value::None)
}

/// Python's stable sort of items by their keys.
pub(in crate::jinja) fn sort_by(
    interp: &mut Interp,
    items: &[Value],
    keys: &[Value],
    reverse: bool,
) -> Res<Vec<Value>> {
    interp.charge_values(items.len())?;
    let mut places: Vec<usize> = (0..items.len()).collect();
    let mut failed = None;
    if reverse {
        places.reverse();
    }
    places.sort_by(|a, b| {
        if failed.is_some() {
            return Ordering::Equal;
        }
        match ops::order(interp, &keys[*a], &keys[*b], "<", 0) {
            Ok(order) => order.unwrap_or(Ordering::Equal),
            Err(error) => {
                failed = Some(error);
                Ordering::Equal
            }
        }
    });
    if let Some(error) = failed {
        return Err(error);
    }
    if reverse {
        places.reverse();
    }
    Ok(places.into_iter().map(|at| items[at].clone()).collect())
}

pub(super) fn call_set(interp: &mut Interp, set: &Set, name: &'static str, passed: &Passed) -> Res<Value> {
    let other = match passed.positional.first() {
        None => Set::default(),
        Some(value) if matches!(name, "add" | "remove" | "discard") => ops::set_of(vec![value.clone()])?,
        Some(value) => ops::set_of(ops::iterate(interp, value)?)?,
    };
    interp.charge_values(set.borrow().len() + other.borrow().len())?;
    let theirs = other.borrow().clone();
    let ours = set.borrow().clone();
    let made: Set = match name {
        "add" | "update" => {
            set.borrow_mut().extend(theirs);
            return Ok(Value::None);
        }
        "remove" | "discard" => {
            for key in &theirs {
                if !set.borrow_mut().shift_remove(key) && name == "remove" {
                    return Err(JinjaError::python(key.value().short_repr()));
                }
            }
            return Ok(Value::None);
        }
        "clear" => {
            set.borrow_mut().clear();
            return Ok(Value::None);
        }
        "issubset" => return Ok(Value::Bool(ours.iter().all(|key| theirs.contains(key)))),
        "issuperset" => return Ok(Value::Bool(theirs.iter().all(|key| ours.contains(key)))),
        "intersection" => ours.into_iter().filter(|key| theirs.contains(key)).collect(),
        "difference" => ours.into_iter().filter(|key| !theirs.contains(key)).collect(),
        "symmetric_difference" => {
            let left: Vec<_> = ours.iter().filter(|key| !theirs.contains(*key)).cloned().collect();
            left.into_iter().chain(theirs.into_iter().filter(|key| !ours.contains(key))).collect()
        }
        _ => ours.into_iter().chain(theirs).collect(),
    };
    let _ = hashed;
    Ok(Value::Set(made))
}
