//! `network`: reach other hosts, by names, addresses and ports. Connections are the executor's own; the minion looks up names and sends
//! HTTP requests (`http.rs`).

use std::net::IpAddr;

use ipnet::IpNet;

use crate::hosts::{Host, inward, plain};
pub use crate::http::HttpOp;
use crate::prelude::*;

pub(crate) const DECLARATION: Declaration = Declaration {
    reported_for_all: true,
    ..Declaration::new(
        "network",
        "reach other hosts",
        &[
            "brine:host/http",
            "wasi:sockets/instance-network",
            "wasi:sockets/ip-name-lookup",
            "wasi:sockets/network",
            "wasi:sockets/tcp",
            "wasi:sockets/tcp-create-socket",
            "wasi:sockets/udp",
            "wasi:sockets/udp-create-socket",
        ],
        Kind::Network,
    )
};

/// Hosts and ports that guests may connect to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NetworkRule {
    /// A name in lower case, an address, or a network (`10.0.0.0/8`, `fd00::/8`).
    pub host: String,
    /// First and last port.
    pub ports: (u16, u16),
}

/// `wasi:sockets/ip-name-lookup`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum NetworkOp {
    /// Answered by an array of addresses as text. The executor lets the call connect to these and no others.
    Resolve {
        /// A name.
        name: String,
    },
}

impl Operation for NetworkOp {
    const INTERFACE: &'static str = "wasi:sockets/ip-name-lookup";

    fn size(&self) -> Size {
        let Self::Resolve { name } = self;
        Size::names(name.len())
    }

    fn check(self, _: &Asker<'_>, granted: &Grants) -> Result<Self, Refusal> {
        let Self::Resolve { name } = self;
        let host = read(&name)?;
        let name = host.to_string();
        if granted.allows_name(&name) {
            return Ok(Self::Resolve { name });
        }
        Err(not_granted(granted, format!("look up {name}"), &host, 443))
    }
}

/// Checks that a host, a name or an address, may be reached at this port: of a request, of a redirect, of an address behind a name.
///
/// # Errors
/// Why it may not.
pub fn check_host(granted: &Grants, host: &str, port: u16) -> Result<(), Refusal> {
    let host = read(host)?;
    if granted.allows_host(&host.to_string(), port) {
        return Ok(());
    }
    let at = rule_text(&one_port(&host, port));
    Err(not_granted(granted, format!("reach {at}"), &host, port))
}

fn read(host: &str) -> Result<Host, Refusal> {
    Host::read(host).ok_or_else(|| malformed("the name of a host", "is neither a name nor an address"))
}

fn not_granted(granted: &Grants, what: String, host: &Host, port: u16) -> Refusal {
    let mut rules = granted.direct.network.clone();
    rules.push(one_port(host, port));
    rules.sort();
    Refusal::not_granted(what, Capability::Network, Grant::Network(rules))
}

/// A rule for one host at one port.
pub(crate) fn one_port(host: &Host, port: u16) -> NetworkRule {
    NetworkRule { host: host.to_string(), ports: (port, port) }
}

impl Grants {
    /// Whether this host, a name or an address, may be reached at this port. A redirect goes through here as the first request.
    pub fn allows_host(&self, host: &str, port: u16) -> bool {
        Host::read(host)
            .is_some_and(|host| self.direct.network.iter().any(|rule| rule.means(&host) && rule.opens(port)))
    }

    /// Whether any port of this host may be reached: then its name may be resolved.
    pub fn allows_name(&self, host: &str) -> bool {
        Host::read(host).is_some_and(|host| self.direct.network.iter().any(|rule| rule.means(&host)))
    }

    /// Whether `address`, which a granted name led to, may be connected to at this port. A name never leads to this host
    /// itself or its links, except where that address is granted too.
    pub fn allows_resolved(&self, name: &str, address: IpAddr, port: u16) -> bool {
        let address = plain(address);
        let by_name = self.allows_host(name, port) && !inward(address);
        by_name || self.direct.network.iter().any(|rule| rule.means(&Host::Address(address)) && rule.opens(port))
    }
}

/// A rule as the owner writes it: `repo.example:443`, `[::1]:8000-8010`.
pub fn rule_text(rule: &NetworkRule) -> String {
    let host = if rule.host.contains(':') { format!("[{}]", rule.host) } else { rule.host.clone() };
    match rule.ports {
        (1, u16::MAX) => format!("{host}:*"),
        (first, last) if first == last => format!("{host}:{first}"),
        (first, last) => format!("{host}:{first}-{last}"),
    }
}

/// Reads a rule as the owner writes it. The error says what is wrong with it.
///
/// # Errors
/// What is wrong with it, for the owner.
pub fn read_rule(text: &str) -> Result<NetworkRule, String> {
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
        // All of them are in the test of `inward`.
        for bad in ["127.0.0.2", "169.254.169.254", "::ffff:169.254.169.254", "fd00:ec2::254"] {
            assert!(!resolved(bad), "{bad}");
        }
        assert!(!grants.allows_resolved("other.example", "192.0.2.1".parse().unwrap(), 443));
        assert!(!grants.allows_resolved("repo.example", "192.0.2.1".parse().unwrap(), 80));
    }
}
