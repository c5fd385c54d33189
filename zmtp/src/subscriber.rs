//! SUB (RFC 29): stays connected, subscribes again after every reconnect, and answers PINGs even if the application
//! does not receive.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    time::sleep,
};

use crate::{
    Backoff, Endpoint, Frames, Heartbeat, Keepalive, SocketLimits,
    connect::Connector,
    connection::{Closed, Connection, Event},
    frame::{Command, encode_message},
    handshake::SocketType,
    task::AbortOnDrop,
};

/// Queued messages count in units of this many bytes, so that the count fits a semaphore.
const UNIT: usize = 1024;

/// Settings of a [`Subscriber`].
#[derive(Debug, Clone)]
pub struct SubConfig {
    /// Prefixes of the first frame; the empty prefix matches everything.
    pub subscriptions: Vec<Bytes>,
    /// The socket's identity, at most 255 bytes.
    pub identity: Option<Bytes>,
    /// The wait before connecting again.
    pub backoff: Backoff,
    /// The limits on the peer.
    pub limits: SocketLimits,
    /// PING and PONG.
    pub heartbeat: Heartbeat,
    /// TCP keepalive.
    pub keepalive: Keepalive,
    /// The deadline of one attempt to connect, before the handshake.
    pub connect_timeout: Duration,
}

impl Default for SubConfig {
    fn default() -> SubConfig {
        SubConfig {
            subscriptions: Vec::new(),
            identity: None,
            backoff: Backoff::default(),
            limits: SocketLimits::default(),
            heartbeat: Heartbeat::default(),
            keepalive: Keepalive::default(),
            connect_timeout: Duration::from_secs(10),
        }
    }
}

/// An event on a [`Subscriber`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubEvent {
    /// Connected, and subscribed again.
    Connected,
    /// The connection was lost, or an attempt failed; another attempt follows.
    Disconnected {
        /// The reason, in one line.
        reason: String,
    },
    /// A message.
    Message(Frames),
}

/// A SUB socket that stays connected until it is dropped.
#[derive(Debug)]
pub struct Subscriber {
    events: mpsc::Receiver<Queued>,
    _task: AbortOnDrop,
}

/// An event with its share of the bytes that may be queued.
type Queued = (SubEvent, Option<OwnedSemaphorePermit>);

impl Subscriber {
    /// Starts connecting. Must be called in a tokio runtime.
    pub fn connect(endpoint: Endpoint, config: SubConfig) -> Subscriber {
        let (queue, events) = mpsc::channel(config.limits.max_queued.max(1));
        let feed = Feed {
            // Room for two of the longest messages: one being taken, and one waiting.
            room: Arc::new(Semaphore::new(2 * units(config.limits.max_message))),
            queue,
            subscriptions: config.subscriptions,
        };
        let connector = Connector {
            endpoint,
            socket_type: SocketType::Sub,
            identity: config.identity,
            limits: config.limits,
            heartbeat: config.heartbeat,
            keepalive: config.keepalive,
            connect_timeout: config.connect_timeout,
        };
        let task = tokio::spawn(feed.run(connector, config.backoff));
        Subscriber { events, _task: AbortOnDrop(task) }
    }

    /// The next event. Cancel-safe.
    pub async fn recv(&mut self) -> SubEvent {
        match self.events.recv().await {
            Some((event, _room)) => event,
            // The task ends only with the runtime.
            None => std::future::pending().await,
        }
    }
}

fn units(len: usize) -> usize {
    // A semaphore counts far above what fits into memory.
    (len / UNIT + 1).min(u32::MAX as usize / 2)
}

/// The task behind a [`Subscriber`].
struct Feed {
    queue: mpsc::Sender<Queued>,
    room: Arc<Semaphore>,
    subscriptions: Vec<Bytes>,
}

impl Feed {
    async fn run(self, connector: Connector, backoff: Backoff) {
        let mut failures = 0;
        loop {
            let reason = match connector.connect().await {
                Err(error) => error.to_string(),
                Ok(connection) => {
                    failures = 0;
                    match self.feed(connection).await {
                        Err(closed) => closed.to_string(),
                        Ok(()) => return,
                    }
                }
            };
            failures += 1;
            if self.queue.send((SubEvent::Disconnected { reason }, None)).await.is_err() {
                return;
            }
            sleep(backoff.wait(failures)).await;
        }
    }

    /// Subscribes and passes messages on until the connection ends (the error says why) or the application dropped the
    /// socket.
    async fn feed(&self, mut connection: Connection) -> Result<(), Closed> {
        for prefix in &self.subscriptions {
            if connection.knows_3_1() {
                connection.push_command(&Command::Subscribe(prefix.clone()));
            } else {
                connection.push_message(encode_message(&[[&[1], &prefix[..]].concat().into()]));
            }
        }
        connection.drain().await?;
        if self.queue.send((SubEvent::Connected, None)).await.is_err() {
            return Ok(());
        }
        let mut waiting = None;
        loop {
            let read = waiting.is_none();
            let len = waiting.as_ref().map_or(0, |frames: &Frames| frames.iter().map(Bytes::len).sum());
            tokio::select! {
                event = connection.next(read) => {
                    if let Event::Message(frames) = event? {
                        waiting = Some(frames);
                    }
                }
                room = self.enqueue(len), if !read => {
                    let Some((slot, permit)) = room else { return Ok(()) };
                    if let Some(frames) = waiting.take() {
                        slot.send((SubEvent::Message(frames), Some(permit)));
                    }
                }
            }
        }
    }

    /// Waits for room for a message of `len` bytes; `None` if the application dropped the socket. Cancel-safe.
    async fn enqueue(&self, len: usize) -> Option<(mpsc::Permit<'_, Queued>, OwnedSemaphorePermit)> {
        let units = u32::try_from(units(len)).unwrap_or(u32::MAX);
        let permit = Arc::clone(&self.room).acquire_many_owned(units).await.ok()?;
        let slot = self.queue.reserve().await.ok()?;
        Some((slot, permit))
    }
}
