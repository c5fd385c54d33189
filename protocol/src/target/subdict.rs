//! Grain and pillar targets: `os:Deb*` against nested maps (§10.1), as Salt's `subdict_match` decides.

use std::cell::RefCell;
use std::collections::HashMap;

use super::glob::Glob;
use super::{Regex, regex};
use crate::args::yamlify;
use crate::value::{Value, ValueExt};

/// Parts of an expression between delimiters. Salt tries every way to split it at every level it finds, which grows fast.
const MAX_PARTS: usize = 32;
/// Comparisons of one match, all levels together. A target of five parts over the grains of a large host needs a few hundred.
const MAX_STEPS: u32 = 100_000;

/// How the last part is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    Glob,
    Pcre,
    Exact,
}

/// An expression and how it is read.
#[derive(Debug, Clone)]
pub(super) struct Subdict {
    expr: String,
    delimiter: String,
    how: How,
}

/// The delimiter that Salt uses again below the first level, whatever the target's own is.
const INNER: &str = ":";

impl Subdict {
    /// Salt takes any text; what has no delimiter matches nothing.
    pub(super) fn new(expr: &str, delimiter: &str, how: How) -> Result<Self, &'static str> {
        if delimiter.is_empty() {
            return Err("its delimiter is empty");
        }
        if expr.split(delimiter).count() > MAX_PARTS {
            return Err("it has too many parts");
        }
        Ok(Self { expr: expr.to_owned(), delimiter: delimiter.to_owned(), how })
    }

    /// Whether the data has what the expression asks for.
    pub(super) fn matches(&self, data: &Value) -> bool {
        let run = Run { how: self.how, left: RefCell::new(MAX_STEPS), regexes: RefCell::default() };
        run.subdict(data, &self.expr, &self.delimiter)
    }
}

/// One comparison: its bound, and the expressions compiled so far.
struct Run {
    how: How,
    left: RefCell<u32>,
    regexes: RefCell<HashMap<String, Option<Regex>>>,
}

impl Run {
    /// False once the bound is reached; then everything is.
    fn step(&self) -> bool {
        let mut left = self.left.borrow_mut();
        *left = left.saturating_sub(1);
        *left > 0
    }

    fn subdict(&self, data: &Value, expr: &str, delimiter: &str) -> bool {
        let parts: Vec<&str> = expr.split(delimiter).collect();
        // The longest key first.
        (1..parts.len()).rev().any(|at| {
            if !self.step() {
                return false;
            }
            let (key, rest) = (parts[..at].join(delimiter), parts[at..].join(delimiter));
            let (found, rest) = match key.as_str() {
                "*" => (data.clone(), expr.to_owned()),
                _ => match traverse(data, &parts[..at]) {
                    Some(found) => (found.clone(), rest),
                    None => return false,
                },
            };
            match &found {
                Value::Map(entries) if entries.is_empty() => false,
                Value::Map(_) => self.map(&found, &rest),
                Value::Array(items) => items
                    .iter()
                    .any(|item| (matches!(item, Value::Map(_)) && self.map(item, &rest)) || self.one(item, &rest)),
                value => self.one(value, &rest),
            }
        })
    }

    fn map(&self, map: &Value, pattern: &str) -> bool {
        if !self.step() {
            return false;
        }
        let inner = pattern.strip_prefix("*:");
        let pattern = inner.unwrap_or(pattern);
        let entries = map.entries().unwrap_or_default();
        pattern == "*"
            || map.has(pattern)
            || entries.iter().any(|(key, _)| self.one(key, pattern))
            || self.subdict(map, pattern, INNER)
            || (inner.is_some()
                && entries.iter().any(|(_, value)| match value {
                    Value::Map(_) => self.map(value, pattern),
                    Value::Array(items) => items.iter().any(|item| self.one(item, pattern)),
                    value => self.one(value, pattern),
                }))
    }

    fn one(&self, value: &Value, pattern: &str) -> bool {
        if !self.step() {
            return false;
        }
        let value = value.python_str().to_lowercase();
        let pattern = pattern.to_lowercase();
        match self.how {
            How::Exact => value == pattern,
            How::Glob => Glob::new(&pattern).matches(&value),
            How::Pcre => {
                let mut regexes = self.regexes.borrow_mut();
                let regex = regexes.entry(pattern).or_insert_with_key(|pattern| regex(pattern).ok());
                regex.as_ref().is_some_and(|regex| regex.matches(&value))
            }
        }
    }
}

/// Salt's `traverse_dict_and_list`: indices into lists, or keys of the maps in them; keys of maps as text, or as YAML reads it.
fn traverse<'a>(data: &'a Value, path: &[&str]) -> Option<&'a Value> {
    let mut at = data;
    for part in path {
        at = match at {
            Value::Array(items) => match index(part) {
                None => items.iter().filter(|item| matches!(item, Value::Map(_))).find_map(|map| map.get(part))?,
                Some(number) => {
                    let embedded = items.iter().find_map(|item| by_value(item, &Value::from(number)));
                    match embedded {
                        Some(found) => found,
                        None => {
                            let length = i64::try_from(items.len()).ok()?;
                            let place = if number < 0 { number.checked_add(length)? } else { number };
                            items.get(usize::try_from(place).ok()?)?
                        }
                    }
                }
            },
            Value::Map(_) => match at.get(part) {
                Some(found) => found,
                None => match yamlify(part) {
                    Value::String(_) => return None,
                    loaded => by_value(at, &loaded)?,
                },
            },
            _ => return None,
        };
    }
    Some(at)
}

/// Python's `int()` of text.
fn index(part: &str) -> Option<i64> {
    let part = part.trim();
    part.strip_prefix('+').filter(|rest| !rest.starts_with('-')).unwrap_or(part).parse().ok()
}

fn by_value<'a>(map: &'a Value, key: &Value) -> Option<&'a Value> {
    map.entries()?.iter().rev().find(|(own, _)| own == key).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{list, map, text};

    #[test]
    fn a_bomb_of_parts_ends() {
        let mut data = text("x");
        for _ in 0..40 {
            data = map([("a", data.clone()), ("b", data)]);
            if data.python_str().len() > 1 << 16 {
                break;
            }
        }
        let expr = "*:".repeat(30) + "z";
        assert!(!Subdict::new(&expr, ":", How::Glob).unwrap().matches(&data));
        assert!(Subdict::new(&"a:".repeat(100), ":", How::Glob).is_err());
        assert!(Subdict::new("a:b", "", How::Glob).is_err());
    }

    #[test]
    fn lists_and_numbers_are_walked_as_python_does() {
        let data = map([("l", list([map([("k", text("v"))]), text("two")])), ("n", map([(1, text("one"))]))]);
        for (expr, expected) in [
            ("l:k:v", true),
            ("l:1:two", true),
            ("l:-1:two", true),
            ("l:2:two", false),
            ("l:two", true),
            ("n:1:one", true),
            ("n:2:one", false),
        ] {
            assert_eq!(Subdict::new(expr, ":", How::Glob).unwrap().matches(&data), expected, "{expr}");
        }
    }
}
