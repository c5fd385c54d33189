//! Targets by address: `10.0.0.0/8`, `fd00::/8`, `192.0.2.7`.

use std::net::{IpAddr, Ipv4Addr};

use ipnet::{IpNet, Ipv4Net};

use brine_values::{Value, ValueExt};

/// An address or a network, as Python's `ipaddress` reads them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IpCidr {
    Address(IpAddr),
    Network(IpNet),
}

impl IpCidr {
    pub(super) fn new(text: &str) -> Result<Self, &'static str> {
        if let Ok(address) = text.parse() {
            return Ok(Self::Address(address));
        }
        let network = with_length(text).or_else(|| with_mask(text)).ok_or("it is neither an address nor a network")?;
        if network.addr() != network.network() {
            return Err("it has host bits set");
        }
        Ok(Self::Network(network))
    }

    /// The grain to compare with.
    pub(super) fn key(&self) -> &'static str {
        let is_v4 = match self {
            Self::Address(address) => address.is_ipv4(),
            Self::Network(network) => network.addr().is_ipv4(),
        };
        if is_v4 { "ipv4" } else { "ipv6" }
    }

    /// Whether one of the addresses in the grains `ipv4` or `ipv6` matches.
    pub(super) fn matches(&self, grains: &Value) -> bool {
        let Some(own) = grains.get(self.key()) else { return false };
        // An invalid address in the grain is ignored. With such an address, Salt's minion would match no target, and
        // its master no minion.
        let mut addresses = match own {
            Value::Array(items) => items.as_slice(),
            one => std::slice::from_ref(one),
        }
        .iter()
        .filter_map(|own| own.text()?.parse::<IpAddr>().ok());
        match self {
            Self::Address(address) => addresses.any(|own| own == *address),
            Self::Network(network) => addresses.any(|own| network.contains(&own)),
        }
    }
}

/// Parses `10.0.0.0/8`; Python also accepts `/08`.
fn with_length(text: &str) -> Option<IpNet> {
    let (address, length) = text.split_once('/')?;
    if !length.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    IpNet::new(address.parse().ok()?, length.parse().ok()?).ok()
}

/// Parses `10.0.0.0/255.0.0.0`, or with a host mask `10.0.0.0/0.255.255.255`.
fn with_mask(text: &str) -> Option<IpNet> {
    let (address, mask) = text.split_once('/')?;
    let (address, mask): (Ipv4Addr, Ipv4Addr) = (address.parse().ok()?, mask.parse().ok()?);
    let inverse = Ipv4Addr::from(!u32::from(mask));
    Ipv4Net::with_netmask(address, mask).or_else(|_| Ipv4Net::with_netmask(address, inverse)).ok().map(IpNet::V4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_values::{list, map};

    #[test]
    fn addresses_and_networks() {
        let grains =
            map([("ipv4", list(["10.1.2.3", "127.0.0.1"])), ("ipv6", list(["::1", "fd00::7"])), ("os", list(["x"]))]);
        for (text, expected) in [
            ("10.1.2.3", Some(true)),
            ("10.1.2.4", Some(false)),
            ("10.0.0.0/8", Some(true)),
            ("10.0.0.0/255.0.0.0", Some(true)),
            ("10.0.0.0/0.255.255.255", Some(true)),
            ("192.168.0.0/16", Some(false)),
            ("0.0.0.0/0", Some(true)),
            ("fd00::/8", Some(true)),
            ("FD00:0::7", Some(true)),
            ("2001:db8::/32", Some(false)),
            ("10.1.0.0/8", None),
            ("10.1.2.3/33", None),
            ("web1", None),
            ("", None),
        ] {
            assert_eq!(IpCidr::new(text).ok().map(|cidr| cidr.matches(&grains)), expected, "{text}");
        }
        assert!(!IpCidr::new("10.0.0.0/8").unwrap().matches(&map([("os", "x")])));
    }
}
