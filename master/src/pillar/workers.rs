//! The threads that compile pillars.
//!
//! A minion has one compilation at a time, and the minions take turns, so that none waits for all that another asks.
//! A compilation that takes long gives up its place: what is slow takes a share of the processors, and not the others'
//! turns.

use std::collections::{HashMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use brine_pillar::STACK;
use brine_protocol::ids::MinionId;

/// A compilation that runs longer gives up its place.
const SLOW: Duration = Duration::from_millis(250);
/// Bound on compilations that run without a place. With so many, further ones wait for those.
const SLOW_MAX: usize = 32;
/// Bound on the compilations of one minion that wait. A minion asks for one at a time; its jobs may ask too.
const WAITING_MAX: usize = 8;
/// An idle thread ends after this time.
const IDLE: Duration = Duration::from_secs(10);

type Job = Box<dyn FnOnce() + Send>;

/// The minion has as many compilations waiting as it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refused {
    #[error("it has {WAITING_MAX} requests for its pillar waiting already")]
    Full,
    #[error("the system starts no thread")]
    NoThread,
}

/// The threads, and what waits for them.
pub(super) struct Workers {
    /// Bound on compilations at a time that are not slow.
    at_once: usize,
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    waiting: HashMap<MinionId, VecDeque<Job>>,
    /// The minions with waiting jobs and without a running one.
    turns: VecDeque<MinionId>,
    running: HashMap<MinionId, Instant>,
    threads: usize,
    idle: usize,
}

impl Workers {
    /// `at_once` is the number of compilations at a time; 0 stands for the number of processors.
    pub(super) fn new(at_once: usize) -> Arc<Self> {
        let processors = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let at_once = if at_once == 0 { processors() } else { at_once };
        Arc::new(Self { at_once, state: Mutex::default(), wake: Condvar::new() })
    }

    /// Runs a job for a minion when it is its turn.
    pub(super) fn submit(self: &Arc<Self>, id: &MinionId, job: impl FnOnce() + Send + 'static) -> Result<(), Refused> {
        let mut state = self.lock();
        let waiting = state.waiting.entry(id.clone()).or_default();
        if waiting.len() >= WAITING_MAX {
            return Err(Refused::Full);
        }
        waiting.push_back(Box::new(job));
        let is_first = waiting.len() == 1;
        if is_first && !state.running.contains_key(id) {
            state.turns.push_back(id.clone());
        }
        if state.idle < state.turns.len() && state.threads < self.at_once + SLOW_MAX {
            let workers = Arc::clone(self);
            let thread = std::thread::Builder::new().name("pillar".to_owned()).stack_size(STACK);
            match thread.spawn(move || workers.work()) {
                Ok(_) => state.threads += 1,
                Err(_) if state.threads == 0 => {
                    state.forget_last(id);
                    return Err(Refused::NoThread);
                }
                Err(_) => {}
            }
        }
        drop(state);
        self.wake.notify_one();
        Ok(())
    }

    /// The compilations that run and that wait, for the log.
    pub(super) fn line(&self) -> String {
        let state = self.lock();
        let waiting: usize = state.waiting.values().map(VecDeque::len).sum();
        format!("{} run, {waiting} wait", state.running.len())
    }

    fn work(&self) {
        let mut state = self.lock();
        loop {
            if let Some((id, job)) = state.next(self.at_once) {
                let more = !state.turns.is_empty();
                drop(state);
                if more {
                    self.wake.notify_one();
                }
                // The job's caller learns of a panic because the job has no result.
                let _ = std::panic::catch_unwind(AssertUnwindSafe(job));
                state = self.lock();
                state.done(&id);
                continue;
            }
            let wait = if state.turns.is_empty() { IDLE } else { state.until_slow() };
            let is_idle = state.turns.is_empty();
            state.idle += usize::from(is_idle);
            let (woken, timeout) = self.wake.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner);
            state = woken;
            state.idle -= usize::from(is_idle);
            if timeout.timed_out() && is_idle && state.turns.is_empty() {
                state.threads -= 1;
                return;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Takes the next job, if one may run now.
    fn next(&mut self, at_once: usize) -> Option<(MinionId, Job)> {
        let slow = self.running.values().filter(|since| since.elapsed() >= SLOW).count().min(SLOW_MAX);
        if self.running.len() - slow >= at_once {
            return None;
        }
        let id = self.turns.pop_front()?;
        let job = self.waiting.get_mut(&id)?.pop_front()?;
        self.running.insert(id.clone(), Instant::now());
        Some((id, job))
    }

    /// Ends the running job of a minion. Its next one waits for its turn.
    fn done(&mut self, id: &MinionId) {
        self.running.remove(id);
        match self.waiting.get(id) {
            Some(jobs) if !jobs.is_empty() => self.turns.push_back(id.clone()),
            _ => drop(self.waiting.remove(id)),
        }
    }

    fn forget_last(&mut self, id: &MinionId) {
        if let Some(jobs) = self.waiting.get_mut(id) {
            jobs.pop_back();
            if jobs.is_empty() {
                self.waiting.remove(id);
                self.turns.retain(|turn| turn != id);
            }
        }
    }

    /// The time until a running job gives up its place.
    fn until_slow(&self) -> Duration {
        let left =
            self.running.values().map(|since| SLOW.saturating_sub(since.elapsed())).filter(|left| !left.is_zero());
        left.min().unwrap_or(SLOW)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn id(name: &str) -> MinionId {
        name.parse().unwrap()
    }

    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn minions_take_turns() {
        let workers = Workers::new(1);
        let (said, heard) = mpsc::channel();
        let (go, wait) = mpsc::channel::<()>();
        workers.submit(&id("a"), move || wait.recv_timeout(SLOW / 4).unwrap_or(())).unwrap();
        for name in ["a", "a", "a", "b", "c"] {
            let said = said.clone();
            workers.submit(&id(name), move || said.send(name).unwrap()).unwrap();
        }
        go.send(()).unwrap();
        let order: Vec<&str> = (0..5).map(|_| heard.recv_timeout(LONG).unwrap()).collect();
        assert_eq!(order, ["b", "c", "a", "a", "a"]);
    }

    #[test]
    fn what_is_slow_keeps_nobody_waiting() {
        let workers = Workers::new(1);
        let (go, wait) = mpsc::channel::<()>();
        workers.submit(&id("slow"), move || wait.recv_timeout(LONG).unwrap_or(())).unwrap();
        let (said, heard) = mpsc::channel();
        workers.submit(&id("quick"), move || said.send(()).unwrap()).unwrap();
        heard.recv_timeout(LONG).expect("the quick one runs while the slow one does");
        go.send(()).unwrap();
    }

    #[test]
    fn one_minion_has_a_bound_and_a_panic_ends_no_thread() {
        let workers = Workers::new(1);
        let (go, wait) = mpsc::channel::<()>();
        let (began, begins) = mpsc::channel();
        workers
            .submit(&id("a"), move || {
                began.send(()).unwrap();
                wait.recv_timeout(LONG).unwrap_or(());
                panic!("a test")
            })
            .unwrap();
        begins.recv_timeout(LONG).unwrap();
        for _ in 0..WAITING_MAX {
            workers.submit(&id("a"), || {}).unwrap();
        }
        assert_eq!(workers.submit(&id("a"), || {}), Err(Refused::Full));
        let (said, heard) = mpsc::channel();
        workers.submit(&id("b"), move || said.send(()).unwrap()).unwrap();
        go.send(()).unwrap();
        heard.recv_timeout(LONG).unwrap();
    }
}
