//! The origin of a request.

use std::fmt;
use std::net::IpAddr;

use brine_protocol::value::{Value, ValueExt};

/// The origin of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Address {
    /// This host.
    #[default]
    Here,
    /// A front end on this host, for a client at this address.
    Behind(IpAddr),
    /// The network.
    Network(IpAddr),
    /// A node on another host.
    Node {
        /// The node's address.
        node: IpAddr,
        /// The address of its client; none for a client on the node's own host.
        client: Option<IpAddr>,
    },
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Here => f.write_str("local"),
            Self::Behind(address) => write!(f, "local for {address}"),
            Self::Network(address) | Self::Node { node: address, client: None } => address.fmt(f),
            Self::Node { node, client: Some(client) } => write!(f, "{node} for {client}"),
        }
    }
}

impl Address {
    /// Takes the address of a caller that a proved node names, which is on another host if it has an address itself. Of the addresses
    /// of the node's own host nothing follows: a proxy may be there.
    pub(crate) fn behind_node(node: Option<IpAddr>, address: IpAddr) -> Self {
        let address = address.to_canonical();
        let client = Some(address).filter(|address| !address.is_loopback() && !address.is_unspecified());
        match (node, client) {
            (None, None) => Self::Here,
            (None, Some(client)) => Self::Behind(client),
            (Some(node), client) => Self::Node { node, client },
        }
    }

    /// Takes the client's address from a front end of this host: `front_end: {key: …, address: …}`. `is_own_key` must
    /// confirm the master's own local key, because users can put such fields into requests that salt-api passes on.
    pub(super) fn behind_front_end(self, load: &Value, is_own_key: impl FnOnce(&str) -> bool) -> Self {
        let Some(front_end) = load.get("front_end").filter(|_| self == Self::Here) else { return self };
        let address = front_end.get_text("address").and_then(|address| address.parse::<IpAddr>().ok());
        match address.map(|address| address.to_canonical()) {
            Some(address) if front_end.get_text("key").is_some_and(is_own_key) => Self::Behind(address),
            _ => self,
        }
    }

    /// Returns a number for the remote host: its IPv4 address, or its /64 of IPv6, because one host can use all
    /// addresses of a /64.
    pub(crate) fn origin(self) -> Option<u64> {
        let address = match self {
            Self::Here => None,
            Self::Behind(address) | Self::Network(address) => Some(address),
            Self::Node { client, .. } => client,
        };
        Some(match address? {
            IpAddr::V4(address) => u64::from(address.to_bits()),
            IpAddr::V6(address) => address.octets()[..8].iter().fold(0, |bits, byte| bits << 8 | u64::from(*byte)),
        })
    }

    /// Returns the group in which failed log-ins are counted together.
    pub(super) const fn side(self) -> u8 {
        match self {
            Self::Here => 0,
            // One client is one client, whichever front end it uses.
            Self::Behind(_) | Self::Node { client: Some(_), .. } => 1,
            Self::Network(_) => 2,
            Self::Node { client: None, .. } => 3,
        }
    }
}

#[cfg(test)]
mod tests {
    use brine_protocol::value::map;

    use super::*;

    #[test]
    fn hosts_of_one_ipv6_network_are_one() {
        let six = |text: &str| Address::Network(text.parse().unwrap()).origin();
        assert_eq!(six("2001:db8::1"), six("2001:db8::2:3"));
        assert_ne!(six("2001:db8::1"), six("2001:db8:0:1::1"));
    }

    #[test]
    fn a_node_elsewhere_is_not_this_host() {
        let (node, client) = (IpAddr::from([192, 0, 2, 5]), IpAddr::from([192, 0, 2, 7]));
        let own = IpAddr::from([127, 0, 0, 1]);
        let of = |node, address| Address::behind_node(node, address).to_string();
        assert_eq!((of(None, own), of(None, client)), ("local".to_owned(), "local for 192.0.2.7".to_owned()));
        assert_eq!(of(Some(node), client), "192.0.2.5 for 192.0.2.7");
        assert_eq!(of(Some(node), own), "192.0.2.5");
        let there = Address::behind_node(Some(node), own);
        assert_eq!((there.origin(), there == Address::Here), (None, false), "a proxy may be there");
        let client_of = |node| Address::behind_node(node, client);
        assert_eq!(client_of(None).origin(), client_of(Some(node)).origin());
        assert_eq!(client_of(None).side(), client_of(Some(node)).side(), "failures count together");
        // A front end names its clients to its own host's master.
        let load = map([("front_end", map([("key", "good"), ("address", "192.0.2.9")]))]);
        assert_eq!(there.behind_front_end(&load, |_| true), there);
    }

    #[test]
    fn a_front_end_is_believed_that_has_the_key() {
        let load = |key: &str, address: &str| map([("front_end", map([("key", key), ("address", address)]))]);
        let of = |from: Address, load: &Value| from.behind_front_end(load, |key| key == "good");
        let there = IpAddr::from([192, 0, 2, 7]);
        assert_eq!(of(Address::Here, &load("good", "192.0.2.7")), Address::Behind(there));
        assert_eq!(of(Address::Here, &load("good", "::ffff:192.0.2.7")), Address::Behind(there));
        for (key, address) in
            [("", "192.0.2.7"), ("bad", "192.0.2.7"), ("good", ""), ("good", "x"), ("good", "1.2.3.4:5")]
        {
            assert_eq!(of(Address::Here, &load(key, address)), Address::Here, "{key} {address}");
        }
        let network = Address::Network(IpAddr::from([192, 0, 2, 9]));
        assert_eq!(of(network, &load("good", "192.0.2.7")), network);
        assert_eq!(of(Address::Here, &map([("front_end", "good")])), Address::Here);
    }
}
