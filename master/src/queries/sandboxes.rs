//! What minions reported of their modules, as several queries need it: each different report is read once.

use std::collections::HashMap;

use brine_protocol::ids::MinionId;
use brine_protocol::value::{Value, ValueExt as _, list, map};

use super::Queries;
use crate::fileserver::ServedModule;
use crate::sandbox_reports::{self, Report};

/// Ids that stand for a group of minions.
pub(super) const SOME: usize = 20;

/// The modules that the master serves, by environment and name.
pub(super) struct Served(HashMap<(String, String), ServedModule>);

impl Served {
    pub(super) fn now(parts: &Queries) -> Self {
        let all = parts.files.modules().into_iter();
        Self(all.map(|module| ((module.env.clone(), module.name.clone()), module)).collect())
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &ServedModule> {
        self.0.values()
    }

    /// The hash that the master serves for a reported module.
    pub(super) fn sha256(&self, module: &Value) -> Option<&str> {
        let key = (module.get_text("origin")?.to_owned(), module.get_text("name")?.to_owned());
        self.0.get(&key)?.sha256.as_deref()
    }

    /// Whether a reported module is not the one that the master serves.
    pub(super) fn drifts(&self, module: &Value) -> bool {
        self.sha256(module).is_some_and(|served| module.get_text("sha256") != Some(served))
    }
}

/// The modules of a report.
pub(super) fn modules(report: &Value) -> &[Value] {
    report.get_list("modules").unwrap_or_default()
}

/// The held updates of a report.
pub(super) fn held(report: &Value) -> &[Value] {
    report.get_list("held").unwrap_or_default()
}

/// The hash of the held update of a module.
pub(super) fn held_sha256(report: &Value, name: &str) -> Value {
    let held = held(report).iter().find(|held| held.get_text("name") == Some(name));
    held.and_then(|held| held.traverse("held:sha256", ":")).cloned().unwrap_or(Value::Nil)
}

/// Counts for the list of minions.
pub(super) struct Counted<'a> {
    served: &'a Served,
    read: HashMap<Report, Value>,
}

impl<'a> Counted<'a> {
    pub(super) fn new(served: &'a Served) -> Self {
        Self { served, read: HashMap::new() }
    }

    /// Returns the numbers of a minion's modules; nil if it reported none.
    pub(super) fn of(&mut self, parts: &Queries, id: &MinionId) -> Value {
        let Some(report) = parts.reports.of(id) else { return Value::Nil };
        let served = self.served;
        self.read.entry(report).or_insert_with_key(|report| count(served, &sandbox_reports::read(report))).clone()
    }
}

fn count(served: &Served, report: &Value) -> Value {
    let modules = modules(report);
    let lacks = |module: &&Value| module.get_list("missing").is_some_and(|missing| !missing.is_empty());
    map([
        ("total", modules.len()),
        ("drift", modules.iter().filter(|module| served.drifts(module)).count()),
        ("held", held(report).len()),
        ("missing", modules.iter().filter(lacks).count()),
    ])
}

/// What the page of one minion shows; nil if it reported nothing.
pub(super) fn of_one(parts: &Queries, id: &MinionId) -> Value {
    let Some(report) = parts.reports.of(id) else { return Value::Nil };
    let (served, report) = (Served::now(parts), sandbox_reports::read(&report));
    let module = |module: &Value| {
        let mut shown = module.clone();
        shown.insert("served", served.sha256(module).map_or(Value::Nil, Value::from));
        shown.insert("drift", served.drifts(module));
        shown.insert("held", held_sha256(&report, module.get_text("name").unwrap_or_default()));
        shown
    };
    map([("modules", list(modules(&report).iter().map(module)))])
}

/// Returns a module's field, or nil.
pub(super) fn field(module: &Value, key: &str) -> Value {
    module.get(key).cloned().unwrap_or(Value::Nil)
}

/// Minions of one group.
#[derive(Default)]
pub(super) struct Group {
    pub(super) count: usize,
    some: Vec<MinionId>,
}

impl Group {
    pub(super) fn add(&mut self, ids: &[&MinionId]) {
        self.count += ids.len();
        let room = SOME.saturating_sub(self.some.len());
        self.some.extend(ids.iter().take(room).map(|id| (*id).clone()));
    }

    /// Adds the entries `minions` and `some`.
    pub(super) fn tell(&self, to: &mut Value) {
        to.insert("minions", self.count);
        to.insert("some", list(self.some.iter().map(Value::from)));
    }
}
