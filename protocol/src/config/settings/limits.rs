//! What peers may have of a master, and how much of it each minion may use.

use super::*;

settings! { AREA = "Limits of a master";
    /// Connections to each port; fewer if the master may have fewer open files.
    MAX_CONNECTIONS: usize = integer("max_connections", master("32768"), "connections", POSITIVE);
    // A site of ten thousand minions behind one address, and still as many places for all others.
    /// Connections to each port from one address (IPv6: one /64); the host itself has no such bound.
    MAX_CONNECTIONS_PER_ADDRESS: usize =
        integer("max_connections_per_address", master("16384"), "connections", POSITIVE);
    /// Connections of one address that did not subscribe or prove an identity yet. Beyond it the oldest are closed.
    MAX_SILENT_PER_ADDRESS: usize = integer("max_silent_per_address", master("1024"), "connections", POSITIVE);
    /// Topics that one connection to `publish_port` may subscribe to.
    MAX_SUBSCRIPTIONS: usize = integer("max_subscriptions", master("16"), "topics", POSITIVE);
    /// Size of a request by a minion that proved its identity on the connection. A larger one is refused.
    MAX_REQUEST_SIZE: usize = integer("max_request_size", master("67108864"), "bytes", ANY);
    /// Size of a return that is stored. A larger one is replaced by a message that says so.
    MAX_RETURN_SIZE: usize = integer("max_return_size", master("16777216"), "bytes", ANY);
    /// Size of an event on the bus.
    MAX_EVENT_SIZE: usize = integer("max_event_size", master("1048576"), "bytes", ANY);
    // A minion of a busy host sends a few a second, and one that was cut off brings what it kept within a minute.
    /// Unrequested returns, events, pieces of files and other messages of one minion in a second, each kind by itself; 0 is no bound.
    MINION_RATE: u64 = integer("minion_rate", master("250"), "messages a second", ANY).live();
    // The largest return at once, and one of half a megabyte eight times a second.
    /// As `minion_rate`, in bytes.
    MINION_RATE_BYTES: u64 = integer("minion_rate_bytes", master("4194304"), "bytes a second", ANY).live();
    // A return of ten megabytes every quarter of an hour.
    /// Returns and events that one minion may add to the store within `keep_jobs_seconds`; 0 is no bound.
    MINION_RETURN_QUOTA: u64 = integer("minion_return_quota", master("1073741824"), "bytes", ANY).live();
    // A job each second.
    /// As `minion_return_quota`, counted; returns of jobs that the master sent are not.
    MINION_RETURN_QUOTA_COUNT: u64 = integer("minion_return_quota_count", master("100000"), "returns", ANY).live();
    // Twice as many as the largest fleets that come at once: anybody can send a key.
    /// Keys that may wait for an operator. For a new one the oldest is dropped; 0 is no bound.
    MAX_PENDING_KEYS: usize = integer("max_pending_keys", master("20000"), "keys", ANY).live();
    // Behind one address may be a site; it takes ten addresses to drop the keys of others.
    /// As `max_pending_keys`, from one address (IPv6: one /64).
    MAX_PENDING_KEYS_PER_ADDRESS: usize =
        integer("max_pending_keys_per_address", master("2000"), "keys", ANY).live();
    /// Minions that may have an accepted key; 0 is no bound.
    MAX_MINIONS: usize = integer("max_minions", master("0"), "minions", ANY).live();
}
