//! Passes on to admission what the executor reports: which calls only wait, and which need more memory or less.

use std::collections::HashSet;

use brine_sandbox_wire::ToExecutor;

use super::Link;
use crate::kernel::admission::SMALL;

impl Link {
    /// Returns the admission number of a call.
    pub(super) fn number_of(&self, call: u64) -> Option<u64> {
        self.state().calls.get(&call).map(|call| call.caller.number)
    }

    pub(super) async fn grown(&self, call: u64, refused: Option<String>) {
        let _ = self.send(&ToExecutor::Grown { call, refused }).await;
    }

    /// Asks which calls wait, unless the last such question is still unanswered.
    pub(crate) async fn look(&self) {
        if self.has_answered() && !self.state().calls.is_empty() {
            self.ask(|n| ToExecutor::Look { n, lease: SMALL }).await;
        }
    }

    pub(super) fn looked(&self, waits: Vec<u64>, gave_back: &[u64]) {
        let waits: HashSet<u64> = waits.into_iter().collect();
        let (calls, gave_back): (Vec<_>, Vec<_>) = {
            let calls = &self.state().calls;
            let number = |call: &u64| calls.get(call).map(|call| call.caller.number);
            let all = calls.iter().map(|(call, known)| (known.caller.number, waits.contains(call)));
            (all.collect(), gave_back.iter().filter_map(number).collect())
        };
        self.jobs.looked(&calls, &gave_back);
    }
}
