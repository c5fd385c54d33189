//! One orchestration: what it needs, its thread, its result.

use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::sync::Arc;

use brine_protocol::ids::{Jid, MinionId};
use brine_protocol::value::{Value as Wire, ValueExt as _, list};
use brine_render::convert::ConvertLimits;
use brine_render::functions::{Level, Surroundings};
use brine_render::{Dict, Value};
use brine_states::run::Run as StateRun;
use brine_states::{Compiled, Compiler, Fault, Limits, Options};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::super::function::{Failure, Run, Within};
use super::asked::{Asked, What};
use super::begun;
use super::drive::{Drive, End};
use super::opts::OrchestrateOpts;
use super::patience::Patience;
use super::table::Actor;
use super::world::World;
use crate::pillar::{Caching, Subject};

/// Orchestrations within orchestrations.
const DEPTH_MAX: usize = 8;
/// Stack of a thread: for files that include each other, and for templates of `render_max_depth`.
const STACK: usize = 16 << 20;
/// Bound on the values of a result.
const VALUES_MAX: usize = 1 << 22;

/// What the thread of an orchestration is given.
struct Work {
    asked: Asked,
    actor: Arc<Actor>,
    patience: Patience,
    opts: Arc<OrchestrateOpts>,
    /// The master's name.
    id: String,
    /// The settings that are no secrets.
    shown: Wire,
    grains: Wire,
    pillar: Wire,
}

/// Runs an orchestration. Returns the results by tag, or a list of errors of the compile.
pub(super) async fn run(run: &Run, asked: Asked) -> Result<Wire, Failure> {
    let parts = &run.parts;
    let by = run.job.by.clone();
    if by.is_minion() {
        return Err("a minion may not start an orchestration: it would act with rights that peer does not give".into());
    }
    let depth = run.job.within.as_ref().map_or(0, |within| within.depth);
    if depth >= DEPTH_MAX {
        return Err(format!("orchestrations start each other, more than {DEPTH_MAX} deep").into());
    }
    let opts = parts.orchestrations.opts.load_full();
    let turn = parts.orchestrations.turn().ok_or_else(|| {
        Failure::from(format!(
            "{} orchestrations run, as many as orchestrate_max allows: try again later",
            opts.at_once
        ))
    })?;
    let id = parts.opts.id.clone();
    let subject_id = MinionId::try_from(id.as_str()).map_err(|_| format!("the master's id {id:?} is no minion's"))?;
    let grains = parts.orchestrations.grains.now(parts).await;
    let subject = Subject {
        id: subject_id,
        grains: grains.clone(),
        saltenv: Some(asked.saltenv.clone()),
        pillarenv: asked.pillarenv.clone(),
        given: asked.pillar.clone(),
    };
    let pillar = parts.pillars.compile(subject, Caching::Off).await.pillar;
    if let Some(errors) = pillar.get_list("_errors").filter(|_| !matches!(asked.what, What::Show { .. })) {
        let mut lines = vec![Wire::from("Pillar failed to render with the following messages:")];
        lines.extend(errors.iter().cloned());
        return Ok(Wire::Array(lines));
    }
    let jid = run.job.within.as_ref().map_or(&run.job.jid, |within| &within.jid).clone();
    let stop = CancellationToken::new();
    let _stops = stop.clone().drop_guard();
    let shown = parts.live.load().shown.clone();
    let actor = Actor {
        runners: run.runners.clone(),
        by,
        within: Within { jid: jid.clone(), depth: depth + 1 },
        failhard: shown.get("failhard").is_some_and(|failhard| failhard.truthy()),
        return_max: opts.return_max,
    };
    let time = opts.timeout;
    let patience = Patience {
        runtime: Handle::current(),
        stop,
        until: Instant::now() + time,
        time,
        setting: " (orchestrate_timeout)",
    };
    let work = Work { asked, actor: actor.into(), patience, opts, id, shown, grains, pillar };
    let pauses = parts.orchestrations.pauses.begin(&jid);
    let (done, result) = oneshot::channel();
    let thread = std::thread::Builder::new().name("orchestrate".to_owned()).stack_size(STACK);
    // Those that others started end with them. It is written down before anything is done.
    let is_first = depth == 0;
    if is_first {
        begun::write(run).await;
    }
    let started = thread.spawn(move || {
        let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| work.run(&jid)));
        drop((turn, pauses));
        let _ = done.send(outcome);
    });
    let result = match started {
        Ok(_) => result.await.ok(),
        Err(error) => {
            tracing::error!("no thread for an orchestration: {error}");
            None
        }
    };
    if is_first {
        begun::forget(run).await;
    }
    match result {
        Some(Ok(result)) => result.map_err(Failure::from),
        _ => Err("the orchestration failed: see the log of salt-master".into()),
    }
}

impl Work {
    /// Compiles and runs, on a thread of its own.
    fn run(self, jid: &Jid) -> Result<Wire, String> {
        let dict = |wire: &Wire| match Value::from_wire(wire).map_err(|why| why.to_string())? {
            Value::Dict(dict) => Ok(dict),
            _ => Err("what should be a dict is none".to_owned()),
        };
        let (opts, grains, pillar) = (dict(&self.shown)?, dict(&self.grains)?, dict(&self.pillar)?);
        for (name, value) in [
            ("id", self.id.as_str()),
            ("saltenv", self.asked.saltenv.as_str()),
            ("file_client", "local"),
            ("__role", "master"),
        ] {
            opts.set(name, value.into());
        }
        opts.set("test", self.asked.test.unwrap_or(false).into());
        if let Some(pillarenv) = &self.asked.pillarenv {
            opts.set("pillarenv", pillarenv.as_str().into());
        }
        opts.set("grains", Value::Dict(grains.clone()));
        opts.set("pillar", Value::Dict(pillar.clone()));
        let options = Options::new(&opts, Value::Dict(grains.clone()), Value::Dict(pillar.clone()));
        let mut surroundings = Surroundings::new(self.id.as_str(), grains, pillar, opts);
        surroundings.is_remote = false;
        let of = jid.clone();
        surroundings.log = Some(Rc::new(move |level, text: &str| {
            let text = brine_protocol::text::short(text, 300);
            match level {
                Level::Error | Level::Critical => tracing::error!("orchestration {of}: {text}"),
                Level::Warning => tracing::warn!("orchestration {of}: {text}"),
                Level::Info | Level::Debug => tracing::debug!("orchestration {of}: {text}"),
            }
        }));
        let world = World::new(surroundings, self.actor, self.patience, format!("orchestration {jid}"));
        // Half of the time is for the states that come after one that never succeeds.
        let patience = self.opts.timeout.as_secs() / 2;
        let limits = Limits { jinja: self.opts.jinja.clone(), patience, ..Limits::default() };
        let compiler = Compiler::new(&world, &options, limits.clone());
        let fault = |fault: Fault| fault.to_string();
        let drive = || Drive::new(&world, &self.id, options.state_events);
        let jid = Value::from(jid.as_str());
        let wire = |value: &Value| {
            value
                .to_wire(ConvertLimits { values: VALUES_MAX, bytes: self.opts.return_max.saturating_mul(2) })
                .map_err(|why| format!("the results cannot be sent: {why}"))
        };
        let finish = |compiled: Result<StateRun<'_>, Vec<String>>| match compiled {
            Err(errors) => Ok(list(errors)),
            Ok(run) => match drive().run(&mut run.with_pauses())? {
                End::Done(results) => wire(&results.into()),
                End::CutOff(results, why) => Ok(cut_off(wire(&results.into())?, &why)),
            },
        };
        match self.asked.what {
            What::Sls { mods, exclude } => {
                let exclude: Result<Vec<Value>, _> = exclude.iter().map(Value::from_wire).collect();
                let exclude = exclude.map_err(|why| why.to_string())?;
                finish(compiler.sls(&mods, &exclude, Some(&jid)).map_err(fault)?)
            }
            What::High(data) => finish(compiler.high(&dict(&data)?, Some(&jid)).map_err(fault)?),
            What::Low(data) => {
                let low = dict(&data)?;
                low.set("__orchestration_jid__", jid);
                let part =
                    |name: &str| low.get(name).and_then(|part| part.as_str().map(str::to_owned)).unwrap_or_default();
                let full = format!("{}.{}", part("state"), part("fun"));
                if super::table::parameters(&full).is_none() {
                    return Ok(list([format!("Specified state '{full}' was not found")]));
                }
                finish(Ok(StateRun::single(&low, &world, &options, &limits)))
            }
            What::Show { mods } => shown(compiler.show_sls(&mods), &wire),
        }
    }
}

fn shown(compiled: Compiled<Dict>, wire: &dyn Fn(&Value) -> Result<Wire, String>) -> Result<Wire, String> {
    match compiled.map_err(|fault| fault.to_string())? {
        Ok(high) => wire(&high.into()),
        Err(errors) => Ok(list(errors)),
    }
}

/// The results of a run that was cut off, and one more that says so.
fn cut_off(mut results: Wire, why: &str) -> Wire {
    let numbers = results.entries().unwrap_or_default().iter();
    let next = numbers.filter_map(|(_, result)| result.get_i64("__run_num__")).max().map_or(0, |last| last + 1);
    let comment = format!("The orchestration was cut off: {why}. What was begun goes on where it runs.");
    let mut last = super::result::StateResult::new("orchestration".into(), Some(false), comment).to_value();
    last.insert("__run_num__", next);
    last.insert("__id__", "orchestration");
    last.insert("__sls__", Wire::Nil);
    results.insert("state_|-run_|-orchestration_|-cut_off", last);
    results
}
