//! ZMTP 3.1, ZeroMQ's wire protocol, over tokio for hostile networks: PUB, SUB, ROUTER and REQ over `tcp://` and
//! `ipc://` with the mechanism NULL. It knows nothing of Salt. The protocol is RFC 37 (ZMTP 3.1), RFC 28 (REQ, ROUTER)
//! and RFC 29 (PUB, SUB).
//!
//! Layout, from the bytes up:
//! - [`frame`]: the codec of bytes, messages and commands; no sockets, no clock.
//! - `handshake`: parses greeting and READY, and exchanges them under one deadline.
//! - `stream`, `connection`, `heartbeat`: one established peer: readiness, buffered writes, PING and PONG.
//! - `listener`: accepts connections, with the limits for unknown peers; `addresses`: the limits for one address.
//! - `budget`: the bounds on all connections of a kind together.
//! - `publisher` (with `ring` and `subscriptions`), `router`: the sockets that bind.
//! - `subscriber`, `requester` (with `connect` and `backoff`): the sockets that connect, and reconnect.
//!
//! [`SocketLimits`] bounds everything that a peer can make this crate hold; every wait has a deadline. A peer that breaks a
//! rule loses its connection and costs one counter and one log line. Other peers are not affected.
//!
//! ```
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//! use brine_zmtp::{Endpoint, ReqConfig, Requester, Router, RouterConfig};
//!
//! let mut router = Router::bind(&"tcp://127.0.0.1:0".parse()?, RouterConfig::default()).await?;
//! let mut requester = Requester::new(router.endpoint().clone(), ReqConfig::default());
//! let serving = tokio::spawn(async move {
//!     while let Some(incoming) = router.recv().await {
//!         // A peer that left needs no answer.
//!         let _ = incoming.reply.send(incoming.payload).await;
//!     }
//! });
//! assert_eq!(requester.request("ping".into(), Duration::from_secs(5)).await?, "ping");
//! # serving.abort();
//! # Ok(())
//! # }
//! # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
//! ```

mod addresses;
mod backoff;
mod budget;
mod connect;
mod connection;
mod endpoint;
pub mod frame;
mod handshake;
mod heartbeat;
mod limits;
mod listener;
mod publisher;
mod requester;
mod ring;
mod router;
mod stream;
mod subscriber;
mod subscriptions;
mod task;
mod throttle;

pub use backoff::Backoff;
pub use endpoint::{Endpoint, EndpointError};
pub use limits::{Heartbeat, Keepalive, SocketLimits};
pub use publisher::{PubConfig, PubStats, Publisher};
pub use requester::{ReqConfig, RequestError, Requester};
pub use router::{Gone, Incoming, PeerInfo, Reply, Router, RouterConfig, RouterStats};
pub use subscriber::{SubConfig, SubEvent, Subscriber};

use bytes::Bytes;

/// One multipart message: its frames.
pub type Frames = Vec<Bytes>;

/// A socket could not be bound.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// The host name has no address.
    #[error("cannot bind {endpoint}: {host} has no address: {source}")]
    Resolve {
        /// The endpoint.
        endpoint: String,
        /// The name that did not resolve.
        host: String,
        /// The resolver's error.
        source: std::io::Error,
    },
    /// The system refused to bind or listen.
    #[error("cannot bind {endpoint}: {source}")]
    Io {
        /// The endpoint.
        endpoint: String,
        /// The system's error.
        source: std::io::Error,
    },
}
