//! Runs one call from admission to outcome, and ends it in time whatever the executor does.
//!
//! A job is a call for a master or an operator; a function's calls of other functions are calls within that job. The
//! caller of this module has found the function, its grants and its limits.
//!
//! - `nested.rs`   when a running call may call another function
//! - `outcome.rs`  the result of a call

mod nested;
mod outcome;

use std::sync::Arc;
use std::time::{Duration, Instant};

use brine_capabilities::Grants;
use brine_component::Function;
use brine_recording::Head;
use brine_sandbox_wire::{ByteBuf, FailKind, Foreseen, JobContext, Limits, Outcome, Usage, WireError};
use rmpv::Value;
use tokio::sync::oneshot;

use crate::kernel::admission::{Concurrency, Jobs, NESTED_OF_ONE, NESTED_OF_RUN, Place, Request};
use crate::kernel::broker::{Broker, Caller, Plan, Remedy};
use crate::kernel::executors::{ExecutorSet, Stay};
use crate::kernel::foresight::Watch;
use crate::kernel::link::{CallEnd, PATIENCE, Terms, Ticket, grace};
use crate::kernel::loadable::{CodeSource, Loadable};
use crate::kernel::record::{Frames, Record, Recorded};
use crate::kernel::trim::Trim;
use crate::kernel::value;
pub(crate) use nested::time_left;
pub use outcome::JobOutcome;
use outcome::judge;

/// Upper bound on the executors tried for one call, if each of them dies before it has read the call.
const ATTEMPTS: usize = 3;

/// Time for an executor to confirm that it has ended a call. It reacts within milliseconds; [`Ticket`] deals with one
/// that does not.
const KILL: Duration = Duration::from_secs(1);

/// Time of a load that does not count for its call: of code that is compiled, which takes milliseconds. So that an error
/// names the owner's limit and not what the load left of it.
const QUICK_LOAD: Duration = Duration::from_millis(100);

/// The parts of the kernel that a run needs.
pub(crate) struct Runner<'a> {
    pub(crate) broker: &'a dyn Broker,
    pub(crate) source: &'a dyn CodeSource,
    pub(crate) executors: &'a ExecutorSet,
    pub(crate) jobs: &'a Jobs,
    pub(crate) trim: &'a Trim,
}

/// Positional and keyword arguments.
pub(crate) type Arguments = (Vec<Value>, Vec<(String, Value)>);

/// A call of a function, with its grants and limits.
pub(crate) struct Call<'a> {
    pub(crate) module: &'a Loadable,
    /// Index of the function in the module.
    pub(crate) number: usize,
    /// `test.ping`
    pub(crate) fun: &'a str,
    /// The function `ping`.
    pub(crate) function: &'a Function,
    pub(crate) job: &'a Arc<JobContext>,
    pub(crate) grants: &'a Arc<Grants>,
    /// Explains how the owner would grant more.
    pub(crate) remedy: Arc<dyn Remedy>,
    pub(crate) limits: &'a Limits,
    pub(crate) concurrency: Concurrency,
    /// Whether the call may use the reserved turns.
    pub(crate) reserved: bool,
    /// Whether it is the module that runs states for jobs, several of them beside each other.
    pub(crate) runs_states: bool,
    /// The functions from the job's own to this one.
    pub(crate) chain: &'a Arc<[String]>,
    /// In a job with `test=True`: what it would have done.
    pub(crate) plan: &'a Option<Arc<Plan>>,
    /// How the call is recorded. None: it is not.
    pub(crate) record: Option<&'a Record>,
    /// Whether it need not be made if it would end as the last one: a beacon's look.
    pub(crate) repeats: bool,
}

/// A call on its way to an executor: as the minion knows it, what it asks first, and answers to that.
struct Prepared {
    caller: Arc<Caller>,
    frames: Option<Arc<Frames>>,
    watch: Option<Watch>,
    foreseen: Vec<Foreseen>,
}

/// A running call with everything it holds.
struct Running<'a> {
    ticket: Ticket,
    end: oneshot::Receiver<CallEnd>,
    /// Its limit of wall-clock time.
    wall: Duration,
    /// Bytes of its arguments.
    brought: u64,
    /// Kept for another attempt if the executor dies before it has read them.
    arguments: Encoded,
    /// The parts of its recording.
    frames: Option<Arc<Frames>>,
    _stay: Stay<'a>,
}

/// Encoded positional and keyword arguments.
type Encoded = (Vec<u8>, Vec<u8>);

/// Why a call did not start.
enum NotStarted {
    /// The error, in one line.
    Failed(String),
    /// The executor died; another one may run the call.
    Again(Encoded, String),
}

impl From<String> for NotStarted {
    fn from(line: String) -> Self {
        Self::Failed(line)
    }
}

impl Call<'_> {
    fn request(&self) -> Request<'_> {
        Request {
            job: self.job,
            module: &self.module.name,
            history: &self.module.history,
            function: self.number,
            concurrency: self.concurrency,
            reserved: self.reserved,
            nested: if self.runs_states { NESTED_OF_RUN } else { NESTED_OF_ONE },
            memory: self.limits.memory,
        }
    }

    fn failed(&self, text: impl Into<String>) -> JobOutcome {
        JobOutcome::failed(text, Some(self.module.sha256))
    }

    /// Returns the beginning of the call's recording.
    fn head(&self, (args, kwargs): Encoded) -> Head {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Head {
            module: self.module.name.to_string(),
            sha256: self.module.sha256,
            function: self.function.name.clone(),
            args: ByteBuf::from(args),
            kwargs: ByteBuf::from(kwargs),
            context: JobContext::clone(self.job),
            limits: self.limits.clone(),
            time: now.map_or(0, |now| now.as_secs()),
            brine: env!("CARGO_PKG_VERSION").to_owned(),
            secrets: 0,
        }
    }

    fn overdue(&self) -> String {
        let limit = Duration::from_millis(self.limits.wall_ms).as_secs_f32();
        format!("{} was stopped: it did not end within its wall clock limit of {limit} s", self.fun)
    }
}

impl Runner<'_> {
    /// Runs a job to its end, after a wait for its turn.
    pub(crate) async fn run(&self, call: &Call<'_>, arguments: Arguments) -> JobOutcome {
        let mut place = match self.jobs.admit(&call.request()) {
            Ok(place) => place,
            Err(text) => return call.failed(text),
        };
        let lease = match place.lease() {
            Some(lease) => Ok(lease),
            None => {
                let mut end = place.end.clone();
                tokio::select! {
                    biased;
                    why = end.told() => Err(ended_early(call.fun, &why)),
                    lease = place.turn() => lease,
                }
            }
        };
        match lease {
            Ok(lease) => self.execute(call, place, lease, arguments).await,
            Err(text) => call.failed(text),
        }
    }

    /// Runs a function for a running call: in a separate instance, at once or not at all.
    pub(crate) async fn nested(&self, caller: &Caller, call: &Call<'_>, arguments: Arguments) -> JobOutcome {
        match self.jobs.admit_nested(caller.number, &call.request()) {
            Ok(place) => {
                let (end, lease) = (place.end.clone(), place.lease().flatten());
                let outcome = self.execute(call, place, lease, arguments).await;
                if end.is_told() {
                    // The whole job is ending, so the caller must not continue with this outcome. The future is dropped
                    // when the job has ended.
                    std::future::pending::<()>().await;
                }
                if let Some(usage) = &outcome.usage {
                    self.jobs.spend(caller.number, usage);
                    caller.spend(usage);
                }
                outcome
            }
            Err(text) => call.failed(text),
        }
    }

    /// Runs an admitted call with this much memory until it asks for more. If the executor dies before it has read the
    /// call, another executor runs it: nothing of the call has run.
    async fn execute(
        &self,
        call: &Call<'_>,
        mut place: Place<'_>,
        lease: Option<u64>,
        (args, kwargs): Arguments,
    ) -> JobOutcome {
        let fun = call.fun;
        let mut arguments = value::encode_arguments(args, kwargs);
        let mut prepared = None;
        if call.repeats && call.record.is_none() {
            let now = self.prepare(call, place.number, &arguments, call.limits).await;
            if let Some(outcome) = now.watch.as_ref().and_then(|watch| watch.repeated(&now.foreseen)) {
                return judge(call, outcome, place.leave(Usage::default()));
            }
            prepared = Some(now);
        }
        for attempt in 1.. {
            let started = tokio::select! {
                biased;
                why = place.end.told() => Err(NotStarted::Failed(ended_early(fun, &why))),
                started = self.start(call, place.number, prepared.take(), arguments, lease) => started,
            };
            let mut running = match started {
                Ok(running) => running,
                Err(NotStarted::Again(back, _)) if attempt < ATTEMPTS => {
                    arguments = back;
                    continue;
                }
                Err(NotStarted::Failed(text) | NotStarted::Again(_, text)) => return call.failed(text),
            };
            let end = self.ended(call, &mut place, &mut running).await;
            if let (Some(record), Some(frames)) = (call.record, running.frames.take())
                && let Some(outcome) = recorded_outcome(call, &end)
            {
                let head = call.head(std::mem::take(&mut running.arguments));
                record.keeper.keep(Recorded { head, frames: frames.take(), outcome }).await;
            }
            let led_to = match &end {
                Ok(Ok(CallEnd::Done(_, own))) => own.bytes_in.saturating_add(own.bytes_out),
                _ => 0,
            };
            self.trim.handled(running.brought.saturating_add(led_to));
            return match end {
                Ok(Ok(CallEnd::Done(outcome, own))) => {
                    let history = &call.module.history;
                    match place.end.is_told() {
                        true => history.cut_off(call.number, &own),
                        false => history.ended(call.number, &own),
                    }
                    judge(call, outcome, place.leave(own))
                }
                Ok(Ok(CallEnd::NotBegun(_))) if attempt < ATTEMPTS => {
                    arguments = running.arguments;
                    continue;
                }
                Ok(Ok(CallEnd::NotBegun(how))) => call.failed(format!(
                    "{fun} was not run: the executor {how}, and so did those before it. Nothing of it was done; try again."
                )),
                Ok(Ok(CallEnd::Died(how))) => call.failed(format!(
                    "{fun} did not finish: the executor it ran in {how}. The job may have been cut off anywhere."
                )),
                Ok(Err(_)) => call.failed(format!("{fun} was lost by the sandbox.")),
                Err(text) => call.failed(text),
            };
        }
        call.failed(format!("{fun} was lost by the sandbox."))
    }

    /// Waits for the end of a running call: its own end, or the request to end it.
    async fn ended(
        &self,
        call: &Call<'_>,
        place: &mut Place<'_>,
        running: &mut Running<'_>,
    ) -> Result<Result<CallEnd, oneshot::error::RecvError>, String> {
        let (Running { ticket, end, wall, .. }, began) = (running, Instant::now());
        let overdue = *wall + grace(*wall);
        // When the clock first fires, the executor is checked.
        let clock = tokio::time::sleep(PATIENCE.min(overdue));
        let mut clock = std::pin::pin!(clock);
        loop {
            tokio::select! {
                end = &mut *end => return Ok(end),
                why = place.end.told() => {
                    let ended = async {
                        ticket.kill(&why).await;
                        (&mut *end).await
                    };
                    let ended = tokio::time::timeout(KILL, ended).await;
                    return ended.map_err(|_| format!("{} was stopped: {why}", call.fun));
                }
                () = &mut clock => {
                    let left = overdue.saturating_sub(began.elapsed());
                    if left.is_zero() {
                        return Err(call.overdue());
                    }
                    ticket.doubt();
                    clock.as_mut().reset(tokio::time::Instant::now() + left);
                }
            }
        }
    }

    /// Makes the answers that the call is expected to ask for. It starts now, within these limits.
    async fn prepare(&self, call: &Call<'_>, number: u64, arguments: &Encoded, limits: &Limits) -> Prepared {
        let module = call.module;
        let (job, grants) = (Arc::clone(call.job), Arc::clone(call.grants));
        let wall = Duration::from_millis(limits.wall_ms);
        let caller = Caller::new(job, module.name.clone(), module.sha256, grants, wall);
        let caller = caller.with_remedy(Arc::clone(&call.remedy)).called(Arc::clone(call.chain), number);
        let caller = caller.running_states(call.runs_states);
        let frames = call.record.map(|record| Frames::new(record.bytes));
        let caller = caller.planning(call.plan.clone()).recording(frames.clone());
        let caller = Arc::new(caller.with_limits(limits));
        let watch = module.foresight.watch(call.number, (&arguments.0, &arguments.1), &caller);
        let mut watch = if call.repeats { watch.map(Watch::repeating) } else { watch };
        let foreseen = match &mut watch {
            Some(watch) => watch.foresee(self.broker, &caller, limits).await,
            None => Vec::new(),
        };
        Prepared { caller, frames, watch, foreseen }
    }

    /// Sends the call to its executor. The executor may have to start and to load the module first, all within the
    /// call's time.
    async fn start(
        &self,
        call: &Call<'_>,
        number: u64,
        prepared: Option<Prepared>,
        arguments: Encoded,
        lease: Option<u64>,
    ) -> Result<Running<'_>, NotStarted> {
        let module = call.module;
        let mut limits = call.limits.clone();
        let (size, limit) = ((arguments.0.len() + arguments.1.len()) as u64, limits.host_bytes);
        if size > limit {
            return Err(NotStarted::Failed(format!(
                "The arguments have {size} bytes; the limit of a job is {limit} (sandbox:limits:host_bytes)."
            )));
        }
        let (began, mut wall) = (Instant::now(), Duration::from_millis(limits.wall_ms));
        let mut loads = false;
        let ready = async {
            let up = self.executors.up(&call.grants.direct, &module.name, module.sha256);
            let (stay, link) = up.await.map_err(|error| (error.to_string(), false))?;
            if !link.has(module.key) {
                // It is the module's first call, the executor is still starting, or compiled code was lost. All of them take
                // time, but other jobs do not wait for them.
                loads = true;
                let loaded = Box::pin(link.ensure(module, self.source)).await;
                // If the executor died, the cause may be another module that it loaded before; a retry is possible.
                loaded.map_err(|error| (error, link.is_dead()))?;
                let took = began.elapsed();
                if took > QUICK_LOAD {
                    limits.wall_ms = limits.wall_ms.saturating_sub(milliseconds(took)).max(1);
                }
            }
            Ok::<_, (String, bool)>((stay, link))
        };
        let (stay, link) = match tokio::time::timeout(wall, ready).await {
            Ok(Ok(ready)) => ready,
            Ok(Err((text, true))) => return Err(NotStarted::Again(arguments, text)),
            Ok(Err((text, false))) => return Err(NotStarted::Failed(text)),
            Err(_) if loads => return Err(format!("module {} is being compiled again; try later.", module.name).into()),
            Err(_) => return Err(call.overdue().into()),
        };
        wall = Duration::from_millis(limits.wall_ms);
        // Answers that were made before a load are old.
        let Prepared { caller, frames, watch, foreseen } = match prepared.filter(|_| !loads) {
            Some(prepared) => prepared,
            None => self.prepare(call, number, &arguments, &limits).await,
        };
        let (ticket, end) = link.register(&caller, &limits, watch);
        let terms = Terms { limits: &limits, lease, foreseen };
        match link.start(&ticket, &caller, module, &call.function.name, arguments, terms).await {
            Ok(arguments) => Ok(Running { ticket, end, wall, brought: size, arguments, frames, _stay: stay }),
            Err(WireError::TooLarge { limit, .. }) => {
                Err(format!("The arguments have {size} bytes; the limit of a job is {limit}.").into())
            }
            Err(error) => Err(format!("The job could not be started: {error}.").into()),
        }
    }
}

/// Returns the end of a call as its recording has it. None: the call did not begin.
fn recorded_outcome(
    call: &Call<'_>,
    end: &Result<Result<CallEnd, oneshot::error::RecvError>, String>,
) -> Option<Outcome> {
    let failed = |kind, message: String| Some(Outcome::Failed { kind, message, retcode: 1 });
    match end {
        Ok(Ok(CallEnd::Done(outcome, _))) => Some(outcome.clone()),
        Ok(Ok(CallEnd::NotBegun(_))) => None,
        Ok(Ok(CallEnd::Died(how))) => {
            failed(FailKind::Internal, format!("{} did not finish: the executor it ran in {how}.", call.fun))
        }
        Ok(Err(_)) => failed(FailKind::Internal, format!("{} was lost by the sandbox.", call.fun)),
        Err(text) => failed(FailKind::Killed, text.clone()),
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn ended_early(fun: &str, why: &str) -> String {
    format!("{fun} was stopped before it began: {why}")
}
