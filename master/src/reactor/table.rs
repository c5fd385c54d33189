//! The reactions of a running master.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use brine_protocol::value::{Value, ValueExt as _, map};

use super::config::ENTRIES_MAX;
use super::entry::Entry;
use super::matching::Index;

/// The reactions in use, and their globs.
pub(super) struct Table(RwLock<Known>);

struct Known {
    entries: Vec<Arc<Entry>>,
    index: Index,
    /// `reactor` as it was read last.
    configured: Vec<Value>,
}

impl Known {
    fn new(entries: Vec<Arc<Entry>>) -> Self {
        let configured = written(&entries);
        let index = Index::new(entries.iter().map(|entry| entry.tag.as_str()));
        Self { entries, index, configured }
    }

    fn set(&mut self, entries: Vec<Arc<Entry>>) {
        let configured = std::mem::take(&mut self.configured);
        *self = Self { configured, ..Self::new(entries) };
    }
}

fn written(entries: &[Arc<Entry>]) -> Vec<Value> {
    entries.iter().map(|entry| entry.written.clone()).collect()
}

impl Table {
    pub(super) fn new(entries: Vec<Arc<Entry>>) -> Self {
        Self(RwLock::new(Known::new(entries)))
    }

    /// Returns the entries for a tag, in their order.
    pub(super) fn matching(&self, tag: &str) -> Vec<Arc<Entry>> {
        let known = self.read();
        known.index.matching(tag).into_iter().map(|place| Arc::clone(&known.entries[place])).collect()
    }

    /// Returns all entries as they were written.
    pub(super) fn list(&self) -> Value {
        Value::Array(written(&self.read().entries))
    }

    /// Takes over `reactor` as it is read again, if it changed. Entries that stay keep what is known of them.
    pub(super) fn replace(&self, entries: &[Arc<Entry>]) {
        let now = written(entries);
        let mut known = self.write();
        // A log rotation must not remove what runners added.
        if known.configured == now {
            return;
        }
        let mut new = entries.to_vec();
        for entry in &mut new {
            if let Some(same) = known.entries.iter().find(|old| old.written == entry.written) {
                *entry = Arc::clone(same);
            }
        }
        *known = Known::new(new);
    }

    /// Adds an entry: `event`, `reactors`, `from_minions`. Returns Salt's answer.
    pub(super) fn add(&self, data: &Value) -> Value {
        let Some(tag) = data.get("event").map(|tag| tag.python_str()).filter(|tag| !tag.is_empty()) else {
            return said(false, "A tag is needed.");
        };
        let mut known = self.write();
        if known.entries.iter().any(|entry| entry.tag == tag) {
            return said(false, "Reactor already exists.");
        }
        if known.entries.len() >= ENTRIES_MAX {
            return said(false, &format!("There are {ENTRIES_MAX} reactions, as many as there may be."));
        }
        let from_minions = data.get_bool("from_minions") == Some(true);
        match Entry::of(tag, data.get("reactors").unwrap_or(&Value::Nil), from_minions) {
            Err(why) => said(false, &format!("Reactor not added: {why}.")),
            Ok(entry) => {
                let mut entries = known.entries.clone();
                entries.push(Arc::new(entry));
                known.set(entries);
                said(true, "Reactor added.")
            }
        }
    }

    /// Removes the entry of `event`. Returns Salt's answer.
    pub(super) fn delete(&self, data: &Value) -> Value {
        let tag = data.get("event").map(|tag| tag.python_str()).unwrap_or_default();
        let mut known = self.write();
        let Some(place) = known.entries.iter().position(|entry| entry.tag == tag) else {
            return said(false, "Reactor does not exists.");
        };
        let mut entries = known.entries.clone();
        entries.remove(place);
        known.set(entries);
        said(true, "Reactor deleted.")
    }

    fn read(&self) -> RwLockReadGuard<'_, Known> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Known> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

fn said(status: bool, comment: &str) -> Value {
    map([("status", Value::from(status)), ("comment", comment.into())])
}

#[cfg(test)]
mod tests {
    use brine_protocol::config::yaml;

    use super::*;

    #[test]
    fn reactions_come_and_go_as_in_salt() {
        let load = |text: &str| yaml::load(text).unwrap();
        let table = Table::new(vec![Arc::new(Entry::new(&load("{'a/*': [/a.sls]}")).unwrap())]);
        let comment = |answer: Value| answer.get_text("comment").unwrap().to_owned();
        assert_eq!(comment(table.add(&load("{event: 'a/*', reactors: [/b.sls]}"))), "Reactor already exists.");
        assert_eq!(
            comment(table.add(&load("{event: 'b/*', reactors: [/b.sls], from_minions: true}"))),
            "Reactor added."
        );
        assert!(comment(table.add(&load("{event: 'c', reactors: [../b.sls]}"))).starts_with("Reactor not added: "));
        assert_eq!(table.list(), load("[{'a/*': [/a.sls]}, {'b/*': [/b.sls], from_minions: true}]"));
        assert_eq!(table.matching("b/x").len(), 1);
        assert_eq!(comment(table.delete(&load("{event: 'b/*'}"))), "Reactor deleted.");
        assert_eq!(comment(table.delete(&load("{event: 'b/*'}"))), "Reactor does not exists.");
        assert!(table.matching("b/x").is_empty() && table.matching("a/x").len() == 1);
    }

    #[test]
    fn a_changed_configuration_replaces_all_and_the_same_one_nothing() {
        let load = |text: &str| Arc::new(Entry::new(&yaml::load(text).unwrap()).unwrap());
        let (a, b) = ("{'a/*': [/a.sls], from_engines: true}", "{'b/*': [/b.sls]}");
        let table = Table::new(vec![load(a), load(b)]);
        let ids = |tag: &str| table.matching(tag).iter().map(|entry| entry.id).collect::<Vec<_>>();
        let before = ids("a/x");
        table.add(&yaml::load("{event: 'c/*', reactors: [/c.sls]}").unwrap());
        table.delete(&yaml::load("{event: 'b/*'}").unwrap());
        table.replace(&[load(a), load(b)]);
        assert_eq!((ids("b/x").len(), ids("c/x").len()), (0, 1), "nothing changed in the file");
        table.replace(&[load(b), load(a), load("{'d/*': [/d.sls]}")]);
        assert_eq!((ids("b/x").len(), ids("c/x").len(), ids("d/x").len()), (1, 0, 1));
        assert_eq!(ids("a/x"), before, "what stays is known by its number");
        table.replace(&[load("{'a/*': [/a.sls]}")]);
        assert_ne!(ids("a/x"), before, "another right is another reaction");
    }
}
