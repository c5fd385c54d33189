//! SUB.
use crate::{Backoff, Endpoint, Frames, Heartbeat, Keepalive, Limits};
use bytes::Bytes;
use std::time::Duration;

/// Settings of a [`Subscriber`].
#[derive(Debug, Clone)]
pub struct SubConfig {
    /// Prefixes of the first frame; the empty one means everything.
    pub subscriptions: Vec<Bytes>,
    /// The socket's identity, at most 255 bytes.
    pub identity: Option<Bytes>,
    /// The wait before connecting again.
    pub backoff: Backoff,
    /// What the peer may make it hold.
    pub limits: Limits,
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
            limits: Limits::default(),
            heartbeat: Heartbeat::default(),
            keepalive: Keepalive::default(),
            connect_timeout: Duration::from_secs(10),
        }
    }
}
/// What happened on a [`Subscriber`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubEvent {
    /// Connected, and the subscriptions have been sent.
    Connected,
    /// The connection was lost, or an attempt failed; another follows.
    Disconnected {
        /// Why, in one line.
        reason: String,
    },
    /// A message.
    Message(Frames),
}
/// A SUB socket that stays connected.
#[derive(Debug)]
pub struct Subscriber {}
impl Subscriber {
    /// Starts connecting; must be called in a tokio runtime.
    pub fn connect(_endpoint: Endpoint, _config: SubConfig) -> Subscriber {
        todo!()
    }
    /// The next event. Cancel-safe.
    pub async fn recv(&mut self) -> SubEvent {
        todo!()
    }
}
