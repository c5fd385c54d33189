//! Runs chunks: does what the run machine asks for, by the host.

use std::collections::HashMap;
use std::rc::Rc;

use brine_guest::host::states::{self, Chunk};
use brine_guest::host::{modules, progress};
use brine_render::{Dict, Key, Value};
use brine_states::run::{Answer, Call, Check, Event, Finished, Refresh, Run, Step};

use crate::accumulators::Accumulators;
use crate::arguments::text;
use crate::clock::Clock;
use crate::pending::Pending;
use crate::session::Session;
use crate::{pauses, prepare, wire, world};

/// The longest wait for a parallel state: it is asked for again.
const LONG: u64 = 3_600_000;

/// Parallel states that were started, and those whose time to begin has not come.
#[derive(Default)]
struct Parallel {
    /// The tag of each that runs, by the host's number, and when it began.
    running: HashMap<u32, (String, String)>,
    /// When each other begins, in milliseconds of the clock.
    later: Vec<(u64, Call)>,
}

/// A run of chunks.
pub(crate) struct Drive<'a> {
    session: &'a Session,
    clock: Clock,
    parallel: Parallel,
    accumulators: Accumulators,
    pending: Pending,
    /// Results that the host has, or that were given to it.
    kept: usize,
    called: bool,
    number: u32,
    /// State module, id, name and function of all chunks.
    chunks: Vec<[String; 4]>,
}

impl<'a> Drive<'a> {
    pub(crate) fn new(session: &'a Session, clock: Clock) -> Self {
        Self {
            session,
            clock,
            parallel: Parallel::default(),
            accumulators: Accumulators::default(),
            pending: Pending::default(),
            kept: 0,
            called: false,
            number: 0,
            chunks: Vec::new(),
        }
    }

    /// Runs to the end. An error ends the run; the host has the results so far.
    pub(crate) fn run(&mut self, run: &mut Run<'_>) -> Result<Dict, String> {
        // Templates of files see what those of SLS files saw.
        states::use_pillar(&wire::data(&self.session.options.pillar)?)?;
        let of = |low: &Dict, name: &str| low.get(name).map(|value| text(&value)).unwrap_or_default();
        self.chunks =
            run.chunks().iter().map(|low| ["state", "__id__", "name", "fun"].map(|key| of(low, key))).collect();
        loop {
            let step = run.next(&self.clock.time_of_day()).map_err(|fault| fault.to_string())?;
            self.keep(run)?;
            let answer = match step {
                Step::Done(results) => return Ok(results),
                Step::Call(call) => {
                    self.called = true;
                    let result = wire::value(&states::run(&self.chunk(&call)?))?;
                    let duration = milliseconds(&result);
                    self.accumulators.keep(&call, &result);
                    self.pending.keep(&call, &result);
                    Answer::Result(result, duration)
                }
                Step::Start { call, after } => {
                    self.parallel
                        .later
                        .push((self.clock.milliseconds().saturating_add(after.saturating_mul(1000)), call));
                    self.start_due()?;
                    Answer::Done
                }
                Step::Wait => {
                    run.finished(self.wait()?);
                    Answer::Done
                }
                Step::Check(check) => self.check(check),
                Step::Sleep { seconds, splay } => {
                    let more = if splay > 0 { self.clock.milliseconds() % (splay.saturating_add(1)) } else { 0 };
                    self.sleep(run, seconds.saturating_add(more).saturating_mul(1000))?;
                    Answer::Done
                }
                Step::Init(low) => Answer::Value { value: prepare::init(&low, self.session.options.test), code: 0 },
                Step::Aggregate { low, chunks, running } => {
                    let low = prepare::aggregate(&low, &chunks, &running, self.session.options.test);
                    Answer::Value { value: low.into(), code: 0 }
                }
                Step::Pause(low) => self.pause(run, &low)?,
                Step::Event(event) => self.event(&event),
                Step::Refresh(refresh) => self.refresh(refresh),
            };
            run.tell(answer);
        }
    }

    /// Gives the host the results that no state module made.
    fn keep(&mut self, run: &Run<'_>) -> Result<(), String> {
        let results = run.results();
        let results = results.borrow();
        for (tag, result) in results.iter().skip(self.kept) {
            if !std::mem::take(&mut self.called) {
                states::keep(tag.as_str().unwrap_or_default(), &wire::data(result)?);
            }
        }
        self.kept = results.len();
        Ok(())
    }

    fn chunk(&mut self, call: &Call) -> Result<Chunk, String> {
        let of = |name: &str| call.low.get(name).map(|value| text(&value));
        // After the results so far, some of which no state module made.
        let number = self.number.max(u32::try_from(self.kept).unwrap_or(u32::MAX));
        self.number = number.saturating_add(1);
        let arguments = self.pending.arguments(call, self.accumulators.arguments(call));
        Ok(Chunk {
            state: call.function.clone(),
            tag: call.tag.clone(),
            arguments: wire::data(&self.arguments(&arguments).into())?,
            id: of("__id__").unwrap_or_default(),
            sls: of("__sls__").unwrap_or_default(),
            saltenv: of("saltenv").or_else(|| of("__env__")).unwrap_or_else(|| "base".into()),
            run_number: number,
            changed: changed(call),
            test: call.test,
        })
    }

    /// The arguments of a state. One that takes `require` is told the names of the states there, with their functions,
    /// because it cannot know what an id stands for: `file.directory` keeps what they manage.
    fn arguments(&self, arguments: &Dict) -> Dict {
        let Some(required) = arguments.get("require") else { return arguments.clone() };
        let mut named = Vec::new();
        for one in crate::arguments::items(&required) {
            let Value::Dict(one) = &one else { continue };
            for (module, id) in one.borrow().iter() {
                let (module, id) = (module.as_str().unwrap_or_default(), text(id));
                let chunks =
                    self.chunks.iter().filter(|[state, of, name, _]| state == module && (*of == id || *name == id));
                named.extend(chunks.map(|[_, _, name, fun]| {
                    let entries = [(module, name.as_str()), ("fun", fun.as_str())];
                    Value::dict(entries.map(|(key, value)| (Key::from(key), value.into())))
                }));
            }
        }
        let told: Dict = arguments.borrow().iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        told.set("require", Value::list(named));
        told
    }

    /// Starts the parallel states whose time has come.
    fn start_due(&mut self) -> Result<(), String> {
        let now = self.clock.milliseconds();
        let all = std::mem::take(&mut self.parallel.later);
        let (due, later): (Vec<_>, Vec<_>) = all.into_iter().partition(|(at, _)| *at <= now);
        self.parallel.later = later;
        for (_, call) in due {
            let began = self.clock.time_of_day();
            let number = states::start(&self.chunk(&call)?)?;
            self.parallel.running.insert(number, (call.tag, began));
        }
        Ok(())
    }

    /// Waits for the end of a parallel state.
    fn wait(&mut self) -> Result<Finished, String> {
        loop {
            self.start_due()?;
            let next = self.parallel.later.iter().map(|(at, _)| at.saturating_sub(self.clock.milliseconds())).min();
            if next.is_none() && self.parallel.running.is_empty() {
                return Err("the run waits for a parallel state that was not started".into());
            }
            if let Some(ended) = states::wait(next.unwrap_or(LONG).max(1))
                && let Some(finished) = self.finished(&ended)?
            {
                return Ok(finished);
            }
        }
    }

    /// Sleeps, and tells the run which parallel states end meanwhile.
    fn sleep(&mut self, run: &mut Run<'_>, milliseconds: u64) -> Result<(), String> {
        let until = self.clock.milliseconds().saturating_add(milliseconds);
        loop {
            self.start_due()?;
            let left = until.saturating_sub(self.clock.milliseconds());
            if left == 0 {
                return Ok(());
            }
            let next = self.parallel.later.iter().map(|(at, _)| at.saturating_sub(self.clock.milliseconds())).min();
            if let Some(ended) = states::wait(left.min(next.unwrap_or(left)).max(1))
                && let Some(finished) = self.finished(&ended)?
            {
                run.finished(finished);
            }
        }
    }

    /// Waits while somebody pauses the run here.
    fn pause(&mut self, run: &mut Run<'_>, low: &Dict) -> Result<Answer, String> {
        let (id, began) = (low.get("__id__").map(|id| text(&id)).unwrap_or_default(), self.clock.milliseconds());
        loop {
            match pauses::at(&self.session.jid, &id, self.clock.milliseconds() - began) {
                pauses::Word::Go => return Ok(Answer::Done),
                pauses::Word::Kill => return Ok(Answer::Kill),
                pauses::Word::Wait => self.sleep(run, pauses::LOOK)?,
            }
        }
    }

    fn finished(&mut self, ended: &states::Ended) -> Result<Option<Finished>, String> {
        let Some((tag, start_time)) = self.parallel.running.remove(&ended.number) else { return Ok(None) };
        let result = wire::value(&ended.result)?;
        let duration = milliseconds(&result);
        Ok(Some(Finished { tag, result: Ok(result), start_time, duration }))
    }

    fn check(&self, check: Check) -> Answer {
        let began = self.clock.milliseconds();
        let raised = |why: String| Answer::Raised(why, (self.clock.milliseconds() - began) as f64);
        match check {
            Check::Command { command, options } => {
                let mut options = named(&options);
                options.retain(|(_, value)| !matches!(value, Value::None));
                // A shell reads it, as in Salt; its code is an answer and no failure.
                options.extend([("python_shell".into(), true.into()), ("ignore_retcode".into(), true.into())]);
                match world::call("cmd.retcode", &[command.as_str().into()], &options) {
                    Ok(Value::Int(code)) => Answer::Code(i64::try_from(code).unwrap_or(1)),
                    Ok(_) => Answer::Code(1),
                    Err(why) => raised(why),
                }
            }
            Check::Function { name, positional, keyword } => {
                let positional = crate::arguments::items(&positional);
                match self.session.call(&name, positional, named(&keyword)) {
                    Ok(value) => Answer::Value { value, code: 0 },
                    Err(why) => raised(why),
                }
            }
            Check::Exist(paths) => {
                for path in &paths {
                    let there = |function: &str| world::call(function, &[path.as_str().into()], &[]);
                    match there("file.file_exists")
                        .and_then(|is_file| if is_file.truthy() { Ok(is_file) } else { there("file.directory_exists") })
                    {
                        Ok(there) if there.truthy() => {}
                        Ok(_) => return Answer::Value { value: false.into(), code: 0 },
                        Err(why) => return raised(why),
                    }
                }
                Answer::Value { value: true.into(), code: 0 }
            }
        }
    }

    /// Reports a result on the master's bus. A failure does not matter to the run.
    fn event(&self, event: &Event) -> Answer {
        if let Some(name) = &event.name {
            let fired = wire::data(&event.result.clone().into()).and_then(|result| states::fire(name, &result));
            if let Err(why) = fired {
                brine_guest::host::log::write(brine_guest::host::log::Level::Warning, &format!("fire_event: {why}"));
            }
        } else if self.session.events
            && let Ok(data) = wire::data(&event.result.clone().into())
        {
            let _ = progress::report(&data);
        }
        Answer::Done
    }

    fn refresh(&self, refresh: Refresh) -> Answer {
        let done = |result: Result<(), String>| {
            if let Err(why) = result {
                brine_guest::host::log::write(brine_guest::host::log::Level::Warning, &why);
            }
        };
        if refresh.modules {
            done(modules::sync(None).map(drop));
            self.session.world.forget();
        }
        if refresh.grains || refresh.pillar {
            done(modules::refresh_facts(refresh.grains, refresh.pillar));
        }
        Answer::Done
    }
}

/// The watched states that changed.
fn changed(call: &Call) -> Vec<String> {
    let Some(Value::Dict(requisites)) = call.low.get("__reqs__") else { return Vec::new() };
    let watched = requisites.get("watch").map(|watched| crate::arguments::items(&watched)).unwrap_or_default();
    let changed = watched.iter().filter_map(|required| {
        let Value::Dict(required) = required else { return None };
        let of = |name: &str| required.get(name).map(|value| text(&value)).unwrap_or_default();
        let tag = format!("{}_|-{}_|-{}_|-{}", of("state"), of("__id__"), of("name"), of("fun"));
        let Value::Dict(result) = call.running.get(&tag)? else { return None };
        result.get("changes")?.truthy().then(|| format!("{}: {}", of("state"), of("__id__")))
    });
    changed.collect()
}

fn named(dict: &Dict) -> Vec<(Rc<str>, Value)> {
    dict.borrow().iter().map(|(name, value)| (Rc::from(name.as_str().unwrap_or_default()), value.clone())).collect()
}

/// How long a state took, as the host says.
fn milliseconds(result: &Value) -> f64 {
    let Value::Dict(result) = result else { return 0.0 };
    match result.get("duration") {
        Some(Value::Float(n)) => n,
        Some(Value::Int(n)) => n as f64,
        _ => 0.0,
    }
}
