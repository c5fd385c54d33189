//! Which events a reaction is for: minions are not trusted, and nothing reacts to what it caused itself.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use brine_protocol::ids::MinionId;
use brine_protocol::value::{Value, map};

use super::entry::Entry;
use crate::access::Principal;
use crate::bucket::{Bucket, Size};
use crate::bus::BusEvent;

/// How many reactions may lead to each other.
const CHAIN_MAX: usize = 8;
/// The reactions of one entry that one minion causes by its own events. A reaction that makes the minion fire again is
/// not known by its jid, and so ends here.
const OF_ONE: Size = Size { most: 200.0, each_second: 20.0 };
/// Bound on the minions and entries in memory of which that is known.
const KNOWN_MAX: usize = 1 << 16;
/// Bound on what has been said.
const SAID_MAX: usize = 1 << 16;

/// What is to be done with an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Judgement {
    React,
    /// The entry is not for events of minions, or of engines.
    Never,
    TooOften,
    Loop,
}

/// What has been said, and what minions caused.
#[derive(Default)]
pub(super) struct Trust {
    said: Mutex<HashSet<(u64, &'static str)>>,
    buckets: Mutex<HashMap<(u64, MinionId), Bucket>>,
}

impl Trust {
    /// Judges an entry for an event; `chain` has the entries that led to the event.
    pub(super) fn judge(&self, entry: &Entry, event: &BusEvent, chain: &[u64]) -> Judgement {
        let tag = brine_protocol::text::short(&event.event.tag, 128);
        let name = brine_protocol::text::short(&entry.tag, 128);
        if let Principal::Minion(id) = &event.by {
            if !entry.from_minions && !is_start(event, id) {
                self.once(entry, "minion", || {
                    format!(
                        "reactor: no reaction of {name:?} to the event {tag} of the minion {id}: a minion may fire what it \
                         likes. To react to events of minions, add the line `from_minions: true` to this entry"
                    )
                });
                return Judgement::Never;
            }
            if !self.has_left(entry, id) {
                return Judgement::TooOften;
            }
        }
        if let Principal::Engine(name) = &event.by
            && !entry.from_engines
        {
            self.once(entry, "engine", || {
                format!(
                    "reactor: no reaction of {:?} to the event {tag} of the engine {name}: an engine acts on what others tell \
                     it. To react to events of engines, add the line `from_engines: true` to this entry",
                    entry.tag
                )
            });
            return Judgement::Never;
        }
        if chain.contains(&entry.id) {
            self.once(entry, "loop", || {
                format!("reactor: {name:?} does not react to {tag}, which it has caused itself: that would never end")
            });
            return Judgement::Loop;
        }
        if chain.len() >= CHAIN_MAX {
            self.once(entry, "chain", || {
                format!("reactor: {name:?} does not react to {tag}: more than {CHAIN_MAX} reactions have led to it")
            });
            return Judgement::Loop;
        }
        Judgement::React
    }

    /// What templates get as `data`, if not the event's own: of a start event, only what the master itself knows to be
    /// true, unless all entries are for events of minions.
    pub(super) fn data(&self, entries: &[Arc<Entry>], event: &BusEvent) -> Option<Value> {
        let Principal::Minion(id) = &event.by else { return None };
        if entries.iter().all(|entry| entry.from_minions) {
            return None;
        }
        let known = [
            ("id", id.as_str()),
            ("tag", event.event.tag.as_str()),
            ("cmd", "_minion_event"),
            ("_stamp", &brine_protocol::event::stamp()),
        ];
        Some(map(known))
    }

    fn has_left(&self, entry: &Entry, id: &MinionId) -> bool {
        let now = Instant::now();
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (entry.id, id.clone());
        if buckets.len() >= KNOWN_MAX && !buckets.contains_key(&key) {
            buckets.retain(|_, bucket| !bucket.is_full(OF_ONE, now));
            if buckets.len() >= KNOWN_MAX {
                return false;
            }
        }
        buckets.entry(key).or_insert_with(|| Bucket::full(OF_ONE, now)).take(OF_ONE, 1.0, 0.0, now)
    }

    fn once(&self, entry: &Entry, what: &'static str, text: impl FnOnce() -> String) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.len() < SAID_MAX && said.insert((entry.id, what)) {
            drop(said);
            tracing::warn!("{}", text());
        }
    }
}

/// Whether it is the start event of a minion, whose tag only this minion can fire: that it started, the master knows.
fn is_start(event: &BusEvent, id: &MinionId) -> bool {
    let parts = event.event.tag.strip_prefix("salt/minion/").and_then(|rest| rest.strip_suffix("/start"));
    parts == Some(id.as_str())
}

/// Who fired an event, for templates: `{kind, name}`.
pub(super) fn fired_by(by: &Principal) -> Value {
    let kind = match by {
        Principal::Master => "master",
        Principal::Root { .. } => "root",
        Principal::User(_) => "user",
        Principal::Minion(_) => "minion",
        Principal::Reactor(_) => "reactor",
        Principal::Engine(_) => "engine",
    };
    map([("kind", kind), ("name", by.name())])
}

#[cfg(test)]
mod tests {
    use brine_protocol::config::yaml;
    use brine_protocol::event::Framing;
    use brine_protocol::value::ValueExt as _;
    use futures_util::FutureExt as _;

    use super::*;
    use crate::bus::{Bus, Next};

    fn event(by: Principal, tag: &str) -> Arc<BusEvent> {
        let bus = Bus::new(Framing::Bare, 1 << 20);
        let events = bus.subscribe().unwrap();
        bus.fire_by(by, tag, map([("id", "m1"), ("data", "evil"), ("_stamp", "then")]));
        match events.next().now_or_never() {
            Some(Some(Next::Event(event))) => event,
            other => panic!("{other:?}"),
        }
    }

    fn entry(text: &str) -> Arc<Entry> {
        Arc::new(Entry::new(&yaml::load(text).unwrap()).unwrap())
    }

    fn minion(id: &str) -> Principal {
        Principal::Minion(id.parse().unwrap())
    }

    #[test]
    fn minions_are_trusted_where_it_is_written() {
        let (trust, plain, open) = (Trust::default(), entry("{'*': /a}"), entry("{'*': /a, from_minions: true}"));
        for (by, tag, with, without) in [
            (minion("m1"), "deploy/done", Judgement::React, Judgement::Never),
            (minion("m1"), "salt/beacon/m1/load/", Judgement::React, Judgement::Never),
            (minion("m1"), "minion_start", Judgement::React, Judgement::Never),
            (minion("m1"), "salt/minion/m1/start", Judgement::React, Judgement::React),
            (minion("m2"), "salt/minion/m1/start", Judgement::React, Judgement::Never),
            (Principal::Engine("e".into()), "deploy/done", Judgement::Never, Judgement::Never),
            (Principal::Master, "salt/job/20261124000000000000/ret/m1", Judgement::React, Judgement::React),
            (Principal::local_program(), "deploy/done", Judgement::React, Judgement::React),
        ] {
            let event = event(by, tag);
            assert_eq!(trust.judge(&open, &event, &[]), with, "{tag}");
            assert_eq!(trust.judge(&plain, &event, &[]), without, "{tag}");
        }
        let engines = entry("{'*': /a, from_engines: true}");
        let fired = event(Principal::Engine("e".into()), "deploy/done");
        assert_eq!(trust.judge(&engines, &fired, &[]), Judgement::React);
        let fired = event(minion("m1"), "deploy/done");
        assert_eq!(trust.judge(&engines, &fired, &[]), Judgement::Never);
        assert_eq!(trust.said.lock().unwrap().len(), 4, "it is said once for each entry and kind of source");
    }

    #[test]
    fn of_a_start_the_master_tells_what_it_knows() {
        let (trust, plain, open) = (Trust::default(), entry("{'*': /a}"), entry("{'*': /a, from_minions: true}"));
        let start = event(minion("m1"), "salt/minion/m1/start");
        assert!(trust.data(&[Arc::clone(&open)], &start).is_none());
        let told = trust.data(&[open, plain.clone()], &start).unwrap();
        assert_eq!((told.get_text("id"), told.has("data")), (Some("m1"), false));
        assert_ne!(told.get_text("_stamp"), Some("then"));
        assert!(trust.data(&[plain], &event(Principal::Master, "salt/key")).is_none());
    }

    #[test]
    fn loops_end() {
        let (trust, own) = (Trust::default(), entry("{'*': /a, from_minions: true}"));
        let event = event(Principal::Master, "x");
        let other = own.id + 1_000_000;
        assert_eq!(trust.judge(&own, &event, &[other, other]), Judgement::React);
        assert_eq!(trust.judge(&own, &event, &[other, own.id, other]), Judgement::Loop);
        assert_eq!(trust.judge(&own, &event, &[other; CHAIN_MAX]), Judgement::Loop);
        let of_minion = super::tests::event(minion("m1"), "x");
        let judged: Vec<_> = (0..1_000).map(|_| trust.judge(&own, &of_minion, &[])).collect();
        let often = judged.iter().filter(|judged| **judged == Judgement::TooOften).count();
        assert!((700..=800).contains(&often), "{often}");
        assert_eq!(
            trust.judge(&own, &super::tests::event(minion("m2"), "x"), &[]),
            Judgement::React,
            "each has its own"
        );
    }
}
