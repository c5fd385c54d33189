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
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Here => f.write_str("local"),
            Self::Behind(address) => write!(f, "local for {address}"),
            Self::Network(address) => address.fmt(f),
        }
    }
}

impl Address {
    /// Takes the address of a caller that a proved node names. Of this host's own addresses nothing follows: a proxy may
    /// be there.
    pub(crate) fn behind_node(address: IpAddr) -> Self {
        match address.to_canonical() {
            address if address.is_loopback() || address.is_unspecified() => Self::Here,
            address => Self::Behind(address),
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
        match self {
            Self::Here => None,
            Self::Behind(IpAddr::V4(address)) | Self::Network(IpAddr::V4(address)) => {
                Some(u64::from(address.to_bits()))
            }
            Self::Behind(IpAddr::V6(address)) | Self::Network(IpAddr::V6(address)) => {
                Some(address.octets()[..8].iter().fold(0, |bits, byte| bits << 8 | u64::from(*byte)))
            }
        }
    }

    /// Returns the group in which failed log-ins are counted together.
    pub(super) const fn side(self) -> u8 {
        match self {
            Self::Here => 0,
            Self::Behind(_) => 1,
            Self::Network(_) => 2,
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
