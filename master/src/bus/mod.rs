//! The event bus (§8): every event goes to every subscriber in the same order, in this process and on
//! `master_event_pub.ipc`.
//!
//! Firing never waits. Each subscriber has its own bounded queue; a slow subscriber loses its oldest events and learns
//! their number, without an effect on others.

mod ipc;
mod queue;
mod trim;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use brine_protocol::config::settings;
use brine_protocol::event::{Event, Framing};
use brine_protocol::options;
use brine_protocol::value::Value;
use bytes::Bytes;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::access::Principal;
use crate::cause;
pub use ipc::SocketError;
pub(crate) use ipc::bind_private;
use queue::Queue;
pub use queue::{Next, Subscription};
pub(crate) use trim::TRIMMED;

/// Bound on all subscribers. Each `salt` command is one while it waits.
const SUBSCRIBERS_MAX: usize = 1_024;
/// Bound on the bytes of a runner's result, which exists only in its event; `max_event_size` would make a list of jobs
/// useless. It is half of the largest frame that readers of a bus accept.
const RESULT_BYTES_MAX: usize = brine_protocol::event::MAX_FRAME / 2;

options! {
    /// The settings of the bus.
    #[derive(Debug)]
    pub(crate) struct BusOpts from c {
        pub(crate) sock_dir: PathBuf = c.get(settings::SOCK_DIR)?,
        /// `event_publisher_framing`: the framing on `master_event_pub.ipc` (§0.2). Brine's own setting.
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
    /// The source of the event. Only events of this host's root may cause actions of the master.
    pub(crate) by: Principal,
    /// The entries of the reactor that led to it.
    pub(crate) cause: Option<Arc<[u64]>>,
    /// The encoded event for the pub socket.
    frame: Bytes,
}

impl BusEvent {
    /// Returns the bytes that the event takes on the bus.
    pub(crate) fn size(&self) -> usize {
        self.frame.len()
    }

    /// Returns the encoded event without its frame.
    pub(crate) fn body(&self) -> Bytes {
        self.frame.slice(brine_protocol::event::body_start(&self.frame)..)
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
    /// Events are fired under this lock, so that all subscribers get them in one order.
    subscribers: Mutex<HashMap<u64, Arc<Queue>>>,
    next: AtomicU64,
    listener: Mutex<Option<Arc<ipc::PubListener>>>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Bus {
    /// Makes a bus without sockets.
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

    /// Opens `master_event_pub.ipc` (0660), `master_event_pull.ipc` (0600) and the empty files that Python's clients
    /// look for.
    ///
    /// # Errors
    /// If a socket cannot be made.
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

    /// Fires an event of the master with a new `_stamp`.
    pub fn fire(&self, tag: impl Into<String>, data: Value) {
        self.send(Event::new(tag, data), Principal::Master, self.shared.max_event_size);
    }

    /// Fires a runner's result, untrimmed up to a larger bound.
    pub(crate) fn fire_result(&self, tag: String, data: Value) {
        self.send(Event::new(tag, data), Principal::Master, RESULT_BYTES_MAX);
    }

    /// Fires an event of `by`; adds a `_stamp` unless it has one.
    pub(crate) fn fire_by(&self, by: Principal, tag: impl Into<String>, data: Value) {
        use brine_protocol::value::ValueExt;
        let event = if data.has("_stamp") { Event { tag: tag.into(), data } } else { Event::new(tag, data) };
        self.send(event, by, self.shared.max_event_size);
    }

    /// Makes an event whose data is already encoded as `packed`, which saves a second encoding.
    pub(crate) fn encode_by(&self, by: Principal, tag: String, data: Value, packed: &[u8]) -> Arc<BusEvent> {
        use brine_protocol::value::ValueExt;
        let max = self.shared.max_event_size;
        // Events that need trimming or keep the sender's stamp are encoded again.
        let fits = data.entries().is_some_and(|entries| packed.len() + trim::slack(entries.len()) <= max);
        if !fits || data.has("_stamp") {
            let event = if data.has("_stamp") { Event { tag, data } } else { Event::new(tag, data) };
            return self.encode(event, by, max);
        }
        let event = Event::new(tag, data);
        let frame = Bytes::from(brine_protocol::event::frame_packed(&event, packed, self.shared.framing));
        Arc::new(BusEvent { event, by, cause: cause::current(), frame })
    }

    /// Fires an encoded event.
    pub(crate) fn fire_encoded(&self, event: &Arc<BusEvent>) {
        for queue in lock(&self.shared.subscribers).values() {
            queue.push(Arc::clone(event));
        }
    }

    /// Subscribes all connections that are waiting. Call this before the first event of a job: a client that connects
    /// and then requests a job must see all events of that job.
    pub fn settle(&self) {
        let listener = lock(&self.shared.listener).clone();
        if let Some(listener) = listener {
            listener.accept_waiting(self);
        }
    }

    /// Subscribes to all events from now on. Returns `None` if there are too many subscribers.
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

    /// Returns the number of subscribers.
    pub fn subscribers(&self) -> usize {
        lock(&self.shared.subscribers).len()
    }

    /// Returns the length of the longest queue of a subscriber.
    pub fn furthest_behind(&self) -> usize {
        lock(&self.shared.subscribers).values().map(|queue| queue.waiting()).max().unwrap_or(0)
    }

    /// Closes the bus, and gives subscribers `grace` to read their queues.
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
        Arc::new(BusEvent { event, by, cause: cause::current(), frame })
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
