//! Failures of jobs that the minion starts by itself, each said once: a job of the schedule that needs what the owner did
//! not grant fails each time that it fires.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

/// Upper bound on the jobs of which a failure is known: as many as a schedule may have.
const MAX: usize = 10_000;

/// What was said last of each job, as a hash.
#[derive(Debug, Default)]
pub(super) struct OwnFailures(Mutex<HashMap<String, u64>>);

impl OwnFailures {
    /// Whether this failure of the job of this name is to be said: it was not the last that was said of it.
    pub(super) fn is_news(&self, name: &str, why: &str) -> bool {
        let mut hasher = DefaultHasher::new();
        why.hash(&mut hasher);
        let hash = hasher.finish();
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if said.get(name) == Some(&hash) {
            return false;
        }
        // Which of too many are forgotten does not matter: they are said again.
        if said.len() >= MAX && !said.contains_key(name) {
            said.clear();
        }
        said.insert(name.to_owned(), hash);
        true
    }

    /// The job succeeded: its next failure is news.
    pub(super) fn succeeded(&self, name: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_said_once_until_it_changes_or_ends() {
        let failures = OwnFailures::default();
        let said = [("a", "x"), ("a", "x"), ("b", "x"), ("a", "y"), ("a", "y")];
        assert_eq!(said.map(|(name, why)| failures.is_news(name, why)), [true, false, true, true, false]);
        failures.succeeded("a");
        assert!(failures.is_news("a", "y"));
        for n in 0..3 * MAX {
            failures.is_news(&n.to_string(), "x");
        }
        assert!(failures.0.lock().unwrap().len() <= MAX);
    }
}
