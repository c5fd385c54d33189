//! What can be the key of a dict, and when two keys are the same.

use std::fmt;
use std::hash::{Hash, Hasher};

use indexmap::Equivalent;

use super::{MAX_DEPTH, Value};

/// A value that can be the key of a dict. As in Python, `1`, `1.0` and `True` are the same key.
#[derive(Clone)]
pub struct Key(Value);

/// What cannot be the key of a dict.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unhashable type: '{0}'")]
pub struct Unhashable(pub String);

impl Key {
    /// Takes a value as key.
    ///
    /// # Errors
    /// Lists, dicts and sets can change, so they cannot be keys; nor can a tuple that has one.
    pub fn new(value: Value) -> Result<Self, Unhashable> {
        check_hashable(&value, 0)?;
        Ok(Self(value))
    }

    /// The key as value.
    pub fn value(&self) -> &Value {
        &self.0
    }

    /// The key as value.
    pub fn into_value(self) -> Value {
        self.0
    }

    /// The text of a `str`.
    pub fn as_str(&self) -> Option<&str> {
        self.0.as_str()
    }
}

fn check_hashable(value: &Value, depth: usize) -> Result<(), Unhashable> {
    match value {
        Value::List(_) | Value::Dict(_) | Value::Set(_) => Err(Unhashable(value.type_name().to_owned())),
        Value::Tuple(_) if depth > MAX_DEPTH => Err(Unhashable("tuple".to_owned())),
        Value::Tuple(items) => items.iter().try_for_each(|item| check_hashable(item, depth + 1)),
        _ => Ok(()),
    }
}

impl From<&str> for Key {
    fn from(text: &str) -> Self {
        Self(Value::str(text))
    }
}

impl From<String> for Key {
    fn from(text: String) -> Self {
        Self(Value::str(text))
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            // NaN is the same key as itself
            (Value::Float(a), Value::Float(b)) => a == b || a.to_bits() == b.to_bits(),
            (a, b) => a.is_same(b) || a == b,
        }
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        hash(&self.0, state);
    }
}

/// Text as key, without making a [`Key`] of it.
pub struct TextKey<'a>(pub &'a str);

impl Hash for TextKey<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        hash_text(self.0, state);
    }
}

impl Equivalent<Key> for TextKey<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        key.as_str() == Some(self.0)
    }
}

fn hash_text<H: Hasher>(text: &str, state: &mut H) {
    2u8.hash(state);
    text.hash(state);
}

fn hash<H: Hasher>(value: &Value, state: &mut H) {
    match value {
        Value::Bool(b) => hash_int(i128::from(*b), state),
        Value::Int(n) => hash_int(*n, state),
        Value::Float(n) => match whole(*n) {
            Some(n) => hash_int(n, state),
            None => n.to_bits().hash(state),
        },
        Value::Str(text) => hash_text(text, state),
        Value::Bytes(bytes) => bytes.hash(state),
        Value::Tuple(items) => items.iter().for_each(|item| hash(item, state)),
        Value::Date(date) => date.hash(state),
        Value::DateTime(time) => time.hash(state),
        other => other.address().hash(state),
    }
}

fn hash_int<H: Hasher>(n: i128, state: &mut H) {
    1u8.hash(state);
    n.hash(state);
}

/// The float as the whole number that it is.
#[expect(clippy::cast_possible_truncation, reason = "checked to be in range")]
pub(crate) fn whole(n: f64) -> Option<i128> {
    const BOUND: f64 = 170_141_183_460_469_231_731_687_303_715_884_105_728.0; // 2 to the 127
    (n.fract() == 0.0 && (-BOUND..BOUND).contains(&n)).then_some(n as i128)
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write_repr(f)
    }
}
