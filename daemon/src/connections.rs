//! How both daemons find that a peer vanished, as the configuration says.

use std::time::Duration;

use brine_protocol::config::{Config, ConfigError, settings};
use brine_zmtp::{Heartbeat, Keepalive};

/// Reads `zmq_heartbeat_ivl` and `zmq_heartbeat_timeout`.
///
/// # Errors
/// When one has a wrong type or is out of range.
pub fn heartbeat(c: &Config) -> Result<Heartbeat, ConfigError> {
    let interval = c.get(settings::ZMQ_HEARTBEAT_IVL)?;
    Ok(Heartbeat {
        interval: (!interval.is_zero()).then_some(interval),
        timeout: c.get(settings::ZMQ_HEARTBEAT_TIMEOUT)?,
    })
}

/// Reads `tcp_keepalive` and the settings that begin so.
///
/// # Errors
/// When one has a wrong type or is out of range.
pub fn keepalive(c: &Config) -> Result<Keepalive, ConfigError> {
    let seconds =
        |setting| c.get(setting).map(|n: i64| u64::try_from(n).ok().filter(|n| *n > 0).map(Duration::from_secs));
    Ok(Keepalive {
        enabled: c.get(settings::TCP_KEEPALIVE)?,
        idle: seconds(settings::TCP_KEEPALIVE_IDLE)?,
        interval: seconds(settings::TCP_KEEPALIVE_INTVL)?,
        count: u32::try_from(c.get(settings::TCP_KEEPALIVE_CNT)?).ok().filter(|n| *n > 0),
    })
}
