//! Hosts and ports: how the owner writes them, and whether one of them is meant.
//!
//! A name is granted as a name: an address that somebody finds behind it is not granted by that, and a name is not granted by
//! the address behind it. Every way to write an address becomes one.

use std::net::{IpAddr, Ipv4Addr};

use brine_sandbox_wire::NetworkRule;
use ipnet::IpNet;

use super::Grants;

/// Bytes of a host's name (RFC 1035).
const MAX_HOST: usize = 253;
/// Bytes of one of its parts.
const MAX_LABEL: usize = 63;

/// A host as rules are compared with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// Lower case, no dot behind it.
    Name(String),
    /// Never an IPv4 address in IPv6's clothes.
    Address(IpAddr),
}

impl std::fmt::Display for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(address) => address.fmt(f),
        }
    }
}

impl Host {
    /// Reads a name or an address (IPv6 with or without brackets). None for what is neither; numbers that only look like an
    /// address (`127.1`, `0x7f000001`, `2130706433`) are neither.
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
        // What ends in a number is read as an address by some resolver, in one of many ways.
        let number = |label: &str| {
            label.chars().all(|c| c.is_ascii_digit())
                || label.strip_prefix("0x").is_some_and(|rest| rest.chars().all(|c| c.is_ascii_hexdigit()))
        };
        let fits = name.len() <= MAX_HOST && name.split('.').all(label) && !name.rsplit('.').next().is_some_and(number);
        fits.then_some(Self::Name(name))
    }
}

/// The IPv4 address that an IPv6 one stands for; else itself.
pub fn plain(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(address, IpAddr::V4),
        IpAddr::V4(_) => address,
    }
}

/// Addresses that a name never leads to, whoever answers for it: this host itself, its links, nobody, and many.
fn inward(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            v4.is_loopback()
                || v4.is_link_local()
                || v4.is_unspecified()
                || v4.is_multicast()
                || v4.is_broadcast()
                || v4.octets()[0] == 0
        }
        IpAddr::V6(v6) => {
            let [first, ..] = v6.segments();
            // The deprecated form `::a.b.c.d`, and addresses that are translated to IPv4 ones (RFC 6052).
            let low = v6.segments()[..6] == [0; 6];
            let translated = v6.segments()[..6] == [0x64, 0xff9b, 0, 0, 0, 0];
            let [.., a, b, c, d] = v6.octets();
            v6.is_loopback()
                || v6.is_unspecified()
                || v6.is_multicast()
                || first & 0xffc0 == 0xfe80
                || low
                || translated && inward(IpAddr::V4(Ipv4Addr::new(a, b, c, d)))
        }
    }
}

/// Whether the rule means this host.
fn means(rule: &NetworkRule, host: &Host) -> bool {
    match host {
        Host::Name(name) => rule.host == *name,
        Host::Address(address) => match rule.host.parse::<IpNet>() {
            Ok(net) => net.contains(address),
            Err(_) => rule.host.parse::<IpAddr>().is_ok_and(|granted| plain(granted) == *address),
        },
    }
}

fn open(rule: &NetworkRule, port: u16) -> bool {
    (rule.ports.0..=rule.ports.1).contains(&port)
}

impl Grants {
    /// Whether this host, a name or an address, may be reached at this port. A redirect goes through here as the first request.
    pub fn allows_host(&self, host: &str, port: u16) -> bool {
        Host::read(host)
            .is_some_and(|host| self.direct.network.iter().any(|rule| means(rule, &host) && open(rule, port)))
    }

    /// Whether any port of this host may be reached: then its name may be resolved.
    pub fn allows_name(&self, host: &str) -> bool {
        Host::read(host).is_some_and(|host| self.direct.network.iter().any(|rule| means(rule, &host)))
    }

    /// Whether `address`, which a granted name led to, may be connected to at this port. A name never leads to this host
    /// itself or its links, except where that address is granted too.
    pub fn allows_resolved(&self, name: &str, address: IpAddr, port: u16) -> bool {
        let address = plain(address);
        let by_name = self.allows_host(name, port) && !inward(address);
        by_name || self.direct.network.iter().any(|rule| means(rule, &Host::Address(address)) && open(rule, port))
    }
}

/// A rule as the owner writes it: `repo.example:443`, `[::1]:8000-8010`.
pub(crate) fn rule_text(rule: &NetworkRule) -> String {
    let host = if rule.host.contains(':') { format!("[{}]", rule.host) } else { rule.host.clone() };
    match rule.ports {
        (1, u16::MAX) => format!("{host}:*"),
        (first, last) if first == last => format!("{host}:{first}"),
        (first, last) => format!("{host}:{first}-{last}"),
    }
}

/// Reads a rule as the owner writes it. The error says what is wrong with it.
pub(crate) fn read_rule(text: &str) -> Result<NetworkRule, String> {
    let form = "host:port as in \"repo.example:443\", \"10.0.0.0/8:8000-8010\", \"[::1]:80\" or \"name:*\" is expected";
    let (host, ports) = text.rsplit_once(':').ok_or(form)?;
    if host.contains(':') && !(host.starts_with('[') && host.ends_with(']')) {
        return Err(format!("{form}; an IPv6 address stands in brackets"));
    }
    let port = |text: &str| text.parse::<u16>().ok().filter(|port| *port > 0 && !text.starts_with(['+', '0']));
    let ports = match ports.split_once('-') {
        _ if ports == "*" => Some((1, u16::MAX)),
        Some((first, last)) => port(first).zip(port(last)).filter(|(first, last)| first <= last),
        None => port(ports).map(|port| (port, port)),
    };
    let ports =
        ports.ok_or("a port from 1 to 65535, a range of ports as in 8000-8010, or * is expected behind the colon")?;
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    if host.contains('/') {
        let net: IpNet = bare.unwrap_or(host).parse().map_err(|_| form)?;
        if net != net.trunc() {
            return Err(format!("{net} is an address within a network; the network is {}", net.trunc()));
        }
        if matches!(net, IpNet::V6(v6) if v6.network().to_ipv4_mapped().is_some()) {
            return Err("an IPv4 network is written as one".to_owned());
        }
        return Ok(NetworkRule { host: net.to_string(), ports });
    }
    match Host::read(host) {
        Some(host) => Ok(NetworkRule { host: host.to_string(), ports }),
        None if !host.is_ascii() => Err("a host's name is ASCII; write an international one as xn--…".to_owned()),
        None => Err(form.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(texts: &[&str]) -> Grants {
        let mut grants = Grants::default();
        grants.direct.network = texts.iter().map(|text| read_rule(text).unwrap()).collect();
        grants
    }

    #[test]
    fn rules_read_and_written() {
        for (text, expect) in [
            ("repo.example:443", "repo.example:443"),
            ("Repo.Example.:443", "repo.example:443"),
            ("10.0.0.0/8:8000-8010", "10.0.0.0/8:8000-8010"),
            ("[::1]:80", "[::1]:80"),
            ("[0:0:0:0:0:0:0:1]:80", "[::1]:80"),
            ("[fd00::/8]:1-65535", "[fd00::/8]:*"),
            ("[::ffff:10.0.0.1]:80", "10.0.0.1:80"),
            ("name:*", "name:*"),
            ("a_b.example:1", "a_b.example:1"),
        ] {
            let rule = read_rule(text).unwrap();
            assert_eq!(rule_text(&rule), expect);
            assert_eq!(read_rule(expect).unwrap(), rule);
        }
        for bad in [
            "",
            "repo.example",
            ":443",
            "repo.example:",
            "repo.example:0",
            "repo.example:65536",
            "repo.example:08",
            "repo.example:+8",
            "repo.example:9-8",
            "repo.example:1-",
            "::1:80",
            "fd00::/8:80",
            "[::1]",
            "[10.0.0.1]:80",
            "10.1.2.3/8:80",
            "[fd00::1/8]:80",
            "10.0.0.0/33:80",
            "[::ffff:10.0.0.0/104]:80",
            "*:443",
            "*.example:443",
            "repo..example:443",
            "-a:443",
            "a b:443",
            "a\0:443",
            "bücher.example:443",
            "127.1:80",
            "0x7f.0.0.1:80",
            "2130706433:80",
            "0177.0.0.1:80",
            "https://repo.example:443",
            "user@repo.example:443",
            "1.2.3.4.5:80",
        ] {
            assert!(read_rule(bad).is_err(), "{bad}: {:?}", read_rule(bad));
        }
        assert_eq!(
            read_rule("10.1.2.3/8:80").unwrap_err(),
            "10.1.2.3/8 is an address within a network; the network is 10.0.0.0/8"
        );
    }

    #[test]
    fn hosts_are_compared_in_one_form() {
        let grants = rules(&["repo.example:443", "10.0.0.0/8:8000-8010", "[::1]:80", "192.0.2.1:*"]);
        for (host, port, expect) in [
            ("repo.example", 443, true),
            ("REPO.example.", 443, true),
            ("repo.example", 444, false),
            ("xrepo.example", 443, false),
            ("repo.example.evil", 443, false),
            ("sub.repo.example", 443, false),
            ("repo.example..", 443, false),
            ("10.255.0.1", 8000, true),
            ("10.255.0.1", 8010, true),
            ("10.255.0.1", 8011, false),
            ("11.0.0.1", 8000, false),
            ("::ffff:10.0.0.1", 8000, true),
            ("[::ffff:a00:1]", 8000, true),
            ("::1", 80, true),
            ("[::1]", 80, true),
            ("[192.0.2.1]", 80, false),
            ("192.0.2.1", 1, true),
            ("192.0.2.1", 0, false),
            // Other ways to write 10.0.0.1.
            ("10.1", 8000, false),
            ("167772161", 8000, false),
            ("0xa000001", 8000, false),
            ("0x0a.0.0.1", 8000, false),
            ("012.0.0.1", 8000, false),
            ("", 443, false),
        ] {
            assert_eq!(grants.allows_host(host, port), expect, "{host}:{port}");
        }
        assert!(grants.allows_name("repo.example") && !grants.allows_name("other.example"));
    }

    #[test]
    fn names_do_not_lead_inward() {
        let grants = rules(&["repo.example:443", "127.0.0.1:443"]);
        let resolved = |address: &str| grants.allows_resolved("repo.example", address.parse().unwrap(), 443);
        for good in ["192.0.2.1", "10.0.0.1", "2001:db8::1", "127.0.0.1", "::ffff:127.0.0.1"] {
            assert!(resolved(good), "{good}");
        }
        for bad in [
            "127.0.0.2",
            "169.254.169.254",
            "0.0.0.0",
            "0.1.2.3",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "fe80::1",
            "ff02::1",
            "::ffff:169.254.169.254",
            "::127.0.0.2",
            "64:ff9b::7f00:2",
            "64:ff9b::a9fe:a9fe",
        ] {
            assert!(!resolved(bad), "{bad}");
        }
        assert!(!grants.allows_resolved("other.example", "192.0.2.1".parse().unwrap(), 443));
        assert!(!grants.allows_resolved("repo.example", "192.0.2.1".parse().unwrap(), 80));
    }
}
