//! The service for nodes (salt-api): one connection of each has requests for its callers, and one stream of events.
//!
//! - `ring.rs`        the last events, each with its place
//! - `subject.rs`     which job or run an event is about
//! - `starts.rs`      what is known of the jobs and runs that events are about
//! - `judge.rs`       who may see an event
//! - `streams.rs`     the streams of a connection
//! - `connection.rs`  a connection
//! - `remote.rs`      nodes on other hosts, over TLS · `door.rs`  strangers at their port
//!
//! Requests go the way of the clear commands on 4506 ([`crate::requests::node`]). A node proves itself by opening the socket,
//! which only the master's own user can, or by a key that an operator has accepted, so it is believed whom it asks for: address and
//! token.

mod connection;
mod door;
mod judge;
mod remote;
mod ring;
mod starts;
mod streams;
mod subject;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use brine_protocol::nodes::{FrameReader, SOCKET, TO_MASTER_MAX};

use tokio::net::UnixListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::bus::{Bus, Next, SocketError, bind_private};
use crate::requests::Handlers;
use connection::Guest;
use judge::Judge;
pub(crate) use remote::Remote;
use ring::Ring;
use starts::Starts;

/// Upper bound on the connections of nodes: of those on this host, and of those on others.
const NODES_MAX: usize = 64;
/// The pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The service.
pub(crate) struct Nodes {
    handlers: Arc<Handlers>,
    ring: Arc<Ring>,
    judge: Judge,
    began: Instant,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Nodes {
    /// Opens the socket, serves the port for other hosts if there is one, and keeps events from now on.
    pub(crate) fn listen(
        handlers: &Arc<Handlers>,
        sock_dir: &Path,
        remote: Option<Remote>,
    ) -> Result<Arc<Self>, SocketError> {
        let listener = bind_private(&sock_dir.join(SOCKET))?;
        let (ring, starts) = (Arc::new(Ring::default()), Arc::new(Starts::default()));
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let judge = Judge::new(handlers, Arc::clone(&starts));
        let nodes = Arc::new(Self { handlers: Arc::clone(handlers), ring, judge, began: Instant::now(), stop, tasks });
        nodes.tasks.spawn(keep(handlers.admission.bus.clone(), Arc::clone(&nodes.ring), starts, nodes.stop.clone()));
        nodes.tasks.spawn(Arc::clone(&nodes).accept(listener));
        if let Some(remote) = remote {
            nodes.tasks.spawn(remote::accept(Arc::clone(&nodes), remote));
        }
        Ok(nodes)
    }

    /// The master's clock, in milliseconds since its start.
    fn clock(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Ends all connections, after `grace` for the replies under way.
    pub(crate) async fn close(&self, grace: Duration) {
        self.stop.cancel();
        self.tasks.close();
        let _ = tokio::time::timeout(grace, self.tasks.wait()).await;
    }

    async fn accept(self: Arc<Self>, listener: UnixListener) {
        let places = Arc::new(Semaphore::new(NODES_MAX));
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = self.stop.cancelled() => return,
            };
            match (accepted, Arc::clone(&places).try_acquire_owned()) {
                (Ok((stream, _)), Ok(place)) => {
                    let nodes = Arc::clone(&self);
                    self.tasks.spawn(async move {
                        let (reader, writer) = stream.into_split();
                        let guest = Guest { name: "salt-api".to_owned(), address: None };
                        connection::serve(nodes, FrameReader::new(reader, TO_MASTER_MAX), writer, guest).await;
                        drop(place);
                    });
                }
                (Ok(_), Err(_)) => tracing::warn!("there are as many connections of salt-api as there may be"),
                (Err(error), _) => {
                    tracing::error!("the socket for salt-api cannot accept a connection: {error}");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

/// Keeps the bus's events in the ring.
async fn keep(bus: Bus, ring: Arc<Ring>, starts: Arc<Starts>, stop: CancellationToken) {
    let Some(subscription) = bus.subscribe() else {
        return tracing::error!("salt-api has no events: the event bus has as many subscribers as it may");
    };
    loop {
        let next = tokio::select! {
            next = subscription.next() => next,
            () = stop.cancelled() => return,
        };
        match next {
            None => return,
            Some(Next::Lost(count)) => ring.lose(count),
            Some(Next::Event(event)) => {
                starts.learn(&event);
                ring.push(&event);
            }
        }
    }
}
