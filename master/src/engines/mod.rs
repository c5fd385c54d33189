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
mod tags;

use std::path::PathBuf;
use std::sync::Arc;

use brine_protocol::value::{Value, map};
use tokio_util::sync::CancellationToken;

use crate::access::Principal;
use crate::bus::{Bus, BusEvent, Next, Subscription};
pub(crate) use config::EngineOpts;
use run::Engine;

/// The engines of a master.
pub(crate) struct Engines {
    opts: EngineOpts,
    /// The master's name.
    id: String,
    cachedir: PathBuf,
    bus: Bus,
    engines: Vec<Arc<Engine>>,
}

impl Engines {
    /// Makes the engines, without starting anything.
    pub(crate) fn new(opts: EngineOpts, id: String, cachedir: PathBuf, bus: Bus) -> Arc<Self> {
        let engines = opts.entries.iter().map(|entry| Arc::new(Engine::new(Arc::clone(entry)))).collect();
        Arc::new(Self { opts, id, cachedir, bus, engines })
    }

    /// Subscribes to the bus; `None` without engines.
    pub(crate) fn subscribe(&self) -> Option<Subscription> {
        if self.engines.is_empty() {
            return None;
        }
        let events = self.bus.subscribe();
        if events.is_none() {
            tracing::error!("no engine runs: the event bus has as many subscribers as it may");
        }
        events
    }

    /// What each engine does, by name.
    pub(crate) fn list(&self) -> Value {
        map(self.engines.iter().map(|engine| (&*engine.entry.name, engine.shown())))
    }

    /// Runs the engines until `stop`.
    pub(crate) async fn run(self: Arc<Self>, events: Subscription, stop: CancellationToken) {
        let looking = async {
            loop {
                let next = tokio::select! {
                    biased;
                    () = stop.cancelled() => break,
                    next = events.next() => next,
                };
                match next {
                    None => break,
                    Some(Next::Lost(count)) => self.engines.iter().for_each(|engine| engine.queue.lost(count)),
                    Some(Next::Event(event)) => self.look(&event),
                }
            }
        };
        let running = async {
            let sandbox = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                sandbox = modules::start(&self.opts, &self.cachedir, &self.bus) => sandbox,
            };
            let sandbox = match sandbox {
                Ok(sandbox) => sandbox,
                Err(why) => {
                    tracing::error!("no engine runs: {why}");
                    return self.engines.iter().for_each(|engine| engine.cannot_run(&why));
                }
            };
            let runs = self.engines.iter().map(|engine| engine.run(&sandbox, &self.id, &stop));
            futures_util::future::join_all(runs).await;
            sandbox.shutdown().await;
        };
        tokio::join!(looking, running);
    }

    /// Queues an event for the engines that see it. None sees its own.
    fn look(&self, event: &Arc<BusEvent>) {
        for engine in &self.engines {
            let is_own = matches!(&event.by, Principal::Engine(name) if **name == *engine.entry.name);
            if !is_own && engine.entry.tags.see(&event.event.tag) {
                engine.queue.push(Arc::clone(event));
            }
        }
    }
}
