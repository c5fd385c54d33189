//! Looks that need no instance. An instance that learned nothing but the answers which came with its call, and told nobody anything, does the
//! same again with the same arguments and answers. So a beacon that finds all as it was costs the answers and a comparison.
//!
//! Only looks of beacons are repeated; a job always has its instance. The answers are made anew for each look, after the same checks. The executor's
//! word that a call can be repeated is worth what its word about the outcome is worth; an instance looks again within
//! [`MAX_AGE`].

use std::time::{Duration, Instant};

use brine_sandbox_wire::{Foreseen, Outcome};

use super::Watch;

/// Time for one answer. A look can wait for what a job's call is not held up for.
pub(super) const PATIENCE: Duration = Duration::from_millis(20);
/// Age at which an outcome is not repeated any more.
const MAX_AGE: Duration = Duration::from_secs(60);
/// Upper bound on the looks of a module that are kept: more than it has beacons, mostly, and the newest.
pub(super) const MAX_SEEN: usize = 8;
/// Upper bound on the bytes that are kept of one look: answers and outcome.
const MAX_BYTES: usize = 16 << 10;

/// What a call saw and returned.
#[derive(Debug)]
pub(super) struct Seen {
    answers: Vec<Foreseen>,
    outcome: Outcome,
    at: Instant,
}

impl Seen {
    /// None: the call failed, which may have had other causes, or it is too large to be kept.
    pub(super) fn new(answers: Vec<Foreseen>, outcome: &Outcome) -> Option<Self> {
        let Outcome::Returned { value, .. } = outcome else { return None };
        let bytes = value.len() + answers.iter().map(|foreseen| foreseen.answer.len()).sum::<usize>();
        (bytes <= MAX_BYTES).then(|| Self { answers, outcome: outcome.clone(), at: Instant::now() })
    }
}

impl Watch {
    /// Returns how the call would end with these answers. None: it has to be made.
    pub(crate) fn repeated(&self, foreseen: &[Foreseen]) -> Option<Outcome> {
        let known = self.of.known();
        let seen = known.iter().find(|known| known.key == self.key)?.seen.as_ref()?;
        let same = self.repeats && seen.at.elapsed() < MAX_AGE && seen.answers == foreseen;
        same.then(|| seen.outcome.clone())
    }
}

#[cfg(test)]
mod tests;
