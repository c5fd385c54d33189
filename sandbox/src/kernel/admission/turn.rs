//! The place of an admitted call: its turn, the request to end it, and its usage.

use std::sync::Arc;

use brine_sandbox_wire::Usage;
use tokio::sync::{oneshot, watch};

use super::Jobs;

/// The place of an admitted call. Dropping it frees everything that the call holds.
pub(crate) struct Place<'a> {
    pub(super) jobs: &'a Jobs,
    pub(crate) number: u64,
    pub(super) turn: Turn,
    pub(crate) end: End,
}

/// Whether a call may begin.
pub(super) enum Turn {
    /// The call may begin with this much memory until it asks for more. None: with all of its limit.
    Has(Option<u64>),
    Waits(oneshot::Receiver<Option<u64>>),
}

/// The request to end a call, with its reason.
#[derive(Clone)]
pub(crate) struct End(pub(super) watch::Receiver<Option<Arc<str>>>);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.jobs.leave(self.number);
    }
}

impl End {
    /// Checks whether the end was requested.
    pub(crate) fn is_told(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// Waits until the end is requested; returns the reason.
    pub(crate) async fn told(&mut self) -> Arc<str> {
        // The table holds the sender for as long as the place exists.
        let why = self.0.wait_for(Option::is_some).await.map(|why| why.clone());
        why.ok().flatten().unwrap_or_else(|| "it was ended".into())
    }
}

impl Place<'_> {
    /// Returns the memory with which the call may begin until it asks for more (inner None: all of its limit). Outer
    /// None: the call has to wait.
    pub(crate) fn lease(&self) -> Option<Option<u64>> {
        match self.turn {
            Turn::Has(lease) => Some(lease),
            Turn::Waits(_) => None,
        }
    }

    /// Waits until the call may begin.
    pub(crate) async fn turn(&mut self) -> Result<Option<u64>, String> {
        if let Turn::Waits(granted) = &mut self.turn {
            let lease = granted.await.map_err(|_| "The minion is stopping.".to_owned())?;
            self.turn = Turn::Has(lease);
        }
        match self.turn {
            Turn::Has(lease) => Ok(lease),
            Turn::Waits(_) => Ok(None),
        }
    }

    /// Removes a call that has used `own` itself. Returns its total usage with its nested calls.
    pub(crate) fn leave(self, own: Usage) -> Usage {
        match self.jobs.leave(self.number) {
            Some(spent) => sum(&own, &spent),
            None => own,
        }
    }
}

/// Returns the usage of a call with its nested calls, which ran within its wall-clock time.
pub(super) fn sum(own: &Usage, called: &Usage) -> Usage {
    Usage {
        wall_us: own.wall_us,
        cpu_us: own.cpu_us.saturating_add(called.cpu_us),
        memory_peak: own.memory_peak.saturating_add(called.memory_peak),
        host_calls: own.host_calls.saturating_add(called.host_calls),
        bytes_in: own.bytes_in.saturating_add(called.bytes_in),
        bytes_out: own.bytes_out.saturating_add(called.bytes_out),
        log_dropped: own.log_dropped.saturating_add(called.log_dropped),
        written: own.written.saturating_add(called.written),
        new_files: own.new_files.saturating_add(called.new_files),
        foreseen: own.foreseen.saturating_add(called.foreseen),
        repeatable: own.repeatable,
    }
}
