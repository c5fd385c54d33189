//! When an engine is called, and what becomes of faults.
//!
//! An engine that fails is called again later, each time after twice the pause, and its failure is said once. Its events
//! wait meanwhile. After a failure it gets one event at a time, so that an event which no call survives takes no others
//! along: after some calls it is given up. An event that the engine says it could not handle yet is never given up, but
//! left out when there is no room.

use std::sync::Arc;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use brine_protocol::value::{Value, list, map};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::call::{self, Answer};
use super::config::Entry;
use super::queue::Queue;
use super::shared::SharedSandbox;

/// The pause after the first failure.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause.
const MAX_PAUSE: Duration = Duration::from_secs(300);
/// Calls that fail, with one event, until the event is given up.
const MAX_TRIES: u32 = 5;
/// Time between two lines about events that were left out or lost.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// An engine.
pub(super) struct Engine {
    pub(super) name: Arc<str>,
    /// What the configuration says of it now.
    entry: watch::Sender<Arc<Entry>>,
    /// It is not in the configuration any more.
    gone: CancellationToken,
    pub(super) queue: Queue,
    health: Mutex<Health>,
}

/// How an engine is.
#[derive(Debug, Default)]
struct Health {
    state: Doing,
    /// Calls that failed since the last one that did not.
    failures: u32,
    last_error: Option<String>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Doing {
    #[default]
    Starting,
    Running,
    BackedOff,
    CannotRun,
}

/// What one engine remembers between its calls.
#[derive(Default)]
struct Memory {
    state: Option<Vec<u8>>,
    failures: u32,
    /// Calls that failed with the first event alone.
    tries: u32,
}

impl Memory {
    /// Takes over a call's result. Returns how many of its events were handled, and how many are given up.
    fn judge(&mut self, events: usize, called: Result<Answer, String>) -> (usize, usize, Option<String>) {
        match called {
            Ok(Answer { handled, error, state }) => {
                self.state = state;
                self.tries = 0;
                self.failures = if error.is_some() { self.failures.saturating_add(1) } else { 0 };
                (handled, 0, error)
            }
            Err(why) => {
                self.failures = self.failures.saturating_add(1);
                self.tries = if events == 1 { self.tries + 1 } else { 0 };
                let lost = usize::from(self.tries >= MAX_TRIES);
                if lost > 0 {
                    self.tries = 0;
                }
                (0, lost, Some(why))
            }
        }
    }

    fn pause(&self) -> Duration {
        match self.failures {
            0 => Duration::ZERO,
            failures => FIRST_PAUSE.saturating_mul(1 << (failures - 1).min(16)).min(MAX_PAUSE),
        }
    }
}

impl Engine {
    pub(super) fn new(entry: Arc<Entry>) -> Self {
        let (name, gone) = (Arc::clone(&entry.name), CancellationToken::new());
        Self { name, entry: watch::Sender::new(entry), gone, queue: Queue::default(), health: Mutex::default() }
    }

    /// Whether it sees events with this tag.
    pub(super) fn sees(&self, tag: &str) -> bool {
        self.entry.borrow().tags.see(tag)
    }

    /// Takes over what the configuration says of it. If that is something else, the engine begins anew after its call;
    /// of the events that wait, those stay that it still sees. Returns whether it was something else.
    pub(super) fn change(&self, entry: &Arc<Entry>) -> bool {
        let changed = self.entry.send_if_modified(|now| {
            let changed = *now != *entry;
            if changed {
                *now = Arc::clone(entry);
            }
            changed
        });
        if changed {
            self.queue.retain(|event| entry.tags.see(&event.event.tag));
        }
        changed
    }

    /// Ends it after the call that it is in.
    pub(super) fn end(&self) {
        self.gone.cancel();
    }

    /// Calls the engine until it is gone, or `stop`.
    pub(super) async fn run(&self, sandboxes: &SharedSandbox, id: &str, stop: &CancellationToken) {
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = self.calls(sandboxes, id) => {}
            () = self.tell() => {}
        }
    }

    async fn calls(&self, sandboxes: &SharedSandbox, id: &str) {
        let mut entries = self.entry.subscribe();
        while !self.gone.is_cancelled() {
            let entry = Arc::clone(&entries.borrow_and_update());
            let mut memory = Memory::default();
            let mut due = entry.interval.map(|_| Instant::now());
            // Where no sandbox starts, it says so.
            drop(sandboxes.enter().await);
            *self.health() = Health { state: Doing::Running, ..Health::default() };
            loop {
                tokio::select! {
                    biased;
                    () = self.gone.cancelled() => return,
                    Ok(()) = entries.changed() => break,
                    () = self.queue.ready() => {}
                    () = tokio::time::sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {}
                }
                let (in_use, _token) = sandboxes.enter().await;
                let batch = self.queue.take(if memory.failures > 0 { 1 } else { usize::MAX });
                let count = batch.len();
                let called = call::call(&in_use, id, &entry, &batch, memory.state.as_deref()).await;
                let (handled, lost, error) = memory.judge(count, called);
                self.queue.settle(batch, handled, lost);
                due = entry.interval.map(|interval| Instant::now() + interval);
                self.note(&memory, error);
                // An engine that handles nothing, and says no error, must not spin.
                let pause = if handled == 0 && count > 0 { memory.pause().max(FIRST_PAUSE) } else { memory.pause() };
                tokio::select! {
                    biased;
                    () = self.gone.cancelled() => return,
                    Ok(()) = entries.changed() => break,
                    () = tokio::time::sleep(pause) => {}
                }
            }
        }
    }

    /// Notes what became of a call; what is new is said.
    fn note(&self, memory: &Memory, error: Option<String>) {
        let name = &self.name;
        let mut health = self.health();
        let before = std::mem::replace(&mut health.failures, memory.failures);
        health.state = if memory.failures == 0 { Doing::Running } else { Doing::BackedOff };
        match error {
            Some(why) if before == 0 => {
                tracing::warn!("engine {name} failed, and is called again later: {why}");
                health.last_error = Some(why);
            }
            Some(why) => {
                tracing::debug!("engine {name} failed again: {why}");
                health.last_error = Some(why);
            }
            None if before > 0 => tracing::info!("engine {name} works again, after {before} failures"),
            None => {}
        }
    }

    /// Tells of events that were left out or lost.
    async fn tell(&self) {
        let (mut left_out, mut lost) = (0, 0);
        loop {
            let now = self.queue.counts();
            if (now.left_out, now.lost) != (left_out, lost) {
                tracing::warn!(
                    "engine {}: {} events had no room and {} were given up after calls that failed",
                    self.name,
                    now.left_out - left_out,
                    now.lost - lost
                );
                (left_out, lost) = (now.left_out, now.lost);
            }
            tokio::time::sleep(TELL_EVERY).await;
        }
    }

    /// Notes that there is no sandbox.
    pub(super) fn cannot_run(&self, why: &str) {
        let mut health = self.health();
        (health.state, health.last_error) = (Doing::CannotRun, Some(why.to_owned()));
    }

    /// What `engines.list` shows of it.
    pub(super) fn shown(&self) -> Value {
        let counts = self.queue.counts();
        let entry = Arc::clone(&self.entry.borrow());
        let health = self.health();
        let state = match health.state {
            Doing::Starting => "starting",
            Doing::Running => "running",
            Doing::BackedOff => "backed off",
            Doing::CannotRun => "cannot run",
        };
        map([
            ("module", Value::from(entry.module.as_str())),
            ("tags", list(entry.tags.texts())),
            ("state", state.into()),
            ("seen", counts.seen.into()),
            ("handled", counts.handled.into()),
            ("waiting", self.queue.waiting().into()),
            ("left_out", counts.left_out.into()),
            ("lost", counts.lost.into()),
            ("failures", health.failures.into()),
            ("last_error", health.last_error.as_deref().map_or(Value::Nil, Value::from)),
        ])
    }

    fn health(&self) -> MutexGuard<'_, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(handled: usize, error: Option<&str>) -> Result<Answer, String> {
        Ok(Answer { handled, error: error.map(str::to_owned), state: Some(vec![1]) })
    }

    #[test]
    fn pauses_double_and_have_a_bound() {
        let mut memory = Memory::default();
        let mut pauses = Vec::new();
        for _ in 0..12 {
            memory.judge(100, Err("x".into()));
            pauses.push(memory.pause().as_secs());
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]);
        memory.judge(1, answer(1, None));
        assert_eq!(memory.pause(), Duration::ZERO);
        memory.failures = u32::MAX;
        memory.judge(1, Err("x".into()));
        assert_eq!(memory.pause(), MAX_PAUSE);
    }

    #[test]
    fn an_event_that_no_call_survives_is_given_up_and_one_that_is_not_done_yet_is_not() {
        let mut memory = Memory::default();
        assert_eq!(memory.judge(100, Err("x".into())).1, 0);
        let lost: Vec<usize> = (0..6).map(|_| memory.judge(1, Err("x".into())).1).collect();
        assert_eq!(lost, [0, 0, 0, 0, 1, 0]);
        let mut memory = Memory::default();
        for _ in 0..50 {
            assert_eq!(memory.judge(1, answer(0, Some("away"))), (0, 0, Some("away".into())));
        }
        assert_eq!((memory.judge(1, answer(1, None)), memory.state), ((1, 0, None), Some(vec![1])));
    }
}
