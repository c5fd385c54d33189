//! Filters answers that contain more than was granted.

use brine_capabilities::{Capability, Grants, Names, Shown};
use rmpv::Value;

/// Removes what was not granted.
pub(crate) fn cut_down(shown: Shown, grants: &Grants, answer: Value) -> Value {
    let files = grants.names(Capability::Files);
    match (shown, answer) {
        (Shown::Pillar, answer) => match grants.names(Capability::Pillar) {
            Names::Any => answer,
            Names::Only(keys) => {
                let keys: Vec<Vec<&str>> = keys.iter().map(|key| key.split(':').collect()).collect();
                granted(&keys.iter().map(Vec::as_slice).collect::<Vec<_>>(), answer)
            }
        },
        (Shown::Files, Value::Array(items)) => keep(items, |path| files.matches(path)),
        (Shown::Folders, Value::Array(items)) => keep(items, |path| files.matches_below(path)),
        (_, answer) => answer,
    }
}

/// Returns the part of a dict that is at or below one of the keys.
fn granted(keys: &[&[&str]], value: Value) -> Value {
    let Value::Map(entries) = value else { return Value::Map(Vec::new()) };
    let kept = entries.into_iter().filter_map(|(name, value)| {
        let below: Vec<&[&str]> = keys
            .iter()
            .filter_map(|key| key.split_first())
            .filter_map(|(first, rest)| (name.as_str() == Some(*first)).then_some(rest))
            .collect();
        if below.is_empty() {
            return None;
        }
        if below.iter().any(|rest| rest.is_empty()) {
            return Some((name, value));
        }
        // A grant below this key: a value that is no dict has nothing to show.
        match granted(&below, value) {
            Value::Map(entries) if entries.is_empty() => None,
            value => Some((name, value)),
        }
    });
    Value::Map(kept.collect())
}

fn keep(items: Vec<Value>, may: impl Fn(&str) -> bool) -> Value {
    Value::Array(items.into_iter().filter(|item| item.as_str().is_some_and(&may)).collect())
}
