//! What `sandbox.show` and `sandbox.check` say of profiles.

use std::collections::BTreeMap;

use rmpv::Value;

use super::{map, texts};
use crate::all_profiles;
use crate::policy::{Never, Policy, Profile};
use crate::store::Entry;

/// The names of the profiles in force, each once.
pub(super) fn in_force(policy: &Policy) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for profile in &policy.profiles {
        if !names.contains(&profile.name) {
            names.push(profile.name.clone());
        }
    }
    names
}

/// One profile: what it opens, what it cannot be used for, and its grants. Nil if there is none of this name.
pub(super) fn show(policy: &Policy, name: &str) -> Value {
    let taken: Vec<&Profile> = policy.profiles.iter().filter(|profile| profile.name == name).collect();
    let brines = if taken.is_empty() { all_profiles().unwrap_or_default() } else { Vec::new() };
    let known = policy.own_profiles.iter().chain(&brines).find(|profile| profile.name == name);
    let Some(profile) = taken.first().copied().or(known) else { return Value::Nil };
    let words = &profile.words;
    // With its parameters, if it is in force.
    let shown = if taken.is_empty() { vec![profile] } else { taken.clone() };
    let mut grants: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for (place, capability, grant) in shown.into_iter().flat_map(Profile::all_grants) {
        grants.entry(place).or_default().push(Value::from(format!("{}: {grant}", capability.key())));
    }
    let grants = grants.into_iter().map(|(place, grants)| (Value::from(place), Value::Array(grants)));
    map([
        ("name", Value::from(name)),
        ("from", Value::from(words.from.as_str())),
        ("opens", Value::from(words.opens.as_str())),
        ("cannot", Value::from(words.cannot.as_str())),
        ("never", texts(words.never.iter().map(|never: &Never| never.word()))),
        ("in_force", Value::from(!taken.is_empty())),
        ("line", Value::from(words.line.as_str())),
        ("grants", Value::Map(grants.collect())),
    ])
}

/// What the profiles in force that are about a module open and cannot be used for, by their names.
pub(super) fn of_module(policy: &Policy, entry: &Entry) -> Value {
    if !entry.is_standard() {
        return Value::Map(Vec::new());
    }
    let about = policy.profiles.iter().filter(|profile| !profile.lines(entry.name()).is_empty());
    let words = about.map(|profile| {
        let words = format!("{} {}", profile.words.opens, profile.words.cannot);
        (profile.name.as_str(), words)
    });
    let all: BTreeMap<&str, String> = words.collect();
    Value::Map(all.into_iter().map(|(name, words)| (Value::from(name), Value::from(words))).collect())
}
