//! The events of a caller's own request: the returns of a job, or the result of a run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use brine_protocol::event::Event;
use tokio::sync::mpsc;

use super::connection::Shared;

/// Events that wait for one request. A request that leaves more of them lying is ended: it reads while it waits, so
/// only one that got stuck has that many.
const WAITING_MAX: usize = 16_384;

/// The events for one request.
#[derive(Debug)]
pub struct Follow {
    shared: Arc<Shared>,
    ids: Mutex<Vec<u64>>,
    sink: FollowSink,
    events: mpsc::Receiver<Option<Arc<Event>>>,
}

/// The end that events are put into.
#[derive(Debug, Clone)]
pub(super) struct FollowSink {
    send: mpsc::Sender<Option<Arc<Event>>>,
    ended: Arc<AtomicBool>,
}

impl FollowSink {
    pub(super) fn event(&self, event: Arc<Event>) {
        if self.send.try_send(Some(event)).is_err() {
            self.ended.store(true, Ordering::Release);
        }
    }

    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Release);
        // If there is no room, the reader finds out when it has read what is there.
        let _ = self.send.try_send(None);
    }
}

impl Follow {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let (send, events) = mpsc::channel(WAITING_MAX);
        let sink = FollowSink { send, ended: Arc::default() };
        Self { shared, ids: Mutex::default(), sink, events }
    }

    /// Follows the job or run that tags with this beginning are of, which this link started, from before its first event.
    /// Those of earlier calls are followed as well.
    pub fn narrow(&self, prefix: &str) {
        if let Some(id) = self.shared.follow(prefix, self.sink.clone()) {
            self.ids.lock().unwrap_or_else(PoisonError::into_inner).push(id);
        }
    }

    /// Waits for the next event; none when too many waited, or when the result cannot come any more. Cancel-safe.
    pub async fn next(&mut self) -> Option<Arc<Event>> {
        if self.sink.ended.load(Ordering::Acquire) && self.events.is_empty() {
            return None;
        }
        self.events.recv().await.flatten()
    }
}

impl Drop for Follow {
    fn drop(&mut self) {
        for id in self.ids.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            self.shared.close(*id);
        }
    }
}
