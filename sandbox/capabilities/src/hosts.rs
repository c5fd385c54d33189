//! Hosts: the forms of names and addresses, and which of them a rule covers. The broker and the executor both use this
//! code, so that their decisions agree.
//!
//! A granted name does not grant the addresses that it resolves to, and a granted address does not grant its names.
//! Every spelling of an address is normalised.

use std::net::IpAddr;

/// Upper bound on the bytes of a host's name (RFC 1035).
const MAX_HOST: usize = 253;
/// Upper bound on the bytes of one of its parts.
const MAX_LABEL: usize = 63;

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

#[cfg(test)]
mod tests {
    use super::*;

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
