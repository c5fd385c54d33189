//! Events that wait for their reactions.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use brine_protocol::value::Value;

use super::entry::Entry;
use crate::bus::BusEvent;

/// Bound on the bytes of the events that wait, however many `reactor_worker_hwm` allows.
const BYTES_MAX: usize = 64 << 20;

/// An event with its reactions.
pub(super) struct Work {
    pub(super) event: Arc<BusEvent>,
    /// What templates get as `data`, if that is not the event's data.
    pub(super) data: Option<Value>,
    pub(super) entries: Vec<Arc<Entry>>,
    /// The entries that led to the event, and these.
    pub(super) chain: Arc<[u64]>,
}

/// The waiting events, the oldest first.
pub(super) struct Queue {
    most: usize,
    state: Mutex<State>,
    ready: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Work>,
    bytes: usize,
    closed: bool,
}

impl Queue {
    pub(super) fn new(most: usize) -> Self {
        Self { most, state: Mutex::default(), ready: Condvar::new() }
    }

    /// Adds an event. Returns how many were left out for it: 0 or 1. What waits already keeps its place, as in Salt.
    pub(super) fn push(&self, work: Work) -> u64 {
        let mut state = self.lock();
        let bytes = state.bytes + work.event.size();
        if state.closed || state.waiting.len() >= self.most || bytes > BYTES_MAX && !state.waiting.is_empty() {
            return 1;
        }
        state.bytes = bytes;
        state.waiting.push_back(work);
        drop(state);
        self.ready.notify_one();
        0
    }

    /// Waits for the next event. `None` when the queue is closed; what waits then is left.
    pub(super) fn pop(&self) -> Option<Work> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return None;
            }
            if let Some(work) = state.waiting.pop_front() {
                state.bytes -= work.event.size();
                return Some(work);
            }
            state = self.ready.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.ready.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
