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
}

impl Known {
    fn new(entries: Vec<Arc<Entry>>) -> Self {
        let index = Index::new(entries.iter().map(|entry| entry.tag.as_str()));
        Self { entries, index }
    }
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
        Value::Array(self.read().entries.iter().map(|entry| entry.written.clone()).collect())
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
                *known = Known::new(entries);
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
        *known = Known::new(entries);
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
}
