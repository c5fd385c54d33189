//! PUB.
use crate::{BindError, Endpoint, Frames, Heartbeat, Keepalive, Limits};
use std::time::Duration;

/// Settings of a [`Publisher`].
#[derive(Debug, Clone)]
pub struct PubConfig {
    /// What peers may make it hold.
    pub limits: Limits,
    /// PING and PONG.
    pub heartbeat: Heartbeat,
    /// TCP keepalive.
    pub keepalive: Keepalive,
    /// Messages kept for peers that are slow (`pub_hwm`).
    pub hwm: usize,
    /// The listen backlog (`zmq_backlog`).
    pub backlog: u32,
}
impl Default for PubConfig {
    fn default() -> PubConfig {
        PubConfig {
            limits: Limits::default(),
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
    /// Peers connected.
    pub connections: usize,
    /// Peers that have at least one subscription.
    pub subscribers: usize,
    /// Messages given to `send`.
    pub sent: u64,
    /// Messages written to peers, each peer counted.
    pub delivered: u64,
    /// Messages that slow peers lost, each peer counted.
    pub dropped: u64,
    /// Connections accepted.
    pub accepted: u64,
    /// Connections closed at once because of a limit.
    pub refused: u64,
    /// Connections closed for breaking a rule of the protocol or a limit.
    pub violations: u64,
}
/// A PUB socket; clones send to the same peers.
#[derive(Debug, Clone)]
pub struct Publisher {}
impl Publisher {
    /// Binds and starts accepting.
    pub async fn bind(_endpoint: &Endpoint, _config: PubConfig) -> Result<Publisher, BindError> {
        todo!()
    }
    /// Where it is bound, with the real port.
    pub fn endpoint(&self) -> &Endpoint {
        todo!()
    }
    /// Sends to every peer with a matching subscription. Never blocks.
    pub fn send(&self, _message: Frames) {
        todo!()
    }
    /// The counters.
    pub fn stats(&self) -> PubStats {
        todo!()
    }
    /// Resolves when at least `count` peers have a subscription.
    pub async fn wait_for_subscribers(&self, _count: usize) {
        todo!()
    }
    /// Stops accepting, gives peers `grace` to take what waits for them, and closes. Clones send into nothing then.
    pub async fn close(self, _grace: Duration) {
        todo!()
    }
}
