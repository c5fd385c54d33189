//! The entries, and when each fires next.
//!
//! - `arm`: reads the entries and finds their next firings · `due`: what fires now · `shown`: what `schedule.list` shows

mod arm;
mod due;
mod shown;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use brine_protocol::value::{Value, ValueExt, empty_map, map};
use brine_schedule::entry::{GLOBAL, MAX_NAME};
use brine_schedule::{Entry, Fire, Globals, Missed, Now};
use jiff::Timestamp;
use tracing::{error, warn};

use super::journal::Journal;
use super::lost::LostFirings;
use super::whose::{Place, Rights, essence, note_master, note_one};
use crate::lines::Lines;
use crate::weight::weight;

/// Upper bound on the entries of one place: what is more is a mistake, and refused whole.
pub(super) const MAX_ENTRIES: usize = 10_000;
/// Upper bound on the memory of all entries that `schedule.*` may make of them: a kilobyte and a half for each of the most. A firing has
/// its own copy of one.
const MAX_WEIGHT: usize = 16 << 20;
const FORMAT: &str = "%Y-%m-%dT%H:%M:%S";
/// The key of the function that runs in the place of those that are skipped.
const SKIP_FUNCTION: &str = "skip_function";

/// Where entries come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum From {
    /// The configuration, `_schedule.conf` and `schedule.*`.
    Opts,
    /// The pillar.
    Pillar,
    /// Both; of two with one name, that of the configuration counts.
    All,
}

/// A change of the entries.
#[derive(Debug)]
pub(crate) enum Change {
    /// Adds or replaces entries.
    Add(Value),
    /// Replaces an entry.
    Modify(String, Value),
    /// Removes an entry.
    Delete(String),
    /// Enables or disables all entries.
    Enable(bool),
    /// Enables or disables an entry.
    EnableJob(String, bool),
    /// Skips an entry at a time: a dict with `time` and `time_fmt`, and with `new_time` also runs it then.
    Postpone(String, Value),
    /// Adds what a file has.
    Reload(Value),
    /// Runs an entry now, with the rights of the master with this fingerprint or of this host.
    Run(String, Option<Arc<str>>),
    /// Writes the entries to `_schedule.conf`.
    Save,
    /// Writes these entries to `_schedule.conf`, and changes nothing else.
    ReplaceSaved(Value),
}

/// A job to start.
#[derive(Debug)]
pub(super) struct Start {
    pub(super) entry: Entry,
    pub(super) function: String,
    /// Whether the pillar says the function, in the place of the entry's own (`skip_function`): then it has none but the master's rights.
    pub(super) of_pillar: bool,
    pub(super) rights: Rights,
    pub(super) jid: String,
    pub(super) due: Timestamp,
    pub(super) running: Arc<AtomicU64>,
}

/// One entry that was read.
struct Live {
    raw: Value,
    globals: Globals,
    place: Place,
    entry: Result<Entry, String>,
    fire: Option<Fire>,
    /// Dates that are lost when it fires then: said when they have passed.
    passed_over: Option<Missed>,
    /// The firing at the start, which no gate holds back.
    free: bool,
    running: Arc<AtomicU64>,
    last_run: Option<Timestamp>,
    skipped: Option<(&'static str, Timestamp)>,
}

/// All entries.
pub(super) struct Table {
    /// What stands in the owner's files.
    owners: Value,
    opts: Value,
    pillar: Value,
    live: HashMap<String, Live>,
    by_up: BTreeSet<(Duration, String)>,
    by_wall: BTreeSet<(Timestamp, String)>,
    /// Whether entries may have changed since they were armed.
    stale: bool,
    asked: Vec<(String, Option<Arc<str>>)>,
    lost: LostFirings,
    /// The lines about jobs that are none.
    lines: Lines,
    journal: Journal,
    /// Whether entries fire in this process: until then, none is armed.
    firing: bool,
    /// Whether the entries of this process's start are armed.
    armed: bool,
    /// The time of the last step.
    before: Option<Now>,
}

/// Whether a schedule may be taken.
pub(super) fn check(schedule: &Value) -> Result<(), String> {
    let Some(entries) = schedule.entries() else { return Err("Schedule must be of type dict.".to_owned()) };
    if entries.len() > MAX_ENTRIES {
        return Err(format!("a schedule has at most {MAX_ENTRIES} jobs, not {}", entries.len()));
    }
    match entries.iter().find(|(name, _)| !name.text().is_some_and(is_name)) {
        Some((name, _)) => {
            Err(format!("{} is no name of a job: one line of at most {MAX_NAME} bytes", name.python_repr()))
        }
        None => Ok(()),
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_NAME && !name.chars().any(char::is_control)
}

impl Table {
    /// Entries of the owner's files, and of `_schedule.conf`, which count where both have a name.
    pub(super) fn new(owners: Value, kept: Value, journal: Journal) -> Self {
        let usable = |schedule: Value, what: &str| match check(&schedule) {
            Ok(()) => schedule,
            Err(why) => {
                error!("the schedule of {what} is not used: {why}");
                empty_map()
            }
        };
        let (owners, kept) = (usable(owners, "the configuration"), usable(kept, "_schedule.conf"));
        let mut opts = owners.clone();
        for (name, entry) in kept.entries().unwrap_or_default() {
            opts.insert(name.text().unwrap_or_default(), entry.clone());
        }
        Self {
            owners,
            opts,
            pillar: empty_map(),
            live: HashMap::new(),
            by_up: BTreeSet::new(),
            by_wall: BTreeSet::new(),
            stale: true,
            asked: Vec::new(),
            lost: LostFirings::default(),
            lines: Lines::about("jobs of the schedule that cannot be read"),
            journal,
            firing: false,
            armed: false,
            before: None,
        }
    }

    /// What `schedule.*` changed or added: what the owner's files have as it is stays there alone, so that a change of them counts.
    pub(super) fn to_save(&self) -> Value {
        let owners = by_name(&self.owners);
        map(pairs(&self.opts)
            .filter(|(name, entry)| owners.get(name) != Some(entry))
            .map(|(name, entry)| (name, entry.clone())))
    }

    /// Takes what the owner's files have now. What `schedule.*` changed or added stays on top of it; what it deleted stays away as long as
    /// the files say the same of it.
    ///
    /// # Errors
    /// A sentence; then nothing changes.
    pub(super) fn take_owners(&mut self, owners: Value) -> Result<(), String> {
        check(&owners)?;
        let (before, now, present) = (by_name(&self.owners), by_name(&owners), by_name(&self.opts));
        let mut opts: Vec<(Value, Value)> = Vec::new();
        for (name, entry) in pairs(&owners) {
            let (was, is) = (before.get(name), present.get(name));
            if is.is_none() && was == Some(&entry) {
                continue;
            }
            let changed = is.filter(|is| was != Some(is)).copied();
            if changed.is_some_and(|changed| changed != entry) && was != Some(&entry) {
                warn!(
                    "{name:?} of the schedule was changed by schedule.* and stays so; the configuration has something else"
                );
            }
            opts.push((Value::from(name), changed.unwrap_or(entry).clone()));
        }
        let added =
            pairs(&self.opts).filter(|(name, entry)| !now.contains_key(name) && before.get(name) != Some(entry));
        opts.extend(added.map(|(name, entry)| (Value::from(name), entry.clone())));
        let opts = Value::Map(opts);
        check(&opts)?;
        self.owners = owners;
        self.take_opts(opts);
        Ok(())
    }

    /// Takes other entries. Of one whose times may have changed, it does not count when it last fired.
    fn take_opts(&mut self, opts: Value) {
        let (before, now) = (by_name(&self.opts), by_name(&opts));
        let names: HashSet<&str> = before.keys().chain(now.keys()).copied().collect();
        for name in names {
            let (one, other) = (before.get(name), now.get(name));
            if one != other && one.map(|one| essence(one)) != other.map(|other| essence(other)) {
                self.journal.forget(name);
            }
        }
        self.opts = opts;
        self.stale = true;
    }

    /// Takes the pillar's entries.
    pub(super) fn take_pillar(&mut self, schedule: Option<&Value>) {
        let none = empty_map();
        let schedule = schedule.unwrap_or(&none);
        if *schedule == self.pillar {
            return;
        }
        match check(schedule) {
            Ok(()) => self.pillar = schedule.clone(),
            Err(_) if self.pillar == none => return,
            Err(why) => {
                error!("the schedule of the pillar is not used: {why}");
                self.pillar = none;
            }
        }
        self.stale = true;
    }

    pub(super) fn change(&mut self, change: Change, asker: Option<&str>) -> Result<(), String> {
        let mut opts = self.opts.clone();
        let in_opts = |opts: &Value, name: &str| opts.get(name).is_some();
        match change {
            Change::Add(entries) => {
                check(&entries)?;
                for (name, entry) in entries.entries().unwrap_or_default() {
                    let name = name.text().unwrap_or_default();
                    if self.pillar.get(name).is_some() {
                        warn!("the job {name:?} of the schedule is in the pillar and cannot be changed");
                        continue;
                    }
                    let mut entry = entry.clone();
                    if entry.entries().is_some() && entry.get("enabled").is_none() {
                        entry.insert("enabled", true);
                    }
                    note_one(&mut entry, opts.get(name), asker);
                    opts.insert(name, entry);
                }
            }
            Change::Modify(name, mut entry) => {
                if !in_opts(&opts, &name) && self.pillar.get(&name).is_some() {
                    warn!("the job {name:?} of the schedule is in the pillar and cannot be changed");
                    return Ok(());
                }
                note_one(&mut entry, opts.get(&name), asker);
                opts.insert(&name, entry);
            }
            Change::Delete(name) => {
                if opts.remove(&name).is_none() && self.pillar.get(&name).is_some() {
                    warn!("the job {name:?} of the schedule is in the pillar and cannot be deleted");
                }
            }
            Change::Enable(enabled) => opts.insert("enabled", enabled),
            Change::EnableJob(name, enabled) => match opts.get(&name).cloned() {
                Some(mut entry) if entry.entries().is_some() => {
                    entry.insert("enabled", enabled);
                    opts.insert(&name, entry);
                }
                _ => warn!("the job {name:?} of the schedule cannot be changed here"),
            },
            Change::Postpone(name, times) => match opts.get(&name).cloned() {
                Some(mut entry) if entry.entries().is_some() => {
                    let format = times.get_text("time_fmt").unwrap_or(FORMAT).to_owned();
                    for (key, list) in [("time", "skip_explicit"), ("new_time", "run_explicit")] {
                        let Some(time) = times.get_text(key) else { continue };
                        let item = map([("time", time), ("time_fmt", &format)]);
                        let mut items = entry.get_list(list).unwrap_or_default().to_vec();
                        items.push(item);
                        entry.insert(list, Value::Array(items));
                    }
                    opts.insert(&name, entry);
                }
                _ => warn!("the job {name:?} of the schedule cannot be changed here"),
            },
            Change::Reload(schedule) => {
                let mut inner = schedule.get("schedule").cloned().unwrap_or(schedule);
                check(&inner)?;
                note_master(&mut inner, &opts, asker);
                for (name, entry) in inner.entries().unwrap_or_default() {
                    opts.insert(name.text().unwrap_or_default(), entry.clone());
                }
            }
            Change::Run(name, asker) => {
                self.asked.push((name, asker));
                return Ok(());
            }
            Change::Save | Change::ReplaceSaved(_) => {}
        }
        check(&opts)?;
        let bytes = weight(&opts);
        if bytes > MAX_WEIGHT && bytes > weight(&self.opts) {
            return Err(format!(
                "all jobs of the schedule together would take {bytes} bytes of memory, more than {MAX_WEIGHT}"
            ));
        }
        self.take_opts(opts);
        Ok(())
    }

    /// The entries that count, by name.
    fn merged(&self) -> Vec<(&str, &Value, Place)> {
        let (owners, here) = (by_name(&self.owners), by_name(&self.opts));
        let opts = pairs(&self.opts).map(|(name, entry)| {
            let is_owners = owners.get(name).is_some_and(|own| essence(own) == essence(entry));
            (name, entry, if is_owners { Place::Owner } else { Place::Changed })
        });
        let pillar = pairs(&self.pillar).filter(|(name, _)| !here.contains_key(name));
        opts.chain(pillar.map(|(name, entry)| (name, entry, Place::Pillar))).collect()
    }

    /// What is said for all entries. A function that runs in the place of others (`skip_function`) is the owner's or the pillar's: what
    /// `schedule.*` says of it does not count, since it would run with the rights of whoever's entry is skipped.
    fn globals(&self) -> Globals {
        let mut all = self.pillar.clone();
        for key in GLOBAL {
            let said = if key == SKIP_FUNCTION { &self.owners } else { &self.opts };
            if let Some(value) = said.get(key) {
                all.insert(key, value.clone());
            }
        }
        Globals::read(&all)
    }

    /// Whether the pillar says which function runs in the place of those that are skipped.
    fn skips_by_pillar(&self) -> bool {
        self.owners.get(SKIP_FUNCTION).is_none()
    }
}

fn pairs(schedule: &Value) -> impl Iterator<Item = (&str, &Value)> {
    schedule.entries().unwrap_or_default().iter().filter_map(|(name, entry)| Some((name.text()?, entry)))
}

fn by_name(schedule: &Value) -> HashMap<&str, &Value> {
    pairs(schedule).collect()
}
