//! SLS files of the reactor, to low chunks: their templates see of the master what those of orchestrations see, and the
//! event.

use std::sync::Arc;
use std::time::Duration;

use brine_protocol::ids::Jid;
use brine_protocol::value::Value as Wire;
use brine_render::convert::ConvertLimits;
use brine_render::functions::Surroundings;
use brine_render::{Dict, Value};
use brine_states::{Compiler, File, Limits, Options};
use tokio::runtime::Handle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::super::function::Within;
use super::super::service::Runners;
use super::patience::Patience;
use super::table::Actor;
use super::world::World;
use crate::access::Principal;

/// Time for what templates of one event wait for: they hold up all other reactions meanwhile.
const TIME: Duration = Duration::from_secs(30);
/// Upper bound on the files of one event.
const FILES_MAX: usize = 1_000;
/// Upper bound on the chunks of one event: each starts something.
const CHUNKS_MAX: usize = 1_000;
/// Upper bounds on the arguments of one chunk.
const ARGUMENTS: ConvertLimits = ConvertLimits { values: 1 << 20, bytes: 16 << 20 };

/// An SLS file of the reactor.
pub(crate) struct SlsFile {
    pub(crate) path: String,
    pub(crate) data: Vec<u8>,
}

/// An event, as the templates of reactions see it.
pub(crate) struct Reacting<'a> {
    pub(crate) tag: &'a str,
    /// A map.
    pub(crate) data: &'a Wire,
    /// `{kind, name}`
    pub(crate) fired_by: &'a Wire,
    /// The grains of this host.
    pub(crate) grains: &'a Wire,
    /// Whose rights count for what templates start.
    pub(crate) by: &'a Principal,
}

impl Runners {
    /// The grains of the master's host. They are read again after a minute.
    pub(crate) async fn host_grains(&self) -> Wire {
        self.parts.orchestrations.grains.now(&self.parts).await
    }

    /// Renders the reactions to an event to low chunks. Blocking, on a thread with a large stack that is none of the
    /// runtime.
    ///
    /// # Errors
    /// What is wrong with the reactions, as sentences. Files that do not render are left out, and told in the log.
    pub(crate) fn reactions(
        &self,
        runtime: &Handle,
        stop: &CancellationToken,
        event: &Reacting<'_>,
        files: Vec<SlsFile>,
    ) -> Result<Vec<Wire>, String> {
        let dict = |wire: &Wire| match Value::from_wire(wire).map_err(|why| why.to_string())? {
            Value::Dict(dict) => Ok(dict),
            _ => Err("what should be a dict is none".to_owned()),
        };
        let parts = &self.parts;
        let id = parts.opts.id.as_str();
        let (opts, grains) = (dict(&parts.live.load().shown)?, dict(event.grains)?);
        for (name, value) in [("id", id), ("saltenv", "base"), ("file_client", "local"), ("__role", "master")] {
            opts.set(name, value.into());
        }
        opts.set("grains", Value::Dict(grains.clone()));
        let options = Options::new(&opts, Value::Dict(grains.clone()), Value::dict([]));
        let mut surroundings = Surroundings::new(id, grains, Dict::default(), opts);
        surroundings.is_remote = false;
        let orchestrate = parts.orchestrations.opts.load_full();
        let actor = Actor {
            runners: self.clone(),
            by: event.by.clone(),
            within: Within { jid: Jid::now(), depth: 0 },
            failhard: false,
            return_max: orchestrate.return_max,
        };
        let patience = Patience {
            runtime: runtime.clone(),
            stop: stop.clone(),
            until: Instant::now() + TIME,
            time: TIME,
            setting: "",
        };
        let label = format!("reaction to {}", brine_protocol::text::short(event.tag, 128));
        let world = World::new(surroundings, Arc::new(actor), patience, label);
        let limits =
            Limits { jinja: orchestrate.jinja.clone(), files: FILES_MAX, chunks: CHUNKS_MAX, ..Limits::default() };
        let context = Dict::default();
        context.set("tag", event.tag.into());
        context.set("data", Value::from_wire(event.data).map_err(|why| why.to_string())?);
        context.set("fired_by", Value::from_wire(event.fired_by).map_err(|why| why.to_string())?);
        let files: Vec<File> = files.into_iter().map(|file| File { path: file.path, data: file.data.into() }).collect();
        let chunks = Compiler::new(&world, &options, limits).reactions(&files, &context);
        let chunks = chunks.map_err(|fault| fault.to_string())?.map_err(|errors| errors.join("; "))?;
        chunks.into_iter().map(|chunk| Value::Dict(chunk).to_wire(ARGUMENTS).map_err(|why| why.to_string())).collect()
    }
}
