//! What an executor's end leaves: calls that it had begun, and calls that another one may do.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Call, CallEnd, Link};
use crate::suspects::Content;

/// What an executor's life left.
#[derive(Debug)]
pub(crate) struct Remains {
    /// Calls that it had begun.
    pub(crate) jobs: usize,
    /// Whether a module can be to blame: it ran or was loaded.
    pub(crate) blamed: bool,
}

impl Link {
    /// The executor is gone: so is everything that waited for it. So many bytes of what was sent it had not read. Where it was ended on
    /// purpose, nobody is to blame.
    pub(crate) fn died(&self, how: &Arc<str>, unread: u64, on_purpose: bool) -> Remains {
        let (calls, loading, sent) = {
            let mut state = self.state();
            state.died = Some(Arc::clone(how));
            (std::mem::take(&mut state.calls), std::mem::take(&mut state.loading), std::mem::take(&mut state.sent))
        };
        // Those behind the first were not looked at yet.
        if let Some(module) = sent.front()
            && !on_purpose
        {
            self.suspects.died_loading(*module);
        }
        drop(loading);
        let read = self.written.load(Ordering::Acquire).saturating_sub(unread);
        let (begun, others): (Vec<_>, Vec<_>) =
            calls.into_values().partition(|call| call.last_byte.is_some_and(|last| last <= read));
        let content = |call: &Call| Content { name: call.caller.module.clone(), sha256: call.caller.sha256 };
        let mut modules: Vec<Content> = begun.iter().map(content).collect();
        modules.sort();
        modules.dedup();
        let remains = Remains { jobs: begun.len(), blamed: !sent.is_empty() || !modules.is_empty() };
        // Before anybody is told, who may come again at once.
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

    /// Whether it is over.
    pub(crate) fn is_dead(&self) -> bool {
        self.state().died.is_some()
    }
}
