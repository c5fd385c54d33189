//! The limits on what a peer may make a socket hold, and for how long: every bound of the crate with its reason.

use std::time::Duration;

/// The first request of any Salt peer is an `_auth` of 2 to 4 KB or a sealed request. 1 MiB is enough for the largest
/// return or pillar seen on a new connection, and keeps the cost of unknown peers low.
pub(crate) const MAX_MESSAGE_UNAUTHENTICATED: usize = 1 << 20;
/// Returns of large states and pushed files have a few MB; a message above 64 MiB is an error.
pub(crate) const MAX_MESSAGE: usize = 64 << 20;
/// Salt's messages have 1 to 3 frames; 64 leaves room for routing envelopes of proxies.
pub(crate) const MAX_FRAMES: usize = 64;
/// A minion subscribes to "" or to three topics. A PUB cannot authenticate its peers, so all get the same small number.
pub(crate) const MAX_SUBSCRIPTIONS: usize = 16;
/// Topics are 40 hex digits.
pub(crate) const MAX_SUBSCRIPTION_LEN: usize = 256;
/// Bytes of the subscriptions of all peers together, beyond the first KiB of each: enough for some thousand peers with
/// the largest allowed subscriptions.
pub(crate) const MAX_SUBSCRIBED: usize = 16 << 20;
/// Above the connections of one master (10,000 minions with two each) and below the number that exhausts memory.
pub(crate) const MAX_CONNECTIONS: usize = 32_768;
/// A handshake takes one or two round trips, so even a site behind one address rarely has this many at a time.
pub(crate) const MAX_HALF_OPEN_PER_ADDRESS: usize = 64;
/// Enough for ten thousand minions behind one address, with as many places left for other addresses.
pub(crate) const MAX_CONNECTIONS_PER_ADDRESS: usize = 16_384;
/// Peers send at once after connecting; minions that wait for acceptance of their key send now and then.
pub(crate) const MAX_SILENT_PER_ADDRESS: usize = 1024;
/// Greeting and READY have 100 bytes together, so a peer that takes longer does not intend to finish.
pub(crate) const HANDSHAKE: Duration = Duration::from_secs(10);
/// A REQ has one request in flight. Peers that pipeline (DEALER) are not read beyond this.
pub(crate) const MAX_PIPELINE: usize = 16;
/// Requests that were read and not yet taken by `recv`, for all connections: one second of work for a busy master.
pub(crate) const MAX_QUEUED: usize = 1024;
/// Bytes of the requests of all unauthenticated connections together, beyond the first 16 KiB of each.
pub(crate) const MAX_BUFFERED_UNAUTHENTICATED: usize = 128 << 20;
/// As above, for authenticated connections.
pub(crate) const MAX_BUFFERED: usize = 1 << 30;
/// A peer that accepts no byte for this long is gone or hostile, whatever its TCP reports.
pub(crate) const WRITE_STALL: Duration = Duration::from_secs(60);
/// Bytes that the system keeps for a peer beyond what is under way to it. By default it takes megabytes, which are in no
/// bound of this crate and outlive the connection, so that peers that accept nothing could fill all memory for TCP.
pub(crate) const MAX_UNSENT: u32 = 32 << 10;
/// Bytes a second. A slower line cannot serve a minion, and a peer that accepts a byte a minute keeps the rest in
/// memory.
pub(crate) const MIN_WRITE_RATE: usize = 4 << 10;
/// A message or command is sent whole, so that only a slow line or a hostile peer takes longer than an instant. This is
/// longer than any pause of a line that works.
pub(crate) const READ_GRACE: Duration = Duration::from_secs(60);
/// Bytes a second, as [`MIN_WRITE_RATE`]: what a peer never finishes stays in memory.
pub(crate) const MIN_READ_RATE: usize = 4 << 10;

/// The limits of one socket. `Default` uses the constants of this file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SocketLimits {
    /// Bytes of a message, all frames together, until the application has called
    /// [`Reply::authenticated`](crate::Reply::authenticated) for the connection. ROUTER only.
    pub max_message_unauthenticated: usize,
    /// Bytes of a message after that, and always for sockets that connect.
    pub max_message: usize,
    /// Frames of a message.
    pub max_frames: usize,
    /// Subscriptions a PUB keeps for one peer.
    pub max_subscriptions: usize,
    /// Bytes of a subscription.
    pub max_subscription_len: usize,
    /// Bytes of the subscriptions of all peers of a PUB, and of what waits for one of them alone (of sealed publications
    /// all but the body), beyond 1 KiB each; one address (IPv6: one /64) gets an eighth. A peer that exceeds this loses
    /// its connection.
    pub max_subscribed: usize,
    /// Connections of a bound socket, including those in the handshake. For a further one, the oldest silent one is closed;
    /// without one, the newest of the address with the most connections that are not
    /// [authenticated](crate::Reply::authenticated). If the further one is of that address, it is closed itself.
    pub max_connections: usize,
    /// Connections of one address (IPv6: one /64) that are in the handshake. Loopback and `ipc://` are exempt.
    pub max_half_open_per_address: usize,
    /// Connections of one address (IPv6: one /64). Further ones are closed at once. Loopback and `ipc://` are exempt.
    pub max_connections_per_address: usize,
    /// Silent connections of one address (IPv6: one /64): after the handshake and without a subscription on a PUB;
    /// without a request and not [authenticated](crate::Reply::authenticated) on a ROUTER. The oldest are closed.
    /// Loopback and `ipc://` are exempt.
    pub max_silent_per_address: usize,
    /// The deadline for greeting and READY together.
    pub handshake: Duration,
    /// Unanswered requests of a ROUTER's connection. Beyond it, the connection is not read.
    pub max_pipeline: usize,
    /// Requests that wait for [`Router::recv`](crate::Router::recv), or messages that wait for
    /// [`Subscriber::recv`](crate::Subscriber::recv).
    pub max_queued: usize,
    /// Bytes of all unauthenticated connections of a ROUTER, beyond 16 KiB each: buffered, in unanswered requests, or
    /// in replies that the peer has not accepted. One address (IPv6: one /64) gets a quarter. A peer that exceeds this
    /// loses its connection; if all together do, those whose messages have been arriving for the longest time.
    pub max_buffered_unauthenticated: usize,
    /// As above, for authenticated connections of any address. One identity gets an eighth, or twice
    /// [`max_message`](SocketLimits::max_message) if that is more.
    pub max_buffered: usize,
    /// The longest time that a peer may accept no byte.
    pub write_stall: Duration,
    /// The average rate in bytes a second at which a peer must accept data after that time.
    pub min_write_rate: usize,
    /// The time that a message may take to arrive in any case. What the peer sends between its parts does not prolong
    /// it, and the time in which the socket does not read does not count.
    pub read_grace: Duration,
    /// The average rate in bytes a second at which a message must arrive after that time.
    pub min_read_rate: usize,
}

impl Default for SocketLimits {
    fn default() -> SocketLimits {
        SocketLimits {
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
            read_grace: READ_GRACE,
            min_read_rate: MIN_READ_RATE,
        }
    }
}

/// Liveness by ZMTP's PING and PONG. PINGs of the peer are always answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heartbeat {
    /// Send a PING when nothing has arrived for this long; `None` sends none. Peers with ZMTP 3.0 get none, because 3.0
    /// has no PING; TCP keepalive detects their loss.
    pub interval: Option<Duration>,
    /// Drop the peer when nothing arrives for this long after a PING.
    pub timeout: Duration,
}

impl Default for Heartbeat {
    /// Salt 3008's `zmq_heartbeat_ivl` and `zmq_heartbeat_timeout`.
    fn default() -> Heartbeat {
        Heartbeat { interval: Some(Duration::from_secs(10)), timeout: Duration::from_secs(30) }
    }
}

impl Heartbeat {
    /// Sends no PINGs.
    pub const OFF: Heartbeat = Heartbeat { interval: None, timeout: Duration::from_secs(30) };
}

/// TCP keepalive, as Salt's `tcp_keepalive*`. The system decides where a value is `None` (Salt writes -1).
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
