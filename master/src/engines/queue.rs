//! Events that wait for an engine. When there are too many, the oldest are left out and counted.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::bus::BusEvent;

/// Upper bound on the events that wait for one engine.
const MAX_EVENTS: usize = 10_000;
/// Upper bound on their bytes.
const MAX_BYTES: usize = 16 << 20;
/// Upper bound on the events of one call.
const MAX_BATCH: usize = 100;
/// Upper bound on the bytes of the events of one call. A single event may have more.
const MAX_BATCH_BYTES: usize = 512 << 10;

/// The queue of one engine.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    news: Notify,
}

#[derive(Default)]
struct State {
    events: VecDeque<Arc<BusEvent>>,
    bytes: usize,
    counts: Counts,
}

/// What became of events.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counts {
    /// Events for the engine.
    pub(super) seen: u64,
    /// Events that it handled.
    pub(super) handled: u64,
    /// Events for which there was no room. Those that the bus itself had no room for, which nobody looked at, are among
    /// them.
    pub(super) left_out: u64,
    /// Events that were given up after calls that failed.
    pub(super) lost: u64,
}

impl State {
    /// Leaves out the oldest events beyond the bounds.
    fn cut(&mut self) {
        while self.events.len() > MAX_EVENTS || (self.bytes > MAX_BYTES && self.events.len() > 1) {
            if let Some(oldest) = self.events.pop_front() {
                self.bytes -= oldest.size();
                self.counts.left_out += 1;
            }
        }
    }
}

impl Queue {
    pub(super) fn push(&self, event: Arc<BusEvent>) {
        let mut state = self.lock();
        state.counts.seen += 1;
        state.bytes += event.size();
        state.events.push_back(event);
        state.cut();
        drop(state);
        self.news.notify_one();
    }

    /// Counts events that the bus lost.
    pub(super) fn lost(&self, count: u64) {
        self.lock().counts.left_out += count;
    }

    /// Takes the events of the next call, at most `most`.
    pub(super) fn take(&self, most: usize) -> Vec<Arc<BusEvent>> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        let mut state = self.lock();
        while let Some(event) = state.events.front() {
            bytes += event.size();
            if batch.len() == most.min(MAX_BATCH) || (!batch.is_empty() && bytes > MAX_BATCH_BYTES) {
                break;
            }
            if let Some(event) = state.events.pop_front() {
                state.bytes -= event.size();
                batch.push(event);
            }
        }
        batch
    }

    /// Ends a call: of its events, the first ones were handled, the next ones are given up, and the others wait again.
    pub(super) fn settle(&self, batch: Vec<Arc<BusEvent>>, handled: usize, lost: usize) {
        let mut state = self.lock();
        let handled = handled.min(batch.len());
        let lost = lost.min(batch.len() - handled);
        state.counts.handled += handled as u64;
        state.counts.lost += lost as u64;
        for event in batch.into_iter().skip(handled + lost).rev() {
            state.bytes += event.size();
            state.events.push_front(event);
        }
        state.cut();
    }

    /// Keeps only the events that the engine still sees.
    pub(super) fn retain(&self, sees: impl Fn(&BusEvent) -> bool) {
        let mut state = self.lock();
        state.events.retain(|event| sees(event));
        state.bytes = state.events.iter().map(|event| event.size()).sum();
    }

    /// Waits until there are events.
    pub(super) async fn ready(&self) {
        while self.waiting() == 0 {
            self.news.notified().await;
        }
    }

    pub(super) fn waiting(&self) -> usize {
        self.lock().events.len()
    }

    pub(super) fn counts(&self) -> Counts {
        self.lock().counts
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use brine_protocol::event::Framing;
    use brine_protocol::value::map;
    use futures_util::FutureExt as _;

    use super::*;
    use crate::bus::{Bus, Next};

    fn events(count: usize, bytes: usize) -> Vec<Arc<BusEvent>> {
        let bus = Bus::new(Framing::Bare, 1 << 20);
        let all = bus.subscribe().unwrap();
        let one = |n: usize| {
            bus.fire("x", map([("n", n.to_string()), ("fill", "x".repeat(bytes))]));
            match all.next().now_or_never() {
                Some(Some(Next::Event(event))) => event,
                other => panic!("{other:?}"),
            }
        };
        (0..count).map(one).collect()
    }

    #[test]
    fn what_has_no_room_is_counted_and_the_newest_stay() {
        let queue = Queue::default();
        events(MAX_EVENTS + 7, 1).into_iter().for_each(|event| queue.push(event));
        let counts = queue.counts();
        assert_eq!((queue.waiting(), counts.left_out), (MAX_EVENTS, 7));
        let first = queue.take(1);
        assert_eq!(brine_protocol::value::ValueExt::get_text(&first[0].event.data, "n"), Some("7"));
        let large = Queue::default();
        events(40, 900_000).into_iter().for_each(|event| large.push(event));
        assert!(large.waiting() <= MAX_BYTES / 900_000 && large.counts().left_out > 0);
        assert_eq!(large.take(100).len(), 1, "the events of a call have few bytes");
    }

    #[test]
    fn what_a_call_did_not_handle_comes_again_in_order() {
        let queue = Queue::default();
        let all = events(5, 1);
        all.iter().cloned().for_each(|event| queue.push(event));
        let batch = queue.take(100);
        assert_eq!((batch.len(), queue.waiting()), (5, 0));
        queue.settle(batch, 2, 1);
        let rest = queue.take(100);
        assert!(rest.iter().zip(&all[3..]).all(|(a, b)| Arc::ptr_eq(a, b)) && rest.len() == 2);
        assert_eq!(queue.counts(), Counts { seen: 5, handled: 2, left_out: 0, lost: 1 });
    }
}
