//! REQ (RFC 28): one request at a time, each under a deadline, over a connection that is kept and watched.
//!
//! A task owns the connection, so that PINGs are answered, and the end of the connection is noticed, between requests.
//! A reply that does not arrive in time ends the connection, so it can never be taken for the reply to the next
//! request.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep, timeout_at},
};

use crate::{
    Backoff, Endpoint, Heartbeat, Keepalive, SocketLimits,
    connect::Connector,
    connection::{Closed, Connection, Event},
    frame::encode_message,
    handshake::SocketType,
    task::AbortOnDrop,
};

/// Settings of a [`Requester`].
#[derive(Debug, Clone)]
pub struct ReqConfig {
    /// The limits on the peer.
    pub limits: SocketLimits,
    /// The wait before connecting again within one request.
    pub backoff: Backoff,
    /// TCP keepalive.
    pub keepalive: Keepalive,
    /// PING and PONG.
    pub heartbeat: Heartbeat,
    /// The deadline of one attempt to connect, before the handshake.
    pub connect_timeout: Duration,
    /// The socket's identity, at most 255 bytes.
    pub identity: Option<Bytes>,
}

impl Default for ReqConfig {
    /// Reconnects after 0.1 to 5 seconds: Salt's REQ uses libzmq's first wait of 100 ms and RECONNECT_IVL_MAX 5000.
    fn default() -> ReqConfig {
        ReqConfig {
            limits: SocketLimits::default(),
            backoff: Backoff { initial: Duration::from_millis(100), max: Duration::from_secs(5), randomize: false },
            keepalive: Keepalive::default(),
            heartbeat: Heartbeat::default(),
            connect_timeout: Duration::from_secs(5),
            identity: None,
        }
    }
}

/// Why a request has no reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// No reply arrived in time.
    #[error("no reply from {endpoint} within {timeout:?}: {reason}")]
    Timeout {
        /// The peer.
        endpoint: Endpoint,
        /// The timeout.
        timeout: Duration,
        /// The last step that the request reached.
        reason: String,
    },
    /// The connection was lost after the request had been sent. The peer may have executed the request.
    #[error("no reply from {endpoint}: {reason}")]
    Closed {
        /// The peer.
        endpoint: Endpoint,
        /// The reason.
        reason: String,
    },
}

/// A REQ socket that connects on demand.
#[derive(Debug)]
pub struct Requester {
    endpoint: Endpoint,
    calls: mpsc::Sender<Call>,
    connected: Arc<AtomicBool>,
    _task: AbortOnDrop,
}

/// One request for the task.
#[derive(Debug)]
struct Call {
    payload: Bytes,
    deadline: Instant,
    outcome: oneshot::Sender<Result<Bytes, Failure>>,
}

/// Why the task has no reply.
#[derive(Debug)]
enum Failure {
    Timeout(String),
    Closed(String),
}

impl Requester {
    /// Makes the socket. It connects with the first request. Must be called in a tokio runtime.
    pub fn new(endpoint: Endpoint, config: ReqConfig) -> Requester {
        let (calls, incoming) = mpsc::channel(1);
        let connector = Connector {
            endpoint: endpoint.clone(),
            socket_type: SocketType::Req,
            identity: config.identity,
            limits: config.limits,
            heartbeat: config.heartbeat,
            keepalive: config.keepalive,
            connect_timeout: config.connect_timeout,
        };
        let connected = Arc::new(AtomicBool::new(false));
        let task = Requests { connector, backoff: config.backoff, connection: None, connected: Arc::clone(&connected) };
        Requester { endpoint, calls, connected, _task: AbortOnDrop(tokio::spawn(task.run(incoming))) }
    }

    /// Whether there is a connection without a request under way, as far as is known: the peer may have left at this
    /// moment.
    pub fn is_connected(&self) -> bool {
        self.connected.load(Ordering::Relaxed) && !self.calls.is_closed()
    }

    /// The peer's endpoint.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Sends a request and waits for its reply; connects as often as necessary. A request that timed out, or whose
    /// future was dropped, closes the connection, so that a late reply is dropped.
    ///
    /// # Errors
    /// When no reply arrived in time, or the connection was lost after the request had been sent.
    pub async fn request(&mut self, payload: Bytes, timeout: Duration) -> Result<Bytes, RequestError> {
        let (outcome, answer) = oneshot::channel();
        let call = Call { payload, deadline: Instant::now() + timeout, outcome };
        let endpoint = || self.endpoint.clone();
        let stopped = || RequestError::Closed { endpoint: endpoint(), reason: "the runtime is shutting down".into() };
        self.calls.send(call).await.map_err(|_| stopped())?;
        match answer.await {
            Ok(Ok(reply)) => Ok(reply),
            Ok(Err(Failure::Timeout(reason))) => Err(RequestError::Timeout { endpoint: endpoint(), timeout, reason }),
            Ok(Err(Failure::Closed(reason))) => Err(RequestError::Closed { endpoint: endpoint(), reason }),
            Err(_) => Err(stopped()),
        }
    }
}

/// The task behind a [`Requester`].
struct Requests {
    connector: Connector,
    backoff: Backoff,
    /// The connection; none while a reply is outstanding on it.
    connection: Option<Connection>,
    /// Whether there is a connection.
    connected: Arc<AtomicBool>,
}

impl Requests {
    async fn run(mut self, mut calls: mpsc::Receiver<Call>) {
        loop {
            let call = match &mut self.connection {
                None => calls.recv().await,
                Some(connection) => tokio::select! {
                    // The end of the connection is noticed before the connection is used.
                    biased;
                    event = connection.next(true) => {
                        if !matches!(event, Ok(Event::Wrote(_))) {
                            // The connection ended, or the peer sent an unexpected message.
                            self.connection = None;
                            self.connected.store(false, Ordering::Relaxed);
                        }
                        continue;
                    }
                    call = calls.recv() => call,
                },
            };
            let Some(Call { payload, deadline, mut outcome }) = call else { return };
            self.connected.store(false, Ordering::Relaxed);
            let mut progress = String::from("not connected");
            let result = tokio::select! {
                result = timeout_at(deadline, self.exchange(payload, &mut progress)) => Some(result),
                () = outcome.closed() => None,
            };
            let result = match result {
                Some(Ok(Ok((reply, connection)))) => {
                    self.connection = Some(connection);
                    self.connected.store(true, Ordering::Relaxed);
                    Ok(reply)
                }
                Some(Ok(Err(closed))) => Err(Failure::Closed(closed.to_string())),
                Some(Err(_)) => Err(Failure::Timeout(progress)),
                None => continue,
            };
            // The caller may have left; then the reply is dropped.
            let _ = outcome.send(result);
        }
    }

    /// Sends the request and waits for the reply. Meanwhile this future owns the connection, so dropping the future
    /// closes the connection.
    async fn exchange(&mut self, payload: Bytes, progress: &mut String) -> Result<(Bytes, Connection), Closed> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.connect(progress).await,
        };
        *progress = String::from("connected, but the request was not answered");
        connection.push_message(encode_message(&[Bytes::new(), payload]));
        loop {
            if let Event::Message(mut frames) = connection.next(true).await? {
                return match (frames.pop(), frames.as_slice()) {
                    (Some(reply), [empty]) if empty.is_empty() => Ok((reply, connection)),
                    _ => Err(Closed::Protocol("the reply does not consist of an empty frame and one payload")),
                };
            }
        }
    }

    /// Tries until connected; the caller sets the deadline.
    async fn connect(&self, progress: &mut String) -> Connection {
        let mut failures = 0;
        loop {
            match self.connector.connect().await {
                Ok(connection) => return connection,
                Err(error) => *progress = error.to_string(),
            }
            failures += 1;
            sleep(self.backoff.wait(failures)).await;
        }
    }
}
