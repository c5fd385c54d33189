//! The module `state`: compiles SLS files and runs states by `brine:host/states`. The functions and their documentation
//! are in `wit/world.wit`.
//!
//! - `arguments.rs`  what callers say
//! - `session.rs`    settings, grains and pillar of one compile; `world.rs` files, functions, states and targets
//! - `drive.rs`      the run; `clock.rs` its time
//! - `queue.rs`      one run at a time; `pauses.rs` pauses of a run
//! - `prepare.rs`    what state modules prepare: `mod_init`, `mod_aggregate`
//! - `disabled.rs`   runs that are disabled; `requests.rs` runs that were requested
//! - `retcode.rs`    the code that a run ends with

wit_bindgen::generate!({
    world: "state",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/files@1.0.0": brine_guest::host::files,
        "brine:host/functions@1.0.0": brine_guest::host::functions,
        "brine:host/grains@1.0.0": brine_guest::host::grains,
        "brine:host/job@1.0.0": brine_guest::host::job,
        "brine:host/jobs@1.0.0": brine_guest::host::jobs,
        "brine:host/log@1.0.0": brine_guest::host::log,
        "brine:host/modules@1.0.0": brine_guest::host::modules,
        "brine:host/pillar@1.0.0": brine_guest::host::pillar,
        "brine:host/progress@1.0.0": brine_guest::host::progress,
        "brine:host/states@1.0.0": brine_guest::host::states,
    },
    generate_all,
});

mod accumulators;
mod arguments;
mod clock;
mod disabled;
mod drive;
mod pauses;
mod pending;
mod prepare;
mod queue;
mod requests;
mod retcode;
mod session;
mod world;

use brine_guest::host::job;
use brine_guest::wire;
use brine_render::{Dict, Value};
use brine_states::run::Run;
use brine_states::{Compiled, File, Start};

use arguments::{Arguments, text};
use drive::Drive;
use queue::Turn;
use session::Session;

/// A return: a value, or a failure that ends the job.
type Done = Result<Data, String>;

struct Module;

/// A call whose turn it is.
struct Called {
    arguments: Arguments,
    session: Session,
}

impl Called {
    /// Waits for the turn and reads what a compile needs. The inner error is a return that says why it is not this
    /// call's turn, or why nothing compiles.
    fn begin(
        queue: Option<&Data>,
        kwargs: &Data,
        test: Option<bool>,
        of_files: bool,
    ) -> Result<Result<Self, Data>, String> {
        let arguments = Arguments::new(kwargs)?;
        if let Turn::Taken(others) = queue::take(queue, arguments.is_set("concurrent"))? {
            return Ok(Err(refused(others, retcode::COMPILER_ERROR)));
        }
        let session = Session::new(&arguments, test, of_files)?;
        if !arguments.is_set("force")
            && let Some(errors) = session.compiler().pillar_errors()
        {
            let mut lines = vec!["Pillar failed to render with the following messages:".to_owned()];
            lines.extend(errors);
            return Ok(Err(refused(lines, retcode::PILLAR_FAILURE)));
        }
        Ok(Ok(Self { arguments, session }))
    }

    /// Runs what was compiled.
    fn run(&self, compiled: Result<Run<'_>, Vec<String>>) -> Done {
        let mut run = match compiled {
            Ok(run) => run.with_pauses(),
            Err(errors) => return Ok(refused(errors, retcode::COMPILER_ERROR)),
        };
        let results = Drive::new(&self.session, self.session.clock.clone()).run(&mut run)?;
        job::set_retcode(retcode::of(&results));
        let results = if self.arguments.is_set("terse") { changed(&results) } else { results };
        wire::data(&results.into())
    }

    /// Applies what the top files name.
    fn highstate(&self) -> Done {
        let jid = self.arguments.get("orchestration_jid");
        let (excluded, only) = (self.arguments.list("exclude"), self.arguments.texts("whitelist"));
        let compiler = self.session.compiler();
        match compiler.highstate(&excluded, &only, jid.as_ref()).map_err(|fault| fault.to_string())? {
            Start::Run(run) => self.run(Ok(*run)),
            Start::Errors(errors) => self.run(Err(errors)),
            Start::Nothing(results) => {
                job::set_retcode(retcode::of(&results));
                wire::data(&results.into())
            }
        }
    }

    fn files(&self, mods: &Value) -> Vec<String> {
        arguments::split(mods).iter().map(arguments::text).collect()
    }
}

/// Salt's `terse`: what failed or changed something.
fn changed(results: &Dict) -> Dict {
    let shown = |result: &Value| match result {
        Value::Dict(result) => {
            let is_set = |name: &str| result.get(name).is_some_and(|value| value.truthy());
            !is_set("result") || is_set("changes")
        }
        _ => true,
    };
    results
        .borrow()
        .iter()
        .filter(|(_, result)| shown(result))
        .map(|(tag, result)| (tag.clone(), result.clone()))
        .collect()
}

/// A list of errors as the return.
fn refused(errors: Vec<String>, code: i32) -> Data {
    job::set_retcode(code);
    brine_guest::Value::from(errors).into()
}

/// What a compile shows, or its errors.
fn shown<T>(compiled: Compiled<T>, value: impl FnOnce(T) -> Value) -> Done {
    match compiled.map_err(|fault| fault.to_string())? {
        Ok(shown) => wire::data(&value(shown)),
        Err(errors) => Ok(refused(errors, retcode::COMPILER_ERROR)),
    }
}

fn list<T: Into<Value>>(items: Vec<T>) -> Value {
    Value::list(items.into_iter().map(Into::into))
}

/// Runs `then` with the call whose turn it is.
fn with(
    queue: Option<&Data>,
    kwargs: &Data,
    test: Option<bool>,
    of_files: bool,
    then: impl FnOnce(&Called) -> Done,
) -> Done {
    match Called::begin(queue, kwargs, test, of_files)? {
        Ok(called) => then(&called),
        Err(refused) => Ok(refused),
    }
}

impl Guest for Module {
    fn apply(mods: Option<Data>, test: Option<bool>, queue: Option<Data>, kwargs: Data) -> Done {
        let given = mods.as_ref().map(wire::value).transpose()?.is_some_and(|mods| mods.truthy());
        match mods.filter(|_| given) {
            Some(mods) => Self::sls(mods, test, queue, kwargs),
            None => Self::highstate(test, queue, kwargs),
        }
    }

    fn sls(mods: Data, test: Option<bool>, queue: Option<Data>, kwargs: Data) -> Done {
        let mods = wire::value(&mods)?;
        with(queue.as_ref(), &kwargs, test, true, |called| {
            let disabled = disabled::among(&called.session, &arguments::items(&mods));
            if !disabled.is_empty() {
                return Ok(refused(disabled, retcode::COMPILER_ERROR));
            }
            let jid = called.arguments.get("orchestration_jid");
            let excluded = called.arguments.list("exclude");
            let compiler = called.session.compiler();
            let run = compiler.sls(&called.files(&mods), &excluded, jid.as_ref());
            called.run(run.map_err(|fault| fault.to_string())?)
        })
    }

    fn highstate(test: Option<bool>, queue: Option<Data>, kwargs: Data) -> Done {
        if disabled::is_disabled("highstate") {
            return wire::data(&disabled::highstate());
        }
        with(queue.as_ref(), &kwargs, test, false, Called::highstate)
    }

    fn top(topfn: String, test: Option<bool>, queue: Option<Data>, kwargs: Data) -> Done {
        match Called::begin(queue.as_ref(), &kwargs, test, false)? {
            Ok(mut called) => {
                let path = topfn.strip_prefix("salt://").or(topfn.strip_prefix('/')).unwrap_or(&topfn);
                called.session.options.state_top = path.to_owned();
                if let Some(saltenv) = called.arguments.get("saltenv") {
                    called.session.options.state_top_saltenv = Some(arguments::text(&saltenv));
                }
                called.highstate()
            }
            Err(refused) => Ok(refused),
        }
    }

    fn test(mods: Option<Data>, queue: Option<Data>, kwargs: Data) -> Done {
        Self::apply(mods, Some(true), queue, kwargs)
    }

    fn pause(jid: Data, state_id: Option<String>, duration: Option<Data>) -> Result<(), String> {
        pauses::pause(&jid.value()?.to_text(), state_id.as_deref(), duration.as_ref())
    }

    fn resume(jid: Data, state_id: Option<String>) -> Result<(), String> {
        pauses::resume(&jid.value()?.to_text(), state_id.as_deref())
    }

    fn soft_kill(jid: Data, state_id: Option<String>) -> Result<(), String> {
        pauses::kill(&jid.value()?.to_text(), state_id.as_deref())
    }

    fn get_pauses(jid: Option<Data>) -> Done {
        pauses::all(jid.as_ref())
    }

    fn request(mods: Option<Data>, queue: Option<Data>, kwargs: Data) -> Done {
        let ran = Self::apply(mods.clone(), Some(true), queue, kwargs.clone())?;
        requests::add(mods.as_ref(), &kwargs, &ran)?;
        Ok(ran)
    }

    fn check_request(name: Option<String>) -> Done {
        requests::check(name.as_deref())
    }

    fn clear_request(name: Option<String>) -> Result<bool, String> {
        requests::clear(name.as_deref())
    }

    fn run_request(name: Option<String>, queue: Option<Data>, kwargs: Data) -> Done {
        let Some((mods, kwargs)) = requests::take(name.as_deref().unwrap_or("default"), &kwargs)? else {
            return wire::data(&Value::dict([]));
        };
        let ran = Self::apply(mods, None, queue, kwargs)?;
        requests::clear(None)?;
        Ok(ran)
    }

    fn disable(states: Data) -> Done {
        disabled::disable(&wire::value(&states)?)
    }

    fn enable(states: Data) -> Done {
        disabled::enable(&wire::value(&states)?)
    }

    fn list_disabled() -> Done {
        disabled::list()
    }

    fn sls_id(id: String, mods: Data, test: Option<bool>, queue: Option<Data>, kwargs: Data) -> Done {
        let mods = wire::value(&mods)?;
        with(queue.as_ref(), &kwargs, test, true, |called| {
            let compiler = called.session.compiler();
            let run = compiler.sls(&called.files(&mods), &[], None).map_err(|fault| fault.to_string())?;
            let is_it = |low: &Dict| low.get("__id__").is_some_and(|its| text(&its) == id);
            if run.as_ref().is_ok_and(|run| !run.chunks().iter().any(is_it)) {
                let saltenv = called.arguments.get("saltenv").map_or_else(|| "base".to_owned(), |env| text(&env));
                return Err(format!(
                    "No matches for ID '{id}' found in SLS '{}' within saltenv '{saltenv}'.",
                    text(&mods)
                ));
            }
            called.run(run.map(|run| run.only_id(&id)))
        })
    }

    fn high(data: Data, test: Option<bool>, queue: Option<Data>, kwargs: Data) -> Done {
        let high = wire::dict(&data)?;
        with(queue.as_ref(), &kwargs, test, true, |called| {
            let compiler = called.session.compiler();
            called.run(compiler.high(&high, None).map_err(|fault| fault.to_string())?)
        })
    }

    fn template_str(tem: String, queue: Option<Data>, kwargs: Data) -> Done {
        with(queue.as_ref(), &kwargs, None, true, |called| {
            let compiler = called.session.compiler();
            let file = File { path: "template_str".into(), data: tem.as_bytes().into() };
            called.run(compiler.template(&file, "None").map_err(|fault| fault.to_string())?)
        })
    }

    fn single(fun: String, name: String, test: Option<bool>, queue: Option<Data>, kwargs: Data) -> Done {
        with(queue.as_ref(), &kwargs, test, true, |called| {
            let Some((state, function)) = fun.split_once('.') else {
                job::set_retcode(retcode::COMPILER_ERROR);
                return Ok("Invalid function passed".into());
            };
            let low = wire::dict(&kwargs)?;
            for (key, value) in [("state", state), ("fun", function), ("__id__", &*name), ("name", &*name)] {
                low.set(key, value.into());
            }
            called.one(&low, |results| results)
        })
    }

    fn pkg(_: String, _: String, _: String, _: Data) -> Done {
        Err("state.pkg runs the package that salt-ssh makes, and there is no salt-ssh here: state.high and state.low run states \
             that the caller brings"
            .into())
    }

    fn low(data: Data, queue: Option<Data>, kwargs: Data) -> Done {
        with(queue.as_ref(), &kwargs, None, true, |called| {
            let low = wire::dict(&data)?;
            if low.get("__id__").is_none() {
                low.set("__id__", low.get("name").unwrap_or_default());
            }
            called.one(&low, |results| {
                results.borrow().iter().next().map(|(_, result)| result.clone()).unwrap_or_default()
            })
        })
    }

    fn show_top(queue: Option<Data>, kwargs: Data) -> Done {
        with(queue.as_ref(), &kwargs, None, false, |called| shown(called.session.compiler().show_top(), Value::from))
    }

    fn show_highstate(queue: Option<Data>, kwargs: Data) -> Done {
        with(queue.as_ref(), &kwargs, None, false, |called| {
            shown(called.session.compiler().show_highstate(), Value::from)
        })
    }

    fn show_lowstate(queue: Option<Data>, kwargs: Data) -> Done {
        with(queue.as_ref(), &kwargs, None, false, |called| shown(called.session.compiler().show_lowstate(), list))
    }

    fn show_states(queue: Option<Data>, kwargs: Data) -> Done {
        with(queue.as_ref(), &kwargs, None, false, |called| shown(called.session.compiler().show_states(), list))
    }

    fn show_sls(mods: Data, test: Option<bool>, queue: Option<Data>, kwargs: Data) -> Done {
        let mods = wire::value(&mods)?;
        with(queue.as_ref(), &kwargs, test, true, |called| {
            shown(called.session.compiler().show_sls(&called.files(&mods)), Value::from)
        })
    }

    fn show_low_sls(mods: Data, test: Option<bool>, queue: Option<Data>, kwargs: Data) -> Done {
        let mods = wire::value(&mods)?;
        with(queue.as_ref(), &kwargs, test, true, |called| {
            shown(called.session.compiler().show_low_sls(&called.files(&mods)), list)
        })
    }

    fn sls_exists(mods: Data, test: Option<bool>, _: Option<Data>, kwargs: Data) -> Result<bool, String> {
        let (arguments, mods) = (Arguments::new(&kwargs)?, wire::value(&mods)?);
        let session = Session::new(&arguments, test, true)?;
        let names: Vec<String> = arguments::split(&mods).iter().map(arguments::text).collect();
        let exist = session.compiler().sls_exists(&names).map_err(|fault| fault.to_string())?;
        if !exist {
            // What it asks, `show_sls`, fails with this code.
            job::set_retcode(retcode::COMPILER_ERROR);
        }
        Ok(exist)
    }

    fn id_exists(ids: Data, mods: Data, test: Option<bool>, _: Option<Data>, kwargs: Data) -> Result<bool, String> {
        let arguments = Arguments::new(&kwargs)?;
        let session = Session::new(&arguments, test, true)?;
        let names = |data: &Data| -> Result<Vec<String>, String> {
            Ok(arguments::split(&wire::value(data)?).iter().map(arguments::text).collect())
        };
        session.compiler().id_exists(&names(&ids)?, &names(&mods)?).map_err(|fault| fault.to_string())
    }

    fn running(concurrent: Option<bool>) -> Vec<String> {
        if concurrent == Some(true) { Vec::new() } else { queue::running() }
    }
}

impl Called {
    /// Runs one low chunk.
    fn one<T: Into<Value>>(&self, low: &Dict, shown: impl FnOnce(Dict) -> T) -> Done {
        let session = &self.session;
        let of = |name: &str| low.get(name).map(|value| arguments::text(&value));
        for key in ["state", "fun", "name"] {
            if of(key).is_none() {
                return Ok(refused(vec![format!("Missing \"{key}\" data")], retcode::COMPILER_ERROR));
            }
        }
        let full = format!("{}.{}", of("state").unwrap_or_default(), of("fun").unwrap_or_default());
        if !brine_states::Host::has_state(&session.world, &full) {
            return Ok(refused(vec![format!("Specified state '{full}' was not found")], retcode::COMPILER_ERROR));
        }
        let mut run = Run::single(low, &session.world, &session.options, &session.limits);
        let results = Drive::new(session, session.clock.clone()).run(&mut run)?;
        job::set_retcode(retcode::of(&results));
        wire::data(&shown(results).into())
    }
}

export!(Module);
