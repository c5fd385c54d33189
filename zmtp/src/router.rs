//! ROUTER (RFC 28) as Salt uses it: each request comes with a handle for its reply, bound to the connection of the
//! request.
//!
//! Replies are routed by connection and never by identity, so peers may share identities or forge them.

use std::{
    collections::VecDeque,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use tokio::{
    sync::{Notify, mpsc, watch},
    time::{Instant, timeout_at},
};
use tracing::warn;

use crate::{
    BindError, Endpoint, Frames, Heartbeat, Keepalive, SocketLimits,
    addresses::{Visit, site},
    budget::{Budget, Owner},
    connection::{Closed, Connection, ConnectionConfig, Event},
    frame::{DecoderLimits, encode_message},
    handshake::SocketType,
    listener::{Counters, ListenerConfig, Peer, bind},
    task::AbortOnDrop,
    throttle::Throttle,
};

/// Upper bound on the bytes of a command from a requester; PING with its context has 21 bytes.
const MAX_COMMAND_LEN: usize = 4096;
/// Bytes of each connection that do not count, so that requests of ordinary size always pass, however much other
/// connections hold.
const FREE_BUFFERED: usize = 16 << 10;
/// One address gets the budget for unauthenticated connections divided by this.
const PER_ADDRESS: usize = 4;
/// One identity gets the budget for authenticated connections divided by this, so that some of them can be hostile.
const PER_IDENTITY: usize = 8;

/// Settings of a [`Router`].
#[derive(Debug, Clone)]
pub struct RouterConfig {
    /// The limits on peers.
    pub limits: SocketLimits,
    /// PING and PONG.
    pub heartbeat: Heartbeat,
    /// TCP keepalive.
    pub keepalive: Keepalive,
    /// The listen backlog (`zmq_backlog`).
    pub backlog: u32,
    /// Makes the reply to a request that is too long, from its length and the limit. Without this function, such a
    /// request ends its connection.
    pub too_long: Option<fn(u64, usize) -> Bytes>,
}

impl Default for RouterConfig {
    fn default() -> RouterConfig {
        RouterConfig {
            limits: SocketLimits::default(),
            heartbeat: Heartbeat::default(),
            keepalive: Keepalive::default(),
            backlog: 1000,
            too_long: None,
        }
    }
}

/// Counters of a [`Router`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RouterStats {
    /// Connected peers.
    pub connections: usize,
    /// Requests returned by `recv`.
    pub requests: u64,
    /// Written replies.
    pub replies: u64,
    /// Messages dropped because they were not `[empty][payload]`.
    pub malformed: u64,
    /// Bytes of unfinished and unanswered requests and of replies that peers have not accepted, beyond 16 KiB for each
    /// connection.
    pub buffered: usize,
    /// Connections accepted.
    pub accepted: u64,
    /// Connections closed at once because of a limit.
    pub refused: u64,
    /// Connections closed for breaking a rule of the protocol or a limit.
    pub violations: u64,
}

/// A ROUTER socket.
#[derive(Debug)]
pub struct Router {
    core: Arc<Core>,
    endpoint: Endpoint,
    requests: mpsc::Receiver<Incoming>,
    stop: watch::Sender<bool>,
    listener: AbortOnDrop,
}

/// The state that the connections share.
#[derive(Debug)]
struct Core {
    config: RouterConfig,
    counters: Arc<Counters>,
    unauthenticated: Arc<Budget>,
    authenticated: Arc<Budget>,
    requests: AtomicU64,
    replies: AtomicU64,
    malformed: AtomicU64,
    complaints: Mutex<Throttle>,
    refusals: Mutex<Throttle>,
}

/// One request.
#[derive(Debug)]
pub struct Incoming {
    /// The frame after the empty delimiter.
    pub payload: Bytes,
    /// The handle for the reply.
    pub reply: Reply,
}

/// The sender of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerInfo {
    /// Unique in this process, never reused.
    pub connection: u64,
    /// The peer's address; `None` over `ipc://`.
    pub address: Option<SocketAddr>,
}

/// The handle for the reply to one request. If it is dropped, the request stays unanswered and a REQ peer waits until
/// its timeout, so send a refusal instead.
#[derive(Debug)]
pub struct Reply {
    peer: Arc<ConnectedPeer>,
    request_len: usize,
    answered: bool,
}

/// The state of a peer that the application and the connection share.
#[derive(Debug)]
struct ConnectedPeer {
    info: PeerInfo,
    /// The key of the identity that the peer has proved.
    identity: OnceLock<u64>,
    answers: Mutex<Answers>,
    answered: Notify,
}

/// The answers of the application for a connection, at most one for each outstanding request. A channel would cost
/// every idle connection its blocks.
#[derive(Debug, Default)]
struct Answers {
    waiting: VecDeque<Answer>,
    /// The connection has ended.
    gone: bool,
}

impl ConnectedPeer {
    fn lock_answers(&self) -> MutexGuard<'_, Answers> {
        // No panic is possible while the lock is held.
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn queue_answer(&self, answer: Answer) -> Result<(), Gone> {
        let mut answers = self.lock_answers();
        if answers.gone {
            return Err(Gone);
        }
        answers.waiting.push_back(answer);
        drop(answers);
        self.answered.notify_one();
        Ok(())
    }

    /// Waits for the next answer. Cancel-safe.
    async fn next_answer(&self) -> Answer {
        loop {
            if let Some(answer) = self.take_answer() {
                return answer;
            }
            // An answer that arrives before this call leaves a permit.
            self.answered.notified().await;
        }
    }

    fn take_answer(&self) -> Option<Answer> {
        let mut answers = self.lock_answers();
        let answer = answers.waiting.pop_front();
        if answers.waiting.is_empty() {
            // Ten thousand idle connections should keep no queues.
            answers.waiting = VecDeque::new();
        }
        answer
    }

    /// From now on, answers are dropped.
    fn end(&self) {
        let mut answers = self.lock_answers();
        answers.gone = true;
        answers.waiting = VecDeque::new();
    }
}

/// The answer to one request; without a payload if its [`Reply`] was dropped.
#[derive(Debug)]
struct Answer {
    payload: Option<Bytes>,
    request_len: usize,
}

/// The connection for the reply is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the peer closed the connection before its reply")]
pub struct Gone;

impl Router {
    /// Binds and starts accepting. Must be called in a tokio runtime.
    ///
    /// # Errors
    /// When the endpoint cannot be bound.
    pub async fn bind(endpoint: &Endpoint, config: RouterConfig) -> Result<Router, BindError> {
        Router::bind_for(endpoint, config, site).await
    }

    /// As [`Router::bind`], with another unit for the limits by address.
    pub(crate) async fn bind_for(
        endpoint: &Endpoint,
        config: RouterConfig,
        who: fn(IpAddr) -> Option<IpAddr>,
    ) -> Result<Router, BindError> {
        let bound = bind(endpoint, config.backlog).await?;
        let endpoint = bound.endpoint.clone();
        let listener = ListenerConfig {
            socket_type: SocketType::Router,
            limits: config.limits.clone(),
            keepalive: config.keepalive,
            who,
        };
        let (queue, requests) = mpsc::channel(config.limits.max_queued.max(1));
        let core = Arc::new(Core {
            unauthenticated: Arc::new(
                Budget::new(
                    config.limits.max_buffered_unauthenticated,
                    FREE_BUFFERED,
                    // An address needs at least the size of one message.
                    (config.limits.max_buffered_unauthenticated / PER_ADDRESS)
                        .max(config.limits.max_message_unauthenticated),
                )
                .oldest_gives_way(),
            ),
            authenticated: Arc::new(Budget::new(
                config.limits.max_buffered,
                FREE_BUFFERED,
                // One message may be arriving while the reply to another is written.
                (config.limits.max_buffered / PER_IDENTITY).max(config.limits.max_message.saturating_mul(2)),
            )),
            config,
            counters: Arc::default(),
            requests: AtomicU64::new(0),
            replies: AtomicU64::new(0),
            malformed: AtomicU64::new(0),
            complaints: Mutex::default(),
            refusals: Mutex::default(),
        });
        let (stop, stopped) = watch::channel(false);
        let serve = {
            let (core, stopped) = (Arc::clone(&core), stopped.clone());
            move |peer| serve(Arc::clone(&core), peer, queue.clone(), stopped.clone())
        };
        let listener = bound.run(listener, Arc::clone(&core.counters), stopped, serve);
        Ok(Router { core, endpoint, requests, stop, listener: AbortOnDrop(tokio::spawn(listener)) })
    }

    /// The bound endpoint with the actual port.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Waits for the next request. Cancel-safe. Returns `None` only when the runtime shuts down.
    pub async fn recv(&mut self) -> Option<Incoming> {
        let incoming = self.requests.recv().await?;
        self.core.requests.fetch_add(1, Ordering::Relaxed);
        Some(incoming)
    }

    /// The counters.
    pub fn stats(&self) -> RouterStats {
        let core = &self.core;
        RouterStats {
            connections: core.counters.connections.load(Ordering::Relaxed),
            requests: core.requests.load(Ordering::Relaxed),
            replies: core.replies.load(Ordering::Relaxed),
            malformed: core.malformed.load(Ordering::Relaxed),
            buffered: core.unauthenticated.used().saturating_add(core.authenticated.used()),
            accepted: core.counters.accepted.load(Ordering::Relaxed),
            refused: core.counters.refused.load(Ordering::Relaxed),
            violations: core.counters.violations.load(Ordering::Relaxed),
        }
    }

    /// Stops accepting and reading, drops the requests that `recv` has not returned, waits at most `grace` until the
    /// others are answered and their replies written, and closes.
    pub async fn close(mut self, grace: Duration) {
        // The listener holds a receiver unless it has ended.
        let _ = self.stop.send(true);
        self.requests.close();
        while self.requests.try_recv().is_ok() {}
        // The drop aborts the rest.
        let _ = timeout_at(Instant::now() + grace, &mut self.listener.0).await;
    }
}

impl Reply {
    /// The sender of the request.
    pub fn peer(&self) -> &PeerInfo {
        &self.peer.info
    }

    /// Whether the connection has ended, so that the reply cannot be delivered.
    pub fn is_gone(&self) -> bool {
        self.peer.lock_answers().gone
    }

    /// Marks the peer as authenticated: raises the connection's limit on messages to [`SocketLimits::max_message`], beginning
    /// with the next message. All connections with the same `key` share one bound on what they hold
    /// ([`SocketLimits::max_buffered`]), so the caller makes the key of the proved identity, in a way that no peer can
    /// foresee: with a hash that has a secret. The first key of a connection stays.
    pub fn authenticated(&self, key: u64) {
        // A further request of the peer proves what is known.
        let _ = self.peer.identity.set(key);
    }

    /// Sends the reply by queueing it in the connection, which has room for it.
    ///
    /// # Errors
    /// When the connection is closed.
    pub async fn send(mut self, payload: Bytes) -> Result<(), Gone> {
        self.answered = true;
        let answer = Answer { payload: Some(payload), request_len: self.request_len };
        self.peer.queue_answer(answer)
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if !self.answered {
            // A closed connection needs no answer.
            let _ = self.peer.queue_answer(Answer { payload: None, request_len: self.request_len });
        }
    }
}

/// Serves one peer to its end.
async fn serve(core: Arc<Core>, peer: Peer, queue: mpsc::Sender<Incoming>, stop: watch::Receiver<bool>) {
    let name = peer.name();
    let limits = &core.config.limits;
    let decoder = DecoderLimits {
        max_message: limits.max_message_unauthenticated,
        max_frames: limits.max_frames,
        max_command: MAX_COMMAND_LEN,
    };
    let config = ConnectionConfig {
        decoder,
        heartbeat: core.config.heartbeat,
        write_stall: limits.write_stall,
        min_write_rate: limits.min_write_rate,
        read_grace: limits.read_grace,
        min_read_rate: limits.min_read_rate,
    };
    let info = PeerInfo { connection: peer.connection, address: peer.address };
    let mut connection = Connection::new(peer.established, config);
    if core.config.too_long.is_some() {
        connection.skip_long_messages();
    }
    let mut requests = Requests {
        core: &core,
        name: &name,
        connection,
        peer: Arc::new(ConnectedPeer {
            info,
            identity: OnceLock::new(),
            answers: Mutex::default(),
            answered: Notify::new(),
        }),
        raised: false,
        visit: peer.visit,
        silent: false,
        pending: VecDeque::new(),
        out: 0,
        writing: 0,
    };
    let Err(closed) = requests.run(queue, stop).await else { return };
    if closed.is_violation() {
        core.counters.violations.fetch_add(1, Ordering::Relaxed);
    }
    closed.log(&name, &core.refusals);
}

impl Drop for Requests<'_> {
    fn drop(&mut self) {
        self.peer.end();
    }
}

/// One peer. A request is first pending, then out to the application, then its reply is being written. The three stages
/// together never exceed `max_pipeline`.
struct Requests<'a> {
    core: &'a Core,
    name: &'a str,
    connection: Connection,
    peer: Arc<ConnectedPeer>,
    /// Whether the limits of an authenticated peer apply.
    raised: bool,
    visit: Visit,
    /// Whether the peer counts as silent.
    silent: bool,
    pending: VecDeque<Bytes>,
    out: usize,
    writing: usize,
}

impl Requests<'_> {
    async fn run(&mut self, queue: mpsc::Sender<Incoming>, stop: watch::Receiver<bool>) -> Result<(), Closed> {
        self.serve(queue, stop).await.inspect_err(|closed| self.connection.end(closed))
    }

    async fn serve(&mut self, queue: mpsc::Sender<Incoming>, mut stop: watch::Receiver<bool>) -> Result<(), Closed> {
        let max_pipeline = self.core.config.limits.max_pipeline.max(1);
        let mut stopping = *stop.borrow();
        let peer = Arc::clone(&self.peer);
        if !self.connection.set_share(self.core.unauthenticated.share(self.visit.address.map(Owner::Address))) {
            return Err(Closed::Budget);
        }
        loop {
            self.raise_limits()?;
            self.tell_silence();
            if stopping {
                for payload in self.pending.drain(..) {
                    self.connection.release(payload.len());
                }
                if self.out == 0 {
                    return self.connection.drain().await;
                }
            }
            let read = !stopping && self.pending.len() + self.out + self.writing < max_pipeline;
            tokio::select! {
                answer = peer.next_answer() => self.send_answer(answer)?,
                () = self.visit.gives_way() => return Err(Closed::GaveWay),
                permit = queue.reserve(), if !self.pending.is_empty() => match permit {
                    Ok(permit) => {
                        if let Some(payload) = self.pending.pop_front() {
                            self.out += 1;
                            permit.send(self.incoming(payload));
                        }
                    }
                    // The router is closing.
                    Err(_) => stopping = true,
                },
                event = self.connection.next(read) => match event {
                    Ok(Event::Message(frames)) => self.message(frames),
                    Ok(Event::Wrote(count)) => {
                        self.writing -= count;
                        self.core.replies.fetch_add(count as u64, Ordering::Relaxed);
                    }
                    Ok(Event::TooLong { length, max }) => self.too_long(length, max)?,
                    // A ROUTER ignores subscriptions.
                    Ok(Event::Subscribe(_) | Event::Cancel(_)) => {}
                    Err(closed) => {
                        self.hand_over(&queue);
                        return Err(closed);
                    }
                },
                _ = stop.wait_for(|stop| *stop), if !stopping => stopping = true,
            }
        }
    }

    fn raise_limits(&mut self) -> Result<(), Closed> {
        if !self.raised
            && let Some(&key) = self.peer.identity.get()
        {
            self.raised = true;
            self.visit.is_proved();
            self.connection.set_max_message(self.core.config.limits.max_message);
            if !self.connection.set_share(self.core.authenticated.share(Some(Owner::Identity(key)))) {
                return Err(Closed::Budget);
            }
        }
        Ok(())
    }

    /// Reports whether the peer is silent: none of its requests is in work, and it is not authenticated.
    fn tell_silence(&mut self) {
        let silent = self.pending.len() + self.out + self.writing == 0;
        if self.raised || silent == self.silent {
            return;
        }
        self.silent = silent;
        if silent { self.visit.is_silent() } else { self.visit.is_busy() }
    }

    fn message(&mut self, mut frames: Frames) {
        let len = frames.iter().map(Bytes::len).sum();
        match (frames.pop(), frames.as_slice()) {
            (Some(payload), [empty]) if empty.is_empty() => self.pending.push_back(payload),
            _ => {
                self.connection.release(len);
                self.core.malformed.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Replies to a request that is too long, and logs it.
    fn too_long(&mut self, length: u64, max: usize) -> Result<(), Closed> {
        let Some(reply) = self.core.config.too_long else { return Ok(()) };
        let pass = self.core.complaints.lock().unwrap_or_else(PoisonError::into_inner).pass();
        if let Some(more) = pass {
            let name = self.name;
            warn!("refused a request of {length} bytes of {name}, the limit is {max} (and {more} more)");
        }
        self.writing += 1;
        self.connection.push_reply(encode_message(&[Bytes::new(), reply(length, max)]))
    }

    /// Passes on requests that a peer sent before it left, as far as there is room.
    fn hand_over(&mut self, queue: &mpsc::Sender<Incoming>) {
        while let Some(payload) = self.pending.pop_front() {
            if queue.try_send(self.incoming(payload)).is_err() {
                return;
            }
        }
    }

    fn incoming(&self, payload: Bytes) -> Incoming {
        let reply = Reply { peer: Arc::clone(&self.peer), request_len: payload.len(), answered: false };
        Incoming { payload, reply }
    }

    fn send_answer(&mut self, answer: Answer) -> Result<(), Closed> {
        self.out -= 1;
        self.connection.release(answer.request_len);
        // The application may have authenticated the peer in the meantime.
        self.raise_limits()?;
        if let Some(payload) = answer.payload {
            self.writing += 1;
            self.connection.push_reply(encode_message(&[Bytes::new(), payload]))?;
        }
        Ok(())
    }
}
