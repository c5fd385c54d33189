//! What a peer may make a socket hold, and for how long: every bound of the crate, with its reason.

use std::time::Duration;

/// The first request of any Salt peer is an `_auth` of 2 to 4 KB or a sealed request; 1 MiB takes the largest return
/// or pillar seen from a peer that opens a new connection for it, and keeps strangers cheap.
pub(crate) const MAX_MESSAGE_UNAUTHENTICATED: usize = 1 << 20;
/// Returns of large states and file pushes are a few MB; above 64 MiB something is wrong.
pub(crate) const MAX_MESSAGE: usize = 64 << 20;
/// Salt's messages have 1 to 3 frames; 64 leaves room for routing envelopes of proxies.
pub(crate) const MAX_FRAMES: usize = 64;
/// A minion subscribes to "" or to three topics. Nobody proves on a PUB who it is, so that nobody gets more.
pub(crate) const MAX_SUBSCRIPTIONS: usize = 16;
/// Topics are 40 hex digits.
pub(crate) const MAX_SUBSCRIPTION_LEN: usize = 256;
/// Bytes that the subscriptions of all peers may take together, above the first KiB of each: some thousand peers with as
/// many and as long ones as they may have.
pub(crate) const MAX_SUBSCRIBED: usize = 16 << 20;
/// Above what one master serves (10,000 minions, two connections each), below what exhausts memory.
pub(crate) const MAX_CONNECTIONS: usize = 32_768;
/// A handshake takes one or two round trips, so even a site behind one address rarely has this many at a time.
pub(crate) const MAX_HALF_OPEN_PER_ADDRESS: usize = 64;
/// A site of ten thousand minions behind one address, and still as many places for all others.
pub(crate) const MAX_CONNECTIONS_PER_ADDRESS: usize = 16_384;
/// Peers speak at once when they are connected; those that wait for their key to be accepted do so now and then.
pub(crate) const MAX_SILENT_PER_ADDRESS: usize = 1024;
/// Greeting and READY are 100 bytes; who takes longer than this has no intention of finishing.
pub(crate) const HANDSHAKE: Duration = Duration::from_secs(10);
/// A REQ has one request in flight. Peers that pipeline (DEALER) wait, unread, beyond this.
pub(crate) const MAX_PIPELINE: usize = 16;
/// Requests read and not yet taken by `recv`, all connections together: one second of a busy master's work.
pub(crate) const MAX_QUEUED: usize = 1024;
/// Bytes of requests that all unauthenticated connections may hold together, above the first 16 KiB of each.
pub(crate) const MAX_BUFFERED_UNAUTHENTICATED: usize = 128 << 20;
/// The same for authenticated connections.
pub(crate) const MAX_BUFFERED: usize = 1 << 30;
/// A peer that takes not one byte for this long is gone or hostile, whatever its TCP says.
pub(crate) const WRITE_STALL: Duration = Duration::from_secs(60);
/// Bytes a second. Slower lines serve no minion; who takes a byte a minute keeps what it does not take in memory.
pub(crate) const MIN_WRITE_RATE: usize = 4 << 10;

/// Bounds of one socket. `Default` holds the constants of this file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes a message may have, all frames together, until the layer above called
    /// [`Reply::authenticated`](crate::Reply::authenticated) for the connection. ROUTER only.
    pub max_message_unauthenticated: usize,
    /// Bytes a message may have afterwards; for sockets that connect, always.
    pub max_message: usize,
    /// Frames a message may have.
    pub max_frames: usize,
    /// Subscriptions a PUB keeps for one peer.
    pub max_subscriptions: usize,
    /// Bytes a subscription may have.
    pub max_subscription_len: usize,
    /// Bytes the subscriptions of all peers of a PUB may take, above 1 KiB each; one address (IPv6: one /64) gets an
    /// eighth of it. Who needs more loses the connection.
    pub max_subscribed: usize,
    /// Connections a bound socket holds, handshaking ones included. Further ones are closed at once.
    pub max_connections: usize,
    /// Connections one address (IPv6: one /64) may have that are not through the handshake. Loopback and `ipc://` are
    /// exempt.
    pub max_half_open_per_address: usize,
    /// Connections one address (IPv6: one /64) may have. Further ones are closed at once. Loopback and `ipc://` are
    /// exempt.
    pub max_connections_per_address: usize,
    /// Connections one address (IPv6: one /64) may have that are through the handshake and silent: without a
    /// subscription on a PUB, without a request and not [authenticated](crate::Reply::authenticated) on a ROUTER. The
    /// oldest give way. Loopback and `ipc://` are exempt.
    pub max_silent_per_address: usize,
    /// The deadline for greeting and READY together.
    pub handshake: Duration,
    /// Requests a ROUTER's connection may have unanswered; it is not read while it has.
    pub max_pipeline: usize,
    /// Requests that wait for [`Router::recv`](crate::Router::recv), or messages that wait for
    /// [`Subscriber::recv`](crate::Subscriber::recv).
    pub max_queued: usize,
    /// Bytes all unauthenticated connections of a ROUTER may have buffered, unanswered or not taken of their replies,
    /// above 16 KiB each; one address (IPv6: one /64) gets a quarter of it. Who needs more loses the connection.
    pub max_buffered_unauthenticated: usize,
    /// The same for authenticated connections, whatever their address.
    pub max_buffered: usize,
    /// How long a peer may take not one byte of what waits for it.
    pub write_stall: Duration,
    /// Bytes a second that a peer has to take, on the average, of what waits for it longer than that.
    pub min_write_rate: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            max_message_unauthenticated: MAX_MESSAGE_UNAUTHENTICATED,
            max_message: MAX_MESSAGE,
            max_frames: MAX_FRAMES,
            max_subscriptions: MAX_SUBSCRIPTIONS,
            max_subscription_len: MAX_SUBSCRIPTION_LEN,
            max_subscribed: MAX_SUBSCRIBED,
            max_connections: MAX_CONNECTIONS,
            max_half_open_per_address: MAX_HALF_OPEN_PER_ADDRESS,
            max_connections_per_address: MAX_CONNECTIONS_PER_ADDRESS,
            max_silent_per_address: MAX_SILENT_PER_ADDRESS,
            handshake: HANDSHAKE,
            max_pipeline: MAX_PIPELINE,
            max_queued: MAX_QUEUED,
            max_buffered_unauthenticated: MAX_BUFFERED_UNAUTHENTICATED,
            max_buffered: MAX_BUFFERED,
            write_stall: WRITE_STALL,
            min_write_rate: MIN_WRITE_RATE,
        }
    }
}

/// Liveness by ZMTP's PING and PONG. PINGs of the peer are answered whatever this says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heartbeat {
    /// Send a PING when nothing has come for this long; `None` sends none. Peers that announce ZMTP 3.0 get none, as
    /// 3.0 has no PING: TCP keepalive looks after them.
    pub interval: Option<Duration>,
    /// Drop the peer when nothing comes for this long after a PING.
    pub timeout: Duration,
}

impl Default for Heartbeat {
    /// Salt 3008's `zmq_heartbeat_ivl` and `zmq_heartbeat_timeout`.
    fn default() -> Heartbeat {
        Heartbeat { interval: Some(Duration::from_secs(10)), timeout: Duration::from_secs(30) }
    }
}

impl Heartbeat {
    /// No PINGs of our own.
    pub const OFF: Heartbeat = Heartbeat { interval: None, timeout: Duration::from_secs(30) };
}

/// TCP keepalive, as Salt's `tcp_keepalive*`. What is `None` is left to the system (Salt writes -1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keepalive {
    /// `tcp_keepalive`.
    pub enabled: bool,
    /// `tcp_keepalive_idle`.
    pub idle: Option<Duration>,
    /// `tcp_keepalive_intvl`.
    pub interval: Option<Duration>,
    /// `tcp_keepalive_cnt`.
    pub count: Option<u32>,
}

impl Default for Keepalive {
    fn default() -> Keepalive {
        Keepalive { enabled: true, idle: Some(Duration::from_secs(300)), interval: None, count: None }
    }
}
