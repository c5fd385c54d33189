//! What `file.serialize` does with what is in a file already.

use brine_render::Value;
use brine_render::data::merge::{How, update};
use brine_render::data::{Budget, deep_copy};

/// A value with another merged into it, on every level; lists are replaced.
pub(crate) fn merged(old: &Value, new: &Value) -> Result<Value, String> {
    let how = How { recursive: true, merge_lists: false, strict: false };
    update(&deep_copy(old, &Budget::default()).map_err(|error| error.message)?, new, how, &Budget::default())
        .map_err(|error| error.message)
}

/// What changed, by key: `{"old": …, "new": …}`, and dicts below dicts. Keys that went are left out, as in Salt.
pub(crate) fn changes(old: &Value, new: &Value) -> Value {
    let (Value::Dict(old), Value::Dict(new)) = (old, new) else { return Value::dict([]) };
    let mut changes = Vec::new();
    let old = old.borrow();
    for (key, value) in new.borrow().iter() {
        let before = old.get(key);
        match (before, value) {
            (Some(before), value) if before.equals(value) == Some(true) => {}
            (Some(before @ Value::Dict(_)), value @ Value::Dict(_)) => {
                changes.push((key.clone(), self::changes(before, value)));
            }
            (before, value) => {
                let before = before.cloned().unwrap_or_else(|| Value::str("<_null_>"));
                changes.push((key.clone(), Value::dict([("old".into(), before), ("new".into(), value.clone())])));
            }
        }
    }
    Value::dict(changes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_render::yaml;

    fn value(text: &str) -> Value {
        yaml::load(text, &yaml::Limits::default()).unwrap()
    }

    #[test]
    fn values_are_merged() {
        let (old, new) = (value("{a: 1, b: {c: 2}}"), value("{b: {d: 3}}"));
        let merged = merged(&old, &new).unwrap();
        assert_eq!(merged.equals(&value("{a: 1, b: {c: 2, d: 3}}")), Some(true));
        assert_eq!(changes(&old, &merged).equals(&value("{b: {d: {old: <_null_>, new: 3}}}")), Some(true));
        assert_eq!(old.equals(&value("{a: 1, b: {c: 2}}")), Some(true));
    }
}
