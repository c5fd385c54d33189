//! The event bus (§8): every event goes to every subscriber, in one order, in this process and on `master_event_pub.ipc`.
//!
//! Firing never waits. Each subscriber has a bounded queue of its own; one that falls behind loses its oldest events and is told how
//! many, and nobody else notices.

mod ipc;
mod queue;
mod trim;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use brine_protocol::config::settings;
use brine_protocol::event::{Event, Framing};
use brine_protocol::value::Value;
use bytes::Bytes;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::access::Principal;
use crate::options::options;
pub use ipc::SocketError;
use queue::Queue;
pub use queue::{Next, Subscription};
pub(crate) use trim::TRIMMED;

/// Subscribers of all kinds together. Each `salt` command is one while it waits.
const SUBSCRIBERS_MAX: usize = 1_024;
/// Bytes of a runner's result, which exists nowhere but in its event: `max_event_size` would make a list of jobs useless. Half of what
/// readers of a bus take in one frame.
const RESULT_BYTES_MAX: usize = brine_protocol::event::MAX_FRAME / 2;

options! {
    /// The settings of the bus.
    #[derive(Debug)]
    pub(crate) struct BusOpts from c {
        pub(crate) sock_dir: PathBuf = c.get(settings::SOCK_DIR)?,
        /// `event_publisher_framing`: how events stand on `master_event_pub.ipc` (§0.2). Brine's own key.
        pub(crate) framing: Framing = match c.get(settings::EVENT_PUBLISHER_FRAMING)?.as_str() {
            "prefixed" => Framing::Prefixed,
            _ => Framing::Bare,
        },
        pub(crate) max_event_size: usize = c.get(settings::MAX_EVENT_SIZE)?,
    }
}

/// An event on the bus.
#[derive(Debug)]
pub struct BusEvent {
    /// Tag and data.
    pub event: Event,
    /// Who fired it. Only what root of this host fires may move the master itself.
    pub(crate) by: Principal,
    /// The event as it goes over the pub socket.
    frame: Bytes,
}

impl BusEvent {
    /// Bytes that it takes on the bus.
    pub(crate) fn size(&self) -> usize {
        self.frame.len()
    }
}

/// The bus. Clones share it.
#[derive(Clone)]
pub struct Bus {
    shared: Arc<Shared>,
}

struct Shared {
    framing: Framing,
    max_event_size: usize,
    /// Firing happens under this lock, which is what makes one order for all.
    subscribers: Mutex<HashMap<u64, Arc<Queue>>>,
    next: AtomicU64,
    listener: Mutex<Option<Arc<ipc::PubListener>>>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Bus {
    /// A bus without sockets.
    pub fn new(framing: Framing, max_event_size: usize) -> Self {
        let shared = Shared {
            framing,
            max_event_size,
            subscribers: Mutex::default(),
            next: AtomicU64::new(0),
            listener: Mutex::default(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Opens `master_event_pub.ipc` (0660), `master_event_pull.ipc` (0600) and the empty files that Python's clients look for.
    ///
    /// # Errors
    /// When a socket cannot be made.
    pub fn listen(&self, sock_dir: &Path) -> Result<(), SocketError> {
        let listener = ipc::PubListener::bind(&sock_dir.join("master_event_pub.ipc"))?;
        *lock(&self.shared.listener) = Some(Arc::clone(&listener));
        self.shared.tasks.spawn(ipc::accept_subscribers(self.clone(), listener));
        let pull = ipc::bind_private(&sock_dir.join("master_event_pull.ipc"))?;
        self.shared.tasks.spawn(ipc::accept_senders(self.clone(), pull));
        for marker in ["publish_pull.ipc", "workers.ipc"] {
            ipc::make_marker(&sock_dir.join(marker))?;
        }
        Ok(())
    }

    /// Fires an event of the master's; `_stamp` is added.
    pub fn fire(&self, tag: impl Into<String>, data: Value) {
        self.send(Event::new(tag, data), Principal::Master, self.shared.max_event_size);
    }

    /// Fires a runner's result, whole.
    pub(crate) fn fire_result(&self, tag: String, data: Value) {
        self.send(Event::new(tag, data), Principal::Master, RESULT_BYTES_MAX);
    }

    /// Fires an event of somebody's; `_stamp` is added unless it has one.
    pub(crate) fn fire_by(&self, by: Principal, tag: impl Into<String>, data: Value) {
        use brine_protocol::value::ValueExt;
        let event = if data.has("_stamp") { Event { tag: tag.into(), data } } else { Event::new(tag, data) };
        self.send(event, by, self.shared.max_event_size);
    }

    /// Makes an event whose data is encoded already, as `packed`, so that it is not encoded a second time.
    pub(crate) fn encode_by(&self, by: Principal, tag: String, data: Value, packed: &[u8]) -> Arc<BusEvent> {
        use brine_protocol::value::ValueExt;
        let max = self.shared.max_event_size;
        // An event that may have to be trimmed, or that keeps its sender's stamp, is encoded anew.
        let fits = data.entries().is_some_and(|entries| packed.len() + trim::slack(entries.len()) <= max);
        if !fits || data.has("_stamp") {
            let event = if data.has("_stamp") { Event { tag, data } } else { Event::new(tag, data) };
            return self.encode(event, by, max);
        }
        let event = Event::new(tag, data);
        let frame = Bytes::from(brine_protocol::event::frame_packed(&event, packed, self.shared.framing));
        Arc::new(BusEvent { event, by, frame })
    }

    /// Fires it.
    pub(crate) fn fire_encoded(&self, event: &Arc<BusEvent>) {
        for queue in lock(&self.shared.subscribers).values() {
            queue.push(Arc::clone(event));
        }
    }

    /// Takes in every subscriber that has connected by now. To be called before the first event of something that a subscriber
    /// connected for: whoever connected and only then asked for a job must see all of that job.
    pub fn settle(&self) {
        let listener = lock(&self.shared.listener).clone();
        if let Some(listener) = listener {
            listener.accept_waiting(self);
        }
    }

    /// Receives every event from now on.
    pub fn subscribe(&self) -> Option<Subscription> {
        let id = self.shared.next.fetch_add(1, Ordering::Relaxed);
        let queue = Arc::new(Queue::default());
        let mut subscribers = lock(&self.shared.subscribers);
        if subscribers.len() >= SUBSCRIBERS_MAX {
            return None;
        }
        subscribers.insert(id, Arc::clone(&queue));
        drop(subscribers);
        Some(Subscription::new(self.clone(), id, queue))
    }

    /// How many receive events.
    pub fn subscribers(&self) -> usize {
        lock(&self.shared.subscribers).len()
    }

    /// Events that wait for the subscriber for whom most wait.
    pub fn furthest_behind(&self) -> usize {
        lock(&self.shared.subscribers).values().map(|queue| queue.waiting()).max().unwrap_or(0)
    }

    /// Gives subscribers `grace` to take what waits for them and ends.
    pub async fn close(&self, grace: std::time::Duration) {
        self.shared.stop.cancel();
        for queue in lock(&self.shared.subscribers).values() {
            queue.close();
        }
        self.shared.tasks.close();
        let _ = tokio::time::timeout(grace, self.shared.tasks.wait()).await;
    }

    fn send(&self, event: Event, by: Principal, bytes_max: usize) {
        self.fire_encoded(&self.encode(event, by, bytes_max));
    }

    fn encode(&self, mut event: Event, by: Principal, bytes_max: usize) -> Arc<BusEvent> {
        trim::to_size(&mut event.data, bytes_max);
        let frame = Bytes::from(brine_protocol::event::frame(&event, self.shared.framing));
        Arc::new(BusEvent { event, by, frame })
    }

    fn unsubscribe(&self, id: u64) {
        lock(&self.shared.subscribers).remove(&id);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
