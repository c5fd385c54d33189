//! One job from arguments to outcome: resolved, admitted, run, and ended in time whatever the executor does.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use brine_component::signature;
use brine_sandbox_wire::{JobContext, Limits, Outcome, Sha256Hex, Usage, WireError};
use rmpv::Value;
use tokio::sync::{Semaphore, SemaphorePermit, oneshot, watch};

use crate::link::{CallEnd, GRACE, Ticket};
use crate::store::{Entry, Store};
use crate::supervisor::ExecutorSet;
use crate::value;

/// Turns kept for the standard modules `sys` and `saltutil`: who cannot ask what runs, or end it, cannot help a minion
/// whose turns are all taken.
pub(crate) const RESERVED: usize = 4;
/// Names in an error.
const MAX_NAMES: usize = 40;

/// How a job ended.
#[derive(Debug, Clone, PartialEq)]
pub struct JobOutcome {
    /// What the function returned, or one line that says why it did not.
    pub value: Value,
    /// 0, or what the function set, or 1.
    pub retcode: i64,
    /// Whether it returned.
    pub success: bool,
    /// What it used; none where it never started.
    pub usage: Option<Usage>,
    /// The module that ran.
    pub sha256: Option<Sha256Hex>,
}

impl JobOutcome {
    fn failed(text: impl Into<String>, sha256: Option<Sha256Hex>) -> Self {
        Self { value: Value::from(text.into()), retcode: 1, success: false, usage: None, sha256 }
    }
}

/// Who runs and who waits.
pub(crate) struct Jobs {
    running: Semaphore,
    reserved: Semaphore,
    max_running: usize,
    /// All that were admitted, waiting ones too.
    admitted: Mutex<HashMap<u64, Admitted>>,
    max_admitted: usize,
    next: AtomicU64,
}

struct Admitted {
    jid: String,
    /// Why it is to end, once it is.
    end: watch::Sender<Option<Arc<str>>>,
}

/// An admitted job's place; given back when dropped.
struct Place<'a> {
    jobs: &'a Jobs,
    number: u64,
    end: watch::Receiver<Option<Arc<str>>>,
}

impl Jobs {
    pub(crate) fn new(max_running: usize, max_queued: usize) -> Self {
        Self {
            running: Semaphore::new(max_running.min(Semaphore::MAX_PERMITS)),
            reserved: Semaphore::new(RESERVED),
            max_running,
            admitted: Mutex::default(),
            max_admitted: max_running.saturating_add(max_queued),
            next: AtomicU64::new(0),
        }
    }

    fn admitted(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Admitted>> {
        self.admitted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn admit(&self, jid: &str, reserved: bool) -> Result<Place<'_>, String> {
        let mut admitted = self.admitted();
        let max = if reserved { self.max_admitted.saturating_add(RESERVED) } else { self.max_admitted };
        if admitted.len() >= max {
            let running = self.max_running.min(admitted.len());
            let waiting = admitted.len() - running;
            return Err(format!(
                "The minion is busy: {running} jobs run and {waiting} wait. Try again, or raise sandbox:max_queued."
            ));
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, end) = watch::channel(None);
        admitted.insert(number, Admitted { jid: jid.to_owned(), end: sender });
        Ok(Place { jobs: self, number, end })
    }

    /// Tells the jobs to end; says how many were told.
    pub(crate) fn end(&self, which: impl Fn(&str) -> bool, why: &str) -> usize {
        let why: Arc<str> = why.into();
        let admitted = self.admitted();
        let chosen: Vec<&Admitted> = admitted.values().filter(|job| which(&job.jid)).collect();
        for job in &chosen {
            job.end.send_replace(Some(Arc::clone(&why)));
        }
        chosen.len()
    }

    /// How many are running or waiting.
    pub(crate) fn count(&self) -> usize {
        self.admitted().len()
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.jobs.admitted().remove(&self.number);
    }
}

impl Place<'_> {
    /// Waits until the job is told to end; says why.
    async fn ended(&mut self) -> Arc<str> {
        // The sender is in the table for as long as this place is.
        let why = self.end.wait_for(Option::is_some).await.map(|why| why.clone());
        why.ok().flatten().unwrap_or_else(|| "it was ended".into())
    }
}

/// What a run needs of the sandbox.
pub(crate) struct Runner<'a> {
    pub(crate) store: &'a Arc<Store>,
    pub(crate) executors: &'a ExecutorSet,
    pub(crate) jobs: &'a Jobs,
    pub(crate) limits: &'a Limits,
}

impl Runner<'_> {
    pub(crate) async fn run(
        &self,
        job: JobContext,
        fun: &str,
        args: Vec<Value>,
        kwargs: Vec<(String, Value)>,
    ) -> JobOutcome {
        let (entry, function) = match resolve(self.store, fun) {
            Ok(found) => found,
            Err(text) => return JobOutcome::failed(text, None),
        };
        let sha256 = Some(entry.module.sha256);
        let reserved = entry.standard && matches!(entry.name.as_str(), "sys" | "saltutil");
        let mut place = match self.jobs.admit(&job.jid, reserved) {
            Ok(place) => place,
            Err(text) => return JobOutcome::failed(text, sha256),
        };
        let started = tokio::select! {
            biased;
            why = place.ended() => Err(ended_early(fun, &why)),
            started = self.start(&entry, function, job, args, kwargs, reserved) => started,
        };
        let (_turn, ticket, mut end) = match started {
            Ok(started) => started,
            Err(text) => return JobOutcome::failed(text, sha256),
        };
        let limit = Duration::from_millis(self.limits.wall_ms);
        let overdue = tokio::time::sleep(limit + GRACE);
        let end = tokio::select! {
            end = &mut end => Ok(end),
            why = place.ended() => {
                let ended = async {
                    ticket.kill(&why).await;
                    (&mut end).await
                };
                tokio::time::timeout(GRACE, ended).await.map_err(|_| format!("{fun} was stopped: {why}"))
            }
            () = overdue => Err(format!("{fun} was stopped: it did not end within its wall clock limit of {} s", limit.as_secs_f32())),
        };
        match end {
            Ok(Ok(CallEnd::Done(outcome, usage))) => judge(&entry, fun, outcome, usage, self.limits),
            Ok(Ok(CallEnd::Died(how))) => JobOutcome::failed(
                format!("{fun} did not finish: the executor it ran in {how}. The job may have been cut off anywhere."),
                sha256,
            ),
            Ok(Err(_)) => JobOutcome::failed(format!("{fun} was lost by the sandbox."), sha256),
            Err(text) => JobOutcome::failed(text, sha256),
        }
    }

    /// Waits for a turn and starts the call.
    async fn start(
        &self,
        entry: &Arc<Entry>,
        function: &str,
        job: JobContext,
        args: Vec<Value>,
        kwargs: Vec<(String, Value)>,
        reserved: bool,
    ) -> Result<(SemaphorePermit<'_>, Ticket, oneshot::Receiver<CallEnd>), String> {
        let closed = |_| "The minion is stopping.".to_owned();
        let turn = match self.jobs.running.try_acquire() {
            Ok(turn) => turn,
            Err(_) if reserved => tokio::select! {
                turn = self.jobs.running.acquire() => turn.map_err(closed)?,
                turn = self.jobs.reserved.acquire() => turn.map_err(closed)?,
            },
            Err(_) => self.jobs.running.acquire().await.map_err(closed)?,
        };
        let executor = self.executors.of(entry).map_err(|error| error.to_string())?;
        let link = executor.up().await.map_err(|error| error.to_string())?;
        if !link.has(entry.module.sha256) {
            // A restart that is still at it, or code that was lost: both take their time, and other jobs do not wait.
            let limit = Duration::from_millis(self.limits.wall_ms);
            match tokio::time::timeout(limit, link.ensure(entry, self.store)).await {
                Ok(loaded) => loaded?,
                Err(_) => return Err(format!("module {} is being compiled again; try later.", entry.name)),
            }
        }
        let arguments = value::encode_arguments(args, kwargs);
        let sizes = arguments.0.len() + arguments.1.len();
        let job = Arc::new(job);
        let (ticket, end) = link.register(Arc::clone(&job), entry, self.limits);
        match link.start(&ticket, &job, entry, function, arguments, self.limits).await {
            Ok(()) => Ok((turn, ticket, end)),
            Err(WireError::TooLarge { limit, .. }) => {
                Err(format!("The arguments have {sizes} bytes; the limit of a job is {limit}."))
            }
            Err(error) => Err(format!("The job could not be started: {error}.")),
        }
    }
}

fn ended_early(fun: &str, why: &str) -> String {
    format!("{fun} was stopped before it began: {why}")
}

/// The module and the function behind `module.function`, or Salt's words that there are none.
fn resolve<'a>(store: &Store, fun: &'a str) -> Result<(Arc<Entry>, &'a str), String> {
    let (module, function) = fun.split_once('.').unwrap_or((fun, ""));
    let Some(entry) = store.get(module) else {
        let table = store.table();
        let names = few(table.keys().map(|name| name.as_str()));
        let why = match store.left_out(module) {
            Some(why) => format!("It was left out: {why}"),
            None => format!("There is no module {}; there are: {names}", quoted(module)),
        };
        return Err(format!("{} is not available. {why}.", quoted(fun)));
    };
    let functions = &entry.module.info.functions;
    if functions.iter().any(|known| known.name == function) {
        return Ok((entry, function));
    }
    let names = few(functions.iter().map(|known| known.name.as_str()));
    Err(format!("{} is not available. Functions of {module}: {names}.", quoted(fun)))
}

/// A name from a job, for a line: of a bounded length and without control characters.
fn quoted(name: &str) -> String {
    const MAX: usize = 100;
    let shown: String = name.chars().take(MAX).map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("'{shown}{}'", if name.chars().nth(MAX).is_some() { "…" } else { "" })
}

fn few<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let count = names.len();
    let shown: Vec<&str> = names.take(MAX_NAMES).collect();
    let more = if count > shown.len() { format!(" and {} more", count - shown.len()) } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

/// What the executor's word makes of the job.
fn judge(entry: &Entry, fun: &str, outcome: Outcome, usage: Usage, limits: &Limits) -> JobOutcome {
    use brine_sandbox_wire::FailKind;
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
            // A function that returned did its work; the retcode it set is its own word on it.
            Ok(value) => {
                JobOutcome { value, retcode: i64::from(retcode), success: retcode == 0, usage: Some(usage), sha256 }
            }
            Err(error) => failed(format!("{fun} returned a value that cannot be read: {error}."), 1),
        },
        Outcome::Failed { kind: FailKind::Arguments, message, retcode } if !message.starts_with("Passed invalid") => {
            let usage = match entry.module.info.function(fun.split_once('.').map_or("", |(_, function)| function)) {
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
    fn admission_is_bounded() {
        let jobs = Jobs::new(2, 1);
        let places: Vec<_> = (0..3).map(|n| jobs.admit(&n.to_string(), false).map_err(|_| ()).unwrap()).collect();
        let refused = jobs.admit("4", false).err().unwrap();
        assert_eq!(refused, "The minion is busy: 2 jobs run and 1 wait. Try again, or raise sandbox:max_queued.");
        // Who asks what runs is let in still.
        let reserved: Vec<_> = (0..RESERVED).map(|_| jobs.admit("r", true).map_err(|_| ()).unwrap()).collect();
        assert!(jobs.admit("r", true).is_err());
        drop(reserved);
        drop(places);
        assert_eq!(jobs.count(), 0);
        assert!(jobs.admit("5", false).is_ok());
    }

    #[tokio::test]
    async fn jobs_are_ended_by_their_id() {
        let jobs = Jobs::new(4, 0);
        let mut one = jobs.admit("1", false).map_err(|_| ()).unwrap();
        let _two = jobs.admit("2", false).map_err(|_| ()).unwrap();
        let _one_more = jobs.admit("1", false).map_err(|_| ()).unwrap();
        assert_eq!(jobs.end(|jid| jid == "1", "killed"), 2);
        assert_eq!(&*one.ended().await, "killed");
        assert_eq!(jobs.end(|jid| jid == "3", "killed"), 0);
    }

    #[test]
    fn names_in_errors_are_bounded() {
        assert_eq!(quoted("a\nb"), "'a b'");
        assert_eq!(quoted(&"x".repeat(200)).chars().count(), 103);
        let many: Vec<String> = (0..50).map(|n| n.to_string()).collect();
        assert!(few(many.iter().map(String::as_str)).ends_with(", 38, 39 and 10 more"));
    }
}
