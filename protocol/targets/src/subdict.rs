//! Grain and pillar targets: `os:Deb*` against nested maps (§10.1), as Salt's `subdict_match` decides.

use std::cell::Cell;
use std::collections::HashMap;

use super::regex::{Compiler, Regex};
use brine_patterns::Glob;
use brine_values::{Value, ValueExt};

/// Upper bound on the parts of an expression. Salt tries every way to split it at every level, which grows fast.
const MAX_PARTS: usize = 32;
/// Upper bound on the comparisons of one match, all levels together. A target of five parts needs a few hundred for the
/// grains of a large host.
const MAX_STEPS: u32 = 100_000;

/// The comparison of the last part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    Glob,
    Pcre,
    Exact,
}

/// An expression and its comparison.
#[derive(Debug, Clone)]
pub(super) struct Subdict {
    expr: String,
    delimiter: String,
    /// The compiled pattern of each suffix of the expression that follows a delimiter, by its offset. They are compiled
    /// once, because a master compares them with ten thousand minions.
    ends: Vec<(usize, Pattern)>,
    /// What parts of the expression are that a command line would not read as text: they may be keys. Read once, too.
    keys: HashMap<String, Value>,
}

#[derive(Debug, Clone)]
enum Pattern {
    Glob(Glob),
    /// None if the suffix is not a valid expression; it then matches nothing.
    Pcre(Option<Regex>),
    Exact(String),
}

/// The delimiter that Salt uses below the first level, whatever the target's own delimiter is.
const INNER: &str = ":";

impl Subdict {
    /// Parses an expression. Salt accepts any text; an expression without a delimiter matches nothing. An expression
    /// that cannot be compiled matches nothing in Salt and is an error here.
    pub(super) fn new(
        expr: &str,
        delimiter: &str,
        how: How,
        argument: fn(&str) -> Value,
        patterns: &Compiler,
    ) -> Result<Self, String> {
        if delimiter.is_empty() {
            return Err("its delimiter is empty".to_owned());
        }
        let starts = |delimiter: &str| expr.match_indices(delimiter).map(|(at, found)| at + found.len()).collect();
        let (mut places, inner): (Vec<usize>, Vec<usize>) = (starts(delimiter), starts(INNER));
        if places.len().max(inner.len()) >= MAX_PARTS {
            return Err("it has too many parts".to_owned());
        }
        let mut ends = vec![0];
        ends.append(&mut places);
        ends.extend(inner);
        ends.sort_unstable();
        ends.dedup();
        let mut unread = Ok(());
        let mut pattern = |at: usize| {
            let text = expr[at..].to_lowercase();
            match how {
                How::Glob => Pattern::Glob(Glob::new(&text)),
                How::Exact => Pattern::Exact(text),
                How::Pcre => Pattern::Pcre(patterns.compile(&text).map_err(|why| unread = Err((at, why))).ok()),
            }
        };
        let ends: Vec<_> = ends.into_iter().map(|at| (at, pattern(at))).collect();
        // The last suffix is compared if the expression is a key and a value; `*` tests for the key alone.
        let is_some = |(at, pattern): &(usize, Pattern)| {
            *at > 0 && (matches!(pattern, Pattern::Pcre(Some(_))) || expr[*at..] == *"*")
        };
        if let Err((at, why)) = unread
            && at > 0
            && !ends.iter().any(is_some)
        {
            return Err(format!("{:?}: {why}", &expr[at..]));
        }
        // Each part begins where the expression or a suffix of it begins.
        let parts = ends.iter().flat_map(|(at, _)| [delimiter, INNER].map(|by| expr[*at..].split(by).next()));
        let keys = parts.flatten().filter_map(|part| Some((part.to_owned(), key_of(part, argument)?))).collect();
        Ok(Self { expr: expr.to_owned(), delimiter: delimiter.to_owned(), ends, keys })
    }

    /// The top-level key of the data that decides; none if several keys may.
    pub(super) fn key(&self) -> Option<&str> {
        let key = self.expr.split(&self.delimiter).next()?;
        // A number or a boolean also matches a key by its value.
        (key != "*" && !self.keys.contains_key(key)).then_some(key)
    }

    /// Whether the data matches the expression.
    pub(super) fn matches(&self, data: &Value) -> bool {
        let run = Run { own: self, left: Cell::new(MAX_STEPS) };
        run.subdict(data, &self.expr, &self.delimiter)
    }
}

impl Pattern {
    fn matches(&self, value: &str) -> bool {
        match self {
            Self::Glob(glob) => glob.matches(value),
            Self::Pcre(regex) => regex.as_ref().is_some_and(|regex| regex.matches(value)),
            Self::Exact(text) => text == value,
        }
    }
}

/// One match and its bound on steps.
struct Run<'a> {
    own: &'a Subdict,
    left: Cell<u32>,
}

impl Run<'_> {
    /// Counts a comparison. Returns false once the bound is reached, and then every comparison is false.
    fn step(&self) -> bool {
        self.left.set(self.left.get().saturating_sub(1));
        self.left.get() > 0
    }

    /// Matches `expr`, which is a suffix of the whole expression.
    fn subdict(&self, data: &Value, expr: &str, delimiter: &str) -> bool {
        let parts: Vec<&str> = expr.split(delimiter).collect();
        let mut rest_at = expr.len();
        // The longest key is tried first.
        (1..parts.len()).rev().any(|at| {
            rest_at -= parts[at].len();
            let rest = &expr[rest_at..];
            rest_at -= delimiter.len();
            if !self.step() {
                return false;
            }
            let (found, rest) = match &parts[..at] {
                ["*"] => (data, expr),
                path => match traverse(data, path, &self.own.keys) {
                    Some(found) => (found, rest),
                    None => return false,
                },
            };
            match found {
                Value::Map(entries) if entries.is_empty() => false,
                Value::Map(_) => self.map(found, rest),
                Value::Array(items) => items.iter().any(|item| {
                    (matches!(item, Value::Map(_)) && self.map(item, rest)) || self.matches_one(item, rest)
                }),
                value => self.matches_one(value, rest),
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
            || entries.iter().any(|(key, _)| self.matches_one(key, pattern))
            || self.subdict(map, pattern, INNER)
            || (inner.is_some()
                && entries.iter().any(|(_, value)| match value {
                    Value::Map(_) => self.map(value, pattern),
                    Value::Array(items) => items.iter().any(|item| self.matches_one(item, pattern)),
                    value => self.matches_one(value, pattern),
                }))
    }

    fn matches_one(&self, value: &Value, pattern: &str) -> bool {
        if !self.step() {
            return false;
        }
        let at = self.own.expr.len() - pattern.len();
        let pattern = self.own.ends.iter().find(|(start, _)| *start == at);
        pattern.is_some_and(|(_, pattern)| pattern.matches(&value.python_str().to_lowercase()))
    }
}

/// Follows a path as Salt's `traverse_dict_and_list` does: lists by index, or by keys of the maps in them; maps by key
/// as text, or as YAML reads it.
fn traverse<'a>(data: &'a Value, path: &[&str], keys: &HashMap<String, Value>) -> Option<&'a Value> {
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
                None => by_value(at, keys.get(*part)?)?,
            },
            _ => return None,
        };
    }
    Some(at)
}

/// What a part is on a command line, if that can be a key and is no text. Lists and dicts are keys of nothing.
fn key_of(part: &str, argument: fn(&str) -> Value) -> Option<Value> {
    if part.starts_with(['[', '{']) {
        return None;
    }
    Some(argument(part)).filter(|key| !matches!(key, Value::String(_) | Value::Array(_) | Value::Map(_)))
}

/// Python's `int()` of text.
fn index(part: &str) -> Option<i64> {
    let part = part.trim();
    let digits = part.strip_prefix(['+', '-']).unwrap_or(part);
    if digits.split('_').any(|digits| digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit())) {
        return None;
    }
    let number: i64 = digits.replace('_', "").parse().unwrap_or(i64::MAX);
    Some(if part.starts_with('-') { -number } else { number })
}

/// Finds a key by Python's equality: 1, 1.0 and True are equal.
fn by_value<'a>(map: &'a Value, key: &Value) -> Option<&'a Value> {
    let same = |own: &Value| own == key || matches!((number(own), number(key)), (Some(a), Some(b)) if a == b);
    map.entries()?.iter().rev().find(|(own, _)| same(own)).map(|(_, value)| value)
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Boolean(is) => Some(f64::from(u8::from(*is))),
        Value::Integer(number) => number.as_f64(),
        Value::F32(number) => Some(f64::from(*number)),
        Value::F64(number) => Some(*number),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_values::{list, map, text};

    fn argument(word: &str) -> Value {
        word.parse::<i64>().map_or_else(|_| text(word), Value::from)
    }

    fn subdict(expr: &str, delimiter: &str) -> Result<Subdict, String> {
        Subdict::new(expr, delimiter, How::Glob, argument, &Compiler::default())
    }

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
        assert!(!subdict(&expr, ":").unwrap().matches(&data));
        assert!(subdict(&"a:".repeat(100), ":").is_err());
        assert!(subdict("a:b", "").is_err());
    }

    /// Minions are many, and each word may be long.
    #[test]
    fn words_are_read_once_and_lists_are_no_keys() {
        thread_local!(static READ: Cell<u32> = const { Cell::new(0) });
        fn count(word: &str) -> Value {
            READ.set(READ.get() + 1);
            argument(word)
        }
        let target = Subdict::new("5:[1]:{a}:b", ":", How::Glob, count, &Compiler::default()).unwrap();
        let read = READ.get();
        assert!(read <= 4, "{read}");
        for _ in 0..100 {
            assert!(!target.matches(&map([("x", map([("y", 1)]))])));
        }
        assert_eq!(READ.get(), read);
        assert_eq!(target.key(), None, "a number");
        assert!(subdict("5:x", ":").unwrap().matches(&map([(5, text("x"))])));
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
            assert_eq!(subdict(expr, ":").unwrap().matches(&data), expected, "{expr}");
        }
    }
}
