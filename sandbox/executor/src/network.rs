//! Where a call may connect to: the addresses and networks that were granted, and what the minion found behind granted names in
//! this very call. An address that a name leads to is good for that name's ports only, and never where it leads inward: to this
//! host, its links, nobody, many, or to where clouds keep their secrets.
//!
//! System calls beside the usual: `socket` (TCP), `connect`, `getsockname`, `getpeername`, `getsockopt`, `setsockopt`, `shutdown`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Mutex, PoisonError};

use brine_sandbox_wire::NetworkRule;
use ipnet::IpNet;

/// Addresses of one name that count, and of one call.
const MAX_OF_NAME: usize = 64;
const MAX_OF_CALL: usize = 1_024;

/// Bytes of a name (RFC 1035).
const MAX_NAME: usize = 253;

/// Where AWS keeps an instance's secrets, by IPv6; by IPv4 it is a link-local address.
const METADATA: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);

/// The grants of a call and what it looked up.
#[derive(Debug, Default)]
pub struct Network {
    rules: Vec<Rule>,
    found: Mutex<Vec<(String, IpAddr)>>,
}

#[derive(Debug)]
struct Rule {
    host: Host,
    ports: (u16, u16),
}

#[derive(Debug)]
enum Host {
    Name(String),
    Net(IpNet),
}

impl Rule {
    fn open(&self, port: u16) -> bool {
        (self.ports.0..=self.ports.1).contains(&port)
    }
}

impl Network {
    /// From what was granted.
    #[must_use]
    pub fn new(rules: &[NetworkRule]) -> Self {
        let rules = rules.iter().map(|NetworkRule { host, ports }| {
            let address = host.parse::<IpAddr>().map(|address| IpNet::from(address.to_canonical()));
            let host = address.or_else(|_| host.parse::<IpNet>()).map_or_else(|_| Host::Name(plain(host)), Host::Net);
            Rule { host, ports: *ports }
        });
        Self { rules: rules.collect(), found: Mutex::default() }
    }

    /// Whether there is anything to connect to.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Whether a connection may be made.
    #[must_use]
    pub fn allows(&self, to: SocketAddr) -> bool {
        let (address, port) = (to.ip().to_canonical(), to.port());
        if port == 0 {
            return false;
        }
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        self.rules.iter().filter(|rule| rule.open(port)).any(|rule| match &rule.host {
            Host::Net(net) => net.contains(&address),
            Host::Name(name) => found.iter().any(|(known, behind)| known == name && *behind == address),
        })
    }

    /// What the minion found behind a name. Gives those of its addresses that may be connected to at some port.
    pub fn learn(&self, name: &str, addresses: &[IpAddr]) -> Vec<IpAddr> {
        let name = plain(name);
        let granted = self.rules.iter().any(|rule| matches!(&rule.host, Host::Name(known) if *known == name));
        let mut usable = Vec::new();
        for address in addresses.iter().take(MAX_OF_NAME).map(IpAddr::to_canonical) {
            let literal = self.rules.iter().any(|rule| matches!(&rule.host, Host::Net(net) if net.contains(&address)));
            let by_name = granted && !inward(address);
            if by_name {
                let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
                if found.len() < MAX_OF_CALL
                    && !found.iter().any(|(known, behind)| *known == name && *behind == address)
                {
                    found.push((name.clone(), address));
                }
            }
            if literal || by_name {
                usable.push(address);
            }
        }
        usable
    }
}

/// A name as rules have it.
fn plain(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

/// Whether a text may be a name at all. What ends in a number is an address to some resolvers, in one of many spellings.
#[must_use]
pub fn is_name(text: &str) -> bool {
    let name = text.strip_suffix('.').unwrap_or(text);
    let label = |label: &str| {
        !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let number = |label: &str| {
        label.bytes().all(|byte| byte.is_ascii_digit())
            || label.strip_prefix("0x").or_else(|| label.strip_prefix("0X")).is_some()
    };
    name.len() <= MAX_NAME && name.split('.').all(label) && !name.rsplit('.').next().is_some_and(number)
}

/// Addresses that no name leads to.
fn inward(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => {
            v4.is_loopback() || v4.is_link_local() || v4.is_multicast() || v4.is_broadcast() || v4.octets()[0] == 0
        }
        IpAddr::V6(v6) => {
            let [a, b, c, d, e, f, g, h] = v6.segments();
            let embedded = |high: u16, low: u16| inward(IpAddr::V4(v4(high, low)));
            v6.is_multicast()
                || a & 0xffc0 == 0xfe80
                // Site-local: deprecated, and still of this site.
                || a & 0xffc0 == 0xfec0
                // Nobody, loopback, and the deprecated `::a.b.c.d`.
                || [a, b, c, d, e, f] == [0; 6]
                || v6 == METADATA
                // What is translated to IPv4: RFC 6052, RFC 8215, 6to4.
                || (a, b) == (0x64, 0xff9b) && (c == 1 || embedded(g, h))
                || a == 0x2002 && embedded(b, c)
        }
    }
}

fn v4(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(high) << 16 | u32::from(low))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(rules: &[(&str, (u16, u16))]) -> Network {
        let rules: Vec<_> =
            rules.iter().map(|(host, ports)| NetworkRule { host: (*host).to_owned(), ports: *ports }).collect();
        Network::new(&rules)
    }

    fn allows(network: &Network, to: &str) -> bool {
        network.allows(to.parse().unwrap())
    }

    #[test]
    fn addresses_and_networks() {
        let network = network(&[
            ("10.0.0.0/8", (8000, 8010)),
            ("::1", (80, 80)),
            ("192.0.2.1", (1, u16::MAX)),
            ("fd00::/8", (1, 1)),
        ]);
        for (to, allowed) in [
            ("10.255.0.1:8000", true),
            ("10.255.0.1:8010", true),
            ("10.255.0.1:8011", false),
            ("10.255.0.1:7999", false),
            ("11.0.0.1:8000", false),
            ("[::ffff:10.0.0.1]:8000", true),
            ("[::1]:80", true),
            ("[::1]:81", false),
            ("127.0.0.1:80", false),
            ("192.0.2.1:1", true),
            ("192.0.2.1:0", false),
            ("192.0.2.2:1", false),
            ("[fd12::3]:1", true),
        ] {
            assert_eq!(allows(&network, to), allowed, "{to}");
        }
        assert!(!allows(&Network::default(), "192.0.2.1:80"));
    }

    #[test]
    fn names_by_what_was_found_behind_them() {
        let network = network(&[("repo.example", (443, 443)), ("other.example", (80, 80)), ("127.0.0.1", (443, 443))]);
        assert!(!allows(&network, "192.0.2.1:443"));
        let addresses = ["192.0.2.1", "::ffff:192.0.2.2", "127.0.0.1", "127.0.0.2", "169.254.169.254"];
        let usable = network.learn("Repo.Example.", &addresses.map(|address| address.parse().unwrap()));
        assert_eq!(usable, ["192.0.2.1", "192.0.2.2", "127.0.0.1"].map(|address| address.parse::<IpAddr>().unwrap()));
        for (to, allowed) in [
            ("192.0.2.1:443", true),
            ("[::ffff:192.0.2.1]:443", true),
            ("192.0.2.2:443", true),
            // That name's port only.
            ("192.0.2.1:80", false),
            ("127.0.0.1:443", true),
            ("127.0.0.2:443", false),
            ("169.254.169.254:443", false),
        ] {
            assert_eq!(allows(&network, to), allowed, "{to}");
        }
        // A name that was not granted teaches nothing.
        assert!(network.learn("evil.example", &["192.0.2.9".parse().unwrap()]).is_empty());
        assert!(!allows(&network, "192.0.2.9:443"));
    }

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
    fn names() {
        for name in ["repo.example", "a_b", "xn--bcher-kva.example.", "host-1", "1.example"] {
            assert!(is_name(name), "{name}");
        }
        for text in [
            "",
            ".",
            "a..b",
            "127.1",
            "2130706433",
            "0x7f000001",
            "1.2.3.0x4",
            "a b",
            "a/b",
            "bücher.example",
            "a\0",
            "[::1]",
        ] {
            assert!(!is_name(text), "{text}");
        }
        assert!(!is_name(&"a.".repeat(200)));
    }
}
