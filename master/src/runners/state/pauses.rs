//! Pauses of orchestrations (`state.pause`, `state.resume`, `state.soft_kill`), kept while they run.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use brine_protocol::ids::Jid;
use brine_protocol::value::Value;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use super::super::function::{Failure, Outcome, Run};

/// The entry that counts for every id.
const ALL: &str = "__all__";
/// Bound on the entries of one orchestration.
const ENTRIES_MAX: usize = 1_000;
/// The longest pause that a caller can ask for.
const PAUSE_MAX_SECONDS: f64 = 604_800.0;

/// What is said of a run at a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    Go,
    /// Wait until something is said, at most so long.
    Wait(Option<Duration>),
    Kill,
}

#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    duration: Option<Duration>,
    kill: bool,
}

#[derive(Debug, Default)]
struct Said {
    /// The runs under this jid: an orchestration and those that it started.
    runs: usize,
    entries: HashMap<String, Entry>,
}

/// The pauses of all orchestrations, by jid.
#[derive(Debug, Default, Clone)]
pub(super) struct Pauses {
    said: Arc<Mutex<HashMap<String, Said>>>,
    changed: Arc<Notify>,
}

impl Pauses {
    /// Adds a run, which stays until its guard is dropped.
    pub(super) fn begin(&self, jid: &Jid) -> Guard {
        lock(&self.said).entry(jid.as_str().to_owned()).or_default().runs += 1;
        Guard { pauses: self.clone(), jid: jid.as_str().to_owned() }
    }

    /// Returns what is said of a run before the state with this id, where it has waited so long.
    pub(super) fn at(&self, jid: &Jid, id: &str, waited: Duration) -> Word {
        let said = lock(&self.said);
        let Some(entries) = said.get(jid.as_str()).map(|said| &said.entries) else { return Word::Go };
        let Some(entry) = entries.get(id).or_else(|| entries.get(ALL)) else { return Word::Go };
        match entry.duration {
            _ if entry.kill => Word::Kill,
            Some(duration) if waited >= duration => Word::Go,
            duration => Word::Wait(duration.map(|duration| duration - waited)),
        }
    }

    /// Waits until something is said of any run.
    pub(super) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    fn change(&self, run: &Run, change: impl FnOnce(&mut HashMap<String, Entry>) -> Result<(), Failure>) -> Outcome {
        let jid = run.text("jid");
        let mut said = lock(&self.said);
        let Some(entry) = said.get_mut(&jid) else {
            return Err(format!("no orchestration runs as {}", brine_protocol::text::short(&jid, 40)).into());
        };
        change(&mut entry.entries)?;
        drop(said);
        self.changed.notify_waiters();
        Ok(Value::Nil)
    }
}

/// Removes what is said of a run when dropped.
pub(super) struct Guard {
    pauses: Pauses,
    jid: String,
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut said = lock(&self.pauses.said);
        if let Some(entry) = said.get_mut(&self.jid) {
            entry.runs -= 1;
            if entry.runs == 0 {
                said.remove(&self.jid);
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn id(run: &Run) -> String {
    run.find_text("state_id").unwrap_or_else(|| ALL.to_owned())
}

fn set(run: &Run, entry: Entry) -> Outcome {
    run.parts.orchestrations.pauses.change(run, |entries| {
        if entries.len() >= ENTRIES_MAX {
            return Err(format!("this orchestration has {ENTRIES_MAX} pauses already").into());
        }
        let known = entries.entry(id(run)).or_default();
        known.kill |= entry.kill;
        known.duration = entry.duration;
        Ok(())
    })
}

pub(super) fn pause(run: &Run) -> Outcome {
    let duration = run.seconds("duration", PAUSE_MAX_SECONDS)?;
    set(run, Entry { duration, kill: false })
}

pub(super) fn kill(run: &Run) -> Outcome {
    set(run, Entry { duration: None, kill: true })
}

pub(super) fn resume(run: &Run) -> Outcome {
    run.parts.orchestrations.pauses.change(run, |entries| {
        match id(run).as_str() {
            ALL => entries.clear(),
            id => drop(entries.remove(id)),
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_counts_for_a_run_until_it_ends() {
        let (pauses, jid) = (Pauses::default(), Jid::now());
        let at = |id: &str, waited: u64| pauses.at(&jid, id, Duration::from_secs(waited));
        assert_eq!(at("a", 0), Word::Go);
        let guard = pauses.begin(&jid);
        let set = |id: &str, entry: Entry| {
            lock(&pauses.said).get_mut(jid.as_str()).unwrap().entries.insert(id.to_owned(), entry);
        };
        set("a", Entry { duration: Some(Duration::from_secs(5)), kill: false });
        assert_eq!(at("a", 2), Word::Wait(Some(Duration::from_secs(3))));
        assert_eq!((at("a", 5), at("b", 0)), (Word::Go, Word::Go));
        set(ALL, Entry::default());
        assert_eq!(at("b", 100), Word::Wait(None));
        set("b", Entry { duration: None, kill: true });
        assert_eq!(at("b", 0), Word::Kill);
        drop(guard);
        assert_eq!(at("b", 0), Word::Go);
        assert!(lock(&pauses.said).is_empty());
    }
}
