//! Paths into values, merging and choosing, by the rules of Salt's `traverse_dict_and_list`, `dictupdate.update` and
//! `filter_by`.

use brine_patterns::fnmatch;

use crate::{Result, Value};

/// Follows `key`, split by `delimiter`. A part is a key of a dict: as text, else as the value that YAML reads from it.
/// In a list it is a key of the first dict there that has it, or an index, which may count from the end.
pub fn traverse<'a>(value: &'a Value, key: &str, delimiter: &str) -> Option<&'a Value> {
    if delimiter.is_empty() {
        return value.get(key);
    }
    key.split(delimiter).try_fold(value, step)
}

fn step<'a>(at: &'a Value, part: &str) -> Option<&'a Value> {
    match at {
        Value::Dict(entries) => at.get(part).or_else(|| find(entries, &typed(part)?)),
        Value::List(items) => {
            let number = part.trim().parse::<i64>().ok();
            let key = number.map_or_else(|| Value::from(part), Value::Int);
            let within = items.iter().find_map(|item| match item {
                Value::Dict(entries) => find(entries, &key),
                _ => None,
            });
            within.or_else(|| {
                let number = number?;
                let index = if number < 0 { i64::try_from(items.len()).ok()?.checked_add(number)? } else { number };
                items.get(usize::try_from(index).ok()?)
            })
        }
        _ => None,
    }
}

fn find<'a>(entries: &'a [(Value, Value)], key: &Value) -> Option<&'a Value> {
    entries.iter().find(|(known, _)| known.same(key)).map(|(_, value)| value)
}

/// The whole number, truth value or nothing that YAML reads from a word.
fn typed(word: &str) -> Option<Value> {
    Some(match word {
        "True" | "true" | "yes" | "on" => Value::Bool(true),
        "False" | "false" | "no" | "off" => Value::Bool(false),
        "None" | "null" | "~" => Value::None,
        _ => Value::Int(word.parse().ok()?),
    })
}

impl Value {
    /// Python's `==`: numbers and truth values are compared by value, dicts without regard to order.
    pub fn same(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::List(a), Value::List(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.same(b)),
            (Value::Dict(a), Value::Dict(b)) => {
                a.len() == b.len() && a.iter().all(|(key, value)| find(b, key).is_some_and(|other| other.same(value)))
            }
            (a, b) => match (a.whole(), b.whole(), a.number(), b.number()) {
                (Some(a), Some(b), ..) => a == b,
                (_, _, Some(a), Some(b)) => a == b,
                _ => a == b,
            },
        }
    }

    /// A whole number, exactly; a truth value is one too.
    pub fn whole(&self) -> Option<i128> {
        match self {
            Value::Bool(value) => Some(i128::from(*value)),
            Value::Int(value) => Some(i128::from(*value)),
            Value::Big(value) => Some(i128::from(*value)),
            _ => None,
        }
    }

    /// A number; a truth value is one too.
    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Float(value) => Some(*value),
            _ => self.whole().map(|whole| whole as f64),
        }
    }

    /// Merges a dict into this one, on every level. Lists of the same key are replaced, or joined with `merge_lists`.
    pub fn update(&mut self, from: &Value, merge_lists: bool) {
        let (Value::Dict(into), Value::Dict(from)) = (self, from) else { return };
        for (key, value) in from {
            match (into.iter_mut().find(|(known, _)| known.same(key)).map(|(_, slot)| slot), value) {
                (Some(below @ Value::Dict(_)), Value::Dict(_)) => below.update(value, merge_lists),
                (Some(Value::List(items)), Value::List(more)) if merge_lists => {
                    for item in more {
                        if !items.iter().any(|known| known.same(item)) {
                            items.push(item.clone());
                        }
                    }
                }
                (Some(slot), value) => *slot = value.clone(),
                (None, value) => into.push((key.clone(), value.clone())),
            }
        }
    }
}

/// The choices of `filter_by`.
pub struct Choice<'a> {
    /// Values by globs.
    pub lookup_dict: &'a Value,
    /// A dict that is merged over the chosen value.
    pub merge: Option<&'a Value>,
    /// The key for the case that no glob matches.
    pub default: &'a str,
    /// The key of the value that the chosen one is merged over.
    pub base: Option<&'a str>,
}

/// Chooses from a dict the value whose key, a glob, matches the found value or one of its items.
///
/// # Errors
/// In Salt's words, when dicts are needed and there are others.
pub fn filter_by(choice: &Choice<'_>, found: Option<&Value>) -> Result<Value> {
    let Value::Dict(choices) = choice.lookup_dict else {
        return Err("filter_by lookup_dict argument must be a dictionary.".into());
    };
    let found = match found {
        None => &[][..],
        Some(Value::List(items)) => items,
        Some(one) => std::slice::from_ref(one),
    };
    let matching = |each: &Value| {
        let text = each.to_text();
        choices.iter().find(|(key, _)| fnmatch(&key.to_text(), &text)).map(|(_, value)| value)
    };
    let named = |name: &str| choices.iter().find(|(key, _)| key.text() == Some(name)).map(|(_, value)| value);
    let some = |value: &&Value| **value != Value::None;
    let chosen = found.iter().find_map(|each| matching(each).filter(some));
    let mut result = chosen.or_else(|| named(choice.default)).filter(some).cloned();
    if let Some(base) = choice.base.and_then(named) {
        result = match (result, base) {
            (None, base) => Some(base.clone()),
            (Some(over @ Value::Dict(_)), Value::Dict(_)) => {
                let mut merged = base.clone();
                merged.update(&over, false);
                Some(merged)
            }
            (Some(_), Value::Dict(_)) => {
                return Err("filter_by default and look-up values must both be dictionaries.".into());
            }
            (result, _) => result,
        };
    }
    match (result, choice.merge.filter(|merge| merge.truthy())) {
        (result, None) => Ok(result.unwrap_or_default()),
        (_, Some(merge)) if !matches!(merge, Value::Dict(_)) => {
            Err("filter_by merge argument must be a dictionary.".into())
        }
        (None, Some(merge)) => Ok(merge.clone()),
        (Some(mut result @ Value::Dict(_)), Some(merge)) => {
            result.update(merge, false);
            Ok(result)
        }
        (Some(_), Some(_)) => Err("Cannot update using non-dict types in dictupdate.update()".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dict(entries: &[(&str, Value)]) -> Value {
        Value::dict(entries.iter().map(|(key, value)| (*key, value.clone())))
    }

    #[test]
    fn paths_lead_through_dicts_and_lists() {
        let ports = Value::List(vec![dict(&[("http", 80_i64.into())]), dict(&[("https", 443_i64.into())])]);
        let numbers = Value::Dict(vec![(Value::Int(1), "one".into()), (Value::None, "none".into())]);
        let value = dict(&[("ports", ports), ("numbers", numbers), ("list", vec!["a", "b"].into())]);
        for (key, expected) in [
            ("list:0", Some("a")),
            ("list:-1", Some("b")),
            ("list:2", None),
            ("list:x", None),
            ("ports:https", Some("443")),
            ("ports:1:https", Some("443")),
            ("numbers:1", Some("one")),
            ("numbers:None", Some("none")),
            ("numbers:1:x", None),
        ] {
            assert_eq!(traverse(&value, key, ":").map(Value::to_text).as_deref(), expected, "{key}");
        }
        assert_eq!(traverse(&value, "list|0", "|").map(Value::to_text).as_deref(), Some("a"));
    }

    #[test]
    fn equality_is_pythons() {
        assert!(
            !Value::Int(i64::MAX).same(&Value::Int(i64::MAX - 1))
                && Value::Big(1 << 63).same(&Value::Float((1_u64 << 63) as f64))
        );
        assert!(Value::Int(1).same(&Value::Bool(true)) && Value::Float(2.0).same(&Value::Int(2)));
        assert!(!Value::Int(1).same(&"1".into()) && !Value::None.same(&Value::Bool(false)));
        let (a, b) = (("a", Value::Int(1)), ("b", Value::Int(2)));
        assert!(dict(&[a.clone(), b.clone()]).same(&dict(&[b, a])));
    }

    /// Recorded from `salt.utils.data.filter_by` 3008.3.
    #[test]
    fn filter_by_chooses_as_salt_does() {
        let one = |name: &str| dict(&[("v", name.into())]);
        let choices = dict(&[
            ("Deb*", one("deb")),
            ("A", one("a")),
            ("default", one("default")),
            ("base", dict(&[("v", "base".into()), ("w", "base".into())])),
        ]);
        let choose = |found: Option<Value>, base: Option<&str>, merge: Option<Value>, default: &str| {
            filter_by(&Choice { lookup_dict: &choices, merge: merge.as_ref(), default, base }, found.as_ref())
        };
        let v = |chosen: Result<Value>| chosen.unwrap().get("v").map(Value::to_text);
        assert_eq!(v(choose(Some("Debian".into()), None, None, "default")).as_deref(), Some("deb"));
        assert_eq!(v(choose(Some(vec!["x", "A"].into()), None, None, "default")).as_deref(), Some("a"));
        assert_eq!(v(choose(None, None, None, "default")).as_deref(), Some("default"));
        assert_eq!(choose(None, None, None, "none"), Ok(Value::None));
        let based = choose(Some("A".into()), Some("base"), Some(dict(&[("x", 1_i64.into())])), "default").unwrap();
        assert_eq!(based, dict(&[("v", "a".into()), ("w", "base".into()), ("x", 1_i64.into())]));
        assert_eq!(
            choose(None, None, Some("x".into()), "A").unwrap_err(),
            "filter_by merge argument must be a dictionary."
        );
    }
}
