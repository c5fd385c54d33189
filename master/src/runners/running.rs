//! The current runs of runners, for `jobs.master`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brine_protocol::ids::Jid;
use brine_protocol::value::{Value, ValueExt as _};

/// Bound on concurrent runners of operators, programs and minions. Each may wait long for minions.
const RUNS_MAX: usize = 512;

/// The data of each run's first event, by jid.
#[derive(Debug, Default)]
pub(crate) struct Runs(Arc<Mutex<BTreeMap<String, Value>>>);

impl Runs {
    /// Adds a run, which stays until its guard is dropped. Returns `None` if there are too many runs.
    pub(super) fn begin(&self, jid: &Jid, data: &Value) -> Option<RunGuard> {
        let mut runs = lock(&self.0);
        if runs.len() >= RUNS_MAX {
            return None;
        }
        let mut shown = data.clone();
        shown.insert("_stamp", brine_protocol::event::stamp());
        shown.insert("pid", std::process::id());
        runs.insert(jid.as_str().to_owned(), shown);
        Some(RunGuard { runs: Arc::clone(&self.0), jid: jid.as_str().to_owned() })
    }

    /// Returns whether a run is going on.
    pub(crate) fn has(&self, jid: &Jid) -> bool {
        lock(&self.0).contains_key(jid.as_str())
    }

    /// Returns the current runs, the oldest first.
    pub(super) fn list(&self) -> Vec<Value> {
        lock(&self.0).values().cloned().collect()
    }
}

/// Removes its run when dropped.
#[derive(Debug)]
pub(super) struct RunGuard {
    runs: Arc<Mutex<BTreeMap<String, Value>>>,
    jid: String,
}

impl Drop for RunGuard {
    fn drop(&mut self) {
        lock(&self.runs).remove(&self.jid);
    }
}

fn lock<T>(runs: &Mutex<T>) -> MutexGuard<'_, T> {
    runs.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use brine_protocol::value::map;

    use super::*;

    #[test]
    fn runs_are_counted_while_they_run() {
        let runs = Runs::default();
        let mut all: Vec<RunGuard> =
            (0..RUNS_MAX).filter_map(|_| runs.begin(&Jid::now(), &map([("fun", "x")]))).collect();
        assert_eq!((all.len(), runs.list().len()), (RUNS_MAX, RUNS_MAX));
        assert!(runs.begin(&Jid::now(), &Value::Nil).is_none(), "too many");
        all.pop();
        assert!(runs.begin(&Jid::now(), &Value::Nil).is_some());
        drop(all);
        assert!(runs.list().is_empty());
    }
}
