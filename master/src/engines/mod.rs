//! Engines: modules of the sandbox that see events of the bus and may speak to hosts, as the configuration says
//! (`engines:`, `sandbox:`).
//!
//! An engine is given events in calls, each in an instance of its own: what the next call is to know, it returns as
//! bytes. It runs in an executor as modules on a minion do, and reaches what the owner of this master granted. The bus
//! never waits for an engine: each has a queue with a bound.
//!
//! | file | content |
//! |---|---|
//! | `config` | the settings |
//! | `tags` | which tags an engine sees |
//! | `queue` | events that wait for an engine |
//! | `broker` | what modules may ask of the master |
//! | `modules` | the sandbox, and the modules of the owner's folders |
//! | `shared` | the sandbox in use, and its exchange |
//! | `call` | one call of an engine |
//! | `run` | when an engine is called, and what becomes of faults |
//!
//! An event's way: the bus → `look_at_events` → `queue` → `run` → `call`.

mod broker;
mod call;
mod config;
mod modules;
mod queue;
mod run;
mod shared;
mod tags;

use std::path::PathBuf;
use std::sync::Arc;

use brine_protocol::value::{Value, map};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::access::Principal;
use crate::bus::{Bus, BusEvent, Next, Subscription};
pub(crate) use config::EngineOpts;
use run::Engine;
use shared::SharedSandbox;

/// The engines that the configuration names, and their events. Both change in one step, so that an engine which is listed
/// misses no event.
#[derive(Clone, Default)]
struct Table {
    /// By their place in the configuration.
    engines: Arc<[Arc<Engine>]>,
    /// `None` without engines.
    events: Option<Arc<Subscription>>,
}

/// The engines of a master.
pub(crate) struct Engines {
    /// What the configuration says now.
    opts: watch::Sender<EngineOpts>,
    /// The master's name.
    id: String,
    cachedir: PathBuf,
    bus: Bus,
    table: watch::Sender<Table>,
}

impl Engines {
    /// Makes the engines and subscribes them. They see what is on the bus from now on.
    pub(crate) fn new(opts: EngineOpts, id: String, cachedir: PathBuf, bus: Bus) -> Arc<Self> {
        let engines: Vec<_> = opts.entries.iter().map(|entry| Arc::new(Engine::new(Arc::clone(entry)))).collect();
        let this = Self { opts: watch::Sender::new(opts), id, cachedir, bus, table: watch::Sender::default() };
        this.publish(engines);
        Arc::new(this)
    }

    /// Makes these the engines of the table, which is subscribed while it has any.
    fn publish(&self, engines: Vec<Arc<Engine>>) {
        let before = self.table.borrow().events.clone();
        let events = match (engines.is_empty(), before) {
            (true, _) => None,
            (false, Some(events)) => Some(events),
            (false, None) => {
                let events = self.bus.subscribe();
                if events.is_none() {
                    tracing::error!("no engine runs: the event bus has as many subscribers as it may");
                }
                events.map(Arc::new)
            }
        };
        self.table.send_replace(Table { engines: engines.into(), events });
    }

    /// Takes up a changed configuration, soon: engines that are new start, others end after their call, changed ones begin
    /// anew.
    pub(crate) fn replace(&self, opts: &EngineOpts) {
        self.opts.send_replace(opts.clone());
    }

    /// What each engine does, by name.
    pub(crate) fn list(&self) -> Value {
        let engines = Arc::clone(&self.table.borrow().engines);
        map(engines.iter().map(|engine| (&*engine.name, engine.shown())))
    }

    /// Runs the engines until `stop`.
    pub(crate) async fn run(self: Arc<Self>, stop: CancellationToken) {
        let sandboxes = Arc::new(SharedSandbox::default());
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = self.look_at_events() => {}
            () = self.keep_running(&sandboxes, &stop) => {}
        }
        sandboxes.end();
        sandboxes.ended().await;
    }

    /// Queues the events of the bus, until it is closed.
    async fn look_at_events(&self) {
        let mut changes = self.table.subscribe();
        loop {
            let events = changes.borrow_and_update().events.clone();
            let next = async {
                match &events {
                    Some(events) => events.next().await,
                    None => std::future::pending().await,
                }
            };
            let next = tokio::select! {
                biased;
                Ok(()) = changes.changed() => continue,
                next = next => next,
            };
            // The table of now, which may be newer than the subscription: no engine in it misses the event.
            let engines = Arc::clone(&self.table.borrow().engines);
            match next {
                None => return,
                Some(Next::Lost(count)) => engines.iter().for_each(|engine| engine.queue.lost(count)),
                Some(Next::Event(event)) => look(&engines, &event),
            }
        }
    }

    /// Has the engines called that the configuration names, each in a task.
    async fn keep_running(&self, sandboxes: &Arc<SharedSandbox>, stop: &CancellationToken) {
        let mut wanted = self.opts.subscribe();
        let mut running = JoinSet::new();
        let mut new = self.table.borrow().engines.to_vec();
        loop {
            let opts = wanted.borrow_and_update().clone();
            let set_up = match opts.entries.is_empty() {
                true => {
                    sandboxes.end();
                    Ok(())
                }
                false => sandboxes.set_up(&opts, &self.cachedir, &self.bus).await,
            };
            new.extend(self.take_up(&opts));
            if let Err(why) = set_up {
                tracing::error!("no engine is taken up: {why}");
                new.iter().for_each(|engine| engine.cannot_run(&why));
            }
            for engine in new.drain(..) {
                let (sandboxes, id, stop) = (Arc::clone(sandboxes), self.id.clone(), stop.clone());
                running.spawn(async move { engine.run(&sandboxes, &id, &stop).await });
            }
            loop {
                tokio::select! {
                    Ok(()) = wanted.changed() => break,
                    Some(ended) = running.join_next() => {
                        if let Err(error) = ended {
                            tracing::error!("the master failed on an engine: {error}");
                        }
                    }
                }
            }
        }
    }

    /// Changes the table to what the configuration says. Returns the engines that are new in it.
    fn take_up(&self, opts: &EngineOpts) -> Vec<Arc<Engine>> {
        let before = Arc::clone(&self.table.borrow().engines);
        let (mut table, mut new): (Vec<Arc<Engine>>, Vec<Arc<Engine>>) = (Vec::new(), Vec::new());
        for entry in &opts.entries {
            match before.iter().find(|engine| engine.name == entry.name) {
                Some(engine) => {
                    if engine.change(entry) {
                        tracing::info!("engine {} begins anew: its settings have changed", engine.name);
                    }
                    table.push(Arc::clone(engine));
                }
                None => {
                    let engine = Arc::new(Engine::new(Arc::clone(entry)));
                    tracing::info!("engine {} starts", engine.name);
                    table.push(Arc::clone(&engine));
                    new.push(engine);
                }
            }
        }
        for engine in before.iter().filter(|engine| !table.iter().any(|other| Arc::ptr_eq(engine, other))) {
            tracing::info!("engine {} ends", engine.name);
            engine.end();
        }
        self.publish(table);
        new
    }
}

/// Queues an event for the engines that see it. None sees its own.
fn look(engines: &[Arc<Engine>], event: &Arc<BusEvent>) {
    for engine in engines {
        let is_own = matches!(&event.by, Principal::Engine(name) if **name == *engine.name);
        if !is_own && engine.sees(&event.event.tag) {
            engine.queue.push(Arc::clone(event));
        }
    }
}
