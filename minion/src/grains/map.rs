//! Grains under construction.

use brine_protocol::value::Value;
use brine_protocol::value::ValueExt;

/// A map that keeps its order and has each key once.
#[derive(Default, Clone)]
pub(crate) struct Grains(Vec<(Value, Value)>);

impl Grains {
    pub(crate) fn set(&mut self, key: &str, value: Value) {
        self.put(Value::from(key), value);
    }

    pub(crate) fn text(&mut self, key: &str, value: &str) {
        self.set(key, Value::from(value));
    }

    #[cfg(test)]
    pub(crate) fn get_text(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(k, _)| k.as_str() == Some(key)).and_then(|(_, v)| v.text())
    }

    /// The texts of a list.
    pub(super) fn texts(&self, key: &str) -> Vec<String> {
        let found = self.0.iter().find(|(k, _)| k.as_str() == Some(key));
        let items = found.and_then(|(_, value)| value.list()).unwrap_or_default();
        items.iter().filter_map(|item| item.text().map(str::to_owned)).collect()
    }

    fn put(&mut self, key: Value, value: Value) {
        match self.0.iter_mut().find(|(k, _)| *k == key) {
            Some((_, slot)) => *slot = value,
            None => self.0.push((key, value)),
        }
    }

    pub(super) fn merge(&mut self, entries: Vec<(Value, Value)>) {
        for (key, value) in entries {
            self.put(key, value);
        }
    }

    /// Adds grains; dicts of the same name are merged on every level.
    pub(super) fn merge_deep(&mut self, entries: Vec<(Value, Value)>) {
        merge_deep(&mut self.0, entries);
    }

    /// The entries, to be filtered.
    pub(super) fn entries_mut(&mut self) -> &mut Vec<(Value, Value)> {
        &mut self.0
    }

    pub(super) fn into_value(self) -> Value {
        Value::Map(self.0)
    }
}

fn merge_deep(into: &mut Vec<(Value, Value)>, entries: Vec<(Value, Value)>) {
    for (key, value) in entries {
        match (into.iter_mut().find(|(known, _)| *known == key), value) {
            (Some((_, Value::Map(below))), Value::Map(more)) => merge_deep(below, more),
            (Some((_, slot)), value) => *slot = value,
            (None, value) => into.push((key, value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_grain_replaces_an_earlier_one() {
        let mut grains = Grains::default();
        grains.text("role", "web");
        grains.merge(vec![(Value::from("role"), Value::from("db"))]);
        assert_eq!(grains.0.len(), 1);
        assert_eq!(grains.get_text("role"), Some("db"));
    }
}
