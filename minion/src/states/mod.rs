//! Runs of states (`state.apply` and others): the states that one job runs, and what they came to.
//!
//! The module `state` decides which state is next; each state is a call of its own ([`crate::broker`]). Its result is
//! written down here before the module sees it, so that the return of a run that is cut off has every state that ended.
//!
//! - `journal.rs`    the file of a run's results
//! - `call.rs`       what of a chunk are a state's arguments
//! - `outcome.rs`    the result of a state, whatever it returned
//! - `outputter.rs`  how a run is shown, and what else asks for an outputter
//! - `room.rs`       what the states of a job that run beside each other may hold
//! - `remembered.rs` what outlives a job: pauses, requested runs

mod call;
mod journal;
mod outcome;
mod outputter;
mod remembered;
mod room;

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use brine_protocol::ids::Jid;
use brine_protocol::value::{Value, ValueExt};
use brine_sandbox::{Caller, Chunk, JobContext, JobOutcome};
use tokio::sync::{Mutex as AsyncMutex, Semaphore};
use tokio::task::JoinSet;
use tracing::warn;

pub(crate) use call::{Arguments, arguments, missing};
use journal::Journal;
pub(crate) use outcome::{Clock, failed, result};
pub(crate) use outputter::outputter;
pub(crate) use remembered::Remembered;
use room::{Kept, Room};

/// States of one job that run at once. A run may have 32 calls beside its own (`brine_sandbox`), and a state calls
/// functions, which call others.
const AT_ONCE: usize = 10;
/// Upper bound on started states that were not waited for.
const MAX_STARTED: usize = 1_000;
/// Upper bound on the parts of a job: as many as calls that it may run at once (`brine_sandbox`). A part is kept beyond
/// its call's end, and holds a pillar.
const MAX_PARTS: usize = 33;
/// Salt's retcode of a run with a failed state.
pub(crate) const STATE_FAILURE: i64 = 2;

/// The runs of this minion, by job.
pub(crate) struct Runs {
    dir: PathBuf,
    open: Mutex<HashMap<String, Arc<Run>>>,
    remembered: Remembered,
}

/// The states of one job.
pub(crate) struct Run {
    journal: Mutex<Option<Journal>>,
    turns: Arc<Semaphore>,
    room: Room,
    /// By the number of the call that runs the states. A state may run others (`module.run` of `state.sls`), with a
    /// pillar of their own.
    parts: Mutex<BTreeMap<u64, Arc<Part>>>,
}

/// What one call runs of the states of a job.
#[derive(Default)]
pub(crate) struct Part {
    started: AsyncMutex<Started>,
    /// What its states and functions see in place of the minion's pillar.
    pillar: Mutex<Option<Arc<Value>>>,
}

#[derive(Default)]
struct Started {
    next: u32,
    tasks: JoinSet<(u32, Kept)>,
}

impl Runs {
    /// Opens the folder of the runs' files and makes it if it is missing.
    ///
    /// # Errors
    /// When the folder cannot be made or made private.
    pub(crate) fn open(dir: &Path, remembered: Remembered) -> io::Result<Arc<Self>> {
        crate::spare_files::private_dir(dir)?;
        Ok(Arc::new(Self { dir: dir.to_owned(), open: Mutex::default(), remembered }))
    }

    /// What outlives one job.
    pub(crate) fn remembered(&self) -> &Remembered {
        &self.remembered
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<String, Arc<Run>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn path(&self, jid: &str) -> Option<PathBuf> {
        // A jid that is none names no file: the run is not kept.
        jid.parse::<Jid>().ok().map(|jid| self.dir.join(jid.as_str()))
    }

    /// The run of a job, which begins with its first state.
    pub(crate) fn of(&self, jid: &str) -> Arc<Run> {
        let mut runs = self.runs();
        if let Some(run) = runs.get(jid) {
            return Arc::clone(run);
        }
        let journal = self.path(jid).and_then(|path| {
            let opened = Journal::create(&path);
            opened.inspect_err(|e| warn!(jid, "the results of states cannot be kept in {}: {e}", path.display())).ok()
        });
        let run = Arc::new(Run {
            journal: Mutex::new(journal),
            turns: Arc::new(Semaphore::new(AT_ONCE)),
            room: Room::new(),
            parts: Mutex::default(),
        });
        runs.insert(jid.to_owned(), Arc::clone(&run));
        run
    }

    /// The pillar of the states to which a call belongs, if it has one of its own.
    pub(crate) fn pillar(&self, job: &JobContext) -> Option<Arc<Value>> {
        let part = self.runs().get(&job.jid)?.parts().get(&job.run?).map(Arc::clone)?;
        part.pillar.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends the run of a job, with all states that still run. If the function failed, the outcome becomes what its
    /// states came to.
    pub(crate) async fn end(&self, jid: &str, fun: &str, outcome: &mut JobOutcome) {
        let Some(run) = self.runs().remove(jid) else { return };
        let parts = std::mem::take(&mut *run.parts());
        for part in parts.into_values() {
            part.started.lock().await.tasks.shutdown().await;
        }
        if !outcome.success {
            let why = outcome.value.text().unwrap_or("it failed").to_owned();
            if let Some(value) = self.left(jid, fun, &why) {
                (outcome.value, outcome.retcode) = (value, STATE_FAILURE);
            }
        }
        self.forget(jid);
        self.remembered.ended(jid);
    }

    /// The results that a run left, as a return that says that it was cut off. None if there are none.
    pub(crate) fn left(&self, jid: &str, fun: &str, why: &str) -> Option<Value> {
        let results = journal::read(&self.path(jid)?)?;
        (!results.is_empty()).then(|| outcome::cut_off(results, fun, why))
    }

    /// Removes the file of a run.
    pub(crate) fn forget(&self, jid: &str) {
        if let Some(path) = self.path(jid) {
            let _ = std::fs::remove_file(path);
        }
    }

    /// Removes the files and pauses of runs whose jobs are over, as `runs` says: those of programs that were killed.
    pub(crate) fn tidy(&self, runs: impl Fn(&Jid) -> bool) {
        remove_ended(&self.dir, &runs);
        self.remembered.tidy(runs);
    }
}

/// Removes the files of a folder that have the ids of jobs which do not run, as `runs` says.
fn remove_ended(dir: &Path, runs: impl Fn(&Jid) -> bool) {
    let Ok(items) = std::fs::read_dir(dir) else { return };
    for item in items.flatten() {
        let jid = item.file_name().into_string().ok().and_then(|name| name.parse::<Jid>().ok());
        if jid.is_some_and(|jid| !runs(&jid)) {
            let _ = std::fs::remove_file(item.path());
        }
    }
}

impl Run {
    fn parts(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Part>>> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The part that a call runs, which begins when it is first asked for. Too many make room by the oldest that nothing
    /// runs for, never by the job's own.
    ///
    /// # Errors
    /// All parts run something.
    pub(crate) fn part(&self, call: u64) -> Result<Arc<Part>, String> {
        let mut parts = self.parts();
        if let Some(part) = parts.get(&call) {
            return Ok(Arc::clone(part));
        }
        if parts.len() >= MAX_PARTS {
            let is_idle = |part: &Part| part.started.try_lock().is_ok_and(|started| started.tasks.is_empty());
            let oldest = parts.iter().skip(1).find(|(_, part)| is_idle(part)).map(|(number, _)| *number);
            let oldest = oldest.ok_or_else(|| format!("a job runs {MAX_PARTS} runs of states at most"))?;
            parts.remove(&oldest);
        }
        Ok(Arc::clone(parts.entry(call).or_default()))
    }

    /// Keeps a result of the job's own function. What it calls may run states too (`module.run` of `state.sls`), but has no say in
    /// what the job returns. What cannot be kept is logged; the run goes on.
    pub(crate) fn keep(&self, caller: &Caller, tag: &str, result: &Value) {
        if caller.chain.len() > 1 {
            return;
        }
        let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = journal.as_mut()
            && let Err(e) = open.add(tag, result)
        {
            warn!("the results of states cannot be kept any more: {e}");
            *journal = None;
        }
    }
}

impl Part {
    /// Takes the pillar of the states.
    pub(crate) fn use_pillar(&self, pillar: Value) {
        *self.pillar.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(pillar));
    }

    /// Starts a state: `call` is its call, for the time when it is its turn, and holds so many bytes until then.
    ///
    /// # Errors
    /// Too many states were started and not waited for, or they hold too much.
    pub(crate) async fn start(
        &self,
        run: &Run,
        bytes: usize,
        call: impl Future<Output = Value> + Send + 'static,
    ) -> Result<u32, String> {
        let mut started = self.started.lock().await;
        if started.tasks.len() >= MAX_STARTED {
            return Err(format!("{MAX_STARTED} states were started that nothing has waited for"));
        }
        let asked = run.room.of_arguments(bytes)?;
        let number = started.next;
        started.next += 1;
        let (turns, room) = (Arc::clone(&run.turns), run.room.clone());
        started.tasks.spawn(async move {
            let turn = turns.acquire_owned().await;
            let result = call.await;
            drop((turn, asked));
            (number, room.keep(result))
        });
        Ok(number)
    }

    /// Waits for any started state, for this time at most; without one, for the time.
    pub(crate) async fn wait(&self, most: Duration) -> Option<(u32, Value)> {
        let ended = async {
            let mut started = self.started.lock().await;
            loop {
                match started.tasks.join_next().await {
                    Some(Ok((number, kept))) => return (number, kept.result),
                    // A state whose task failed has no result; the module finds that it is never reported.
                    Some(Err(e)) => warn!("a state was lost: {e}"),
                    None => std::future::pending().await,
                }
            }
        };
        tokio::time::timeout(most, ended).await.ok()
    }
}

/// A state's result with what the minion knows of it.
pub(crate) fn with_facts(mut result: Value, chunk: &Chunk, clock: &Clock) -> Value {
    let sls = Some(chunk.sls.as_str()).filter(|sls| !sls.is_empty());
    result.insert("__sls__", sls.map_or(Value::Nil, Value::from));
    result.insert("__run_num__", chunk.run_number);
    result.insert("start_time", clock.start_time());
    result.insert("duration", clock.milliseconds());
    result.insert("__id__", chunk.id.as_str());
    result
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use brine_kit_sandbox::{caller, job};
    use brine_protocol::value::map;
    use brine_sandbox::Grants;

    use super::*;

    const JID: &str = "20260102030405678901";

    fn runs(folder: &Path) -> Arc<Runs> {
        Runs::open(&folder.join("states"), Remembered::new(folder)).unwrap()
    }

    /// States wait for their turn with their arguments, in all runs of the job together.
    #[tokio::test]
    async fn started_states_hold_a_bounded_number_of_bytes() {
        const SIZE: usize = 200 << 10;
        let folder = tempfile::tempdir().unwrap();
        let run = runs(folder.path()).of(JID);
        let mut started = 0;
        let refused = loop {
            let part = run.part(started % 2).unwrap();
            match part.start(&run, SIZE, pending()).await {
                Ok(_) => started += 1,
                Err(refused) => break refused,
            }
        };
        assert_eq!(started as usize, (16 << 20) / SIZE);
        assert!(refused.contains("may have 16777216 bytes together"), "{refused}");
        run.part(0).unwrap().start(&run, 1, pending()).await.unwrap();
        // They make room when they end.
        run.part(0).unwrap().started.lock().await.tasks.shutdown().await;
        run.part(1).unwrap().start(&run, SIZE, pending()).await.unwrap();
    }

    #[tokio::test]
    async fn a_state_that_has_ended_makes_room() {
        let folder = tempfile::tempdir().unwrap();
        let run = runs(folder.path()).of(JID);
        let part = run.part(0).unwrap();
        for number in 0..3 {
            let started = part.start(&run, 10 << 20, std::future::ready(Value::from(number))).await.unwrap();
            let ended = part.wait(brine_kit::wait::DEADLINE).await;
            assert_eq!(ended, Some((started, Value::from(number))));
        }
    }

    /// A module that a run calls may run states itself, under any tag. They are no results of the job.
    #[test]
    fn a_return_has_the_results_of_the_jobs_own_function() {
        let folder = tempfile::tempdir().unwrap();
        let runs = runs(folder.path());
        let run = runs.of(JID);
        let own = caller(job(JID, "state.apply"), "state", Grants::default());
        let mut nested = caller(job(JID, "evil.f"), "evil", Grants::default());
        nested.chain = Arc::from(["state.apply".to_owned(), "evil.f".to_owned()]);
        let result = |result: bool| map([("result", Value::from(result))]);
        run.keep(&own, "a", &result(false));
        run.keep(&nested, "a", &result(true));
        run.keep(&nested, "b", &result(true));
        let left = runs.left(JID, "state.apply", "why").unwrap();
        assert_eq!(left.get("a"), Some(&result(false)));
        assert_eq!(left.entries().unwrap().len(), 2, "{left}");
    }

    #[test]
    fn what_jobs_left_is_tidied_up() {
        let folder = tempfile::tempdir().unwrap();
        let runs = runs(folder.path());
        runs.of(JID);
        runs.remembered().remember(&format!("pauses/{JID}"), Some(b"\x80"), |_| true).unwrap();
        let files = ["states", "state_pause"].map(|dir| folder.path().join(dir).join(JID));
        runs.tidy(|_| true);
        assert!(files.iter().all(|file| file.exists()));
        runs.tidy(|_| false);
        assert!(files.iter().all(|file| !file.exists()));
    }
}
