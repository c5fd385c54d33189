//! Sorts the calls of a dead executor: those that it had begun, and those that another executor may run.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Call, CallEnd, Link};
use crate::kernel::suspects::Content;

/// The result of an executor's death.
#[derive(Debug)]
pub(crate) struct Remains {
    /// Number of calls that had begun.
    pub(crate) jobs: usize,
    /// Whether a module may be the cause, because it ran or was loaded.
    pub(crate) blamed: bool,
}

impl Link {
    /// Ends everything that waited for the dead executor. `unread` is the number of sent bytes that it had not read. A
    /// death on purpose is no module's fault.
    pub(crate) fn died(&self, how: &Arc<str>, unread: u64, on_purpose: bool) -> Remains {
        let (calls, loading, sent) = {
            let mut state = self.state();
            state.died = Some(Arc::clone(how));
            (std::mem::take(&mut state.calls), std::mem::take(&mut state.loading), std::mem::take(&mut state.sent))
        };
        // The executor loads one module after the other, so only the first one counts.
        if let Some(module) = sent.front()
            && !on_purpose
        {
            self.suspects.died_loading(*module);
        }
        drop(loading);
        let read = self.written.load(Ordering::Acquire).saturating_sub(unread);
        let (begun, others): (Vec<_>, Vec<_>) =
            calls.into_values().partition(|call| call.requests > 0 || call.last_byte.is_some_and(|last| last <= read));
        let content = |call: &Call| Content { name: call.caller.module.clone(), sha256: call.caller.sha256 };
        let mut modules: Vec<Content> = begun.iter().map(content).collect();
        modules.sort();
        modules.dedup();
        let remains = Remains { jobs: begun.len(), blamed: !sent.is_empty() || !modules.is_empty() };
        // Recorded before any caller learns of the death, because a caller may try again at once.
        if !on_purpose {
            self.suspects.died_running(&modules);
        }
        for call in begun {
            let _ = call.done.send(CallEnd::Died(Arc::clone(how)));
        }
        for call in others {
            let _ = call.done.send(CallEnd::NotBegun(Arc::clone(how)));
        }
        remains
    }

    /// Checks whether the executor has died.
    pub(crate) fn is_dead(&self) -> bool {
        self.state().died.is_some()
    }
}
