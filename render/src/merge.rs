//! Merging of dicts as `salt.utils.dictupdate` does it: pillars from several files, and `slsutil.merge`.

use std::collections::{HashMap, HashSet};
use std::str::FromStr;

use crate::value::{Dict, Key, List, MAX_DEPTH, Set, Value};

/// Upper bound on the comparisons of one merge of lists: each item of one is looked for in the other.
const MAX_COMPARISONS: usize = 1 << 20;

/// `pillar_source_merging_strategy`, and the argument `strategy` of `slsutil.merge`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// [`Strategy::Recurse`], because the renderer `yamlex`, which would change that, is not there.
    #[default]
    Smart,
    /// Dicts are merged on every level. Of other values the second one stays.
    Recurse,
    /// Dicts are merged on their first level.
    Aggregate,
    /// As [`Strategy::Recurse`], after the first level's values were replaced by the second dict's.
    Overwrite,
    /// The values of the first dict, each in a list with the second dict's value if that has one.
    List,
    /// Only one environment counts; within it, as [`Strategy::Recurse`] without `merge_lists`.
    None,
}

impl FromStr for Strategy {
    type Err = UnknownStrategy;

    fn from_str(name: &str) -> Result<Self, UnknownStrategy> {
        Ok(match name {
            "smart" => Self::Smart,
            "recurse" => Self::Recurse,
            "aggregate" => Self::Aggregate,
            "overwrite" => Self::Overwrite,
            "list" => Self::List,
            "none" => Self::None,
            _ => return Err(UnknownStrategy),
        })
    }
}

/// No strategy has this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the strategy is none of smart, recurse, aggregate, overwrite, list, none")]
pub struct UnknownStrategy;

/// Why two values are not merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// One of the two is no dict.
    #[error("Cannot update using non-dict types in dictupdate.update()")]
    NotDicts,
    /// A value is too deep, or contains itself.
    #[error("the values have more than {MAX_DEPTH} levels")]
    Depth,
    /// Lists are too long to be merged item by item.
    #[error("the lists are too long to be merged")]
    Comparisons,
}

/// Merges `b` into a copy of `a`, which stays as it is, except with [`Strategy::Overwrite`] (as in Salt).
///
/// # Errors
/// One of the two is no dict, or the values are beyond the bounds.
pub fn merge(a: &Value, b: &Value, strategy: Strategy, merge_lists: bool) -> Result<Value, MergeError> {
    match strategy {
        Strategy::Smart | Strategy::Recurse => merge_recursively(a, b, merge_lists),
        Strategy::None => merge_recursively(a, b, false),
        Strategy::Overwrite => {
            if let (Value::Dict(a), Value::Dict(b)) = (a, b)
                && a.address() != b.address()
            {
                let mut a = a.borrow_mut();
                for (key, value) in b.borrow().iter() {
                    if let Some(own) = a.get_mut(key) {
                        *own = value.clone();
                    }
                }
            }
            merge_recursively(a, b, merge_lists)
        }
        Strategy::Aggregate => {
            let (Value::Dict(a), Value::Dict(b)) = (a, b) else { return Err(MergeError::NotDicts) };
            let mut entries = a.borrow().clone();
            entries.extend(b.borrow().iter().map(|(key, value)| (key.clone(), value.clone())));
            Ok(Value::Dict(Dict::from_entries(entries, true)))
        }
        Strategy::List => {
            let (Value::Dict(a), Value::Dict(b)) = (a, b) else { return Err(MergeError::NotDicts) };
            let b = b.borrow();
            let both = |(key, own): (&Key, &Value)| {
                let value = b.get(key).map(|other| Value::list([own.clone(), other.clone()]));
                (key.clone(), value.unwrap_or_else(|| own.clone()))
            };
            Ok(Value::dict(a.borrow().iter().map(both).collect::<Vec<_>>()))
        }
    }
}

fn merge_recursively(a: &Value, b: &Value, merge_lists: bool) -> Result<Value, MergeError> {
    let copied = deep_copy(a)?;
    update(&copied, b, merge_lists)?;
    Ok(copied)
}

/// Merges `upd` into `dest` itself.
///
/// # Errors
/// One of the two is no dict, or the values are beyond the bounds.
pub fn update(dest: &Value, upd: &Value, merge_lists: bool) -> Result<(), MergeError> {
    update_at(dest, upd, merge_lists, 0)
}

fn update_at(dest: &Value, upd: &Value, merge_lists: bool, depth: usize) -> Result<(), MergeError> {
    let (Value::Dict(dest), Value::Dict(upd)) = (dest, upd) else { return Err(MergeError::NotDicts) };
    if depth > MAX_DEPTH {
        return Err(MergeError::Depth);
    }
    if dest.address() == upd.address() {
        return Ok(());
    }
    // A copy, because the dict can be part of the other one.
    let news: Vec<(Key, Value)> = upd.borrow().iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    for (key, value) in news {
        let own = dest.borrow().get(&key).cloned();
        let merged = match (own, &value) {
            (Some(own @ Value::Dict(_)), Value::Dict(_)) => {
                update_at(&own, &value, merge_lists, depth + 1)?;
                own
            }
            (Some(Value::List(own)), Value::List(more)) if merge_lists => Value::List(join(&own, more)?),
            _ => value,
        };
        dest.borrow_mut().insert(key, merged);
    }
    Ok(())
}

/// The items of the first list, and those of the second that are not among them.
fn join(own: &List, more: &List) -> Result<List, MergeError> {
    let Value::List(joined) = deep_copy(&Value::List(own.clone()))? else { return Ok(own.clone()) };
    let mut left = MAX_COMPARISONS;
    let mut hashed = HashSet::new();
    let mut others = Vec::new();
    for item in own.borrow().iter() {
        match Key::new(item.clone()) {
            Ok(key) => drop(hashed.insert(key)),
            Err(_) => others.push(item.clone()),
        }
    }
    let mut news = Vec::new();
    for item in more.borrow().iter() {
        let has = match Key::new(item.clone()) {
            Ok(key) => hashed.contains(&key),
            Err(_) => {
                left = left.checked_sub(others.len()).ok_or(MergeError::Comparisons)?;
                others.contains(item)
            }
        };
        if !has {
            news.push(item.clone());
        }
    }
    joined.borrow_mut().extend(news);
    Ok(joined)
}

/// Python's `copy.deepcopy`: what is shared within the value is shared within the copy.
///
/// # Errors
/// The value has too many levels.
pub fn deep_copy(value: &Value) -> Result<Value, MergeError> {
    copy_at(value, &mut HashMap::new(), 0)
}

fn copy_at(value: &Value, copies: &mut HashMap<usize, Value>, depth: usize) -> Result<Value, MergeError> {
    if depth > MAX_DEPTH {
        return Err(MergeError::Depth);
    }
    let known = |copies: &HashMap<usize, Value>| value.address().and_then(|at| copies.get(&at).cloned());
    Ok(match value {
        Value::List(list) => {
            if let Some(copy) = known(copies) {
                return Ok(copy);
            }
            let copy = List::default();
            copies.insert(list.address(), Value::List(copy.clone()));
            for item in list.borrow().iter() {
                let item = copy_at(item, copies, depth + 1)?;
                copy.borrow_mut().push(item);
            }
            Value::List(copy)
        }
        Value::Dict(dict) => {
            if let Some(copy) = known(copies) {
                return Ok(copy);
            }
            let copy = if dict.is_ordered() { Dict::ordered() } else { Dict::default() };
            copies.insert(dict.address(), Value::Dict(copy.clone()));
            for (key, item) in dict.borrow().iter() {
                let item = copy_at(item, copies, depth + 1)?;
                copy.borrow_mut().insert(key.clone(), item);
            }
            Value::Dict(copy)
        }
        Value::Tuple(items) => {
            Value::tuple(items.iter().map(|item| copy_at(item, copies, depth + 1)).collect::<Result<Vec<_>, _>>()?)
        }
        Value::Set(set) => Value::Set(set.borrow().iter().cloned().collect::<Set>()),
        other => other.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml;

    fn value(text: &str) -> Value {
        yaml::load(text, &yaml::Limits::default()).unwrap()
    }

    fn merged(a: &str, b: &str, strategy: Strategy, merge_lists: bool) -> String {
        match merge(&value(a), &value(b), strategy, merge_lists) {
            Ok(value) => value.short_repr().replace("OrderedDict", ""),
            Err(why) => why.to_string(),
        }
    }

    #[test]
    fn strategies() {
        let (a, b) = ("{a: 1, d: {x: 1, l: [1]}}", "{a: 2, d: {y: 2, l: [1, 2]}, z: 0}");
        for (strategy, merge_lists, expect) in [
            ("recurse", false, "{'a': 2, 'd': {'x': 1, 'l': [1, 2], 'y': 2}, 'z': 0}"),
            ("smart", true, "{'a': 2, 'd': {'x': 1, 'l': [1, 2], 'y': 2}, 'z': 0}"),
            ("none", true, "{'a': 2, 'd': {'x': 1, 'l': [1, 2], 'y': 2}, 'z': 0}"),
            ("overwrite", false, "{'a': 2, 'd': {'y': 2, 'l': [1, 2]}, 'z': 0}"),
            ("list", false, "{'a': [1, 2], 'd': [{'x': 1, 'l': [1]}, {'y': 2, 'l': [1, 2]}]}"),
        ] {
            assert_eq!(merged(a, b, strategy.parse().unwrap(), merge_lists), expect, "{strategy}");
        }
        assert_eq!(merged("{a: 1, d: {x: 1}}", "{d: {y: 1}}", Strategy::Aggregate, false), "([('a', 1), ('d', {'y': 1})])");
        assert!("other".parse::<Strategy>().is_err());
    }

    #[test]
    fn lists_are_joined_where_that_is_wished() {
        let (a, b) = ("{l: [1, {a: 1}, x]}", "{l: [{a: 1}, y, y, x, 1.0, true]}");
        assert_eq!(merged(a, b, Strategy::Recurse, true), "{'l': [1, {'a': 1}, 'x', 'y', 'y']}");
        let many = |n: usize| format!("{{l: [{}]}}", "[1], ".repeat(n));
        assert_eq!(merged(&many(2000), &many(2000), Strategy::Recurse, true), MergeError::Comparisons.to_string());
    }

    #[test]
    fn kinds_that_differ() {
        assert_eq!(merged("{a: {b: 1}}", "{a: [1]}", Strategy::Recurse, false), "{'a': [1]}");
        assert_eq!(merged("{a: [1]}", "{a: {b: 1}}", Strategy::Recurse, true), "{'a': {'b': 1}}");
        for strategy in [Strategy::Recurse, Strategy::List, Strategy::Aggregate, Strategy::Overwrite] {
            assert_eq!(merged("[1]", "{a: 1}", strategy, false), MergeError::NotDicts.to_string());
        }
    }

    /// What an anchor shares is changed through both names, as in Python.
    #[test]
    fn what_is_shared_stays_shared() {
        assert_eq!(
            merged("{a: &x {b: 1}, c: *x}", "{a: {d: 2}}", Strategy::Recurse, false),
            "{'a': {'b': 1, 'd': 2}, 'c': {'b': 1, 'd': 2}}"
        );
        let a = value("{a: {b: 1}}");
        merge(&a, &value("{a: {c: 1}}"), Strategy::Recurse, false).unwrap();
        assert_eq!(a, value("{a: {b: 1}}"), "the first dict stays");
    }

    #[test]
    fn what_contains_itself_ends() {
        let nest = || {
            let dict = Dict::default();
            dict.set("d", Value::Dict(dict.clone()));
            dict
        };
        let (a, b) = (nest(), nest());
        assert_eq!(merge(&a.clone().into(), &b.clone().into(), Strategy::Recurse, false).unwrap_err(), MergeError::Depth);
        a.borrow_mut().clear();
        b.borrow_mut().clear();
    }
}
