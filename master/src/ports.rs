//! The settings of the two ports, and the limits of their peers.

use brine_daemon::connections::{heartbeat, keepalive};
use brine_protocol::config::{Config, ConfigError, settings};
use brine_protocol::options;
use brine_zmtp::{Heartbeat, Keepalive, SocketLimits};

/// Upper bound on the difference between an encrypted request and its load.
const ENVELOPE_BYTES_MAX: usize = 64 << 10;

options! {
    /// The settings of the ports.
    #[derive(Debug)]
    pub(crate) struct PortOpts from c {
        pub(crate) interface: String = c.get(settings::INTERFACE)?,
        /// `publish_port`; 0 lets the system choose.
        pub(crate) publish_port: u16 = c.get(settings::PUBLISH_PORT)?,
        /// `ret_port`; 0 lets the system choose.
        pub(crate) ret_port: u16 = c.get(settings::RET_PORT)?,
        /// `api_interface`; without it `interface`.
        pub(crate) api_interface: String = match c.find(settings::API_INTERFACE)? {
            Some(address) => address,
            None => c.get(settings::INTERFACE)?,
        },
        /// `api_port`; 0 if there is none.
        pub(crate) api_port: u16 = c.get(settings::API_LINK_PORT)?,
        /// `max_request_size`, `max_connections`, `max_connections_per_address`, `max_silent_per_address`,
        /// `max_subscriptions`.
        pub(crate) limits: SocketLimits = limits(c)?,
        /// `zmq_heartbeat_ivl`, `zmq_heartbeat_timeout`.
        pub(crate) heartbeat: Heartbeat = heartbeat(c)?,
        /// `tcp_keepalive*`.
        pub(crate) keepalive: Keepalive = keepalive(c)?,
        pub(crate) backlog: u32 = c.get(settings::ZMQ_BACKLOG)?,
        pub(crate) pub_hwm: usize = c.get(settings::PUB_HWM)?,
    }
}

fn limits(c: &Config) -> Result<SocketLimits, ConfigError> {
    let max_message = c.get(settings::MAX_REQUEST_SIZE)?;
    // The first message of a minion over a new, unauthenticated connection may be a return.
    let largest_return = c.get(settings::MAX_RETURN_SIZE)?.saturating_add(ENVELOPE_BYTES_MAX).min(max_message);
    let default = SocketLimits::default();
    Ok(SocketLimits {
        max_message,
        max_message_unauthenticated: default.max_message_unauthenticated.max(largest_return),
        max_connections: c.get(settings::MAX_CONNECTIONS)?,
        max_connections_per_address: c.get(settings::MAX_CONNECTIONS_PER_ADDRESS)?,
        max_silent_per_address: c.get(settings::MAX_SILENT_PER_ADDRESS)?,
        max_subscriptions: c.get(settings::MAX_SUBSCRIPTIONS)?,
        ..default
    })
}
