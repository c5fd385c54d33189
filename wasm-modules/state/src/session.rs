//! One compile and run: the settings, grains and pillar of the minion, and what the caller says of them.

use std::rc::Rc;

use brine_guest::host::{grains, job, log, pillar, states};
use brine_guest::{Data, compute};
use brine_render::Value;
use brine_render::data::Budget;
use brine_render::data::merge::{How, update};
use brine_render::functions::{Level, Surroundings};
use brine_states::{Compiler, Limits, Options};

use crate::arguments::{Arguments, text};
use crate::clock::Clock;
use crate::wire;
use crate::world::{self, World};

/// What a compile needs.
pub(crate) struct Session {
    pub(crate) world: World,
    pub(crate) clock: Clock,
    pub(crate) options: Options,
    pub(crate) limits: Limits,
    /// The job's id.
    pub(crate) jid: String,
    /// Whether progress events are sent.
    pub(crate) events: bool,
}

/// Settings of the minion that its master decides, as Salt has it.
const OF_THE_MASTER: [&str; 14] = [
    "default_top",
    "env_order",
    "file_roots",
    "jinja_env",
    "jinja_lstrip_blocks",
    "jinja_sls_env",
    "jinja_trim_blocks",
    "nodegroups",
    "renderer",
    "state_aggregate",
    "state_auto_order",
    "state_events",
    "state_top",
    "state_top_saltenv",
];

impl Session {
    /// Reads settings, grains and pillar. Without `saltenv` a list of SLS files is of `base`.
    pub(crate) fn new(arguments: &Arguments, test: Option<bool>, of_files: bool) -> Result<Self, String> {
        let settings = wire::dict(&states::settings()?)?;
        let dict = |name: &str| if let Some(Value::Dict(dict)) = settings.get(name) { Some(dict) } else { None };
        let clock = Clock::set(&settings.get("time").map(|time| text(&time)).unwrap_or_default());
        let opts = dict("minion").unwrap_or_default();
        if let Some(master) = dict("master") {
            for name in OF_THE_MASTER.iter().chain(&["top_file_merging_strategy"]) {
                if let Some(value) = master.get(name) {
                    opts.set(name, value);
                }
            }
            if master.get("failhard").is_some_and(|failhard| failhard.truthy()) {
                opts.set("failhard", true.into());
            }
        }
        let job = job::current();
        opts.set("id", job.minion_id.as_str().into());
        // The host has the last word in a dry run; the minion's setting counts if the caller says nothing.
        let by_setting = opts.get("test").is_some_and(|test| test.truthy());
        opts.set("test", (job.test || test.unwrap_or(by_setting)).into());
        opts.set("__cli", if job.jid == "req" { "salt-call" } else { "salt-minion" }.into());
        for name in ["saltenv", "pillarenv"] {
            if let Some(value) = arguments.get(name) {
                opts.set(name, text(&value).as_str().into());
            }
        }
        if of_files && !opts.get("saltenv").is_some_and(|saltenv| saltenv.truthy()) {
            opts.set("saltenv", "base".into());
        }
        let grains = compute::with_tuples(wire::dict(&grains::items())?);
        let mut pillar = Value::Dict(wire::dict(&pillar_of(arguments)?)?);
        if let Some(given) = arguments.get("pillar") {
            pillar =
                update(&pillar, &given, How { recursive: true, merge_lists: false, strict: false }, &Budget::default())
                    .map_err(|error| error.message)?;
        }
        let Value::Dict(pillar) = pillar else { return Err("the pillar is not a dict".into()) };
        opts.set("grains", Value::Dict(grains.clone()));
        opts.set("pillar", Value::Dict(pillar.clone()));
        let mut options = Options::new(&opts, Value::Dict(grains.clone()), Value::Dict(pillar.clone()));
        options.mocked = arguments.is_set("mock");
        let events = arguments.get("state_events").or_else(|| opts.get("state_events"));
        let mut surroundings = Surroundings::new(job.minion_id.as_str(), grains, pillar, opts);
        surroundings.log = Some(Rc::new(|level, text: &str| log::write(level_of(level), text)));
        Ok(Self {
            world: World::new(surroundings),
            clock,
            options,
            limits: Limits::default(),
            jid: job.jid,
            events: events.is_some_and(|events| events.truthy()),
        })
    }

    /// Calls a function for a state that runs, as templates do. What templates see of grains is as it was before the run; a state of this run may
    /// have set some, so the host is asked for them.
    pub(crate) fn call(
        &self,
        name: &str,
        positional: Vec<Value>,
        keyword: Vec<(Rc<str>, Value)>,
    ) -> Result<Value, String> {
        if (name.starts_with("grains.") || name == "config.get") && self.world.has_own(name) {
            return world::call(name, &positional, &keyword);
        }
        brine_states::Host::call(&self.world, "base", name, positional, keyword).map_err(|error| error.message)
    }

    pub(crate) fn compiler(&self) -> Compiler<'_> {
        Compiler::new(&self.world, &self.options, self.limits.clone())
    }
}

/// As Salt does it, each run has a pillar of its own; without a master, the minion's.
fn pillar_of(arguments: &Arguments) -> Result<Data, String> {
    let named = |name: &str| arguments.get(name).map(|value| text(&value));
    let (pillarenv, saltenv) = (named("pillarenv"), named("saltenv"));
    if pillarenv.is_none() && saltenv.is_none() {
        return pillar::fetch().or_else(|_| pillar::items());
    }
    let is_needed = pillarenv.is_some();
    let compiled = pillar::compile(&pillar::Wanted { pillarenv, saltenv, overrides: None });
    if is_needed { compiled } else { compiled.or_else(|_| pillar::items()) }
}

fn level_of(level: Level) -> log::Level {
    match level {
        Level::Debug => log::Level::Debug,
        Level::Info => log::Level::Info,
        Level::Warning => log::Level::Warning,
        Level::Error | Level::Critical => log::Level::Error,
    }
}
