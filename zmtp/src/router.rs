//! ROUTER.
use crate::{BindError, Endpoint, Heartbeat, Keepalive, Limits};
use bytes::Bytes;
use std::{net::SocketAddr, time::Duration};

/// Settings of a [`Router`].
#[derive(Debug, Clone)]
pub struct RouterConfig {
    /// What peers may make it hold.
    pub limits: Limits,
    /// PING and PONG.
    pub heartbeat: Heartbeat,
    /// TCP keepalive.
    pub keepalive: Keepalive,
    /// The listen backlog (`zmq_backlog`).
    pub backlog: u32,
}
impl Default for RouterConfig {
    fn default() -> RouterConfig {
        RouterConfig {
            limits: Limits::default(),
            heartbeat: Heartbeat::default(),
            keepalive: Keepalive::default(),
            backlog: 1000,
        }
    }
}
/// Counters of a [`Router`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RouterStats {
    /// Peers connected.
    pub connections: usize,
    /// Requests given to `recv`.
    pub requests: u64,
    /// Replies written.
    pub replies: u64,
    /// Messages dropped because they were not `[empty][payload]`.
    pub malformed: u64,
    /// Connections accepted.
    pub accepted: u64,
    /// Connections closed at once because of a limit.
    pub refused: u64,
    /// Connections closed for breaking a rule of the protocol or a limit.
    pub violations: u64,
}
/// A ROUTER socket.
#[derive(Debug)]
pub struct Router {}
impl Router {
    /// Binds and starts accepting.
    pub async fn bind(_endpoint: &Endpoint, _config: RouterConfig) -> Result<Router, BindError> {
        todo!()
    }
    /// Where it is bound, with the real port.
    pub fn endpoint(&self) -> &Endpoint {
        todo!()
    }
    /// The next request. Cancel-safe.
    pub async fn recv(&mut self) -> Option<Incoming> {
        todo!()
    }
    /// The counters.
    pub fn stats(&self) -> RouterStats {
        todo!()
    }
    /// Stops accepting and reading, gives replies `grace` to be made and written, and closes.
    pub async fn close(self, _grace: Duration) {
        todo!()
    }
}
/// One request.
#[derive(Debug)]
pub struct Incoming {
    /// The frame after the empty delimiter.
    pub payload: Bytes,
    /// The way back.
    pub reply: Reply,
}
/// Who sent a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerInfo {
    /// Unique in this process.
    pub connection: u64,
    /// The peer's address; `None` over `ipc://`.
    pub address: Option<SocketAddr>,
}
/// The way back to the connection a request came from.
#[derive(Debug)]
pub struct Reply {}
/// The connection a reply was meant for is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the peer closed the connection before its reply")]
pub struct Gone;
impl Reply {
    /// Who asked.
    pub fn peer(&self) -> &PeerInfo {
        todo!()
    }
    /// The layer above knows who this is: raises the connection's limit to `max_message`.
    pub fn authenticated(&self) {
        todo!()
    }
    /// Sends the reply.
    pub async fn send(self, _payload: Bytes) -> Result<(), Gone> {
        todo!()
    }
}
