//! Does what the run machine says is next.

use std::sync::Arc;
use std::time::{Duration, Instant};

use brine_protocol::msgpack;
use brine_protocol::value::Value as Wire;
use brine_render::convert::ConvertLimits;
use brine_render::{Dict, Value};
use brine_states::Host as _;
use brine_states::run::{Answer, Call, Check, Event, Finished, Run, Step};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

use super::pauses::{Pauses, Word};
use super::pretend;
use super::table::{self, Done, StateCall};
use super::world::World;

/// States that run beside each other; others wait.
const PARALLEL_MAX: usize = 32;
/// A wait without an end of its own: it is begun again.
const LONG: Duration = Duration::from_secs(3_600);

/// The end of a parallel state.
struct Ended {
    tag: String,
    done: Done,
    start_time: String,
    duration: f64,
}

/// A run of states in the master.
pub(super) struct Drive<'a> {
    world: &'a World,
    pauses: Pauses,
    /// An event for each result.
    events: bool,
    /// The master's name.
    id: &'a str,
    tasks: JoinSet<()>,
    turns: Arc<Semaphore>,
    said: mpsc::UnboundedSender<Ended>,
    heard: mpsc::UnboundedReceiver<Ended>,
    /// The bytes that further results may have.
    left: usize,
}

/// How a run ended.
pub(super) enum End {
    /// By itself.
    Done(Dict),
    /// Before its end: the results so far, and why.
    CutOff(Dict, String),
}

impl<'a> Drive<'a> {
    pub(super) fn new(world: &'a World, id: &'a str, events: bool) -> Self {
        let (said, heard) = mpsc::unbounded_channel();
        Self {
            pauses: world.actor.runners.parts.orchestrations.pauses.clone(),
            left: world.actor.return_max,
            world,
            events,
            id,
            tasks: JoinSet::new(),
            turns: Arc::new(Semaphore::new(PARALLEL_MAX)),
            said,
            heard,
        }
    }

    /// Runs to the end.
    ///
    /// # Errors
    /// What Salt raises.
    pub(super) fn run(&mut self, run: &mut Run<'_>) -> Result<End, String> {
        loop {
            let step = run.next(&time_of_day()).map_err(|fault| fault.to_string())?;
            let done = match step {
                Step::Done(results) => return Ok(End::Done(results)),
                step => match self.world.patience.is_over() {
                    None => self.step(run, step),
                    Some(why) => Err(why),
                },
            };
            match done {
                Ok(answer) => run.tell(answer),
                Err(why) => return Ok(End::CutOff(run.results(), why)),
            }
        }
    }

    /// The error is why the run has to end.
    fn step(&mut self, run: &mut Run<'_>, step: Step) -> Result<Answer, String> {
        Ok(match step {
            Step::Call(call) => {
                let began = Instant::now();
                let done = match pretend::answer(&call) {
                    Some(done) => done,
                    None => self.world.patience.wait(self.started(&call))?.and_then(|done| self.taken(done)),
                };
                match done {
                    Ok(value) => Answer::Result(value, milliseconds(began)),
                    Err(why) => Answer::Raised(why, milliseconds(began)),
                }
            }
            Step::Start { call, after } => {
                self.start(&call, after);
                Answer::Done
            }
            Step::Wait => {
                if let Some(ended) = self.world.patience.wait(self.heard.recv())? {
                    self.tell(run, ended);
                }
                Answer::Done
            }
            Step::Check(check) => self.check(check),
            Step::Sleep { seconds, splay } => {
                let more = if splay > 0 { rand::random_range(0..=splay) } else { 0 };
                let time = Duration::from_secs(seconds.saturating_add(more));
                self.world.patience.wait(async move { tokio::time::sleep(time).await })?;
                Answer::Done
            }
            Step::Pause(low) => self.pause(run, &low)?,
            Step::Event(event) => {
                self.event(&event);
                Answer::Done
            }
            Step::Init(_) => Answer::Value { value: true.into(), code: 0 },
            Step::Aggregate { low, .. } => Answer::Value { value: low.into(), code: 0 },
            Step::Refresh(_) | Step::Done(_) => Answer::Done,
        })
    }

    /// The call of a state that does something.
    fn started(&self, call: &Call) -> impl Future<Output = Done> + Send + use<> {
        let wire = Value::Dict(call.arguments.clone()).to_wire(ConvertLimits::default());
        let saltenv = call.low.get("__env__").and_then(|env| env.as_str().map(str::to_owned));
        let started = wire.map_err(|why| format!("its arguments cannot be used: {why}")).and_then(|arguments| {
            let saltenv = saltenv.unwrap_or_else(|| "base".to_owned());
            let call_of = StateCall { arguments, test: call.test, saltenv };
            table::start(&call.function, Arc::clone(&self.world.actor), call_of)
                .ok_or_else(|| format!("'{}' is not available.", call.function))
        });
        async move { started?.await }
    }

    /// Starts a parallel state.
    fn start(&mut self, call: &Call, after: u64) {
        let (said, tag) = (self.said.clone(), call.tag.clone());
        if let Some(done) = pretend::answer(call) {
            let done = done.and_then(|value| value.to_wire(ConvertLimits::default()).map_err(|why| why.to_string()));
            let _ = said.send(Ended { tag, done, start_time: time_of_day(), duration: 0.0 });
            return;
        }
        let (work, turns) = (self.started(call), Arc::clone(&self.turns));
        let task = async move {
            tokio::time::sleep(Duration::from_secs(after)).await;
            let _turn = turns.acquire().await;
            let (start_time, began) = (time_of_day(), Instant::now());
            let done = work.await;
            let _ = said.send(Ended { tag, done, start_time, duration: milliseconds(began) });
        };
        self.tasks.spawn_on(task, &self.world.patience.runtime);
    }

    fn tell(&mut self, run: &mut Run<'_>, Ended { tag, done, start_time, duration }: Ended) {
        let result = done.and_then(|done| self.taken(done));
        run.finished(Finished { tag, result, start_time, duration });
    }

    /// A result, without what it changed if that is too much.
    fn taken(&mut self, mut done: Wire) -> Result<Value, String> {
        use brine_protocol::value::{ValueExt as _, map};
        let size = msgpack::encode_disk(&done).len();
        match self.left.checked_sub(size) {
            Some(left) => self.left = left,
            None => {
                let why = format!(
                    "left out: the results of this orchestration have more than {} bytes (orchestrate_max_return)",
                    self.world.actor.return_max
                );
                if done.get("changes").is_some_and(|changes| changes.truthy()) {
                    done.insert("changes", map([("ret", why)]));
                }
            }
        }
        Value::from_wire(&done).map_err(|why| format!("its result cannot be used: {why}"))
    }

    /// Waits while somebody pauses the run here.
    fn pause(&mut self, run: &mut Run<'_>, low: &Dict) -> Result<Answer, String> {
        let id = low.get("__id__").and_then(|id| id.as_str().map(str::to_owned)).unwrap_or_default();
        let (began, pauses) = (Instant::now(), self.pauses.clone());
        loop {
            let mut changed = std::pin::pin!(pauses.changed());
            changed.as_mut().enable();
            let time = match pauses.at(&self.world.actor.within.jid, &id, began.elapsed()) {
                Word::Go => return Ok(Answer::Done),
                Word::Kill => return Ok(Answer::Kill),
                Word::Wait(time) => time.unwrap_or(LONG),
            };
            let ended = self.world.patience.wait(async {
                tokio::select! {
                    () = changed => None,
                    () = tokio::time::sleep(time) => None,
                    ended = self.heard.recv() => ended,
                }
            })?;
            if let Some(ended) = ended {
                self.tell(run, ended);
            }
        }
    }

    fn check(&self, check: Check) -> Answer {
        let began = Instant::now();
        let why = |what: &str| {
            format!(
                "{what} would look at the master's host: in an orchestration, only functions that compute are asked"
            )
        };
        match check {
            Check::Command { .. } => Answer::Refused(why("a command in unless, onlyif or check_cmd")),
            Check::Exist(_) => Answer::Raised(why("creates"), 0.0),
            Check::Function { name, positional, keyword } => {
                let positional = match positional {
                    Value::List(items) => items.borrow().clone(),
                    Value::Tuple(items) => items.iter().cloned().collect(),
                    Value::None => Vec::new(),
                    other => vec![other],
                };
                let named = keyword
                    .borrow()
                    .iter()
                    .map(|(name, value)| (name.as_str().unwrap_or_default().into(), value.clone()))
                    .collect();
                match self.world.call("base", &name, positional, named) {
                    Ok(value) => Answer::Value { value, code: 0 },
                    Err(error) => Answer::Raised(error.message, milliseconds(began)),
                }
            }
        }
    }

    /// Fires an event about a result: of the run's progress if the master wants them, or one that a state asks for.
    fn event(&self, event: &Event) {
        use brine_protocol::value::map;
        if event.name.is_none() && !self.events {
            return;
        }
        let Ok(ret) = Value::Dict(event.result.clone()).to_wire(ConvertLimits::default()) else { return };
        let jid = &self.world.actor.within.jid;
        let (tag, data) = match &event.name {
            Some(name) => {
                let name: String = name.chars().filter(|c| !c.is_control()).take(256).collect();
                (format!("salt/state_result/{jid}/{}/{name}", self.id), map([("ret", ret)]))
            }
            None => {
                let number =
                    event.result.get("__run_num__").and_then(|n| if let Value::Int(n) = n { Some(n) } else { None });
                let tag = format!("salt/job/{jid}/prog/{}/{}", self.id, number.unwrap_or_default());
                (tag, map([("ret", ret), ("len", (event.length as u64).into())]))
            }
        };
        self.world.actor.runners.parts.bus.fire(tag, data);
    }
}

fn milliseconds(began: Instant) -> f64 {
    (began.elapsed().as_secs_f64() * 1_000_000.0).round() / 1_000.0
}

/// The local time, as results have it.
fn time_of_day() -> String {
    jiff::Zoned::now().strftime("%H:%M:%S%.6f").to_string()
}
