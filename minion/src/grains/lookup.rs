//! Looks up a grain by a path of keys.

use brine_protocol::value::{Value, ValueExt};

/// Follows `key`, split by `delimiter`, through maps by key and through lists by index.
pub fn lookup(grains: &Value, key: &str, delimiter: &str) -> Option<Value> {
    if delimiter.is_empty() {
        return grains.get(key).cloned();
    }
    let mut at = grains;
    for part in key.split(delimiter) {
        at = match at {
            Value::Array(items) => items.get(part.parse::<usize>().ok()?)?,
            _ => at.get(part)?,
        };
    }
    Some(at.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_protocol::value::{list, map};

    fn sample() -> Value {
        map([("os", Value::from("Debian")), ("deep", map([("v", list(["a", "b"]))]))])
    }

    #[test]
    fn lookup_walks_maps_and_lists() {
        for (key, delimiter, expected) in [
            ("os", ":", Some("Debian")),
            ("deep:v:1", ":", Some("b")),
            ("deep|v|0", "|", Some("a")),
            ("deep:v:7", ":", None),
            ("deep:w", ":", None),
            ("os:x", ":", None),
            ("", ":", None),
            ("os", "", Some("Debian")),
        ] {
            let found = lookup(&sample(), key, delimiter);
            assert_eq!(found.as_ref().and_then(|v| v.text()), expected, "{key}");
        }
    }
}
