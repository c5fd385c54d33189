//! Whose an entry is, and whose rights its jobs have.
//!
//! An entry that a master's job added or changed is that master's from then on: no master gets another's rights by waiting until
//! that one is preferred.

use std::sync::Arc;

use brine_protocol::value::{Value, ValueExt};

/// The key of an entry that says which master's job added it, by the fingerprint of its key.
pub(super) const MASTER: &str = "_master";
/// Whose rights an entry has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Rights {
    /// Those of this host's own jobs.
    Owner,
    /// Those of the preferred master's jobs.
    Master,
    /// Those of the job that asked for it.
    Asker(Option<Arc<str>>),
}

/// Whose an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// It stands in the owner's files as it is.
    Owner,
    /// It was added or changed by `schedule.*`.
    Changed,
    Pillar,
}

impl Place {
    /// The rights of an entry of this place.
    pub(super) fn rights(self, entry: &Value) -> Rights {
        match (self, entry.get_text(MASTER)) {
            (Self::Owner, _) => Rights::Owner,
            (Self::Changed, Some(master)) => Rights::Asker(Some(master.into())),
            // The pillar cannot speak for another master.
            (Self::Changed | Self::Pillar, _) => Rights::Master,
        }
    }
}

/// Notes in each entry of a schedule which master added or changed it. One that is as it was before stays whose it was.
pub(super) fn note_master(schedule: &mut Value, before: &Value, asker: Option<&str>) {
    let Value::Map(entries) = schedule else { return };
    for (name, entry) in entries {
        note_one(entry, name.text().and_then(|name| before.get(name)), asker);
    }
}

/// As [`note_master`], of one entry.
pub(super) fn note_one(entry: &mut Value, before: Option<&Value>, asker: Option<&str>) {
    if entry.entries().is_none() {
        return;
    }
    // What the caller says of it does not count.
    let _ = entry.remove(MASTER);
    let unchanged = before.filter(|before| essence(before) == essence(entry));
    let master = match unchanged {
        Some(before) => before.get_text(MASTER).map(str::to_owned),
        None => asker.map(str::to_owned),
    };
    if let Some(master) = master {
        entry.insert(MASTER, master);
    }
}

/// An entry without what `schedule.*` changes in one of the owner's and leaves it the owner's.
pub(super) fn essence(entry: &Value) -> Vec<(&Value, &Value)> {
    const LEFT_OUT: [&str; 4] = ["enabled", "name", "skip_explicit", "run_explicit"];
    let mut items: Vec<(&Value, &Value)> = entry.entries().unwrap_or_default().iter().map(|(k, v)| (k, v)).collect();
    items.retain(|(key, _)| !key.text().is_some_and(|key| LEFT_OUT.contains(&key) || key.starts_with('_')));
    items.sort_by_key(|(key, _)| key.python_repr());
    items
}

#[cfg(test)]
mod tests {
    use brine_protocol::config::yaml;

    use super::*;

    fn value(text: &str) -> Value {
        yaml::load(text).unwrap()
    }

    #[test]
    fn an_entry_is_whose_job_changed_it() {
        let before = value("{mine: {function: a.b, hours: 1, _master: strong}, old: {function: a.b, hours: 1}}");
        // Who changes nothing of an entry neither takes it over nor gives it away, whatever he says.
        let said = "{mine: {function: a.b, hours: 1, enabled: false, _master: weak}, old: {function: a.b, hours: 1, _master: strong}, \
                    changed: {function: c.d, hours: 1, _master: strong}, enabled: true}";
        let mut schedule = value(said);
        note_master(&mut schedule, &before, Some("weak"));
        let whose = |name: &str| schedule.get(name).and_then(|entry| entry.get_text(MASTER));
        assert_eq!((whose("mine"), whose("old"), whose("changed")), (Some("strong"), None, Some("weak")));
        let mut other = value("{mine: {function: c.d, hours: 1}}");
        note_master(&mut other, &before, Some("weak"));
        assert_eq!(other.get("mine").unwrap().get_text(MASTER), Some("weak"));
        let mut local = value("{mine: {function: c.d, hours: 1, _master: strong}}");
        note_master(&mut local, &before, None);
        assert_eq!(local.get("mine").unwrap().get_text(MASTER), None);
    }

    #[test]
    fn only_what_was_changed_here_names_its_master() {
        let entry = value("{function: a.b, _master: strong}");
        assert_eq!(Place::Changed.rights(&entry), Rights::Asker(Some("strong".into())));
        assert_eq!(Place::Pillar.rights(&entry), Rights::Master);
        assert_eq!(Place::Owner.rights(&entry), Rights::Owner);
        assert_eq!(Place::Changed.rights(&value("{function: a.b}")), Rights::Master);
    }
}
