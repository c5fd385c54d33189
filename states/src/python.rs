//! Python's operations on values, with the exceptions that Salt's users see when a file has the wrong shape.

use std::collections::HashMap;
use std::fmt::{self, Write};

use brine_patterns::Glob;
use brine_render::value::{Entries, TextKey};
use brine_render::{Dict, Key, List, Value};

use crate::fault::{Fault, Res};
use crate::limits::Budget;

/// Python's `str`, cut at a bound.
pub(crate) fn text(value: &Value, limit: usize) -> String {
    struct Bounded {
        text: String,
        left: usize,
    }
    impl Write for Bounded {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            let Some(left) = self.left.checked_sub(text.len()) else {
                self.text.push_str("...");
                return Err(fmt::Error);
            };
            self.left = left;
            self.text.push_str(text);
            Ok(())
        }
    }
    if let Value::Str(text) = value {
        return text.to_string();
    }
    let mut out = Bounded { text: String::new(), left: limit };
    // cut is not failed
    let _ = value.write_str(&mut out);
    out.text
}

/// `str` for what is short in all but hostile files: names, ids, environments.
pub(crate) fn name(value: &Value) -> String {
    text(value, 4096)
}

/// `type(value).__name__`
pub(crate) fn class_name(value: &Value) -> &str {
    value.type_name().rsplit('.').next().unwrap_or_default()
}

fn attribute(value: &Value, name: &str) -> Fault {
    Fault::python("AttributeError", format!("'{}' object has no attribute '{name}'", value.type_name()))
}

/// The text that a method of `str` is called on.
pub(crate) fn text_method<'a>(value: &'a Value, method: &str) -> Res<&'a str> {
    value.as_str().ok_or_else(|| attribute(value, method))
}

/// `value.startswith(prefix)`
pub(crate) fn starts_with(value: &Value, prefix: &str) -> Res<bool> {
    Ok(text_method(value, "startswith")?.starts_with(prefix))
}

/// The dict that a method of `dict` is called on.
pub(crate) fn dict_method<'a>(value: &'a Value, method: &str) -> Res<&'a Dict> {
    match value {
        Value::Dict(dict) => Ok(dict),
        other => Err(attribute(other, method)),
    }
}

/// The list that a method of `list` is called on.
pub(crate) fn list_method<'a>(value: &'a Value, method: &str) -> Res<&'a List> {
    match value {
        Value::List(list) => Ok(list),
        other => Err(attribute(other, method)),
    }
}

/// `iter(value)`, as a copy: what goes through it may change it.
pub(crate) fn iterate(value: &Value) -> Res<Vec<Value>> {
    Ok(match value {
        Value::List(list) => list.borrow().clone(),
        Value::Tuple(items) => items.to_vec(),
        Value::Dict(dict) => keys(dict),
        Value::Set(set) => set.borrow().iter().map(|key| key.value().clone()).collect(),
        Value::Str(text) => text.chars().map(|c| Value::from(c.to_string())).collect(),
        other => return Err(Fault::type_error(format!("'{}' object is not iterable", other.type_name()))),
    })
}

/// The keys of a dict.
pub(crate) fn keys(dict: &Dict) -> Vec<Value> {
    dict.borrow().keys().map(|key| key.value().clone()).collect()
}

/// The entries of a dict.
pub(crate) fn entries(dict: &Dict) -> Vec<(Value, Value)> {
    dict.borrow().iter().map(|(key, value)| (key.value().clone(), value.clone())).collect()
}

/// `next(iter(value))` of a dict or list.
pub(crate) fn first(value: &Value) -> Res<Value> {
    let found = match value {
        Value::Dict(dict) => dict.borrow().keys().next().map(|key| key.value().clone()),
        Value::List(list) => list.borrow().first().cloned(),
        other => iterate(other)?.into_iter().next(),
    };
    found.ok_or(Fault::Python { class: "StopIteration", message: String::new() })
}

/// The value as key of a dict.
pub(crate) fn key(value: &Value) -> Res<Key> {
    Key::new(value.clone()).map_err(|why| Fault::type_error(why.to_string()))
}

/// `item in container`
pub(crate) fn contains(container: &Value, item: &Value) -> Res<bool> {
    Ok(match container {
        Value::Dict(dict) => dict.borrow().contains_key(&key(item)?),
        Value::Set(set) => set.borrow().contains(&key(item)?),
        Value::List(list) => list.borrow().contains(item),
        Value::Tuple(items) => items.contains(item),
        Value::Str(text) => match item.as_str() {
            Some(part) => text.contains(part),
            None => {
                let class = item.type_name();
                return Err(Fault::type_error(format!("'in <string>' requires string as left operand, not {class}")));
            }
        },
        other => return Err(Fault::type_error(format!("argument of type '{}' is not iterable", other.type_name()))),
    })
}

/// `container[index]` with a key.
pub(crate) fn item(container: &Value, index: &Value) -> Res<Value> {
    match container {
        Value::Dict(dict) => {
            let found = dict.borrow().get(&key(index)?).cloned();
            found.ok_or_else(|| Fault::python("KeyError", index.short_repr()))
        }
        Value::List(_) => Err(indices("list", "integers or slices", index)),
        Value::Tuple(_) => Err(indices("tuple", "integers or slices", index)),
        Value::Str(_) => {
            Err(Fault::type_error(format!("string indices must be integers, not '{}'", index.type_name())))
        }
        other => Err(Fault::type_error(format!("'{}' object is not subscriptable", other.type_name()))),
    }
}

fn indices(class: &str, allowed: &str, index: &Value) -> Fault {
    Fault::type_error(format!("{class} indices must be {allowed}, not {}", index.type_name()))
}

/// `container[name]`
pub(crate) fn field(container: &Value, name: &str) -> Res<Value> {
    match container {
        Value::Dict(dict) => dict.get(name).ok_or_else(|| Fault::python("KeyError", format!("'{name}'"))),
        other => item(other, &name.into()),
    }
}

/// `container[index] = value` with a key.
pub(crate) fn set_item(container: &Value, index: &Value, value: Value) -> Res<()> {
    match container {
        Value::Dict(dict) => {
            dict.borrow_mut().insert(key(index)?, value);
            Ok(())
        }
        Value::List(_) => Err(indices("list", "integers or slices", index)),
        other => Err(Fault::type_error(format!("'{}' object does not support item assignment", other.type_name()))),
    }
}

/// Takes an entry out of a dict.
pub(crate) fn pop(dict: &Dict, name: &str) -> Option<Value> {
    dict.borrow_mut().shift_remove(&TextKey(name))
}

/// `dict.popitem()`: the last entry.
pub(crate) fn pop_item(dict: &Dict) -> Res<(Value, Value)> {
    let last = dict.borrow_mut().pop();
    let (key, value) = last.ok_or_else(|| {
        let message = if dict.is_ordered() { "'dictionary is empty'" } else { "'popitem(): dictionary is empty'" };
        Fault::python("KeyError", message)
    })?;
    Ok((key.into_value(), value))
}

/// Whether a dict has a text key.
pub(crate) fn has(dict: &Dict, name: &str) -> bool {
    dict.borrow().contains_key(&TextKey(name))
}

/// The list under a key, made if it is not there (`dict.setdefault(name, [])`).
pub(crate) fn default_list(dict: &Dict, name: &str) -> Value {
    dict.borrow_mut().entry(name.into()).or_insert_with(|| Value::list([])).clone()
}

/// `list.extend(items)`
pub(crate) fn extend(list: &Value, items: &Value) -> Res<()> {
    let items = iterate(items)?;
    list_method(list, "extend")?.borrow_mut().extend(items);
    Ok(())
}

/// `dict.update(other)` as Python takes it: a dict, or pairs.
pub(crate) fn update(dict: &Dict, other: &Value) -> Res<()> {
    let pairs = match other {
        Value::Dict(other) => entries(other),
        Value::List(_) | Value::Tuple(_) | Value::Str(_) | Value::Set(_) => {
            let mut pairs = Vec::new();
            for (at, pair) in iterate(other)?.iter().enumerate() {
                let pair = iterate(pair).map_err(|_| {
                    Fault::type_error(format!("cannot convert dictionary update sequence element #{at} to a sequence"))
                })?;
                let [key, value] = pair.as_slice() else {
                    return Err(Fault::python(
                        "ValueError",
                        format!("dictionary update sequence element #{at} has length {}; 2 is required", pair.len()),
                    ));
                };
                pairs.push((key.clone(), value.clone()));
            }
            pairs
        }
        other => return Err(Fault::type_error(format!("'{}' object is not iterable", other.type_name()))),
    };
    for (name, value) in pairs {
        dict.borrow_mut().insert(key(&name)?, value);
    }
    Ok(())
}

/// `copy.deepcopy` of lists and dicts: what was shared inside stays shared inside.
pub(crate) fn deep_copy(value: &Value, budget: &Budget) -> Res<Value> {
    copy(value, budget, &mut HashMap::new(), 0)
}

fn copy(value: &Value, budget: &Budget, known: &mut HashMap<usize, Value>, depth: usize) -> Res<Value> {
    budget.value()?;
    if depth > brine_render::value::MAX_DEPTH {
        return Err(Fault::python("RecursionError", "maximum recursion depth exceeded"));
    }
    let (Value::List(_) | Value::Dict(_) | Value::Tuple(_)) = value else { return Ok(value.clone()) };
    let address = value.address();
    if let Some(known) = address.and_then(|at| known.get(&at)) {
        return Ok(known.clone());
    }
    match value {
        Value::List(list) => {
            let new = List::default();
            known.extend(address.map(|at| (at, Value::List(new.clone()))));
            for item in list.borrow().iter() {
                let item = copy(item, budget, known, depth + 1)?;
                new.borrow_mut().push(item);
            }
            Ok(new.into())
        }
        Value::Dict(dict) => {
            let new = Dict::from_entries(Entries::with_capacity(dict.borrow().len()), dict.is_ordered());
            known.extend(address.map(|at| (at, Value::Dict(new.clone()))));
            for (key, item) in dict.borrow().iter() {
                let item = copy(item, budget, known, depth + 1)?;
                new.borrow_mut().insert(key.clone(), item);
            }
            Ok(new.into())
        }
        Value::Tuple(items) => {
            Ok(Value::tuple(items.iter().map(|i| copy(i, budget, known, depth + 1)).collect::<Res<Vec<_>>>()?))
        }
        other => Ok(other.clone()),
    }
}

/// Whether a text has what makes it a pattern for `fnmatch`.
pub(crate) fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// `fnmatch.fnmatch(text, pattern)`
pub(crate) fn fnmatch(text: &Value, pattern: &Value) -> Res<bool> {
    let path = |value: &Value| {
        let class = value.type_name();
        Fault::type_error(format!("expected str, bytes or os.PathLike object, not {class}"))
    };
    let name = text.as_str().ok_or_else(|| path(text))?;
    let pattern = pattern.as_str().ok_or_else(|| path(pattern))?;
    Ok(if is_pattern(pattern) { Glob::new(pattern).matches(name) } else { name == pattern })
}

/// The text that marks a chunk in results (`pkg_|-vim_|-vim_|-installed`).
pub(crate) fn tag(low: &Dict) -> Res<String> {
    let part = |name: &str| -> Res<String> {
        let value = low.get(name).ok_or_else(|| Fault::python("KeyError", format!("'{name}'")))?;
        Ok(self::name(&value))
    };
    Ok(format!("{}_|-{}_|-{}_|-{}", part("state")?, part("__id__")?, part("name")?, part("fun")?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;

    #[test]
    fn a_deep_copy_keeps_what_is_shared_and_shares_nothing_with_its_source() {
        let inner = Value::list([1.into()]);
        let value = Value::dict([("a".into(), inner.clone()), ("b".into(), inner.clone())]);
        let copied = deep_copy(&value, &Budget::new(Limits::default())).unwrap();
        assert_eq!(copied, value);
        assert!(field(&copied, "a").unwrap().is_same(&field(&copied, "b").unwrap()));
        assert!(!field(&copied, "a").unwrap().is_same(&inner));
    }

    #[test]
    fn copies_are_bounded() {
        let limits = Limits { values: 10, ..Limits::default() };
        let long = Value::list((0..20).map(Value::from));
        assert!(matches!(deep_copy(&long, &Budget::new(limits)), Err(Fault::Limit(_))));
        let looped = List::default();
        looped.borrow_mut().push(looped.clone().into());
        assert!(deep_copy(&looped.clone().into(), &Budget::new(Limits::default())).is_ok());
        looped.borrow_mut().clear();
    }

    #[test]
    fn wrong_shapes_are_pythons_exceptions() {
        let text = |fault: Res<Value>| fault.unwrap_err().to_string();
        assert_eq!(text(field(&Value::None, "x")), "TypeError: 'NoneType' object is not subscriptable");
        assert_eq!(text(field(&Value::list([]), "x")), "TypeError: list indices must be integers or slices, not str");
        assert_eq!(text(field(&Value::dict([]), "x")), "KeyError: 'x'");
        assert_eq!(
            starts_with(&5.into(), "_").unwrap_err().to_string(),
            "AttributeError: 'int' object has no attribute 'startswith'"
        );
        let dict = Dict::default();
        let wrong = update(&dict, &Value::list(["b".into()])).unwrap_err().to_string();
        assert_eq!(wrong, "ValueError: dictionary update sequence element #0 has length 1; 2 is required");
    }
}
