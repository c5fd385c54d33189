//! Salt's values: [`Value`] with convenience methods.
//!
//! Text is [`Value::String`], bytes are [`Value::Binary`], and dicts keep their order. In the network flavour of
//! MessagePack, text and bytes are one type (§2), so read a field of bytes with [`ValueExt::bytes`], which accepts
//! both.

pub mod pyrepr;

pub use rmpv::Value;

/// Reads and changes a [`Value`] without matching on it.
pub trait ValueExt {
    /// The entry of a map under a text key; of several equal keys the last one, as in Python.
    fn get(&self, key: &str) -> Option<&Value>;
    /// As [`ValueExt::get`], to change it in place.
    fn get_mut(&mut self, key: &str) -> Option<&mut Value>;
    /// Text.
    fn text(&self) -> Option<&str>;
    /// Bytes, or the bytes of text.
    fn bytes(&self) -> Option<&[u8]>;
    /// The items of a list.
    fn list(&self) -> Option<&[Value]>;
    /// The entries of a map.
    fn entries(&self) -> Option<&[(Value, Value)]>;
    /// Python's truth value: nil, false, zero and everything empty are false.
    fn truthy(&self) -> bool;
    /// The entry of a map as text.
    fn get_text(&self, key: &str) -> Option<&str>;
    /// The entry of a map as bytes.
    fn get_bytes(&self, key: &str) -> Option<&[u8]>;
    /// The entry of a map as a list.
    fn get_list(&self, key: &str) -> Option<&[Value]>;
    /// The entry of a map as a whole number.
    fn get_i64(&self, key: &str) -> Option<i64>;
    /// The entry of a map as a whole number that is not negative.
    fn get_u64(&self, key: &str) -> Option<u64>;
    /// The entry of a map as a boolean.
    fn get_bool(&self, key: &str) -> Option<bool>;
    /// Whether a map has the text key.
    fn has(&self, key: &str) -> bool;
    /// Sets the entry of a map in place, or appends it. On anything but a map it does nothing.
    fn insert(&mut self, key: &str, value: impl Into<Value>);
    /// Removes the entry from a map, keeping the order of the rest.
    fn remove(&mut self, key: &str) -> Option<Value>;
    /// Follows `a:b:c` through maps (by key) and lists (by index), as Salt's `traverse_dict_and_list`.
    fn traverse(&self, path: &str, delimiter: &str) -> Option<&Value>;
    /// What Python's `str()` would show: text as it is, the rest as [`ValueExt::python_repr`].
    fn python_str(&self) -> String;
    /// What Python's `repr()` would show.
    fn python_repr(&self) -> String;
}

impl ValueExt for Value {
    fn get(&self, key: &str) -> Option<&Value> {
        self.entries()?.iter().rev().find(|(k, _)| is_key(k, key)).map(|(_, v)| v)
    }

    fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        match self {
            Value::Map(entries) => entries.iter_mut().rev().find(|(k, _)| is_key(k, key)).map(|(_, v)| v),
            _ => None,
        }
    }

    fn text(&self) -> Option<&str> {
        match self {
            Value::String(s) => s.as_str(),
            _ => None,
        }
    }

    fn bytes(&self) -> Option<&[u8]> {
        match self {
            Value::Binary(b) => Some(b),
            Value::String(s) => Some(s.as_bytes()),
            _ => None,
        }
    }

    fn list(&self) -> Option<&[Value]> {
        match self {
            Value::Array(items) => Some(items),
            _ => None,
        }
    }

    fn entries(&self) -> Option<&[(Value, Value)]> {
        match self {
            Value::Map(entries) => Some(entries),
            _ => None,
        }
    }

    fn truthy(&self) -> bool {
        match self {
            Value::Nil => false,
            Value::Boolean(b) => *b,
            Value::Integer(n) => n.as_u64() != Some(0),
            Value::F32(n) => *n != 0.0,
            Value::F64(n) => *n != 0.0,
            Value::String(s) => !s.as_bytes().is_empty(),
            Value::Binary(b) => !b.is_empty(),
            Value::Array(items) => !items.is_empty(),
            Value::Map(entries) => !entries.is_empty(),
            Value::Ext(..) => true,
        }
    }

    fn get_text(&self, key: &str) -> Option<&str> {
        self.get(key)?.text()
    }

    fn get_bytes(&self, key: &str) -> Option<&[u8]> {
        self.get(key)?.bytes()
    }

    fn get_list(&self, key: &str) -> Option<&[Value]> {
        self.get(key)?.list()
    }

    fn get_i64(&self, key: &str) -> Option<i64> {
        self.get(key)?.as_i64()
    }

    fn get_u64(&self, key: &str) -> Option<u64> {
        self.get(key)?.as_u64()
    }

    fn get_bool(&self, key: &str) -> Option<bool> {
        self.get(key)?.as_bool()
    }

    fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    fn insert(&mut self, key: &str, value: impl Into<Value>) {
        if let Some(slot) = self.get_mut(key) {
            *slot = value.into();
        } else if let Value::Map(entries) = self {
            entries.push((Value::from(key), value.into()));
        }
    }

    fn remove(&mut self, key: &str) -> Option<Value> {
        let Value::Map(entries) = self else { return None };
        let mut removed = None;
        // All of several equal keys are removed, so that no later reader finds the removed value.
        entries.retain_mut(|(k, v)| {
            let found = is_key(k, key);
            if found {
                removed = Some(std::mem::replace(v, Value::Nil));
            }
            !found
        });
        removed
    }

    fn traverse(&self, path: &str, delimiter: &str) -> Option<&Value> {
        let mut at = self;
        for part in path.split(delimiter) {
            at = match at {
                Value::Array(items) => items.get(part.parse::<usize>().ok()?)?,
                Value::Map(entries) => at.get(part).or_else(|| {
                    let number = part.parse::<i64>().ok()?;
                    entries.iter().find(|(k, _)| k.as_i64() == Some(number)).map(|(_, v)| v)
                })?,
                _ => return None,
            };
        }
        Some(at)
    }

    fn python_str(&self) -> String {
        pyrepr::str(self)
    }

    fn python_repr(&self) -> String {
        pyrepr::repr(self)
    }
}

fn is_key(value: &Value, key: &str) -> bool {
    value.bytes() == Some(key.as_bytes())
}

/// A map from its entries, in their order.
pub fn map<K: Into<Value>, V: Into<Value>>(entries: impl IntoIterator<Item = (K, V)>) -> Value {
    Value::Map(entries.into_iter().map(|(k, v)| (k.into(), v.into())).collect())
}

/// A list from its items.
pub fn list<V: Into<Value>>(items: impl IntoIterator<Item = V>) -> Value {
    Value::Array(items.into_iter().map(Into::into).collect())
}

/// Text.
pub fn text(text: impl Into<String>) -> Value {
    Value::from(text.into())
}

/// Bytes.
pub fn bytes(bytes: impl Into<Vec<u8>>) -> Value {
    Value::Binary(bytes.into())
}

/// An empty map, to be filled with [`ValueExt::insert`].
pub const fn empty_map() -> Value {
    Value::Map(Vec::new())
}

/// The value as JSON: bytes become text (invalid UTF-8 is replaced), keys their Python text, and NaN or infinity null.
pub fn to_json(value: &Value) -> serde_json::Value {
    use serde_json::Value as Json;
    match value {
        Value::Nil => Json::Null,
        Value::Boolean(b) => Json::Bool(*b),
        Value::Integer(n) => match (n.as_u64(), n.as_i64()) {
            (Some(n), _) => n.into(),
            (None, Some(n)) => n.into(),
            (None, None) => Json::Null,
        },
        Value::F32(n) => f64::from(*n).into(),
        Value::F64(n) => (*n).into(),
        Value::String(s) => Json::String(String::from_utf8_lossy(s.as_bytes()).into_owned()),
        Value::Binary(b) => Json::String(String::from_utf8_lossy(b).into_owned()),
        Value::Array(items) => Json::Array(items.iter().map(to_json).collect()),
        Value::Map(entries) => Json::Object(entries.iter().map(|(k, v)| (json_key(k), to_json(v))).collect()),
        Value::Ext(..) => Json::String(value.python_str()),
    }
}

/// JSON's own spelling of keys that are not text, as Python's `json.dumps` writes them.
fn json_key(key: &Value) -> String {
    match key {
        Value::Nil => "null".to_owned(),
        Value::Boolean(b) => b.to_string(),
        Value::Binary(b) => String::from_utf8_lossy(b).into_owned(),
        other => other.python_str(),
    }
}

/// The JSON value as a Salt value.
pub fn from_json(json: &serde_json::Value) -> Value {
    use serde_json::Value as Json;
    match json {
        Json::Null => Value::Nil,
        Json::Bool(b) => Value::Boolean(*b),
        Json::Number(n) => match (n.as_u64(), n.as_i64()) {
            (Some(n), _) => Value::from(n),
            (None, Some(n)) => Value::from(n),
            (None, None) => Value::F64(n.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(s) => Value::from(s.as_str()),
        Json::Array(items) => Value::Array(items.iter().map(from_json).collect()),
        Json::Object(entries) => map(entries.iter().map(|(k, v)| (k.as_str(), from_json(v)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_are_read_and_changed_in_place() {
        let mut v = map([("a", Value::from(1)), ("b", text("x"))]);
        v.insert("a", 2);
        v.insert("c", true);
        assert_eq!(v.remove("b"), Some(text("x")));
        assert_eq!(v, map([("a", Value::from(2)), ("c", Value::from(true))]));
        assert_eq!(v.get_i64("a"), Some(2));
        assert!(!v.has("b"));
    }

    #[test]
    fn of_equal_keys_the_last_one_counts_and_all_are_removed() {
        let mut v = map([("id", text("a")), ("x", Value::Nil), ("id", text("b"))]);
        assert_eq!(v.get_text("id"), Some("b"));
        v.remove("id");
        assert_eq!(v, map([("x", Value::Nil)]));
    }

    #[test]
    fn traverse_follows_maps_and_lists() {
        let v = map([("a", list([map([("b", 7)])]))]);
        assert_eq!(v.traverse("a:0:b", ":"), Some(&Value::from(7)));
        assert_eq!(v.traverse("a:1:b", ":"), None);
        assert_eq!(v.traverse("a:0:b:c", ":"), None);
    }

    #[test]
    fn repr_is_pythons() {
        let cases: &[(Value, &str)] = &[
            (Value::Nil, "None"),
            (Value::from(true), "True"),
            (Value::F64(1.0), "1.0"),
            (Value::F64(1e16), "1e+16"),
            (Value::F64(1.5e-7), "1.5e-07"),
            (Value::F64(123_456_789.125), "123456789.125"),
            (text("it's"), "\"it's\""),
            (text("a\n\u{1}é"), "'a\\n\\x01é'"),
            (bytes(*b"\x00a'"), "b\"\\x00a'\""),
            (map([("k", list([1, 2]))]), "{'k': [1, 2]}"),
        ];
        for (value, expect) in cases {
            assert_eq!(value.python_repr(), *expect);
        }
    }

    #[test]
    fn json_goes_there_and_back() {
        let v = map([("a", list([Value::Nil, Value::from(-1), Value::F64(1.5)])), ("b", text("é"))]);
        assert_eq!(from_json(&to_json(&v)), v);
        assert_eq!(to_json(&Value::F64(f64::NAN)), serde_json::Value::Null);
        assert_eq!(to_json(&Value::Map(vec![(Value::from(1), Value::Nil)])).to_string(), r#"{"1":null}"#);
    }

    #[test]
    fn truth_is_pythons() {
        for v in [Value::Nil, Value::from(0), Value::F64(0.0), text(""), bytes(vec![]), list::<Value>([]), empty_map()]
        {
            assert!(!v.truthy(), "{v}");
        }
        for v in [Value::from(-1), text("0"), bytes(vec![0]), list([Value::Nil]), map([("a", Value::Nil)])] {
            assert!(v.truthy(), "{v}");
        }
    }
}
