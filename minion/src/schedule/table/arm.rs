//! Reads the entries and finds their next firings.

use std::collections::HashSet;

use brine_protocol::value::ValueExt;
use brine_schedule::trigger::Trigger;
use brine_schedule::{Entry, Fire, Now};
use tracing::error;

use super::super::journal::Note;
use super::super::whose::essence;
use super::{GLOBAL, Live, Table};

impl Table {
    /// Reads entries that are new or have changed, and finds their next firing.
    pub(in super::super) fn arm(&mut self, now: &Now, named: &dyn Fn(&str) -> Option<String>) {
        if !self.stale || !self.firing {
            return;
        }
        self.stale = false;
        let why =
            if std::mem::replace(&mut self.armed, true) { "it was not scheduled" } else { "the minion did not run" };
        let globals = self.globals();
        let today = now.local().date();
        let merged = self.merged().into_iter().filter(|(name, ..)| !GLOBAL.contains(name));
        let wanted: Vec<_> = merged.map(|(name, raw, place)| (name.to_owned(), raw.clone(), place)).collect();
        let names: HashSet<&str> = wanted.iter().map(|(name, ..)| name.as_str()).collect();
        let gone: Vec<String> = self.live.keys().filter(|name| !names.contains(name.as_str())).cloned().collect();
        for name in gone {
            let live = self.live.remove(&name);
            self.disarm(&name, live.and_then(|live| live.fire));
        }
        let mut notes = Vec::new();
        for (name, raw, place) in wanted {
            if let Some(live) = self.live.get(&name)
                && live.raw == raw
                && live.globals == globals
                && live.place == place
            {
                continue;
            }
            let entry = Entry::read(&name, &raw, &globals, today, named);
            if let Err(why) = &entry
                && self.lines.may()
            {
                error!("{why}");
            }
            let was = self.live.remove(&name);
            self.disarm(&name, was.as_ref().and_then(|live| live.fire));
            let did_fire = was.as_ref().is_some_and(|live| live.entry.is_ok());
            let running = was.as_ref().map(|live| std::sync::Arc::clone(&live.running)).unwrap_or_default();
            // A change that leaves the times as they are leaves the next firing too.
            let kept = was.filter(|live| live.entry.is_ok() && essence(&live.raw) == essence(&raw));
            let (mut fire, mut free) = (kept.as_ref().and_then(|live| live.fire), false);
            let mut passed_over = kept.as_ref().and_then(|live| live.passed_over);
            if let Ok(entry) = &entry
                && (kept.is_none() || raw.get("run_explicit").is_some())
            {
                let last = self.journal.settled(&name);
                let armed = entry.at_start(last, now, rand::random());
                if kept.is_none() {
                    (fire, passed_over) = (armed.fire, armed.passed_over);
                    free = entry.run_on_start
                        && fire.is_some_and(|fire| fire.is_due(now))
                        && (last.is_none() || !matches!(entry.trigger, Trigger::Every(_)));
                    // One whose times were others until now has missed none of these.
                    if let Some(missed) = armed.missed.filter(|_| !did_fire) {
                        self.lost.add(&name, missed, why);
                    }
                    let settled = armed.settled.map(|settled| Note { name: name.clone(), settled, job: None });
                    notes.extend(settled);
                } else if let Some(sooner) = armed.fire.filter(|fire| matches!(fire, Fire::Wall(_)))
                    && fire.is_none_or(|fire| sooner.on_wall(now) < fire.on_wall(now))
                {
                    (fire, passed_over) = (Some(sooner), armed.passed_over);
                }
            }
            self.place(&name, fire);
            let last_run = kept.and_then(|live| live.last_run);
            let globals = globals.clone();
            let live = Live { raw, globals, place, entry, fire, passed_over, free, running, last_run, skipped: None };
            self.live.insert(name, live);
        }
        self.lost.tell();
        self.journal.note(notes);
    }

    pub(super) fn place(&mut self, name: &str, fire: Option<Fire>) {
        match fire {
            Some(Fire::Up(at)) => drop(self.by_up.insert((at, name.to_owned()))),
            Some(Fire::Wall(at)) => drop(self.by_wall.insert((at, name.to_owned()))),
            None => {}
        }
    }

    fn disarm(&mut self, name: &str, fire: Option<Fire>) {
        match fire {
            Some(Fire::Up(at)) => drop(self.by_up.remove(&(at, name.to_owned()))),
            Some(Fire::Wall(at)) => drop(self.by_wall.remove(&(at, name.to_owned()))),
            None => {}
        }
    }
}
