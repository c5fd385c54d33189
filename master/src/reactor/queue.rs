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

#[cfg(test)]
mod tests {
    use brine_protocol::event::Framing;
    use brine_protocol::value::{ValueExt as _, map};
    use futures_util::FutureExt as _;

    use super::*;
    use crate::bus::{Bus, Next};

    fn work(n: usize, bytes: usize) -> Work {
        let bus = Bus::new(Framing::Bare, 64 << 20);
        let events = bus.subscribe().unwrap();
        bus.fire("x", map([("n", Value::from(n)), ("text", "x".repeat(bytes).into())]));
        match events.next().now_or_never() {
            Some(Some(Next::Event(event))) => Work { event, data: None, entries: Vec::new(), chain: Arc::default() },
            other => panic!("{other:?}"),
        }
    }

    fn number(work: Option<Work>) -> Option<u64> {
        work.and_then(|work| work.event.event.data.get_u64("n"))
    }

    #[test]
    fn what_waits_keeps_its_place_and_the_newest_is_left_out() {
        let queue = Queue::new(3);
        let left: Vec<u64> = (0..5).map(|n| queue.push(work(n, 0))).collect();
        assert_eq!(left, [0, 0, 0, 1, 1]);
        assert_eq!(number(queue.pop()), Some(0));
        assert_eq!(queue.push(work(5, 0)), 0);
        assert_eq!([1, 2, 5].map(Some), std::array::from_fn(|_| number(queue.pop())));
        queue.close();
        assert!(queue.pop().is_none() && queue.push(work(6, 0)) == 1);
    }

    #[test]
    fn large_events_have_a_bound_of_their_own() {
        let queue = Queue::new(1_000);
        let (large, fit) = (20 << 20, 3);
        let left: Vec<u64> = (0..5).map(|n| queue.push(work(n, large))).collect();
        assert_eq!(left.iter().filter(|left| **left == 0).count(), fit);
        assert_eq!(queue.push(work(6, 0)), 0, "there is room for small ones");
        queue.pop();
        assert_eq!(queue.push(work(7, large)), 0);
    }
}
