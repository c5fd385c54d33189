//! Rules of the capability `network`: hosts and ports.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::hosts::{NetworkHost, plain};

/// Hosts and ports that guests may connect to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NetworkRule {
    /// A name in lower case, an address, or a network (`10.0.0.0/8`, `fd00::/8`).
    pub host: String,
    /// First and last port.
    pub ports: (u16, u16),
}

impl NetworkRule {
    /// Checks whether the rule covers this host: a name by its name, an address by itself or its network.
    #[must_use]
    pub fn means(&self, host: &NetworkHost) -> bool {
        match host {
            NetworkHost::Name(name) => self.host == *name,
            NetworkHost::Address(address) => match self.host.parse::<IpNet>() {
                Ok(net) => net.contains(address),
                Err(_) => self.host.parse::<IpAddr>().is_ok_and(|granted| plain(granted) == *address),
            },
        }
    }

    /// Checks whether the rule covers this port.
    #[must_use]
    pub fn opens(&self, port: u16) -> bool {
        port != 0 && (self.ports.0..=self.ports.1).contains(&port)
    }
}

/// Returns a rule for one host at one port.
pub(crate) fn one_port(host: &NetworkHost, port: u16) -> NetworkRule {
    NetworkRule { host: host.to_string(), ports: (port, port) }
}

/// Writes a rule in the form of the configuration: `repo.example:443`, `[::1]:8000-8010`.
pub fn rule_text(rule: &NetworkRule) -> String {
    let host = if rule.host.contains(':') { format!("[{}]", rule.host) } else { rule.host.clone() };
    match rule.ports {
        (1, u16::MAX) => format!("{host}:*"),
        (first, last) if first == last => format!("{host}:{first}"),
        (first, last) => format!("{host}:{first}-{last}"),
    }
}

/// Parses a rule in the form of the configuration.
///
/// # Errors
///
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
    match NetworkHost::read(host) {
        Some(host) => Ok(NetworkRule { host: host.to_string(), ports }),
        None if !host.is_ascii() => Err("a host's name is ASCII; write an international one as xn--…".to_owned()),
        None => Err(form.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
