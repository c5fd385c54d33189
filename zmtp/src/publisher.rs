//! PUB (RFC 29): sends each peer the messages that it subscribed to, and never waits for a peer.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};
use tracing::warn;

use crate::{
    BindError, Endpoint, Frames, Heartbeat, Keepalive, SocketLimits,
    addresses::{Visit, site},
    budget::{Budget, Owner},
    connection::{Closed, Connection, ConnectionConfig, Event},
    frame::{DecoderLimits, encode_before},
    handshake::SocketType,
    listener::{Counters, ListenerConfig, Peer, bind},
    ring::{Publication, Reader, Ring},
    subscriptions::{Change, Subscriptions},
    task::AbortOnDrop,
    throttle::Throttle,
};

/// Bytes of publications kept for slow peers: 1,000 of 64 KiB, or a single one of any size.
const MAX_RING_BYTES: usize = 64 << 20;
/// Publications taken from the ring at once for one peer; further ones wait in the ring.
const MAX_BATCH: usize = 64;
/// No publication is taken for a peer for which this many bytes wait, whether they are shared or its own: bytes that
/// wait for a slow peer stay in memory when the ring has dropped them.
const MAX_BATCH_BYTES: usize = 256 << 10;
/// As above, for the bytes of the peer alone. A sealed job takes 190, so these and a minion's subscriptions are within
/// [`FREE_SUBSCRIBED`], and no other peer can exhaust the budget for it.
const MAX_BATCH_OWN_BYTES: usize = 512;
/// Bytes of each peer that do not count: a minion's three subscriptions take 400.
const FREE_SUBSCRIBED: usize = 1 << 10;
/// One address gets the budget for subscriptions divided by this.
const PER_ADDRESS: usize = 8;
/// Bytes of the name of SUBSCRIBE and its length, on top of the subscription.
const SUBSCRIBE_OVERHEAD: usize = 10;

/// Settings of a [`Publisher`].
#[derive(Debug, Clone)]
pub struct PubConfig {
    /// The limits on peers.
    pub limits: SocketLimits,
    /// PING and PONG.
    pub heartbeat: Heartbeat,
    /// TCP keepalive.
    pub keepalive: Keepalive,
    /// Messages kept for slow peers (`pub_hwm`).
    pub hwm: usize,
    /// The listen backlog (`zmq_backlog`).
    pub backlog: u32,
}

impl Default for PubConfig {
    fn default() -> PubConfig {
        PubConfig {
            limits: SocketLimits::default(),
            heartbeat: Heartbeat::default(),
            keepalive: Keepalive::default(),
            hwm: 1000,
            backlog: 1000,
        }
    }
}

/// Counters of a [`Publisher`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PubStats {
    /// Connected peers.
    pub connections: usize,
    /// Peers with at least one subscription.
    pub subscribers: usize,
    /// Bytes of their subscriptions, and of the parts of messages that wait for one peer alone, beyond 1 KiB a peer.
    pub subscribed: usize,
    /// Messages passed to `send`.
    pub sent: u64,
    /// Messages written, counted for each peer.
    pub delivered: u64,
    /// Messages that slow peers lost, counted for each peer. For a peer that subscribed to some topics, messages of all
    /// topics count.
    pub dropped: u64,
    /// Connections accepted.
    pub accepted: u64,
    /// Connections closed at once because of a limit.
    pub refused: u64,
    /// Connections closed for breaking a rule of the protocol or a limit.
    pub violations: u64,
}

/// A PUB socket. Clones send to the same peers; dropping the last clone closes the socket.
#[derive(Debug, Clone)]
pub struct Publisher {
    handle: Arc<Handle>,
}

/// The part that ends with the last [`Publisher`].
#[derive(Debug)]
struct Handle {
    core: Arc<Core>,
    endpoint: Endpoint,
    stop: watch::Sender<bool>,
    listener: Mutex<Option<AbortOnDrop>>,
}

/// The state that the connections share.
#[derive(Debug)]
struct Core {
    config: PubConfig,
    ring: Arc<Ring>,
    counters: Arc<Counters>,
    /// The budget for the peers' subscriptions and their own parts of messages.
    subscribed: Arc<Budget>,
    subscribers: watch::Sender<usize>,
    sent: AtomicU64,
    delivered: AtomicU64,
    dropped: AtomicU64,
    complaints: Mutex<Throttle>,
    refusals: Mutex<Throttle>,
}

impl Publisher {
    /// Binds and starts accepting. Must be called in a tokio runtime.
    ///
    /// # Errors
    /// When the endpoint cannot be bound.
    pub async fn bind(endpoint: &Endpoint, config: PubConfig) -> Result<Publisher, BindError> {
        Publisher::bind_for(endpoint, config, site).await
    }

    /// As [`Publisher::bind`], with another unit for the limits by address.
    pub(crate) async fn bind_for(
        endpoint: &Endpoint,
        config: PubConfig,
        who: fn(IpAddr) -> Option<IpAddr>,
    ) -> Result<Publisher, BindError> {
        let bound = bind(endpoint, config.backlog).await?;
        let endpoint = bound.endpoint.clone();
        let listener = ListenerConfig {
            socket_type: SocketType::Pub,
            limits: config.limits.clone(),
            keepalive: config.keepalive,
            who,
        };
        let core = Arc::new(Core {
            ring: Ring::new(config.hwm, MAX_RING_BYTES),
            subscribed: Arc::new(Budget::new(
                config.limits.max_subscribed,
                FREE_SUBSCRIBED,
                config.limits.max_subscribed / PER_ADDRESS,
            )),
            config,
            counters: Arc::default(),
            subscribers: watch::Sender::new(0),
            sent: AtomicU64::new(0),
            delivered: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            complaints: Mutex::default(),
            refusals: Mutex::default(),
        });
        let (stop, stopped) = watch::channel(false);
        let serve = {
            let (core, stopped) = (Arc::clone(&core), stopped.clone());
            move |peer| serve(Arc::clone(&core), peer, stopped.clone())
        };
        let listener = bound.run(listener, Arc::clone(&core.counters), stopped, serve);
        let listener = Mutex::new(Some(AbortOnDrop(tokio::spawn(listener))));
        Ok(Publisher { handle: Arc::new(Handle { core, endpoint, stop, listener }) })
    }

    /// The bound endpoint with the actual port.
    pub fn endpoint(&self) -> &Endpoint {
        &self.handle.endpoint
    }

    /// Sends to every peer with a matching subscription. Never blocks: a peer that is more than `hwm` messages behind
    /// loses its oldest ones, which [`PubStats::dropped`] counts. A message without frames is ignored.
    #[expect(clippy::needless_pass_by_value, reason = "as every send: the message is gone")]
    pub fn send(&self, message: Frames) {
        if message.is_empty() {
            return;
        }
        let core = &self.handle.core;
        core.sent.fetch_add(1, Ordering::Relaxed);
        let lost = core.ring.push(Publication::new(&message));
        core.dropped.fetch_add(lost, Ordering::Relaxed);
    }

    /// Sends a message of three frames to each topic: the topic, its own head, and the body that all share. Only peers that
    /// subscribed to exactly the topic get it, so a peer that subscribed to everything gets none. Otherwise as
    /// [`Publisher::send`], as one message.
    pub fn send_each(&self, heads: HashMap<Bytes, Bytes>, body: Bytes) {
        if heads.is_empty() {
            return;
        }
        let core = &self.handle.core;
        core.sent.fetch_add(1, Ordering::Relaxed);
        let lost = core.ring.push(Publication::each(heads, body));
        core.dropped.fetch_add(lost, Ordering::Relaxed);
    }

    /// The counters.
    pub fn stats(&self) -> PubStats {
        let core = &self.handle.core;
        PubStats {
            connections: core.counters.connections.load(Ordering::Relaxed),
            subscribers: *core.subscribers.borrow(),
            subscribed: core.subscribed.used(),
            sent: core.sent.load(Ordering::Relaxed),
            delivered: core.delivered.load(Ordering::Relaxed),
            dropped: core.dropped.load(Ordering::Relaxed),
            accepted: core.counters.accepted.load(Ordering::Relaxed),
            refused: core.counters.refused.load(Ordering::Relaxed),
            violations: core.counters.violations.load(Ordering::Relaxed),
        }
    }

    /// Waits until at least `count` peers have a subscription. Cancel-safe.
    pub async fn wait_for_subscribers(&self, count: usize) {
        // The sender exists as long as `self`.
        let _ = self.handle.core.subscribers.subscribe().wait_for(|subscribers| *subscribers >= count).await;
    }

    /// Stops accepting, gives peers `grace` to accept their messages, and closes. Afterwards, sending on a clone has no
    /// effect.
    pub async fn close(self, grace: Duration) {
        let listener = self.handle.listener.lock().unwrap_or_else(PoisonError::into_inner).take();
        // There is no receiver if the publisher is already closed.
        let _ = self.handle.stop.send(true);
        if let Some(mut listener) = listener {
            // The drop aborts the rest.
            let _ = timeout_at(Instant::now() + grace, &mut listener.0).await;
        }
    }
}

/// Serves one peer to its end.
async fn serve(core: Arc<Core>, peer: Peer, stop: watch::Receiver<bool>) {
    let name = peer.name();
    let limits = &core.config.limits;
    let decoder = DecoderLimits {
        // Peers send nothing but subscriptions to a PUB, so the limit on subscriptions bounds all their messages.
        max_message: limits.max_subscription_len.saturating_add(1),
        max_frames: limits.max_frames,
        max_command: limits.max_subscription_len.saturating_add(SUBSCRIBE_OVERHEAD),
    };
    let config = ConnectionConfig {
        decoder,
        heartbeat: core.config.heartbeat,
        write_stall: limits.write_stall,
        min_write_rate: limits.min_write_rate,
        read_grace: limits.read_grace,
        min_read_rate: limits.min_read_rate,
    };
    let connection = Connection::new(peer.established, config);
    let mut subscriber = Subscriber {
        reader: None,
        core: &core,
        connection,
        subscriptions: Subscriptions::default(),
        visit: peer.visit,
        name: &name,
    };
    let Err(closed) = subscriber.run(stop).await else { return };
    if closed.is_violation() {
        core.counters.violations.fetch_add(1, Ordering::Relaxed);
    }
    closed.log(&name, &core.refusals);
}

/// One peer.
struct Subscriber<'a> {
    core: &'a Core,
    connection: Connection,
    /// The peer's place in the ring, while it has subscriptions.
    reader: Option<Reader>,
    subscriptions: Subscriptions,
    visit: Visit,
    name: &'a str,
}

impl Subscriber<'_> {
    /// Runs until the peer leaves (the error says why), or until the publisher stopped and everything is written.
    async fn run(&mut self, stop: watch::Receiver<bool>) -> Result<(), Closed> {
        self.serve(stop).await.inspect_err(|closed| self.connection.end(closed))
    }

    async fn serve(&mut self, mut stop: watch::Receiver<bool>) -> Result<(), Closed> {
        let mut stopping = false;
        self.visit.is_silent();
        if !self.connection.set_share(self.core.subscribed.share(self.visit.address.map(Owner::Address))) {
            return Err(Closed::Budget);
        }
        loop {
            if !self.connection.has_messages() {
                self.queue()?;
            }
            let idle = !self.connection.has_messages();
            if idle && self.reader.as_ref().is_some_and(|reader| !reader.is_at_end()) {
                // The batch had nothing for this peer.
                tokio::task::coop::consume_budget().await;
                continue;
            }
            if stopping && idle {
                return self.connection.drain().await;
            }
            tokio::select! {
                event = self.connection.next(true) => self.handle(event?)?,
                () = wait(self.reader.as_mut()), if idle => {}
                () = self.visit.gives_way() => return Err(Closed::GaveWay),
                _ = stop.wait_for(|stop| *stop), if !stopping => stopping = true,
            }
        }
    }

    /// Moves the next publications from the ring to the connection.
    fn queue(&mut self) -> Result<(), Closed> {
        let (mut all, mut own) = (0, 0);
        for _ in 0..MAX_BATCH {
            let Some(reader) = &mut self.reader else { break };
            let (lost, publication) = reader.read();
            if lost > 0 {
                self.complain(lost);
            }
            match publication {
                None => break,
                Some(Publication::One { topic, wire }) => {
                    if self.subscriptions.matches(&topic) {
                        all += wire.len();
                        self.connection.push_message(wire);
                    }
                }
                Some(Publication::Each { heads, body, .. }) => {
                    for (topic, head) in self.subscriptions.exact(&heads) {
                        let before = encode_before(&[topic, head], body.len());
                        own += before.len();
                        all += before.len() + body.len();
                        self.connection.push_shared(before, body.clone())?;
                    }
                }
            }
            if all >= MAX_BATCH_BYTES || own >= MAX_BATCH_OWN_BYTES {
                break;
            }
        }
        Ok(())
    }

    fn complain(&self, lost: u64) {
        let pass = self.core.complaints.lock().unwrap_or_else(PoisonError::into_inner).pass();
        if pass.is_some() {
            warn!("{} is too slow and has lost {lost} publications", self.name);
        }
    }

    fn handle(&mut self, event: Event) -> Result<(), Closed> {
        match event {
            Event::Wrote(count) => {
                self.core.delivered.fetch_add(count as u64, Ordering::Relaxed);
            }
            Event::Subscribe(prefix) => self.subscribe(&prefix)?,
            Event::Cancel(prefix) => self.cancel(&prefix),
            // A message that is too long ends the connection.
            Event::TooLong { .. } => {}
            // ZMTP 3.0 subscribes with messages (RFC 23); other messages of an XSUB are ignored.
            Event::Message(frames) => {
                self.connection.release(frames.iter().map(Bytes::len).sum());
                if let [frame] = frames.as_slice() {
                    match frame.split_first() {
                        Some((1, prefix)) => self.subscribe(prefix)?,
                        Some((0, prefix)) => self.cancel(prefix),
                        _ => {}
                    }
                }
            }
        }
        Ok(())
    }

    fn subscribe(&mut self, prefix: &[u8]) -> Result<(), Closed> {
        let limits = &self.core.config.limits;
        let first = self.subscriptions.is_empty();
        match self.subscriptions.subscribe(prefix, limits.max_subscriptions) {
            Change::Same => {}
            Change::Bytes(more) => self.connection.hold(more)?,
            Change::TooMany => return Err(Closed::Subscriptions(limits.max_subscriptions)),
        }
        if first {
            self.visit.is_busy();
            self.reader = Some(self.core.ring.reader());
            self.core.subscribers.send_modify(|count| *count += 1);
        }
        Ok(())
    }

    fn cancel(&mut self, prefix: &[u8]) {
        if self.subscriptions.is_empty() {
            return;
        }
        if let Change::Bytes(less) = self.subscriptions.cancel(prefix) {
            self.connection.release(less);
        }
        if self.subscriptions.is_empty() {
            self.visit.is_silent();
            self.reader = None;
            self.core.subscribers.send_modify(|count| *count -= 1);
        }
    }
}

/// Waits for publications; for ever without a reader. Cancel-safe.
async fn wait(reader: Option<&mut Reader>) {
    match reader {
        Some(reader) => reader.wait().await,
        None => std::future::pending().await,
    }
}

impl Drop for Subscriber<'_> {
    fn drop(&mut self) {
        if !self.subscriptions.is_empty() {
            self.core.subscribers.send_modify(|count| *count -= 1);
        }
    }
}
