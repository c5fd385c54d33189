//! Looks up a value of grains or pillar by a path of keys, by Salt's rules.

use brine_protocol::args::yamlify;
use brine_protocol::value::{Value, ValueExt};

/// Follows `key`, split by `delimiter`. A part is a key of a dict: as text, else as the value that it is on a command
/// line. In a list it is a key of the first dict there that has it, or an index, which may count from the end.
pub fn lookup(grains: &Value, key: &str, delimiter: &str) -> Option<Value> {
    if delimiter.is_empty() {
        return grains.get(key).cloned();
    }
    key.split(delimiter).try_fold(grains, step).cloned()
}

fn step<'a>(at: &'a Value, part: &str) -> Option<&'a Value> {
    match at {
        // No key is a list or a dict, and modules choose the parts.
        Value::Map(entries) if !part.starts_with(['[', '{']) => at.get(part).or_else(|| find(entries, &yamlify(part))),
        Value::Map(_) => at.get(part),
        Value::Array(items) => {
            let number = part.trim().parse::<i64>().ok();
            let key = number.map_or_else(|| Value::from(part), Value::from);
            let within = items.iter().filter_map(ValueExt::entries).find_map(|entries| find(entries, &key));
            within.or_else(|| {
                let number = number?;
                let from_end = i64::try_from(items.len()).ok()?.checked_add(number)?;
                items.get(usize::try_from(if number < 0 { from_end } else { number }).ok()?)
            })
        }
        _ => None,
    }
}

fn find<'a>(entries: &'a [(Value, Value)], key: &Value) -> Option<&'a Value> {
    entries.iter().find(|(known, _)| known == key).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_protocol::value::{list, map};

    fn sample() -> Value {
        let ports = list([map([("http", "80")]), map([("https", "443")])]);
        let numbers = Value::Map(vec![(Value::from(1), Value::from("one")), (Value::from(true), Value::from("yes"))]);
        let deep = map([("v", list(["a", "b"])), ("ports", ports), ("numbers", numbers)]);
        map([("os", Value::from("Debian")), ("deep", deep)])
    }

    #[test]
    fn lookup_walks_maps_and_lists() {
        for (key, delimiter, expected) in [
            ("os", ":", Some("Debian")),
            ("deep:v:1", ":", Some("b")),
            ("deep|v|0", "|", Some("a")),
            ("deep:v:-1", ":", Some("b")),
            ("deep:v:-3", ":", None),
            ("deep:v:7", ":", None),
            ("deep:ports:https", ":", Some("443")),
            ("deep:ports:ftp", ":", None),
            ("deep:ports:1:https", ":", Some("443")),
            ("deep:numbers:1", ":", Some("one")),
            ("deep:numbers:True", ":", Some("yes")),
            ("deep:numbers:2", ":", None),
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
