//! The minions connected to a master (§8.3): those whose grains name an address with an established TCP connection to
//! the publish port. The protocol has no presence messages, and Python's clients use the same method.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::value::{Value, ValueExt};

/// The remote addresses connected to a port of this host.
#[derive(Debug, Clone, Default)]
pub struct Connected(HashSet<IpAddr>);

impl Connected {
    /// The present connections; none if the system does not list them.
    pub fn to(port: u16) -> Self {
        let mut connected = HashSet::new();
        for file in ["/proc/net/tcp", "/proc/net/tcp6"] {
            let table = std::fs::read_to_string(file).unwrap_or_default();
            connected.extend(table.lines().filter_map(|line| peer(line, port)));
        }
        // a minion connected over loopback runs on this host, and its grains name the host's own addresses
        if connected.iter().any(IpAddr::is_loopback) {
            let trie = std::fs::read_to_string("/proc/net/fib_trie").unwrap_or_default();
            connected.extend(own_addresses(&trie));
        }
        Self(connected)
    }

    /// Whether a minion with these grains is connected.
    pub fn has(&self, grains: &Value) -> bool {
        self.address_of(grains).is_some()
    }

    /// The address by which a minion with these grains is connected.
    pub fn address_of(&self, grains: &Value) -> Option<IpAddr> {
        addresses(grains).find(|address| self.0.contains(address))
    }
}

fn addresses(grains: &Value) -> impl Iterator<Item = IpAddr> {
    ["ipv4", "ipv6"]
        .into_iter()
        .flat_map(|key| grains.get_list(key).unwrap_or_default())
        .filter_map(|address| address.text()?.parse::<IpAddr>().ok())
        .filter(|address| !address.is_loopback() && !address.is_unspecified())
}

/// The remote address of a line of /proc/net/tcp, if it is an established connection to this local port.
fn peer(line: &str, port: u16) -> Option<IpAddr> {
    let mut fields = line.split_whitespace().skip(1);
    let (local, remote, state) = (fields.next()?, fields.next()?, fields.next()?);
    let local_port = u16::from_str_radix(local.rsplit_once(':')?.1, 16).ok()?;
    if state != "01" || local_port != port {
        return None;
    }
    address(remote.rsplit_once(':')?.0)
}

/// An address as the kernel prints it: words of 32 bits in the host's byte order.
fn address(hex: &str) -> Option<IpAddr> {
    let word = |at: usize| u32::from_str_radix(hex.get(at..at + 8)?, 16).ok().map(u32::to_ne_bytes);
    match hex.len() {
        8 => Some(IpAddr::V4(Ipv4Addr::from(word(0)?))),
        32 => {
            let mut bytes = [0; 16];
            for (at, chunk) in bytes.chunks_mut(4).enumerate() {
                chunk.copy_from_slice(&word(at * 8)?);
            }
            let address = Ipv6Addr::from(bytes);
            Some(address.to_ipv4_mapped().map_or(IpAddr::V6(address), IpAddr::V4))
        }
        _ => None,
    }
}

/// The host's own addresses in /proc/net/fib_trie: a `|--` line, then one that says `host LOCAL`.
fn own_addresses(trie: &str) -> Vec<IpAddr> {
    let mut out = Vec::new();
    let mut last = None;
    for line in trie.lines().map(str::trim) {
        if let Some(address) = line.strip_prefix("|-- ") {
            last = address.parse::<IpAddr>().ok();
        } else if line.ends_with("host LOCAL") {
            out.extend(last.filter(|address| !address.is_loopback()));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_of_the_publish_port() {
        // 4505 is 0x1199; the words are in the byte order of the machines that this is tested on
        let line = "   1: 0100007F:1199 0501A8C0:D2F0 01 00000000:00000000 00:00000000 00000000     0        0 1 1";
        assert_eq!(peer(line, 4505), Some("192.168.1.5".parse().unwrap()));
        assert_eq!(peer(line, 4506), None);
        assert_eq!(peer(&line.replace(" 01 ", " 0A "), 4505), None);
        let mapped = "0: 0000000000000000FFFF00000100007F:1199 0000000000000000FFFF00000501A8C0:D2F0 01 x";
        assert_eq!(peer(mapped, 4505), Some("192.168.1.5".parse().unwrap()));
        assert_eq!(peer("sl local_address rem_address st", 4505), None);
        assert_eq!(peer("", 4505), None);
        assert_eq!(peer("0: é:1199 éééé:1 01", 4505), None);
    }

    #[test]
    fn own_addresses_of_the_host() {
        let trie = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 10.0.2.15\n        /32 host LOCAL\n     |-- 10.0.2.255\n        /32 link BROADCAST\n     |-- 127.0.0.1\n        /32 host LOCAL\n";
        assert_eq!(own_addresses(trie), ["10.0.2.15".parse::<IpAddr>().unwrap()]);
    }
}
