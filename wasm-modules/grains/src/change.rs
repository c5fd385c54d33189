//! What a change of a grain makes of the top-level grain that contains it. The rules and the words are Salt's.

use brine_guest::Value;
use brine_guest::lookup::traverse;

/// The name of a top-level grain and its new value.
pub(crate) type Changed = (String, Value);

/// The arguments of `grains.set`.
pub(crate) struct Setting<'a> {
    pub(crate) key: &'a str,
    pub(crate) value: Value,
    pub(crate) force: bool,
    pub(crate) destructive: bool,
    pub(crate) delimiter: &'a str,
}

/// Appends to a list.
///
/// # Errors
/// Why nothing changes.
pub(crate) fn append(
    grains: &Value,
    key: &str,
    value: Value,
    convert: bool,
    delimiter: &str,
) -> Result<Changed, String> {
    let items = match traverse(grains, key, delimiter) {
        None => Some(Vec::new()),
        Some(Value::List(items)) => Some(items.clone()),
        Some(Value::None) if convert => Some(Vec::new()),
        Some(other) if convert => Some(vec![other.clone()]),
        Some(_) => None,
    };
    let mut items = items.ok_or_else(|| format!("The key {key} is not a valid list"))?;
    if items.iter().any(|item| item.same(&value)) {
        return Err(format!("The val {} was already in the list {key}", value.to_text()));
    }
    match value {
        Value::List(more) => items.extend(more),
        one => items.push(one),
    }
    Ok(within(grains, key, Value::List(items), delimiter))
}

/// Removes an item of a list.
///
/// # Errors
/// Why nothing changes.
pub(crate) fn remove(grains: &Value, key: &str, value: &Value, delimiter: &str) -> Result<Changed, String> {
    let mut items = match traverse(grains, key, delimiter) {
        None => Vec::new(),
        Some(Value::List(items)) => items.clone(),
        Some(_) => return Err(format!("The key {key} is not a valid list")),
    };
    let at = items.iter().position(|item| item.same(value));
    items.remove(at.ok_or_else(|| format!("The val {} was not in the list {key}", value.to_text()))?);
    Ok(within(grains, key, Value::List(items), delimiter))
}

/// Puts a value where a path leads, into the dicts on the way. What is on the way and no dict stays as it is.
pub(crate) fn within(grains: &Value, key: &str, value: Value, delimiter: &str) -> Changed {
    let (mut key, mut value) = (key, value);
    while let Some((above, last)) = split(key, delimiter) {
        value = match traverse(grains, above, delimiter) {
            None => put(Vec::new(), last, value),
            Some(Value::Dict(entries)) => put(entries.clone(), last, value),
            Some(other) => other.clone(),
        };
        key = above;
    }
    (key.to_owned(), value)
}

/// Sets a grain; none if it has the value.
///
/// # Errors
/// Why it is not set.
pub(crate) fn set(grains: &Value, setting: &Setting<'_>) -> Result<Option<Changed>, String> {
    let Setting { mut key, force, destructive, delimiter, .. } = *setting;
    let mut value = setting.value.clone();
    let is_complex = |value: &Value| matches!(value, Value::List(_) | Value::Dict(_));
    if let Some(present) = traverse(grains, key, delimiter) {
        if present.same(&value) && (value != Value::None || !destructive) {
            return Ok(None);
        }
        if !force && *present != Value::None {
            if is_complex(present) {
                return Err(format!("The key '{key}' exists but is a dict or a list. Use 'force=True' to overwrite."));
            }
            if is_complex(&value) {
                return Err(format!(
                    "The key '{key}' exists and the given value is a dict or a list. Use 'force=True' to overwrite."
                ));
            }
        }
    }
    while let Some((above, last)) = split(key, delimiter) {
        let removes = value == Value::None && destructive;
        value = match traverse(grains, above, delimiter) {
            None if removes => Value::Dict(Vec::new()),
            None => put(Vec::new(), last, value),
            Some(Value::Dict(entries)) if removes => {
                Value::Dict(entries.iter().filter(|(name, _)| name.text() != Some(last)).cloned().collect())
            }
            Some(Value::Dict(entries)) => put(entries.clone(), last, value),
            Some(Value::List(items)) => Value::List(put_in_list(items.clone(), last, value)),
            Some(other) if force || other.text() == Some(last) => put(Vec::new(), last, value),
            Some(other) => {
                return Err(format!(
                    "The key '{above}' value is '{}', which is different from the provided key '{last}'. Use \
                     'force=True' to overwrite.",
                    other.to_text()
                ));
            }
        };
        key = above;
    }
    Ok(Some((key.to_owned(), value)))
}

/// `a:b:c` is `a:b` and `c`.
fn split<'a>(key: &'a str, delimiter: &str) -> Option<(&'a str, &'a str)> {
    if delimiter.is_empty() { None } else { key.rsplit_once(delimiter) }
}

fn put(mut entries: Vec<(Value, Value)>, name: &str, value: Value) -> Value {
    match entries.iter_mut().find(|(known, _)| known.text() == Some(name)) {
        Some((_, slot)) => *slot = value,
        None => entries.push((name.into(), value)),
    }
    Value::Dict(entries)
}

/// In a list, the item that is the name, or the dict that has it, takes the value; else a new dict does.
fn put_in_list(mut items: Vec<Value>, name: &str, value: Value) -> Vec<Value> {
    let mut found = false;
    for item in &mut items {
        let changed = match item {
            Value::Text(text) if text == name => put(Vec::new(), name, value.clone()),
            Value::Dict(entries) if entries.iter().any(|(known, _)| known.text() == Some(name)) => {
                put(std::mem::take(entries), name, value.clone())
            }
            _ => continue,
        };
        *item = changed;
        found = true;
    }
    if !found {
        items.push(put(Vec::new(), name, value));
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grains() -> Value {
        let app = Value::dict([("roles", vec!["a", "b"].into()), ("port", 80_i64.into())]);
        let mixed = Value::List(vec!["x".into(), Value::dict([("y", 1_i64.into())])]);
        Value::dict([("role", "web".into()), ("app", app), ("mixed", mixed), ("none", Value::None)])
    }

    fn text(changed: Result<Changed, String>) -> String {
        changed.map_or_else(|why| why, |(name, value)| format!("{name}={}", value.to_text()))
    }

    #[test]
    fn lists_grow_and_shrink() {
        let add = |key: &str, value: Value, convert| text(append(&grains(), key, value, convert, ":"));
        assert_eq!(add("new", "x".into(), false), "new=['x']");
        assert_eq!(add("app:roles", "c".into(), false), "app={'roles': ['a', 'b', 'c'], 'port': 80}");
        assert_eq!(add("new:below", "x".into(), false), "new={'below': ['x']}");
        assert_eq!(add("app:roles", vec!["c", "d"].into(), false), "app={'roles': ['a', 'b', 'c', 'd'], 'port': 80}");
        assert_eq!(add("app:roles", "a".into(), false), "The val a was already in the list app:roles");
        assert_eq!(add("role", "db".into(), false), "The key role is not a valid list");
        assert_eq!(add("role", "db".into(), true), "role=['web', 'db']");
        assert_eq!(add("none", "db".into(), true), "none=['db']");
        let take = |key: &str, value: &str| text(remove(&grains(), key, &value.into(), ":"));
        assert_eq!(take("app:roles", "a"), "app={'roles': ['b'], 'port': 80}");
        assert_eq!(take("app:roles", "x"), "The val x was not in the list app:roles");
        assert_eq!(take("nowhere", "x"), "The val x was not in the list nowhere");
        assert_eq!(take("role", "web"), "The key role is not a valid list");
    }

    #[test]
    fn set_follows_salts_rules() {
        let set = |key: &str, value: Value, force: bool, destructive: bool| {
            let setting = Setting { key, value, force, destructive, delimiter: ":" };
            match set(&grains(), &setting) {
                Ok(None) => "already".to_owned(),
                Ok(Some(changed)) => text(Ok(changed)),
                Err(why) => why,
            }
        };
        assert_eq!(set("role", "web".into(), false, false), "already");
        assert_eq!(set("role", "db".into(), false, false), "role=db");
        assert_eq!(set("role", Value::None, false, true), "role=None");
        assert_eq!(set("none", Value::None, false, false), "already");
        assert_eq!(set("none", Value::None, false, true), "none=None");
        assert_eq!(set("app:port", 81_i64.into(), false, false), "app={'roles': ['a', 'b'], 'port': 81}");
        assert_eq!(set("app:port", Value::None, false, true), "app={'roles': ['a', 'b']}");
        assert_eq!(
            set("app:roles", "x".into(), false, false),
            "The key 'app:roles' exists but is a dict or a list. Use 'force=True' to overwrite."
        );
        assert_eq!(
            set("role", vec!["x"].into(), false, false),
            "The key 'role' exists and the given value is a dict or a list. Use 'force=True' to overwrite."
        );
        assert_eq!(set("role", vec!["x"].into(), true, false), "role=['x']");
        assert_eq!(
            set("role:below", 1_i64.into(), false, false),
            "The key 'role' value is 'web', which is different from the provided key 'below'. Use 'force=True' to overwrite."
        );
        assert_eq!(set("role:web", 1_i64.into(), false, false), "role={'web': 1}");
        assert_eq!(set("mixed:x", 1_i64.into(), false, false), "mixed=[{'x': 1}, {'y': 1}]");
        assert_eq!(set("mixed:z", 1_i64.into(), false, false), "mixed=['x', {'y': 1}, {'z': 1}]");
        assert_eq!(set("a:b:c", 1_i64.into(), false, false), "a={'b': {'c': 1}}");
    }
}
