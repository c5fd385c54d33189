//! The reactor: events of the bus start jobs, runners and functions of the wheel (`reactor:` in the configuration).
//!
//! The reactor is a reader of the bus like any other, so it delays nothing. Whatever it starts goes through the doors of
//! all callers as the principal *reactor*: judged by `reactor_acl`, and written to the audit log.
//!
//! | file | content |
//! |---|---|
//! | `config` | the settings |
//! | `entry` | one reaction: a glob of tags and its SLS files |
//! | `matching` | which of many globs a tag matches |
//! | `table` | the reactions of a running master; `reactor.add` and its relatives |
//! | `trust` | which events a reaction is for: minions are not trusted, and nothing reacts to itself |
//! | `queue` | events that wait for their reactions |
//! | `left_out` | counts and tells what was left out |
//! | `files` | SLS paths to files |
//! | `chunk` | what a low chunk asks to start |
//! | `render` | the thread that renders |
//! | `start` | starts jobs, runners and functions of the wheel |
//!
//! An event's way: the bus → `Reactor::look` → `queue` → `render` → `start`.

mod chunk;
mod config;
mod entry;
mod files;
mod left_out;
mod matching;
mod queue;
mod render;
mod start;
mod table;
mod trust;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use brine_protocol::value::{Value, ValueExt as _, map};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::access::{Permission, Principal};
use crate::bus::{Bus, BusEvent, Next, Subscription};
use crate::chains::Chains;
use crate::runners::Runners;
pub(crate) use config::ReactorOpts;
use left_out::{LeftOut, Why};
use queue::{Queue, Work};
use table::Table;
use trust::{Judgement, Trust};

/// Tags of the runners that ask the reactor for something.
const MANAGE: &str = "salt/reactors/manage/";
/// The first part of the tags of its own events, to which it does not react.
const OWN: &str = "brine/reactor/";

/// The reactor of a master.
pub(crate) struct Reactor {
    /// The settings of the start.
    opts: ReactorOpts,
    /// `reactor_acl`, as it is now.
    acl: ArcSwap<Option<Arc<[Permission]>>>,
    /// The master's name.
    id: String,
    runners: Runners,
    bus: Bus,
    chains: Arc<Chains>,
    table: Table,
    trust: Trust,
    queue: Queue,
    left_out: LeftOut,
    is_leader: AtomicBool,
    /// There are reactions now.
    wanted: Notify,
}

impl Reactor {
    /// Makes the reactor and subscribes it. Without reactions it has no events until there are some.
    pub(crate) fn new(
        opts: ReactorOpts,
        id: String,
        runners: Runners,
        bus: Bus,
        chains: Arc<Chains>,
    ) -> (Arc<Self>, Option<Subscription>) {
        let this = Self {
            table: Table::new(opts.entries.clone()),
            acl: ArcSwap::from_pointee(opts.permissions.clone()),
            wanted: Notify::new(),
            trust: Trust::default(),
            queue: Queue::new(opts.waiting_max),
            left_out: LeftOut::default(),
            is_leader: AtomicBool::new(true),
            opts,
            id,
            runners,
            bus,
            chains,
        };
        let events = if this.opts.entries.is_empty() { None } else { this.subscribe() };
        (Arc::new(this), events)
    }

    fn subscribe(&self) -> Option<Subscription> {
        let events = self.bus.subscribe();
        match events {
            Some(_) => tracing::info!("the reactor runs"),
            None => tracing::error!("the reactor does not run: the event bus has as many subscribers as it may"),
        }
        events
    }

    /// Takes over changed settings: `reactor` and `reactor_acl`. A changed `reactor` replaces what runners changed, too.
    pub(crate) fn replace(&self, opts: &ReactorOpts) {
        self.acl.store(opts.permissions.clone().into());
        self.table.replace(&opts.entries);
        if !opts.entries.is_empty() {
            self.wanted.notify_one();
        }
    }

    /// Reacts to events until `stop`.
    pub(crate) async fn run(self: Arc<Self>, events: Option<Subscription>, stop: CancellationToken) {
        let wanted = async {
            match events {
                Some(events) => events,
                None => loop {
                    self.wanted.notified().await;
                    if let Some(events) = self.subscribe() {
                        break events;
                    }
                },
            }
        };
        let events = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            events = wanted => events,
        };
        let (starts, waiting) = tokio::sync::mpsc::channel(start::READY_MAX);
        let _thread = match render::Renderer::start(Arc::clone(&self), starts, stop.clone()) {
            Ok(thread) => thread,
            Err(error) => return tracing::error!("the reactor does not run: no thread for it: {error}"),
        };
        let looking = async {
            loop {
                let next = tokio::select! {
                    biased;
                    () = stop.cancelled() => break,
                    next = events.next() => next,
                };
                match next {
                    None => break,
                    Some(Next::Lost(count)) => self.left_out.add(Why::Bus, count),
                    Some(Next::Event(event)) => self.look(&event),
                }
            }
            self.queue.close();
        };
        tokio::join!(looking, start::run(&self, waiting, &stop), self.left_out.tell(&self.bus, &stop));
    }

    /// The permissions of all that reactions start.
    fn permissions(&self) -> Option<Arc<[Permission]>> {
        Option::clone(&self.acl.load())
    }

    /// Queues the reactions to an event.
    fn look(&self, event: &Arc<BusEvent>) {
        let (tag, data) = (event.event.tag.as_str(), &event.event.data);
        if let Some(what) = asked(event) {
            return self.manage(what, data);
        }
        // Salt's rule: what the reactor's own runs tell of themselves starts nothing.
        let is_own = tag.starts_with(OWN)
            || tag.starts_with(MANAGE)
            || !event.by.is_foreign() && data.get_text("user") == Some(crate::access::REACTOR);
        if is_own || !self.is_leader.load(Ordering::Relaxed) {
            return;
        }
        let found = self.table.matching(tag);
        if found.is_empty() {
            return;
        }
        let chain = self.chains.of(event);
        let mut entries = Vec::with_capacity(found.len());
        for entry in found {
            match self.trust.judge(&entry, event, &chain) {
                Judgement::React => entries.push(entry),
                // Said once, by itself.
                Judgement::Never | Judgement::Loop => {}
                Judgement::TooOften => self.left_out.add(Why::Minion, 1),
            }
        }
        if entries.is_empty() {
            return;
        }
        let data = self.trust.data(&entries, event);
        let chain = chain.iter().copied().chain(entries.iter().map(|entry| entry.id)).collect();
        let left = self.queue.push(Work { event: Arc::clone(event), data, entries, chain });
        self.left_out.add(Why::Queue, left);
    }

    /// Does what a runner asks for.
    fn manage(&self, what: &str, data: &Value) {
        let (answer, said) = match what {
            "list" => ("list-results", map([("reactors", self.table.list())])),
            "add" => {
                let result = self.table.add(data);
                ("add-complete", map([("reactors", self.table.list()), ("result", result)]))
            }
            "delete" => {
                let result = self.table.delete(data);
                ("delete-complete", map([("reactors", self.table.list()), ("result", result)]))
            }
            "is_leader" | "set_leader" => {
                if what == "set_leader" && data.get_text("id") == Some(&self.id) {
                    let value = data.get("value").is_some_and(|value| value.truthy());
                    self.is_leader.store(value, Ordering::Relaxed);
                }
                ("leader/value", map([("result", self.is_leader.load(Ordering::Relaxed))]))
            }
            _ => return,
        };
        self.bus.fire(format!("{MANAGE}{answer}"), said);
    }
}

/// What a runner, or root of this host, asks the reactor for. Nobody else can fire these tags, and nobody else counts.
fn asked(event: &BusEvent) -> Option<&str> {
    if !matches!(event.by, Principal::Master | Principal::Root { .. }) {
        return None;
    }
    event.event.tag.strip_prefix(MANAGE)
}

#[cfg(test)]
mod tests {
    use brine_protocol::event::Framing;
    use futures_util::FutureExt as _;

    use super::*;
    use crate::access::Reaction;

    #[test]
    fn only_the_master_and_root_ask_the_reactor_for_something() {
        let bus = Bus::new(Framing::Bare, 1 << 20);
        let events = bus.subscribe().unwrap();
        let asks = |by: Principal, tag: &str| {
            bus.fire_by(by, tag, map([("event", "x")]));
            match events.next().now_or_never() {
                Some(Some(Next::Event(event))) => asked(&event).map(str::to_owned),
                other => panic!("{other:?}"),
            }
        };
        let add = "salt/reactors/manage/add";
        for by in [Principal::Master, Principal::local_program()] {
            assert_eq!(asks(by.clone(), add).as_deref(), Some("add"));
            assert_eq!(asks(by, "salt/reactors/managed/add"), None);
        }
        let minion = Principal::Minion("m1".parse().unwrap());
        let reactor = Principal::Reactor(Reaction::new(None, Arc::default()));
        for by in [minion, reactor, Principal::Engine("e".into())] {
            assert_eq!(asks(by, add), None);
        }
    }
}
