//! The result of `sandbox.diff`: a module's held version compared with the one in use.

use std::collections::{BTreeMap, BTreeSet};

use brine_component::{Function, ModuleInfo, signature};
use rmpv::Value;

use super::{map, optional, signers, texts, updates};
use crate::policy::{Capability, Policy, always};
use crate::signature::KeyId;
use crate::store::{Held, Module, Store};

/// Functions of one list, and characters of a signature in it.
const FUNCTIONS_MAX: usize = 64;
const SIGNATURE_MAX: usize = 500;

pub(super) fn of(store: &Store, name: &str) -> Result<Value, String> {
    let Some(held) = store.held(name) else {
        return Err(match store.get(name) {
            Some(entry) => {
                let version =
                    entry.module.info.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
                format!("nothing is held of module {name}:{version} is in use, sha256 {}", entry.module.sha256)
            }
            None => format!("there is no module {name:?} on this minion, and none is held: sandbox.list lists them"),
        });
    };
    let in_use = store.get(name).filter(|entry| !entry.is_standard());
    let now = in_use.as_deref().map(|entry| (&*entry.module, entry.signers.as_slice(), entry.signed_time));
    Ok(diff(&store.policy(), &held, now))
}

/// A module version, the keys that signed it, and the signing time.
type Version<'a> = (&'a Module, &'a [KeyId], Option<u64>);

fn diff(policy: &Policy, held: &Held, now: Option<Version<'_>>) -> Value {
    let none = ModuleInfo::default();
    let (before, after) = (now.map_or(&none, |(module, ..)| &module.info), &held.module.info);
    map([
        ("name", Value::from(held.name.as_str())),
        ("why", Value::from(updates::why(held))),
        ("in_use", now.map_or(Value::Nil, |version| self::version(policy, version))),
        ("held", version(policy, (&held.module, &held.signers, held.time))),
        ("functions", functions(&held.name.to_string(), before, after)),
        ("permissions", permissions(before, after)),
        ("lines", optional(held.lines())),
        ("approve", Value::from(held.command())),
    ])
}

fn version(policy: &Policy, (module, keys, time): Version<'_>) -> Value {
    map([
        ("version", optional(module.info.version.clone())),
        ("sha256", Value::from(module.sha256.to_string())),
        ("size", Value::from(module.size)),
        ("origin", Value::from(module.origin.as_str())),
        ("signed_by", signers(policy, keys)),
        ("signed", time.map_or(Value::Nil, updates::time)),
    ])
}

/// Returns the functions that are added, removed, or have another signature: the first of each, since the module's author chooses how many
/// there are, and a report that is too large would hide the update.
fn functions(module: &str, before: &ModuleInfo, after: &ModuleInfo) -> Value {
    fn all(info: &ModuleInfo) -> BTreeMap<&str, &Function> {
        info.all().map(|function| (function.name.as_str(), function)).collect()
    }
    fn is_other(was: &Function, now: &Function) -> bool {
        (&was.params, &was.result) != (&now.params, &now.result)
    }
    let (before, after) = (all(before), all(after));
    let shown = |function: &Function| brine_text::short(&signature(module, function), SIGNATURE_MAX);
    let first = |texts: &mut dyn Iterator<Item = String>, count: usize| {
        let more = count.checked_sub(FUNCTIONS_MAX + 1).map(|more| format!("and {} more", more + 1));
        self::texts(texts.take(FUNCTIONS_MAX).chain(more))
    };
    let only = |these: &BTreeMap<&str, &Function>, those: &BTreeMap<&str, &Function>| {
        let only = these.iter().filter(|(name, _)| !those.contains_key(*name)).map(|(_, function)| *function);
        first(&mut only.clone().map(shown), only.count())
    };
    let changed = after.iter().filter_map(|(name, now)| {
        let was = before.get(name).filter(|was| is_other(was, now))?;
        Some((*was, *now))
    });
    let mut words = changed.clone().map(|(was, now)| format!("{}, now {}", shown(was), shown(now)));
    let changed = first(&mut words, changed.count());
    map([("added", only(&after, &before)), ("removed", only(&before, &after)), ("changed", changed)])
}

/// Returns the added and removed interfaces with their purposes, without those that every module has.
fn permissions(before: &ModuleInfo, after: &ModuleInfo) -> Value {
    let all = |info: &ModuleInfo| -> BTreeSet<String> {
        let interfaces = info.imports.iter().map(|import| import.split('@').next().unwrap_or_default().to_owned());
        interfaces.filter(|interface| !always(interface)).collect()
    };
    let (before, after) = (all(before), all(after));
    let only = |these: &BTreeSet<String>, those: &BTreeSet<String>| {
        let words = |interface: &str| Capability::of(interface).map_or("nothing that is known", |(it, _)| it.words());
        let words = these.difference(those).map(|it| (Value::from(it.as_str()), Value::from(words(it))));
        Value::Map(words.collect())
    };
    map([("added", only(&after, &before)), ("removed", only(&before, &after))])
}
