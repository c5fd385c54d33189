//! Plan mode: a job with `test=True` changes nothing, and its return has the list of what it would have done.
//!
//! This is the one place where an operation is kept from the broker. It comes after the check of the grants, so a plan
//! also shows which grants are missing.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brine_capabilities::{Answer, Grants, HostOp, Planned};
use brine_sandbox_wire::HostError;
use rmpv::Value;

/// Upper bound on the entries of one job's plan. A return with more could not be read anyway.
const MAX_ENTRIES: usize = 1_000;
/// Upper bound on the bytes of one entry's text: a path, or a command line that a person can read.
const MAX_ENTRY: usize = 1_024;
/// Upper bound on the bytes of all texts.
const MAX_BYTES: usize = 256 << 10;

/// What a job, or a state in it, would have done.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    own: Mutex<Entries>,
    /// The job's, if this is a state's.
    job: Option<Arc<Plan>>,
}

#[derive(Debug, Default)]
struct Entries {
    entries: Vec<Value>,
    bytes: usize,
    /// Entries for which there was no room.
    more: u64,
}

/// What happens to an operation in plan mode.
pub(crate) enum Next {
    /// The broker performs this.
    Perform(HostOp),
    /// The module gets this answer.
    Answer(Value),
    /// The call ends.
    Stop(HostError),
}

impl Plan {
    /// The plan of a state, whose entries are the job's too. None: only the state is in plan mode, not the job.
    pub(crate) fn of_state(job: Option<Arc<Self>>) -> Arc<Self> {
        Arc::new(Self { own: Mutex::default(), job })
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records what a function would do, without `would`.
    pub(crate) fn record(&self, function: &str, what: &str) -> String {
        if let Some(job) = &self.job {
            job.record(function, what);
        }
        let would = format!("would {}", brine_text::short(what, MAX_ENTRY));
        let mut plan = self.entries();
        let bytes = function.len() + would.len();
        if plan.entries.len() >= MAX_ENTRIES || plan.bytes + bytes > MAX_BYTES {
            plan.more += 1;
        } else {
            plan.bytes += bytes;
            let entry = [("fun", function), ("would", would.trim_start_matches("would "))];
            let entry = entry.map(|(key, text)| (Value::from(key), Value::from(text)));
            plan.entries.push(Value::Map(entry.to_vec()));
        }
        would
    }

    /// Decides on a checked operation.
    pub(crate) fn next(&self, function: &str, granted: &Grants, op: HostOp) -> Next {
        match op.planned(granted) {
            Planned::Look(op) => Next::Perform(op),
            Planned::Instead(what, op) => {
                self.record(function, &what);
                Next::Perform(op)
            }
            Planned::Done(what, answer) => {
                self.record(function, &what);
                Next::Answer(match answer {
                    Answer::True => Value::from(true),
                    Answer::Nothing => Value::Array(Vec::new()),
                })
            }
            Planned::Stop(what) => Next::Stop(HostError::Planned(self.record(function, &what))),
        }
    }

    /// Returns the entries, in the order in which they were asked for: maps of `fun` and `would`, and at the end one of
    /// `more` if there were more.
    pub(crate) fn taken(&self) -> Vec<Value> {
        let mut plan = self.entries();
        let mut entries = std::mem::take(&mut plan.entries);
        if plan.more > 0 {
            entries.push(Value::Map(vec![(Value::from("more"), Value::from(plan.more))]));
        }
        entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_bounded_and_says_so() {
        let plan = Plan::default();
        for n in 0..2_000 {
            plan.record("m.f", &format!("write: /{n}"));
        }
        let entries = plan.taken();
        assert_eq!(entries.len(), MAX_ENTRIES + 1);
        assert_eq!(entries[1]["would"], Value::from("write: /1"));
        assert_eq!(entries[MAX_ENTRIES]["more"], Value::from(1_000));
        // A state's entries are in its own plan and in the job's, and another state's are not in its own.
        let job = Arc::new(Plan::default());
        let [one, other] = [Plan::of_state(Some(Arc::clone(&job))), Plan::of_state(Some(Arc::clone(&job)))];
        one.record("a.f", "write: /1");
        other.record("b.f", "write: /2");
        assert_eq!((one.taken().len(), other.taken().len(), job.taken().len()), (1, 1, 2));
        let plan = Plan::default();
        assert!(plan.record("m.f", &"x".repeat(1 << 20)).len() < MAX_ENTRY + 100);
        for _ in 0..1_000 {
            plan.record("m.f", &"x".repeat(1 << 20));
        }
        let bytes: usize = plan.taken().iter().map(|entry| entry["would"].as_str().unwrap_or_default().len()).sum();
        assert!(bytes <= MAX_BYTES);
    }
}
