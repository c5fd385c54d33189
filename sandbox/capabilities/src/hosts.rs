//! Hosts: the forms of names and addresses, which of them a rule covers, and addresses that no name may lead to. The
//! broker and the executor both use this code, so that their decisions agree.
//!
//! A granted name does not grant the addresses that it resolves to, and a granted address does not grant its names.
//! Every spelling of an address is normalised.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Upper bound on the bytes of a host's name (RFC 1035).
const MAX_HOST: usize = 253;
/// Upper bound on the bytes of one of its parts.
const MAX_LABEL: usize = 63;

/// The IPv6 address of AWS's metadata service, which has an instance's secrets. Its IPv4 address is link-local.
const METADATA: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);

/// A host in the form that rules are compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NetworkHost {
    /// Lower case, without a trailing dot.
    Name(String),
    /// Never an IPv4 address mapped into IPv6.
    Address(IpAddr),
}

impl std::fmt::Display for NetworkHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(address) => address.fmt(f),
        }
    }
}

impl NetworkHost {
    /// Parses a name or an address (IPv6 with or without brackets). None for anything else. Numbers that only resemble
    /// an address (`127.1`, `0x7f000001`, `2130706433`) are neither.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
        if let Ok(address) = bare.unwrap_or(text).parse::<IpAddr>() {
            return (bare.is_none() || address.is_ipv6()).then(|| Self::Address(plain(address)));
        }
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        let label = |label: &str| {
            let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
            label.len() <= MAX_LABEL
                && ends(label.chars().next())
                && ends(label.chars().next_back())
                && label.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
        };
        // Some resolvers parse a name that ends in a number as an address, in one of many ways.
        let number = |label: &str| label.chars().all(|c| c.is_ascii_digit()) || label.starts_with("0x");
        let fits = name.len() <= MAX_HOST && name.split('.').all(label) && !name.rsplit('.').next().is_some_and(number);
        fits.then_some(Self::Name(name))
    }
}

/// Returns the IPv4 address that an IPv6 address maps, or else the address itself.
#[must_use]
pub fn plain(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(address, IpAddr::V4),
        IpAddr::V4(_) => address,
    }
}

/// Checks for addresses to which no name may lead: this host itself, its links, unspecified and multicast addresses,
/// and clouds' metadata services.
#[must_use]
pub fn inward(address: IpAddr) -> bool {
    match plain(address) {
        IpAddr::V4(v4) => {
            v4.is_loopback() || v4.is_link_local() || v4.is_multicast() || v4.is_broadcast() || v4.octets()[0] == 0
        }
        IpAddr::V6(v6) => {
            let [a, b, c, d, e, f, g, h] = v6.segments();
            let embedded = |high: u16, low: u16| inward(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)).into());
            v6.is_multicast()
                || a & 0xffc0 == 0xfe80
                // Site-local addresses: deprecated, but still of this site.
                || a & 0xffc0 == 0xfec0
                // Unspecified, loopback, and the deprecated `::a.b.c.d`.
                || [a, b, c, d, e, f] == [0; 6]
                || v6 == METADATA
                // Addresses translated to IPv4: RFC 6052, RFC 8215, 6to4.
                || (a, b) == (0x64, 0xff9b) && (c == 1 || embedded(g, h))
                || a == 0x2002 && embedded(b, c)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leads_inward() {
        for address in [
            "127.0.0.1",
            "127.255.0.1",
            "169.254.169.254",
            "0.0.0.0",
            "0.1.2.3",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "::ffff:169.254.169.254",
            "::ffff:127.0.0.1",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::a9fe:a9fe",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::1",
            "fd00:ec2::254",
        ] {
            assert!(inward(address.parse().unwrap()), "{address}");
        }
        for address in
            ["192.0.2.1", "10.0.0.1", "192.168.1.1", "2001:db8::1", "fd00::1", "64:ff9b::c000:201", "2002:c000:201::"]
        {
            assert!(!inward(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn names_and_addresses_are_read() {
        for name in ["repo.example", "a_b", "xn--bcher-kva.example.", "host-1", "1.example"] {
            let plain = name.strip_suffix('.').unwrap_or(name).to_owned();
            assert_eq!(NetworkHost::read(name), Some(NetworkHost::Name(plain)), "{name}");
        }
        for address in ["192.0.2.1", "::ffff:192.0.2.1", "[::ffff:192.0.2.1]"] {
            assert_eq!(
                NetworkHost::read(address),
                Some(NetworkHost::Address("192.0.2.1".parse().unwrap())),
                "{address}"
            );
        }
        for text in [
            "",
            ".",
            "a..b",
            "-a",
            "a-",
            "127.1",
            "2130706433",
            "0x7f000001",
            "1.2.3.0x4",
            "a b",
            "a/b",
            "bücher.example",
            "a\0",
            "[192.0.2.1]",
            "[::1",
        ] {
            assert_eq!(NetworkHost::read(text), None, "{text}");
        }
        assert_eq!(NetworkHost::read(&"a.".repeat(200)), None);
    }
}
