//! Special addresses: those to which no name may lead, because whoever answers for the name chooses the address.
//!
//! The broker and the executor both go by this list. The addresses of this host's own interfaces are special too, and are not in it: the
//! broker reads them when it looks a name up.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Addresses where clouds serve credentials to their machines.
const METADATA: &[IpAddr] = &[
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
];

/// Returns the address that a connection to this one may end at: the IPv4 address that an IPv6 address contains, or else the address itself.
#[must_use]
pub fn behind(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else { return address };
    let v4 = |high: u16, low: u16| IpAddr::V4(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)));
    match v6.segments() {
        // `::` and `::1` are addresses of their own.
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => address,
        // Compatible, mapped, translated (RFC 2765, RFC 6052, RFC 8215), 6to4.
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, .., high, low]
        | [0x2002, high, low, ..] => v4(high, low),
        _ => address,
    }
}

/// Says of which special kind an address is; none for an ordinary address.
#[must_use]
pub fn special(address: IpAddr) -> Option<&'static str> {
    if METADATA.contains(&behind(address)) {
        return Some("where a cloud keeps this machine's credentials");
    }
    match behind(address) {
        IpAddr::V4(v4) => special_v4(v4),
        IpAddr::V6(v6) => special_v6(v6),
    }
    .or(match address {
        IpAddr::V6(v6) => special_form(v6),
        IpAddr::V4(_) => None,
    })
}

fn special_v4(v4: Ipv4Addr) -> Option<&'static str> {
    let [a, b, ..] = v4.octets();
    if v4.is_loopback() {
        Some("this host itself")
    } else if a == 0 {
        Some("no address of a host")
    } else if (a, b) == (169, 254) {
        Some("link-local, where a cloud keeps this machine's credentials")
    } else if v4.is_multicast() {
        Some("a multicast group")
    } else if a >= 240 {
        Some("broadcast or reserved")
    } else {
        None
    }
}

fn special_v6(v6: Ipv6Addr) -> Option<&'static str> {
    let [first, ..] = v6.segments();
    if v6.is_loopback() {
        Some("this host itself")
    } else if v6.is_unspecified() {
        Some("no address of a host")
    } else if v6.is_multicast() {
        Some("a multicast group")
    } else if matches!(first & 0xffc0, 0xfe80 | 0xfec0) {
        // Site-local addresses are deprecated, but still of this site.
        Some("link-local")
    } else {
        None
    }
}

/// Forms that nobody can judge by the IPv4 address in them, whatever it is.
fn special_form(v6: Ipv6Addr) -> Option<&'static str> {
    match v6.segments() {
        [0, 0, 0, 0, 0, 0, ..] => Some("an IPv4 address in a form that is out of use"),
        // Where in it the IPv4 address is, each site says for itself (RFC 8215).
        [0x64, 0xff9b, 1, ..] => Some("translated to IPv4 within this site"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_special() {
        for address in [
            "127.0.0.1",
            "127.255.0.1",
            "169.254.169.254",
            "168.63.129.16",
            "100.100.100.200",
            "192.0.0.192",
            "0.0.0.0",
            "0.1.2.3",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "::ffff:169.254.169.254",
            "::ffff:127.0.0.1",
            "::ffff:168.63.129.16",
            "::127.0.0.1",
            "::192.0.2.1",
            "::ffff:0:127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b::a83f:8110",
            "64:ff9b:1::a9fe:a9fe",
            "64:ff9b:1:c000:2:100::",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::1",
            "2002:f000:1::",
            "fd00:ec2::254",
            "fd20:ce::254",
        ] {
            assert!(special(address.parse().unwrap()).is_some(), "{address}");
        }
        for address in [
            "192.0.2.1",
            "10.0.0.1",
            "192.168.1.1",
            "100.100.100.201",
            "2001:db8::1",
            "fd00::1",
            "::ffff:192.0.2.1",
            "64:ff9b::c000:201",
            "2002:c000:201::",
        ] {
            assert_eq!(special(address.parse().unwrap()), None, "{address}");
        }
    }

    #[test]
    fn what_is_behind_an_address() {
        let behind = |address: &str| super::behind(address.parse().unwrap()).to_string();
        for same in ["192.0.2.1", "2001:db8::1", "::", "::1"] {
            assert_eq!(behind(same), same);
        }
        for other in ["::ffff:192.0.2.1", "::192.0.2.1", "::ffff:0:192.0.2.1", "64:ff9b::c000:201", "2002:c000:201::9"]
        {
            assert_eq!(behind(other), "192.0.2.1", "{other}");
        }
    }
}
