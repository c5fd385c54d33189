//! Functions that only compute, answered for a job as they are answered in a template.

use std::rc::Rc;

use brine_render::functions::{Level, Module, Surroundings};
use brine_render::{Dict, Value};

use crate::host::{config, grains, job, log, pillar};
use crate::{Data, Result, wire};

/// What such functions see of this minion: settings, grains and the granted pillar.
///
/// # Errors
/// One line, when the pillar cannot be read.
pub fn surroundings() -> Result<Surroundings> {
    let job = job::current();
    let opts = wire::dict(&config::items())?;
    let grains = with_tuples(wire::dict(&grains::items())?);
    let pillar = wire::dict(&pillar::items()?)?;
    opts.set("id", job.minion_id.as_str().into());
    opts.set("test", job.test.into());
    opts.set("__cli", if job.jid == "req" { "salt-call" } else { "salt-minion" }.into());
    opts.set("grains", Value::Dict(grains.clone()));
    opts.set("pillar", Value::Dict(pillar.clone()));
    let mut surroundings = Surroundings::new(job.minion_id.as_str(), grains, pillar, opts);
    surroundings.log = Some(Rc::new(|level, text: &str| log::write(level_of(level), text)));
    Ok(surroundings)
}

/// Grains as templates see them. MessagePack has no tuples, and templates compare this one with tuples, as which Salt's
/// loader makes it again too.
pub fn with_tuples(grains: Dict) -> Dict {
    if let Some(Value::List(parts)) = grains.get("osrelease_info") {
        grains.set("osrelease_info", Value::Tuple(parts.borrow().clone().into()));
    }
    grains
}

/// Surroundings without anything, for functions that look at their arguments alone.
pub fn nothing() -> Surroundings {
    Surroundings::new("", Default::default(), Default::default(), Default::default())
}

/// Calls a function of `module` with the arguments that are given.
///
/// # Errors
/// The function's words.
pub fn call<'a>(
    module: Module,
    surroundings: &Surroundings,
    function: &str,
    arguments: impl IntoIterator<Item = (&'a str, Option<Data>)>,
) -> Result<Data> {
    let given = arguments.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let keyword = given.map(|(name, value)| Ok((Rc::from(name), wire::value(&value)?))).collect::<Result<Vec<_>>>()?;
    run(module, surroundings, function, Vec::new(), keyword)
}

/// As [`call`], with positional arguments and named ones as values.
///
/// # Errors
/// As [`call`].
pub fn run(
    module: Module,
    surroundings: &Surroundings,
    function: &str,
    positional: Vec<Value>,
    keyword: Vec<(Rc<str>, Value)>,
) -> Result<Data> {
    let answer = module.call(surroundings, function, positional, keyword);
    let answer = answer.ok_or_else(|| format!("{function} asks for what only a host has"))?;
    wire::data(&answer.map_err(|error| error.message)?)
}

pub(crate) fn level_of(level: Level) -> log::Level {
    match level {
        Level::Debug => log::Level::Debug,
        Level::Info => log::Level::Info,
        Level::Warning => log::Level::Warning,
        Level::Error | Level::Critical => log::Level::Error,
    }
}
