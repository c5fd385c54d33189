//! `network`: reach other hosts, by names, addresses and ports. The executor makes the connections; the minion looks up
//! names and sends HTTP requests (`http.rs`).

pub use crate::http::HttpOp;
use crate::prelude::*;
use crate::reach::{not_granted, read};

pub(crate) const DECLARATION: Declaration = Declaration {
    standard: &[
        ("archive", Standard::Least),
        ("file", Standard::Least),
        ("http", Standard::Least),
        ("network", Standard::Least),
        ("pkg", Standard::Least),
        ("postgres", Standard::Least),
        ("tcp_events", Standard::Least),
        ("webhook", Standard::Least),
    ],
    reported_for_all: true,
    ..Declaration::new(
        "network",
        "reach other hosts",
        &[
            "brine:host/http",
            "wasi:sockets/instance-network",
            "wasi:sockets/ip-name-lookup",
            "wasi:sockets/network",
            "wasi:sockets/tcp",
            "wasi:sockets/tcp-create-socket",
            "wasi:sockets/udp",
            "wasi:sockets/udp-create-socket",
        ],
        Kind::Network,
    )
};

/// `wasi:sockets/ip-name-lookup`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum NetworkOp {
    /// Returns an array of addresses as text. The executor lets the call connect only to these.
    Resolve {
        /// A name.
        name: String,
    },
}

impl Operation for NetworkOp {
    const INTERFACE: &'static str = "wasi:sockets/ip-name-lookup";

    fn size(&self) -> Size {
        let Self::Resolve { name } = self;
        Size::names(name.len())
    }

    fn check(self, _: &Asker<'_>, granted: &Grants) -> Result<Self, Refusal> {
        let Self::Resolve { name } = self;
        let host = read(&name)?;
        let name = host.to_string();
        if granted.allows_name(&name) {
            return Ok(Self::Resolve { name });
        }
        Err(not_granted(granted, format!("look up {name}"), &host, 443))
    }

    fn planned(self, _: &Grants) -> Planned<Self> {
        Planned::Look(self)
    }
}
