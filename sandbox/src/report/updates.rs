//! Reports on updates: held versions, versions for a rollback, and the last contact with a master.

use std::path::Path;
use std::time::SystemTime;

use brine_sandbox_wire::Sha256Hex;
use rmpv::Value;

use super::{map, missing, optional, texts};
use crate::ModuleName;
use crate::policy::Capability;
use crate::store::{Entry, Held, Provenance, Store, Synced, SyncedFrom, clock};

/// Formats a time for people.
pub(super) fn time(seconds: u64) -> Value {
    Value::from(clock::text(clock::of(seconds)))
}

/// Returns what `sandbox.list` adds for an installed module.
pub(super) fn of(store: &Store, name: &ModuleName, origin: &str, synced: &Synced) -> Vec<(&'static str, Value)> {
    let mut all = vec![("held", Value::from(store.held(name.as_str()).is_some()))];
    if let Some(Provenance { version, sha256, .. }) = store.previous(name.as_str()) {
        all.push(("previous", Value::from(version.or(sha256).unwrap_or_else(|| "of unknown version".to_owned()))));
    }
    all.extend(synced.of(origin).map(|from| ("last_sync", last_sync(from))));
    all
}

/// Returns the last sync of every environment.
pub(super) fn last_syncs(folder: &Path) -> Value {
    let synced = Synced::read(folder);
    Value::Map(synced.all().map(|(environment, from)| (Value::from(environment), last_sync(from))).collect())
}

fn last_sync(from: &SyncedFrom) -> Value {
    map([
        ("at", time(from.at)),
        ("age_s", Value::from(clock::now().saturating_sub(from.at))),
        ("changed_at", from.changed_at.map_or(Value::Nil, time)),
        ("master", Value::from(from.master.as_str())),
    ])
}

/// Returns what `sandbox.show` says about a held version.
pub(super) fn held(held: &Held) -> Value {
    map([
        ("version", optional(held.module.info.version.clone())),
        ("sha256", Value::from(held.module.sha256.to_string())),
        ("why", Value::from(why(held))),
        ("lines", optional(held.lines())),
        ("approve", Value::from(held.command())),
    ])
}

pub(super) fn why(held: &Held) -> String {
    let reasons = held.reasons();
    if reasons.is_empty() { "it would be let in by now: the next sync takes it".to_owned() } else { reasons }
}

/// Returns when the version in use was approved, if it was.
pub(super) fn approval(store: &Store, entry: &Entry) -> Value {
    let approval = store.decided(entry.name()).ok().and_then(|decided| decided.approval(entry.module.sha256));
    approval.map_or(Value::Nil, |(at, carried): (SystemTime, bool)| {
        let with = if carried { ", with the version before it, which asked for no less" } else { "" };
        Value::from(format!("{}{with}", clock::text(at)))
    })
}

/// Returns the result of `sandbox.approve`.
pub(crate) fn approved(store: &Store, entry: &Entry) -> Value {
    let general = entry.grants.each().find(|(master, function, _)| master.is_none() && function.is_none());
    let (mut has, mut to_name) = (Vec::new(), Vec::new());
    if let Some((_, _, grants)) = general {
        for capability in super::capabilities(grants) {
            let list = if grants.names_nothing(capability) { &mut to_name } else { &mut has };
            list.push(capability);
        }
    }
    let words = |list: Vec<Capability>| {
        Value::Map(list.into_iter().map(|it| (Value::from(it.key()), Value::from(it.words()))).collect())
    };
    let lines = (!to_name.is_empty()).then(|| missing_lines(store, entry, &to_name));
    map([
        ("name", Value::from(entry.name().as_str())),
        ("version", optional(entry.module.info.version.clone())),
        ("sha256", Value::from(entry.module.sha256.to_string())),
        ("state", Value::from("in use")),
        ("has", words(has)),
        ("to_be_named", words(to_name)),
        ("lines", optional(lines)),
        ("missing", texts(missing(&store.policy(), entry))),
    ])
}

fn missing_lines(store: &Store, entry: &Entry, capabilities: &[Capability]) -> String {
    let capabilities = capabilities.iter().copied().collect();
    crate::policy::Line::file(&store.policy().granting(&entry.subject(), &capabilities))
}

/// Returns the result of `sandbox.approve` for a content that is not on this host.
pub(crate) fn approved_in_advance(name: &ModuleName, sha256: Sha256Hex) -> Value {
    map([
        ("name", Value::from(name.as_str())),
        ("sha256", Value::from(sha256.to_string())),
        (
            "state",
            Value::from("approved in advance: no module here has this content; a sync takes it when the master has it"),
        ),
    ])
}

/// Returns the result of `sandbox.rollback`.
pub(crate) fn rolled_back(entry: &Entry, left: Option<Sha256Hex>, before: Option<&Entry>) -> Value {
    let version = |entry: &Entry| optional(entry.module.info.version.clone());
    map([
        ("name", Value::from(entry.name().as_str())),
        ("now", map([("version", version(entry)), ("sha256", Value::from(entry.module.sha256.to_string()))])),
        (
            "left",
            map([
                ("version", before.map_or(Value::Nil, version)),
                ("sha256", optional(left.map(|left| left.to_string()))),
            ]),
        ),
        (
            "note",
            Value::from(
                "what was left is not taken again until the owner of this host approves it or the master serves something else",
            ),
        ),
    ])
}
