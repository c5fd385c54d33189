//! What a minion tells its master about its modules by itself: which there are, what they ask for, have and lack, and
//! which updates are held.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use brine_capabilities::Kind;
use rmpv::Value;

use super::{diff, has, map, missing, optional, signers, texts};
use crate::ModuleName;
use crate::policy::{Capability, Policy};
use crate::store::{Entry, Held, Store, Table};

/// What a summary is made from, to find out without making it that it would be the same. It is kept whole, so that nothing else comes to
/// lie where it was.
pub struct Basis {
    table: Arc<Table>,
    policy: Arc<Policy>,
    held: BTreeMap<ModuleName, Arc<Held>>,
    /// The modules that are refused, and those that are left out.
    others: [Vec<ModuleName>; 2],
}

impl Basis {
    /// Takes what there is now.
    pub(crate) fn of(store: &Store) -> Self {
        let refused = store.refused().keys().cloned().collect();
        let left_out = store.all_left_out().keys().cloned().collect();
        let held = store.all_held().clone();
        Self { table: Arc::clone(&store.table()), policy: store.policy(), held, others: [refused, left_out] }
    }
}

impl PartialEq for Basis {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.table, &other.table)
            && Arc::ptr_eq(&self.policy, &other.policy)
            && self.held.keys().eq(other.held.keys())
            && self.held.values().zip(other.held.values()).all(|(held, other)| Arc::ptr_eq(held, other))
            && self.others == other.others
    }
}

/// Held updates of which the changes are told: as many as a master keeps.
const HELD_MAX: usize = 64;

/// Makes the summary. The same state of the store gives the same summary.
pub(crate) fn of(store: &Store) -> Value {
    let table = store.table();
    let mut modules: Vec<Value> = table.values().map(|entry| module(store, entry)).collect();
    let held: Vec<String> = store.all_held().keys().map(ToString::to_string).collect();
    let refused: Vec<String> = store.refused().keys().map(ToString::to_string).collect();
    let left_out: Vec<String> = store.all_left_out().keys().map(ToString::to_string).collect();
    let others: BTreeSet<&String> = held.iter().chain(&refused).chain(&left_out).collect();
    let is_there = |name: &str| store.get(name).is_some();
    modules.extend(
        others
            .into_iter()
            .filter(|name| !is_there(name))
            .map(|name| map([("name", Value::from(name.as_str())), ("usable", Value::from(false))])),
    );
    let held = held.iter().take(HELD_MAX).filter_map(|name| diff::of(store, name).ok()).collect();
    map([("modules", Value::Array(modules)), ("held", Value::Array(held))])
}

fn module(store: &Store, entry: &Arc<Entry>) -> Value {
    let policy = store.policy();
    let info = &entry.module.info;
    let asks: BTreeSet<&str> = info
        .imports
        .iter()
        .filter_map(|import| Some(Capability::of(import.split('@').next()?)?.0))
        .filter(|capability| !matches!(capability.kind(), Kind::Settings))
        .map(Capability::key)
        .collect();
    map([
        ("name", Value::from(entry.name().as_str())),
        ("usable", Value::from(true)),
        ("version", optional(info.version.clone())),
        ("sha256", Value::from(entry.module.sha256.to_string())),
        ("origin", Value::from(entry.module.origin.as_str())),
        ("signed_by", signers(&policy, &entry.signers)),
        ("asks", texts(asks)),
        ("has", has(entry)),
        ("missing", texts(missing(&policy, entry))),
    ])
}
