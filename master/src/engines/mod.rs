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
//! An event's way: the bus → `Engines::look` → `queue` → `run` → `call`.

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

/// Engines by their place in the configuration.
type Table = Arc<Vec<Arc<Engine>>>;

/// The engines of a master.
pub(crate) struct Engines {
    /// What the configuration says now.
    opts: watch::Sender<EngineOpts>,
    /// The master's name.
    id: String,
    cachedir: PathBuf,
    bus: Bus,
    engines: watch::Sender<Table>,
}

impl Engines {
    /// Makes the engines, without starting anything.
    pub(crate) fn new(opts: EngineOpts, id: String, cachedir: PathBuf, bus: Bus) -> Arc<Self> {
        let engines: Vec<_> = opts.entries.iter().map(|entry| Arc::new(Engine::new(Arc::clone(entry)))).collect();
        let (opts, engines) = (watch::Sender::new(opts), watch::Sender::new(Arc::new(engines)));
        Arc::new(Self { opts, id, cachedir, bus, engines })
    }

    /// Subscribes to the bus; `None` without engines.
    pub(crate) fn subscribe(&self) -> Option<Subscription> {
        if self.engines.borrow().is_empty() {
            return None;
        }
        let events = self.bus.subscribe();
        if events.is_none() {
            tracing::error!("no engine runs: the event bus has as many subscribers as it may");
        }
        events
    }

    /// Takes up a changed configuration, soon: engines that are new start, others end after their call, changed ones begin
    /// anew.
    pub(crate) fn replace(&self, opts: &EngineOpts) {
        self.opts.send_replace(opts.clone());
    }

    /// What each engine does, by name.
    pub(crate) fn list(&self) -> Value {
        let engines = Arc::clone(&self.engines.borrow());
        map(engines.iter().map(|engine| (&*engine.name, engine.shown())))
    }

    /// Runs the engines until `stop`. `events` is what [`Self::subscribe`] returned.
    pub(crate) async fn run(self: Arc<Self>, events: Option<Subscription>, stop: CancellationToken) {
        let sandboxes = Arc::new(SharedSandbox::default());
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = self.look_at_events(events) => {}
            () = self.keep_running(&sandboxes, &stop) => {}
        }
        sandboxes.end();
        sandboxes.ended().await;
    }

    /// Queues the events of the bus. Without engines there is no subscription.
    async fn look_at_events(&self, mut events: Option<Subscription>) {
        let mut changes = self.engines.subscribe();
        let mut engines = Arc::clone(&changes.borrow_and_update());
        loop {
            let next = async {
                match &events {
                    Some(events) => events.next().await,
                    None => std::future::pending().await,
                }
            };
            let next = tokio::select! {
                biased;
                Ok(()) = changes.changed() => None,
                next = next => Some(next),
            };
            match next {
                None => {
                    engines = Arc::clone(&changes.borrow_and_update());
                    match engines.is_empty() {
                        true => events = None,
                        false if events.is_none() => events = self.subscribe(),
                        false => {}
                    }
                }
                // The bus is closed: the master ends.
                Some(None) => events = None,
                Some(Some(Next::Lost(count))) => engines.iter().for_each(|engine| engine.queue.lost(count)),
                Some(Some(Next::Event(event))) => look(&engines, &event),
            }
        }
    }

    /// Has the engines called that the configuration names, each in a task.
    async fn keep_running(&self, sandboxes: &Arc<SharedSandbox>, stop: &CancellationToken) {
        let mut wanted = self.opts.subscribe();
        let mut running = JoinSet::new();
        let mut new = Vec::clone(&self.engines.borrow());
        loop {
            let opts = wanted.borrow_and_update().clone();
            let set_up = match opts.entries.is_empty() {
                true => Ok(sandboxes.end()),
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
        let before = Arc::clone(&self.engines.borrow());
        let (mut table, mut new) = (Vec::new(), Vec::new());
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
        self.engines.send_replace(Arc::new(table));
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
