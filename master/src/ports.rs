//! The settings of the two ports, and the limits of their peers.

use brine_daemon::connections::{heartbeat, keepalive};
use brine_protocol::config::{Config, ConfigError, settings};
use brine_protocol::options;
use brine_zmtp::{Heartbeat, Keepalive, SocketLimits};

/// Upper bound on the difference between an encrypted request and its load.
const ENVELOPE_BYTES_MAX: usize = 64 << 10;
/// Of so many files that the master may have open, one is for what is no connection to the two ports: keys, jobs, content,
/// pipes of engines, clients of the bus. At least [`OWN_FILES_MIN`], which is what a master needs that has thousands of minions,
/// and more where there are many.
const OWN_FILES_PART: u64 = 320;
const OWN_FILES_MIN: u64 = 64;

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

/// Bounds the connections of each port, so that strangers who open as many as they can leave the master the files that it
/// needs for its work. `files` is the number that the process may have open; none for no limit.
pub(crate) fn within_files(limits: &SocketLimits, files: Option<u64>) -> SocketLimits {
    let Some(files) = files else { return limits.clone() };
    let own = (files / OWN_FILES_PART).max(OWN_FILES_MIN).min(files / 2);
    let of_port = usize::try_from((files - own) / 2).unwrap_or(usize::MAX).max(1);
    if of_port < limits.max_connections {
        tracing::info!("each port takes at most {of_port} connections, because the master may have {files} open files");
    }
    SocketLimits { max_connections: limits.max_connections.min(of_port), ..limits.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_the_master_files_for_its_work() {
        let default = SocketLimits::default();
        for (files, of_port) in [
            (None, default.max_connections),
            (Some(100_000), default.max_connections),
            (Some(20_000), 9_968),
            (Some(1_024), 480),
            (Some(100), 25),
            (Some(0), 1),
        ] {
            assert_eq!(within_files(&default, files).max_connections, of_port, "{files:?}");
        }
        let few = SocketLimits { max_connections: 10, ..default };
        assert_eq!(within_files(&few, Some(20_000)).max_connections, 10);
    }
}
