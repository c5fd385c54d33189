//! The bounded queue of one subscriber.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use super::{Bus, BusEvent};

/// Bound on the events in a queue, as in Salt.
const EVENTS_MAX: usize = 10_000;
/// Bound on the bytes of events in a queue. Queues share events, so this bounds all queues together in the usual case.
const BYTES_MAX: usize = 64 << 20;

/// The next item of a subscriber.
#[derive(Debug)]
pub enum Next {
    /// An event.
    Event(Arc<BusEvent>),
    /// The number of events lost at this point, because the subscriber was slow.
    Lost(u64),
}

#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    ready: Notify,
}

#[derive(Default)]
struct State {
    events: VecDeque<Arc<BusEvent>>,
    bytes: usize,
    lost: u64,
    closed: bool,
}

impl Queue {
    pub(super) fn push(&self, event: Arc<BusEvent>) {
        let mut state = self.lock();
        state.bytes += event.frame.len();
        state.events.push_back(event);
        while (state.events.len() > EVENTS_MAX || state.bytes > BYTES_MAX) && state.events.len() > 1 {
            if let Some(oldest) = state.events.pop_front() {
                state.bytes -= oldest.frame.len();
                state.lost += 1;
            }
        }
        drop(state);
        self.ready.notify_one();
    }

    pub(super) fn waiting(&self) -> usize {
        self.lock().events.len()
    }

    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.ready.notify_one();
    }

    /// Waits for the next item. Returns `None` when the bus is closed and the queue is empty. Cancel-safe.
    async fn next(&self) -> Option<Next> {
        loop {
            if let Some(next) = self.try_next()? {
                return Some(next);
            }
            self.ready.notified().await;
        }
    }

    /// Returns `None` if the bus is closed, and `Some(None)` if the queue is empty.
    fn try_next(&self) -> Option<Option<Next>> {
        let mut state = self.lock();
        if state.lost > 0 {
            return Some(Some(Next::Lost(std::mem::take(&mut state.lost))));
        }
        match state.events.pop_front() {
            Some(event) => {
                state.bytes -= event.frame.len();
                Some(Some(Next::Event(event)))
            }
            None if state.closed => None,
            None => Some(None),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A subscription to the bus. Dropping it unsubscribes.
pub struct Subscription {
    bus: Bus,
    id: u64,
    queue: Arc<Queue>,
}

impl Subscription {
    pub(super) const fn new(bus: Bus, id: u64, queue: Arc<Queue>) -> Self {
        Self { bus, id, queue }
    }

    /// Waits for the next event or the number of lost events. Returns `None` when the bus is closed. Cancel-safe.
    pub async fn next(&self) -> Option<Next> {
        self.queue.next().await
    }

    pub(super) fn framing(&self) -> brine_protocol::event::Framing {
        self.bus.shared.framing
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.bus.unsubscribe(self.id);
    }
}
