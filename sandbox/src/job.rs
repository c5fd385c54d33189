//! Runs one call from arguments to outcome: resolves it, admits it, runs it, and ends it in time whatever the executor
//! does. A job is a call for a master or an operator; a function's calls of other functions are calls within that job.

use std::sync::Arc;
use std::time::{Duration, Instant};

use brine_component::signature;
use brine_sandbox_wire::{FailKind, JobContext, Limits, Outcome, Sha256Hex, Usage, WireError};
use rmpv::Value;
use tokio::sync::oneshot;

use crate::kernel::admission::{Concurrency, Jobs, Pace, Place, Request};
use crate::kernel::broker::Caller;
use crate::kernel::executors::{ExecutorSet, Stay};
use crate::kernel::link::{CallEnd, PATIENCE, Ticket, grace};
use crate::kernel::trim::Trim;
use crate::kernel::value;
use crate::policy::Granted;
use crate::store::{Entry, Store};

/// Upper bound on the names in an error.
const MAX_NAMES: usize = 40;
/// Upper bound on the functions in a chain of calls, the job's own function included.
const MAX_DEPTH: usize = 8;

/// Upper bound on the executors tried for one call, if each of them dies before it has read the call.
const ATTEMPTS: usize = 3;

/// Time for an executor to confirm that it has ended a call. It reacts within milliseconds; [`Ticket`] deals with one
/// that does not.
const KILL: Duration = Duration::from_secs(1);

/// The result of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct JobOutcome {
    /// The function's return value, or one line that says why there is none.
    pub value: Value,
    /// 0, the code that the function set, or 1.
    pub retcode: i64,
    /// Whether the function returned.
    pub success: bool,
    /// The resources used, nested calls included. None if the call never started.
    pub usage: Option<Usage>,
    /// The module that ran.
    pub sha256: Option<Sha256Hex>,
}

impl JobOutcome {
    fn failed(text: impl Into<String>, sha256: Option<Sha256Hex>) -> Self {
        Self { value: Value::from(text.into()), retcode: 1, success: false, usage: None, sha256 }
    }
}

/// The parts of the sandbox that a run needs.
pub(crate) struct Runner<'a> {
    pub(crate) store: &'a Arc<Store>,
    pub(crate) executors: &'a ExecutorSet,
    pub(crate) jobs: &'a Jobs,
    pub(crate) limits: Arc<Limits>,
    pub(crate) trim: &'a Trim,
}

/// A resolved call with its grants.
struct Call<'a> {
    entry: Arc<Entry>,
    /// Index of the function in the module.
    number: usize,
    /// `test.ping`
    fun: &'a str,
    /// `ping`
    function: &'a str,
    job: Arc<JobContext>,
    granted: Granted,
    limits: Limits,
    concurrency: Concurrency,
    chain: Arc<[String]>,
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
    arguments: Arguments,
    _stay: Stay<'a>,
}

/// Encoded positional and keyword arguments.
type Arguments = (Vec<u8>, Vec<u8>);

/// Why a call did not start.
enum NotStarted {
    /// The error, in one line.
    Failed(String),
    /// The executor died; another one may run the call.
    Again(Arguments, String),
}

impl From<String> for NotStarted {
    fn from(line: String) -> Self {
        Self::Failed(line)
    }
}

impl Call<'_> {
    fn request(&self) -> Request<'_> {
        let entry = &self.entry;
        Request {
            job: &self.job,
            module: &entry.name,
            history: &entry.history,
            function: self.number,
            concurrency: self.concurrency,
            reserved: entry.standard && matches!(entry.name.as_str(), "sys" | "saltutil"),
            memory: self.limits.memory,
        }
    }

    fn failed(&self, text: impl Into<String>) -> JobOutcome {
        JobOutcome::failed(text, Some(self.entry.module.sha256))
    }

    fn overdue(&self) -> String {
        let limit = Duration::from_millis(self.limits.wall_ms).as_secs_f32();
        format!("{} was stopped: it did not end within its wall clock limit of {limit} s", self.fun)
    }
}

impl Runner<'_> {
    /// Runs a job to its end.
    pub(crate) async fn run(
        &self,
        job: JobContext,
        fun: &str,
        args: Vec<Value>,
        kwargs: Vec<(String, Value)>,
    ) -> JobOutcome {
        let timeout = job.timeout_ms;
        let chain = Arc::from([fun.to_owned()]);
        let call = match self.call_of(Arc::new(job), fun, chain, timeout.unwrap_or(u64::MAX)) {
            Ok(call) => call,
            Err((text, sha256)) => return JobOutcome::failed(text, sha256),
        };
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
                    why = end.told() => Err(ended_early(fun, &why)),
                    lease = place.turn() => lease,
                }
            }
        };
        match lease {
            Ok(lease) => self.execute(&call, place, lease, (args, kwargs)).await,
            Err(text) => call.failed(text),
        }
    }

    /// Checks whether a job of this function is expected to be short.
    pub(crate) fn is_short(&self, fun: &str) -> bool {
        let Ok((entry, _, number)) = resolve(self.store, fun) else { return false };
        entry.history.expect(number).pace == Pace::Short
    }

    /// Runs a function for a running call: in a separate instance, with the grants of its own module, within the
    /// caller's remaining time.
    pub(crate) async fn nested(
        &self,
        caller: &Caller,
        fun: &str,
        args: Vec<Value>,
        kwargs: Vec<(String, Value)>,
    ) -> JobOutcome {
        if caller.chain.iter().any(|before| before == fun) {
            let text = format!("{} is already being called: {}", quoted(fun), chain_text(&caller.chain, fun));
            return JobOutcome::failed(text, None);
        }
        if caller.chain.len() >= MAX_DEPTH {
            let chain = chain_text(&caller.chain, fun);
            let text = format!("{} is not called: calls go {MAX_DEPTH} functions deep at most: {chain}", quoted(fun));
            return JobOutcome::failed(text, None);
        }
        let left = caller.ends.saturating_duration_since(Instant::now());
        let left = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
        if left == 0 {
            return JobOutcome::failed(format!("{} is not called: its caller's time is up", quoted(fun)), None);
        }
        if caller.is_spent() {
            let text = format!(
                "{} is not called: the functions that {} called have used up its limit of their CPU time \
                 (sandbox:limits:calls_cpu)",
                quoted(fun),
                caller.job.function
            );
            return JobOutcome::failed(text, None);
        }
        let called_by = caller.chain.last().cloned();
        let job =
            JobContext { function: fun.to_owned(), called_by, timeout_ms: None, ..JobContext::clone(&caller.job) };
        let chain = caller.chain.iter().cloned().chain([fun.to_owned()]).collect();
        let mut call = match self.call_of(Arc::new(job), fun, chain, left) {
            Ok(call) => call,
            Err((text, sha256)) => return JobOutcome::failed(text, sha256),
        };
        caller.bound(&mut call.limits);
        match self.jobs.admit_nested(caller.number, &call.request()) {
            Ok(place) => {
                let (end, lease) = (place.end.clone(), place.lease().flatten());
                let outcome = self.execute(&call, place, lease, (args, kwargs)).await;
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

    /// Resolves the function, its grants and its limits, with at most `most_ms` of time. The error has one line and the
    /// content's hash, if it is known.
    fn call_of<'a>(
        &self,
        job: Arc<JobContext>,
        fun: &'a str,
        chain: Arc<[String]>,
        most_ms: u64,
    ) -> Result<Call<'a>, (String, Option<Sha256Hex>)> {
        let (entry, function, number) = resolve(self.store, fun).map_err(|text| (text, None))?;
        let master = job.master.as_deref();
        let granted = entry.grants.of(function, master);
        let granted = granted.map_err(|text| (text, Some(entry.module.sha256)))?;
        let mut limits = self.store.policy().limits(&self.limits, &entry.name, entry.standard, function, master);
        limits.wall_ms = limits.wall_ms.min(most_ms);
        // A single call cannot get more memory than all instances together have.
        limits.memory = limits.memory.min(self.jobs.memory());
        let concurrency = self.store.policy().concurrency(&entry.name);
        Ok(Call { entry, number, fun, function, job, granted, limits, concurrency, chain })
    }

    /// Runs an admitted call with this much memory until it asks for more. If the executor dies before it has read the
    /// call, another executor runs it: nothing of the call has run.
    async fn execute(
        &self,
        call: &Call<'_>,
        mut place: Place<'_>,
        lease: Option<u64>,
        (args, kwargs): (Vec<Value>, Vec<(String, Value)>),
    ) -> JobOutcome {
        let fun = call.fun;
        let mut arguments = value::encode_arguments(args, kwargs);
        for attempt in 1.. {
            let started = tokio::select! {
                biased;
                why = place.end.told() => Err(NotStarted::Failed(ended_early(fun, &why))),
                started = self.start(call, place.number, arguments, lease) => started,
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
            let led_to = match &end {
                Ok(Ok(CallEnd::Done(_, own))) => own.bytes_in.saturating_add(own.bytes_out),
                _ => 0,
            };
            self.trim.handled(running.brought.saturating_add(led_to));
            return match end {
                Ok(Ok(CallEnd::Done(outcome, own))) => {
                    let history = &call.entry.history;
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

    /// Sends the call to its executor. The executor may have to start and to load the module first, all within the
    /// call's time.
    async fn start(
        &self,
        call: &Call<'_>,
        number: u64,
        arguments: Arguments,
        lease: Option<u64>,
    ) -> Result<Running<'_>, NotStarted> {
        let entry = &call.entry;
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
            let up = self.executors.up(&call.granted.grants.direct, &entry.name, entry.module.sha256);
            let (stay, link) = up.await.map_err(|error| (error.to_string(), false))?;
            if !link.has(entry.key) {
                // The executor is still starting, or compiled code was lost. Both take time, but other jobs do not wait
                // for them.
                loads = true;
                let loaded = Box::pin(link.ensure(entry, self.store)).await;
                // If the executor died, the cause may be another module that it loaded before; a retry is possible.
                loaded.map_err(|error| (error, link.is_dead()))?;
                limits.wall_ms = limits.wall_ms.saturating_sub(milliseconds(began.elapsed())).max(1);
            }
            Ok::<_, (String, bool)>((stay, link))
        };
        let (stay, link) = match tokio::time::timeout(wall, ready).await {
            Ok(Ok(ready)) => ready,
            Ok(Err((text, true))) => return Err(NotStarted::Again(arguments, text)),
            Ok(Err((text, false))) => return Err(NotStarted::Failed(text)),
            Err(_) if loads => return Err(format!("module {} is being compiled again; try later.", entry.name).into()),
            Err(_) => return Err(call.overdue().into()),
        };
        wall = Duration::from_millis(limits.wall_ms);
        let (job, grants) = (Arc::clone(&call.job), Arc::clone(&call.granted.grants));
        let caller = Caller::new(job, entry.name.clone(), entry.module.sha256, grants, wall);
        let caller = caller.with_remedy(call.granted.remedy()).called(Arc::clone(&call.chain), number);
        let caller = Arc::new(caller.with_limits(&limits));
        let (ticket, end) = link.register(&caller, &limits);
        match link.start(&ticket, &caller, entry, call.function, arguments, (&limits, lease)).await {
            Ok(arguments) => Ok(Running { ticket, end, wall, brought: size, arguments, _stay: stay }),
            Err(WireError::TooLarge { limit, .. }) => {
                Err(format!("The arguments have {size} bytes; the limit of a job is {limit}.").into())
            }
            Err(error) => Err(format!("The job could not be started: {error}.").into()),
        }
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// `test.a → test.b → test.a`
fn chain_text(chain: &[String], fun: &str) -> String {
    let names = chain.iter().map(String::as_str).chain([fun]);
    names.map(shown).collect::<Vec<_>>().join(" → ")
}

fn ended_early(fun: &str, why: &str) -> String {
    format!("{fun} was stopped before it began: {why}")
}

/// Returns the module and the function behind `module.function`, or Salt's message that there is none.
fn resolve<'a>(store: &Store, fun: &'a str) -> Result<(Arc<Entry>, &'a str, usize), String> {
    let (module, function) = fun.split_once('.').unwrap_or((fun, ""));
    let Some(entry) = store.get(module) else {
        let table = store.table();
        let names = few(table.keys().map(|name| name.as_str()));
        let why = match store.left_out(module) {
            Some(why) => why,
            None => format!("There is no module {}; there are: {names}", quoted(module)),
        };
        return Err(format!("{} is not available. {why}.", quoted(fun)));
    };
    let functions = &entry.module.info.functions;
    if let Some(number) = functions.iter().position(|known| known.name == function) {
        return Ok((entry, function, number));
    }
    let names = few(functions.iter().map(|known| known.name.as_str()));
    Err(format!("{} is not available. Functions of {module}: {names}.", quoted(fun)))
}

/// Quotes a name from a job for a message: bounded in length, with hidden characters made visible.
fn quoted(name: &str) -> String {
    format!("'{}'", shown(name))
}

fn shown(name: &str) -> String {
    const MAX: usize = 100;
    brine_text::short(name, MAX)
}

fn few<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let count = names.len();
    let shown: Vec<&str> = names.take(MAX_NAMES).collect();
    let more = if count > shown.len() { format!(" and {} more", count - shown.len()) } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

/// Makes the job's outcome from the executor's result.
fn judge(call: &Call<'_>, outcome: Outcome, usage: Usage) -> JobOutcome {
    let Call { entry, fun, limits, .. } = call;
    let sha256 = Some(entry.module.sha256);
    let failed = |text: String, retcode: i32| JobOutcome {
        value: Value::from(text),
        retcode: if retcode == 0 { 1 } else { i64::from(retcode) },
        success: false,
        usage: Some(usage),
        sha256,
    };
    match outcome {
        Outcome::Returned { value, .. } if value.len() as u64 > limits.output => {
            failed(format!("{fun} returned {} bytes; the limit is {}.", value.len(), limits.output), 1)
        }
        Outcome::Returned { value, retcode } => match value::decode(&value) {
            // A function that returned is a success; the retcode is its own statement.
            Ok(value) => JobOutcome { value, retcode: i64::from(retcode), success: true, usage: Some(usage), sha256 },
            Err(error) => failed(format!("{fun} returned a value that cannot be read: {error}."), 1),
        },
        Outcome::Failed { kind: FailKind::Arguments, message, retcode } if !message.starts_with("Passed invalid") => {
            let usage = match entry.module.info.function(call.function) {
                Some(function) => format!(" Usage: {}", signature(entry.name.as_str(), function)),
                None => String::new(),
            };
            failed(format!("Passed invalid arguments to {fun}: {message}.{usage}"), retcode)
        }
        Outcome::Failed { message, retcode, .. } => failed(message, retcode),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_errors_are_bounded() {
        assert_eq!(quoted("a\nb\u{202e}"), "'a\\nb\\u202e'");
        assert_eq!(quoted(&"x".repeat(200)).chars().count(), 103);
        let many: Vec<String> = (0..50).map(|n| n.to_string()).collect();
        assert!(few(many.iter().map(String::as_str)).ends_with(", 38, 39 and 10 more"));
    }
}
