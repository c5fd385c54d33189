//! One subscription to the master's event bus for all requests.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use brine_client::bus::BusSubscription;
use brine_protocol::event::Event;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

/// Events that wait for one request. A request that leaves more of them lying is ended: it reads while it waits, so
/// only one that got stuck has that many.
const WAITING_MAX: usize = 16_384;
/// The pause between attempts to reach the bus.
const RECONNECT: Duration = Duration::from_millis(200);

/// The subscription.
#[derive(Debug)]
pub struct Events {
    shared: Arc<Shared>,
    task: AbortHandle,
}

#[derive(Debug, Default)]
struct Shared {
    is_up: AtomicBool,
    followers: Mutex<Followers>,
}

#[derive(Debug, Default)]
struct Followers {
    next: u64,
    all: HashMap<u64, Follower>,
}

#[derive(Debug)]
struct Follower {
    /// The beginnings of the tags that it wants. None: it does not know its job's id yet, and gets those of all jobs.
    prefixes: Option<Vec<String>>,
    events: mpsc::Sender<Arc<Event>>,
}

impl Follower {
    fn wants(&self, tag: &str) -> bool {
        match &self.prefixes {
            None => tag.starts_with("salt/job/") || tag.starts_with("salt/run/"),
            Some(prefixes) => prefixes.iter().any(|prefix| tag.starts_with(prefix)),
        }
    }
}

impl Shared {
    fn followers(&self) -> MutexGuard<'_, Followers> {
        self.followers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The events for one request.
#[derive(Debug)]
pub struct Follow {
    id: u64,
    shared: Arc<Shared>,
    events: mpsc::Receiver<Arc<Event>>,
}

impl Events {
    /// Subscribes to the bus at this socket, and again whenever it comes back.
    pub fn subscribe(socket: PathBuf) -> Self {
        let shared = Arc::<Shared>::default();
        let task = tokio::spawn(pass_on(socket, Arc::clone(&shared))).abort_handle();
        Self { shared, task }
    }

    /// Whether the bus is there.
    pub fn is_up(&self) -> bool {
        self.shared.is_up.load(Ordering::Acquire)
    }

    /// Follows the events of all jobs and runs, until [`Follow::narrow`] says which.
    pub fn follow(&self) -> Follow {
        let (send, events) = mpsc::channel(WAITING_MAX);
        let mut followers = self.shared.followers();
        let id = followers.next;
        followers.next += 1;
        followers.all.insert(id, Follower { prefixes: None, events: send });
        drop(followers);
        Follow { id, shared: Arc::clone(&self.shared), events }
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Follow {
    /// Follows from now on only events whose tag begins so, or as an earlier call says.
    pub fn narrow(&self, prefix: String) {
        if let Some(follower) = self.shared.followers().all.get_mut(&self.id) {
            follower.prefixes.get_or_insert_default().push(prefix);
        }
    }

    /// Waits for the next event; none when too many waited. Cancel-safe.
    pub async fn next(&mut self) -> Option<Arc<Event>> {
        self.events.recv().await
    }
}

impl Drop for Follow {
    fn drop(&mut self) {
        self.shared.followers().all.remove(&self.id);
    }
}

async fn pass_on(socket: PathBuf, shared: Arc<Shared>) {
    let mut said = false;
    loop {
        match BusSubscription::connect(socket.clone()).await {
            Ok(mut bus) => {
                tracing::info!("the master's event bus is there");
                said = false;
                shared.is_up.store(true, Ordering::Release);
                let wanted = |tag: &str| shared.followers().all.values().any(|follower| follower.wants(tag));
                while let Some(event) = bus.next(wanted).await {
                    hand_out(&shared, event);
                }
                shared.is_up.store(false, Ordering::Release);
            }
            Err(error) => {
                if !said {
                    tracing::warn!("the master's event bus {} cannot be opened: {error}", socket.display());
                    said = true;
                }
            }
        }
        tokio::time::sleep(RECONNECT).await;
    }
}

fn hand_out(shared: &Shared, event: Event) {
    let event = Arc::new(event);
    shared
        .followers()
        .all
        .retain(|_, follower| !follower.wants(&event.tag) || follower.events.try_send(Arc::clone(&event)).is_ok());
}
