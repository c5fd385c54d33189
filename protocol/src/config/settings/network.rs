//! Addresses, ports and connections.

use std::time::Duration;

use super::*;

settings! { AREA = "Network";
    /// Address that the master listens on; `::` for IPv6.
    INTERFACE: String = text("interface", both("0.0.0.0")).unused_on(Role::Minion);
    /// Master: port of publications; 0 lets the system choose. Minion: a port other than 4506 overrules the one that the master tells.
    PUBLISH_PORT: u16 = port("publish_port", each("4505", "4506"));
    /// Port of requests; 0 lets the system choose.
    RET_PORT: u16 = port("ret_port", master("4506"));
    /// The master's address: `HOST`, `HOST:PORT` or `[IPV6]:PORT`. Of a list, the first is used.
    MASTER: Vec<String> = list("master", minion("salt"));
    /// Port of the master's requests, where `master` names none.
    MASTER_PORT: u16 = port("master_port", minion("4506"));
    /// Address that the minion connects from.
    SOURCE_ADDRESS: String = text("source_address", minion("''"));
    /// Port that requests are sent from; 0 lets the system choose. It needs `source_address`.
    SOURCE_RET_PORT: u16 = port("source_ret_port", minion("0"));
    /// Port that publications are received on; 0 lets the system choose. It needs `source_address`.
    SOURCE_PUBLISH_PORT: u16 = port("source_publish_port", minion("0"));
    /// Protocol between master and minions. There is only this one.
    TRANSPORT: String = choice("transport", both("zeromq"), &["zeromq"]).unused_on(Role::Master);
    /// Send a job only to the minions that its list of ids names. Master and minions need the same value.
    ZMQ_FILTERING: bool = flag("zmq_filtering", both("false"));
    /// Time between the pings that find a peer that vanished; 0 sends none.
    ZMQ_HEARTBEAT_IVL: Duration = milliseconds("zmq_heartbeat_ivl", both("10000"), TIME);
    /// Time after which a peer that did not answer a ping counts as gone.
    ZMQ_HEARTBEAT_TIMEOUT: Duration = milliseconds("zmq_heartbeat_timeout", both("30000"), TIME);
    /// Connections that the system queues until the master takes them.
    ZMQ_BACKLOG: u32 = integer("zmq_backlog", master("1000"), "connections", 0..=u32::MAX as i64);
    /// Publications that wait for a slow minion before it loses the oldest.
    PUB_HWM: usize = integer("pub_hwm", master("1000"), "messages", POSITIVE);
    /// Let the system check that idle connections are alive.
    TCP_KEEPALIVE: bool = flag("tcp_keepalive", both("true"));
    /// Time without traffic before the first check; 0 and -1 leave it to the system.
    TCP_KEEPALIVE_IDLE: i64 = integer("tcp_keepalive_idle", both("300"), "seconds", -1..=32_767);
    /// Checks without an answer before a connection ends; 0 and -1 leave it to the system.
    TCP_KEEPALIVE_CNT: i64 = integer("tcp_keepalive_cnt", both("-1"), "checks", -1..=127);
    /// Time between checks; 0 and -1 leave it to the system.
    TCP_KEEPALIVE_INTVL: i64 = integer("tcp_keepalive_intvl", both("-1"), "seconds", -1..=32_767);
    /// Wait before the first attempt to connect again. It doubles with each attempt.
    RECON_DEFAULT: Duration = milliseconds("recon_default", minion("1000"), TIME);
    /// Longest wait between attempts to connect.
    RECON_MAX: Duration = milliseconds("recon_max", minion("10000"), TIME);
    /// Choose each wait at random between `recon_default` and `recon_max`, so that minions do not all come at once.
    RECON_RANDOMIZE: bool = flag("recon_randomize", minion("true"));
    /// Time that a request to the master may take.
    REQUEST_CHANNEL_TIMEOUT: Duration = seconds("request_channel_timeout", minion("60"), TIME);
    /// Attempts to send a request.
    REQUEST_CHANNEL_TRIES: u32 = integer("request_channel_tries", minion("3"), "attempts", 1..=1_000_000);
    /// How events are framed on `master_event_pub.ipc`: `bare` for Python clients of 3007 and 3008, `prefixed` for those of 3006.
    EVENT_PUBLISHER_FRAMING: String = choice("event_publisher_framing", master("bare"), &["bare", "prefixed"]);
}
