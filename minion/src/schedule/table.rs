//! The entries, and when each fires next.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use brine_protocol::value::{Value, ValueExt, empty_map, map};
use brine_schedule::dates::in_format;
use brine_schedule::entry::{GLOBAL, MAX_NAME};
use brine_schedule::trigger::Trigger;
use brine_schedule::{Entry, Fire, Globals, Missed, Now, Verdict};
use jiff::Timestamp;
use tracing::{debug, error, info, warn};

use super::journal::Journal;
use super::whose::{Place, Rights, essence, note_master, note_one};

/// Upper bound on the entries of one place: what is more is a mistake, and refused whole.
pub(super) const MAX_ENTRIES: usize = 10_000;
/// Upper bound on the entries that fire in one step, so that others get the lock.
const MAX_AT_ONCE: usize = 200;
const FORMAT: &str = "%Y-%m-%dT%H:%M:%S";

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
    pub(super) rights: Rights,
    pub(super) jid: String,
    pub(super) running: Arc<AtomicU64>,
}

/// Firings that did not happen, and why.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Lost {
    pub(super) name: String,
    pub(super) missed: Missed,
    pub(super) why: &'static str,
}

/// One entry that was read.
struct Live {
    raw: Value,
    globals: Globals,
    place: Place,
    entry: Result<Entry, String>,
    fire: Option<Fire>,
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
    lost: Vec<Lost>,
    journal: Journal,
    /// Whether entries fire in this process: until then, none is armed.
    firing: bool,
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
            lost: Vec::new(),
            journal,
            firing: false,
            before: None,
        }
    }

    pub(super) fn opts(&self) -> &Value {
        &self.opts
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
                    self.journal.forget(name);
                }
            }
            Change::Modify(name, mut entry) => {
                if !in_opts(&opts, &name) && self.pillar.get(&name).is_some() {
                    warn!("the job {name:?} of the schedule is in the pillar and cannot be changed");
                    return Ok(());
                }
                note_one(&mut entry, opts.get(&name), asker);
                opts.insert(&name, entry);
                self.journal.forget(&name);
            }
            Change::Delete(name) => {
                if opts.remove(&name).is_none() && self.pillar.get(&name).is_some() {
                    warn!("the job {name:?} of the schedule is in the pillar and cannot be deleted");
                }
                self.journal.forget(&name);
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
        self.opts = opts;
        self.stale = true;
        Ok(())
    }

    /// The entries that count, by name.
    fn merged(&self) -> Vec<(&str, &Value, Place)> {
        let opts = self.opts.entries().unwrap_or_default().iter().filter_map(|(name, entry)| {
            let name = name.text()?;
            let is_owners = self.owners.get(name).is_some_and(|own| essence(own) == essence(entry));
            Some((name, entry, if is_owners { Place::Owner } else { Place::Changed }))
        });
        let pillar = self.pillar.entries().unwrap_or_default().iter();
        let pillar = pillar.filter_map(|(name, entry)| Some((name.text()?, entry, Place::Pillar)));
        opts.chain(pillar.filter(|(name, ..)| self.opts.get(name).is_none())).collect()
    }

    fn globals(&self) -> Globals {
        let mut all = self.pillar.clone();
        for key in GLOBAL {
            if let Some(value) = self.opts.get(key) {
                all.insert(key, value.clone());
            }
        }
        Globals::read(&all)
    }

    /// Reads entries that are new or have changed, and finds their next firing.
    pub(super) fn arm(&mut self, now: &Now, named: &dyn Fn(&str) -> Option<String>) {
        if !self.stale || !self.firing {
            return;
        }
        self.stale = false;
        let globals = self.globals();
        let today = now.local().date();
        let mut wanted = Vec::new();
        for (name, raw, place) in self.merged() {
            if !GLOBAL.contains(&name) {
                wanted.push((name.to_owned(), raw.clone(), place));
            }
        }
        let names: HashSet<&str> = wanted.iter().map(|(name, ..)| name.as_str()).collect();
        let gone: Vec<String> = self.live.keys().filter(|name| !names.contains(name.as_str())).cloned().collect();
        for name in gone {
            self.disarm(&name);
            self.live.remove(&name);
        }
        let mut seen = Vec::new();
        for (name, raw, place) in wanted {
            if let Some(live) = self.live.get(&name)
                && live.raw == raw
                && live.globals == globals
                && live.place == place
            {
                continue;
            }
            let entry = Entry::read(&name, &raw, &globals, today, named);
            if let Err(why) = &entry {
                error!("{why}");
            }
            // A change that leaves the times as they are leaves the next firing too.
            let kept = self.live.remove(&name).filter(|live| live.entry.is_ok() && essence(&live.raw) == essence(&raw));
            self.disarm_of(&name, kept.as_ref().and_then(|live| live.fire));
            let (mut fire, mut free) = (kept.as_ref().and_then(|live| live.fire), false);
            if let Ok(entry) = &entry
                && (kept.is_none() || raw.get("run_explicit").is_some())
            {
                let last = self.journal.last(&name);
                let armed = entry.at_start(last, now, rand::random());
                if kept.is_none() {
                    fire = armed.fire;
                    free = entry.run_on_start
                        && fire.is_some_and(|fire| fire.is_due(now))
                        && (last.is_none() || !matches!(entry.trigger, Trigger::Every(_)));
                    if let Some(missed) = armed.missed {
                        self.lost.push(Lost { name: name.clone(), missed, why: "the minion did not run" });
                    }
                    if last.is_none() && !matches!(entry.trigger, Trigger::Every(_)) {
                        seen.push((name.clone(), now.wall, None));
                    }
                } else {
                    fire = [fire, armed.fire.filter(|fire| matches!(fire, Fire::Wall(_)))]
                        .into_iter()
                        .flatten()
                        .min_by_key(|fire| fire.on_wall(now));
                }
            }
            self.place(&name, fire);
            let (running, last_run) = kept.map_or_else(Default::default, |live| (live.running, live.last_run));
            let live =
                Live { raw, globals: globals.clone(), place, entry, fire, free, running, last_run, skipped: None };
            self.live.insert(name, live);
        }
        self.journal.fired(&seen);
    }

    fn place(&mut self, name: &str, fire: Option<Fire>) {
        match fire {
            Some(Fire::Up(at)) => drop(self.by_up.insert((at, name.to_owned()))),
            Some(Fire::Wall(at)) => drop(self.by_wall.insert((at, name.to_owned()))),
            None => {}
        }
    }

    fn disarm(&mut self, name: &str) {
        self.disarm_of(name, self.live.get(name).and_then(|live| live.fire));
        // One that was replaced may be in either list.
    }

    fn disarm_of(&mut self, name: &str, fire: Option<Fire>) {
        match fire {
            Some(Fire::Up(at)) => drop(self.by_up.remove(&(at, name.to_owned()))),
            Some(Fire::Wall(at)) => drop(self.by_wall.remove(&(at, name.to_owned()))),
            None => {}
        }
    }

    /// Begins to fire. What an earlier process did not end is lost.
    pub(super) fn begin(&mut self, now: &Now) {
        self.firing = true;
        for (name, due) in self.journal.take_cut_off() {
            let missed = Missed { first: due, count: 1 };
            self.lost.push(Lost { name, missed, why: "the minion ended while it ran" });
        }
        self.before = Some(now.clone());
    }

    /// The jobs that are to start now; some at once. Each is noted before it is returned.
    pub(super) fn due(&mut self, now: &Now, jid: &dyn Fn() -> String) -> Vec<Start> {
        self.look_at_clock(now);
        let mut starts = Vec::new();
        let mut noted = Vec::new();
        for (name, asker) in std::mem::take(&mut self.asked) {
            let Some(live) = self.live.get_mut(&name) else { continue };
            let Ok(entry) = &live.entry else { continue };
            if entry.maxrunning.is_some_and(|most| live.running.load(Ordering::Relaxed) >= most) {
                info!(
                    "the job {name:?} of the schedule does not run now: {} run already",
                    live.running.load(Ordering::Relaxed)
                );
                continue;
            }
            live.running.fetch_add(1, Ordering::Relaxed);
            starts.push(Start {
                entry: entry.clone(),
                function: entry.function.clone(),
                rights: Rights::Asker(asker),
                jid: jid(),
                running: Arc::clone(&live.running),
            });
        }
        for _ in 0..MAX_AT_ONCE {
            let Some((fire, name)) = self.take_due(now) else { break };
            let Some(live) = self.live.get_mut(&name) else { continue };
            let Ok(entry) = &live.entry else { continue };
            let due = fire.on_wall(now);
            let free = std::mem::take(&mut live.free);
            let verdict = if !entry.enabled {
                Verdict::Skip("disabled")
            } else if entry.is_too_late(fire, now) {
                self.lost.push(Lost {
                    name: name.clone(),
                    missed: Missed { first: due, count: 1 },
                    why: "its time had passed",
                });
                Verdict::Skip("missed")
            } else if free {
                Verdict::Run
            } else {
                entry.gates.judge(now.local())
            };
            let verdict = match (verdict, entry.maxrunning) {
                (Verdict::Run | Verdict::Instead(_), Some(most)) if live.running.load(Ordering::Relaxed) >= most => {
                    Verdict::Skip("maxrunning")
                }
                (verdict, _) => verdict,
            };
            let function = match &verdict {
                Verdict::Run => Some(entry.function.clone()),
                Verdict::Instead(function) => Some(function.clone()),
                Verdict::Skip(_) => None,
            };
            live.skipped = None;
            let mut started = None;
            match (verdict, function) {
                (_, Some(_)) if entry.dry_run => debug!("the job {name:?} of the schedule would run (dry_run)"),
                (_, Some(function)) => {
                    let jid = jid();
                    live.running.fetch_add(1, Ordering::Relaxed);
                    live.last_run = Some(now.wall);
                    starts.push(Start {
                        entry: entry.clone(),
                        function,
                        rights: live.place.rights(&live.raw),
                        jid: jid.clone(),
                        running: Arc::clone(&live.running),
                    });
                    started = Some(jid);
                }
                (Verdict::Skip(why), None) => {
                    debug!("the job {name:?} of the schedule is skipped: {why}");
                    live.skipped = Some((why, now.wall));
                }
                (_, None) => {}
            }
            let armed = entry.after(fire, now, rand::random());
            live.fire = armed.fire;
            if let Some(missed) = armed.missed {
                self.lost.push(Lost { name: name.clone(), missed, why: "the clock went on, or the machine slept" });
            }
            self.place(&name, armed.fire);
            noted.push((name, due, started));
        }
        self.journal.fired(&noted);
        starts
    }

    fn take_due(&mut self, now: &Now) -> Option<(Fire, String)> {
        if self.by_up.first().is_some_and(|(at, _)| *at <= now.up) {
            return self.by_up.pop_first().map(|(at, name)| (Fire::Up(at), name));
        }
        if self.by_wall.first().is_some_and(|(at, _)| *at <= now.wall) {
            return self.by_wall.pop_first().map(|(at, name)| (Fire::Wall(at), name));
        }
        None
    }

    /// Says when the clock on the wall was set, and finds the firings anew if it was wrong by more than a day before.
    fn look_at_clock(&mut self, now: &Now) {
        const SAID: Duration = Duration::from_secs(5);
        const DAY: Duration = Duration::from_secs(86_400);
        let Some(before) = self.before.replace(now.clone()) else { return };
        let passed = now.up.saturating_sub(before.up);
        let Ok(expected) = before.wall.checked_add(passed) else { return };
        let step = now.wall.duration_since(expected);
        if step.unsigned_abs() < SAID {
            return;
        }
        let back = step.is_negative();
        let (way, by) = (if back { "back" } else { "on" }, step.unsigned_abs());
        info!("the clock was set {way} by {by:?}; times of the schedule that have fired do not fire again");
        if back && by > DAY {
            // The times that wait were found by a clock that was wrong.
            let waiting: Vec<String> = self.by_wall.iter().map(|(_, name)| name.clone()).collect();
            self.by_wall.clear();
            for name in waiting {
                let Some(live) = self.live.get_mut(&name) else { continue };
                let fire =
                    live.entry.as_ref().ok().and_then(|entry| entry.at_start(Some(now.wall), now, rand::random()).fire);
                live.fire = fire;
                self.place(&name, fire);
            }
        }
    }

    /// How long nothing is to be done; none is for ever.
    pub(super) fn wait(&self, now: &Now) -> Option<Duration> {
        let up = self.by_up.first().map(|(at, _)| at.saturating_sub(now.up));
        let wall = self.by_wall.first().map(|(at, _)| {
            let left = at.duration_since(now.wall);
            if left.is_negative() { Duration::ZERO } else { left.unsigned_abs() }
        });
        up.into_iter().chain(wall).min()
    }

    /// Notes that a job has ended.
    pub(super) fn ended(&mut self, jid: &str) {
        self.journal.ended(jid);
    }

    /// The firings that were lost since the last call.
    pub(super) fn take_lost(&mut self) -> Vec<Lost> {
        std::mem::take(&mut self.lost)
    }

    pub(super) fn list(&self, from: From, now: &Now) -> Value {
        let all: Vec<(&str, &Value)> = match from {
            From::All => self.merged().into_iter().map(|(name, entry, _)| (name, entry)).collect(),
            From::Opts => pairs(&self.opts).collect(),
            From::Pillar => pairs(&self.pillar).collect(),
        };
        map(all.into_iter().map(|(name, entry)| (name, self.shown(name, entry, FORMAT, now))))
    }

    pub(super) fn status(&self, name: &str, format: &str, now: &Now) -> Value {
        match self.opts.get(name).or_else(|| self.pillar.get(name)) {
            Some(entry) => self.shown(name, entry, format, now),
            None => empty_map(),
        }
    }

    /// An entry with the keys that Salt adds to it.
    fn shown(&self, name: &str, entry: &Value, format: &str, now: &Now) -> Value {
        if GLOBAL.contains(&name) || entry.entries().is_none() {
            return entry.clone();
        }
        let mut shown = entry.clone();
        let Some(live) = self.live.get(name) else { return shown };
        let time = |at: Timestamp| in_format(now.zone.to_datetime(at), format).map_or(Value::Nil, Value::from);
        shown.insert("name", name);
        match &live.entry {
            Err(why) => shown.insert("_error", why.as_str()),
            Ok(entry) => {
                if let Trigger::Every(every) = &entry.trigger {
                    shown.insert("_seconds", every.as_secs());
                }
                shown.insert("_next_fire_time", live.fire.map_or(Value::Nil, |fire| time(fire.on_wall(now))));
                shown.insert("_splay", Value::Nil);
                shown.insert("_run_on_start", false);
                if shown.get("splay").is_none() {
                    shown.insert("splay", live.globals.splay.clone().unwrap_or(Value::Nil));
                }
            }
        }
        if let Some(at) = live.last_run {
            shown.insert("_last_run", time(at));
            shown.insert("run", true);
            if shown.get("jid_include").is_none_or(ValueExt::truthy) {
                shown.insert("jid_include", true);
                if shown.get("maxrunning").is_none() {
                    shown.insert("maxrunning", 1);
                }
            }
        }
        if let Some((why, at)) = live.skipped {
            shown.insert("_skip_reason", why);
            shown.insert("_skipped", true);
            shown.insert("_skipped_time", time(at));
        }
        shown
    }
}

fn pairs(schedule: &Value) -> impl Iterator<Item = (&str, &Value)> {
    schedule.entries().unwrap_or_default().iter().filter_map(|(name, entry)| Some((name.text()?, entry)))
}
