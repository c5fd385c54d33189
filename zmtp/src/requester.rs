//! REQ.
use crate::{Backoff, Endpoint, Heartbeat, Keepalive, Limits};
use bytes::Bytes;
use std::time::Duration;

/// Settings of a [`Requester`].
#[derive(Debug, Clone)]
pub struct ReqConfig {
    /// What the peer may make it hold.
    pub limits: Limits,
    /// The wait before connecting again.
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
    fn default() -> ReqConfig {
        ReqConfig {
            limits: Limits::default(),
            backoff: Backoff { initial: Duration::from_millis(100), max: Duration::from_secs(5), randomize: true },
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
    /// Nothing came in time; the reason says how far it got.
    #[error("no reply from {endpoint} within {timeout:?}: {reason}")]
    Timeout {
        /// Who was asked.
        endpoint: Endpoint,
        /// How long it waited.
        timeout: Duration,
        /// How far it got.
        reason: String,
    },
    /// The connection was lost after the request had been sent. It may have been carried out.
    #[error("{endpoint} closed the connection before it replied: {reason}")]
    Closed {
        /// Who was asked.
        endpoint: Endpoint,
        /// Why.
        reason: String,
    },
}
/// A REQ socket that connects when needed.
#[derive(Debug)]
pub struct Requester {}
impl Requester {
    /// Makes the socket; it connects with the first request. Must be called in a tokio runtime.
    pub fn new(_endpoint: Endpoint, _config: ReqConfig) -> Requester {
        todo!()
    }
    /// Sends a request and waits for its reply. A request that timed out, or whose future was dropped, closes the
    /// connection, so that its late reply reaches nobody.
    pub async fn request(&mut self, _payload: Bytes, _timeout: Duration) -> Result<Bytes, RequestError> {
        todo!()
    }
}
