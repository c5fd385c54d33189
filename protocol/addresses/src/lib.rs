//! Addresses and networks as Python's `ipaddress` understands and prints them, without I/O and without dependencies. The
//! renderer's filters, its functions and the module `network` share this code, so that a template and a job give the same
//! answer.
//!
//! - [`Address`] an address, alone or with the length of its network's prefix · [`functions`] Salt's functions of them

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub mod functions;

/// An address with the length of its network's prefix, if it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    /// The address.
    pub ip: IpAddr,
    /// The length of the prefix in bits.
    pub length: Option<u8>,
}

impl Address {
    /// Parses `192.0.2.1`, `192.0.2.1/24`, `192.0.2.1/255.255.255.0` (or its inverse, `0.0.0.255`), and the first two of IPv6.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (ip, length) = match text.split_once('/') {
            Some((ip, length)) => (ip.parse::<IpAddr>().ok()?, Some(length)),
            None => (text.parse().ok()?, None),
        };
        let length = match length {
            None => None,
            Some(length) if length.bytes().all(|b| b.is_ascii_digit()) && !length.is_empty() => {
                Some(length.parse().ok().filter(|length| *length <= bits(ip))?)
            }
            Some(mask) if ip.is_ipv4() => {
                let mask = u32::from(mask.parse::<Ipv4Addr>().ok()?);
                match mask.leading_ones() {
                    ones if mask.count_ones() == ones => Some(ones as u8),
                    0 if (!mask).count_ones() == mask.leading_zeros() => Some(mask.leading_zeros() as u8),
                    _ => return None,
                }
            }
            Some(_) => return None,
        };
        Some(Self { ip, length })
    }

    /// The network of an address.
    #[must_use]
    pub fn within(ip: IpAddr, length: u8) -> Self {
        Self { ip, length: Some(length.min(bits(ip))) }
    }

    /// Python's `str` of the address, or of the interface.
    #[must_use]
    pub fn show(&self) -> String {
        match self.length {
            Some(length) => format!("{}/{length}", show(self.ip)),
            None => show(self.ip),
        }
    }

    /// The length of the prefix; that of the address alone if none is written.
    #[must_use]
    pub fn prefix(&self) -> u8 {
        self.length.unwrap_or_else(|| bits(self.ip))
    }

    /// The first address of its network as a number, and how many there are less one.
    #[must_use]
    pub fn network(&self) -> (u128, u128) {
        let host = u32::from(bits(self.ip) - self.prefix());
        let last = 1u128.checked_shl(host).map_or(u128::MAX, |count| count - 1);
        (number(self.ip) & !last, last)
    }

    /// The first address of its network.
    #[must_use]
    pub fn first(&self) -> IpAddr {
        address(self.network().0, self.ip.is_ipv4())
    }

    /// The last address of its network: in IPv4 that of the broadcast.
    #[must_use]
    pub fn last(&self) -> IpAddr {
        let (first, last) = self.network();
        address(first + last, self.ip.is_ipv4())
    }

    /// The mask of its network, as an address.
    #[must_use]
    pub fn mask(&self) -> IpAddr {
        let all = address(u128::MAX, self.ip.is_ipv4());
        address(number(all) & !self.network().1, self.ip.is_ipv4())
    }

    /// Its network as Python prints it: `192.0.2.0/24`.
    #[must_use]
    pub fn show_network(&self) -> String {
        format!("{}/{}", show(self.first()), self.prefix())
    }

    /// Whether bits are set behind the prefix.
    #[must_use]
    pub fn has_host_bits(&self) -> bool {
        self.network().0 != number(self.ip)
    }

    /// Whether an address is in its network.
    #[must_use]
    pub fn contains(&self, ip: IpAddr) -> bool {
        let (first, last) = self.network();
        ip.is_ipv4() == self.ip.is_ipv4() && number(ip) & !last == first
    }
}

/// The bits of an address.
#[must_use]
pub fn bits(ip: IpAddr) -> u8 {
    if ip.is_ipv4() { 32 } else { 128 }
}

/// An address as a number.
#[must_use]
pub fn number(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => u128::from(u32::from(ip)),
        IpAddr::V6(ip) => u128::from(ip),
    }
}

/// The address of a number.
#[must_use]
pub fn address(number: u128, is_v4: bool) -> IpAddr {
    if is_v4 { Ipv4Addr::from(number as u32).into() } else { Ipv6Addr::from(number).into() }
}

/// Python's `str`: an IPv4 address within an IPv6 one is written in hex.
#[must_use]
pub fn show(ip: IpAddr) -> String {
    match ip {
        IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some() => {
            let parts = ip.segments();
            format!("::ffff:{:x}:{:x}", parts[6], parts[7])
        }
        ip => ip.to_string(),
    }
}

/// Whether an address is in one of these networks.
#[must_use]
pub fn among(ip: IpAddr, networks: &[&str]) -> bool {
    networks.iter().filter_map(|network| Address::parse(network)).any(|network| network.contains(ip))
}

/// Python's `is_private`.
#[must_use]
pub fn is_private(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or_else(|| among(ip, PRIVATE), |v4| among(v4.into(), PRIVATE)),
        IpAddr::V4(_) => among(ip, PRIVATE),
    }
}

const PRIVATE: &[&str] = &[
    "0.0.0.0/8",
    "10.0.0.0/8",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/29",
    "192.0.0.170/31",
    "192.0.2.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "240.0.0.0/4",
    "255.255.255.255/32",
    "::1/128",
    "::/128",
    "::ffff:0:0/96",
    "100::/64",
    "2001::/23",
    "2001:2::/48",
    "2001:db8::/32",
    "2001:10::/28",
    "fc00::/7",
    "fe80::/10",
];
