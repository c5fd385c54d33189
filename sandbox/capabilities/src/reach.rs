//! Decides which hosts a module may reach with its grants.

use std::net::IpAddr;

use crate::Capability;
use crate::check::{Least, Refusal};
use crate::forms::malformed;
use crate::grants::{Grant, Grants};
use crate::hosts::{NetworkHost, plain};
use crate::rules::{NetworkRule, one_port, rule_text};
use crate::special::special;

/// Checks whether a host (a name or an address) may be reached at this port: for requests, redirects, and the addresses
/// of a name.
///
/// # Errors
///
/// Why it may not.
pub fn check_host(granted: &Grants, host: &str, port: u16) -> Result<(), Refusal> {
    let host = read(host)?;
    if granted.allows_host(&host.to_string(), port) {
        return Ok(());
    }
    let at = rule_text(&one_port(&host, port));
    Err(not_granted(granted, format!("reach {at}"), &host, port))
}

/// Checks whether a special address, to which a name leads or that a request names, may be reached: only where it was itself granted.
/// Without a port, whether it may be at any.
///
/// # Errors
///
/// Why it may not.
pub fn check_address(granted: &Grants, address: IpAddr, port: Option<u16>) -> Result<(), Refusal> {
    let host = NetworkHost::Address(plain(address));
    let written = host.to_string();
    let allowed = match port {
        Some(port) => granted.allows_host(&written, port),
        None => granted.allows_name(&written),
    };
    if allowed {
        return Ok(());
    }
    match port {
        Some(port) => Err(not_granted(granted, format!("reach {}", rule_text(&one_port(&host, port))), &host, port)),
        // The look-up of a name does not say which port is wanted.
        None => Err(not_granted(granted, format!("reach {written}"), &host, 0).with_least(Least::No)),
    }
}

pub(crate) fn read(host: &str) -> Result<NetworkHost, Refusal> {
    NetworkHost::read(host).ok_or_else(|| malformed("the name of a host", "is neither a name nor an address"))
}

pub(crate) fn not_granted(granted: &Grants, what: String, host: &NetworkHost, port: u16) -> Refusal {
    let mut rules: Vec<_> = granted.rules().cloned().collect();
    rules.push(one_port(host, port));
    rules.sort();
    Refusal::not_granted(what, Capability::Network, Grant::Network(rules))
}

impl Grants {
    /// The granted hosts, those included that plan mode has taken away.
    fn rules(&self) -> impl Iterator<Item = &NetworkRule> {
        self.direct.network.iter().chain(&self.would_reach)
    }

    /// Checks whether this host, a name or an address, may be reached at this port. Redirects are checked like first
    /// requests.
    pub fn allows_host(&self, host: &str, port: u16) -> bool {
        NetworkHost::read(host).is_some_and(|host| self.rules().any(|rule| rule.means(&host) && rule.opens(port)))
    }

    /// Checks whether any port of this host may be reached. If so, its name may be resolved.
    pub fn allows_name(&self, host: &str) -> bool {
        NetworkHost::read(host).is_some_and(|host| self.rules().any(|rule| rule.means(&host)))
    }

    /// Checks whether an address may be reached at every port at which this name may be.
    pub fn allows_as(&self, name: &str, address: IpAddr) -> bool {
        let Some(name) = NetworkHost::read(name) else { return false };
        let address = NetworkHost::Address(plain(address));
        let covers = |(first, last): (u16, u16)| {
            self.rules().any(|rule| rule.means(&address) && rule.ports.0 <= first && last <= rule.ports.1)
        };
        let mut of_name = self.rules().filter(|rule| rule.means(&name)).peekable();
        of_name.peek().is_some() && of_name.all(|rule| covers(rule.ports))
    }

    /// Checks whether a connection to `address`, found by resolving a granted name, is allowed at this port. A name
    /// never grants access to this host itself or its links, unless that address is granted too.
    pub fn allows_resolved(&self, name: &str, address: IpAddr, port: u16) -> bool {
        let address = plain(address);
        let by_name = self.allows_host(name, port) && special(address).is_none();
        by_name || self.rules().any(|rule| rule.means(&NetworkHost::Address(address)) && rule.opens(port))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::read_rule;

    fn rules(texts: &[&str]) -> Grants {
        let mut grants = Grants::default();
        grants.direct.network = texts.iter().map(|text| read_rule(text).unwrap()).collect();
        grants
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
            // Other spellings of 10.0.0.1.
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
    fn names_do_not_lead_to_special_addresses() {
        let grants = rules(&["repo.example:443", "127.0.0.1:443"]);
        let resolved = |address: &str| grants.allows_resolved("repo.example", address.parse().unwrap(), 443);
        for good in ["192.0.2.1", "10.0.0.1", "2001:db8::1", "127.0.0.1", "::ffff:127.0.0.1"] {
            assert!(resolved(good), "{good}");
        }
        // The test of `special` covers all of these ranges.
        for bad in ["127.0.0.2", "169.254.169.254", "::ffff:169.254.169.254", "fd00:ec2::254"] {
            assert!(!resolved(bad), "{bad}");
        }
        assert!(!grants.allows_resolved("other.example", "192.0.2.1".parse().unwrap(), 443));
        assert!(!grants.allows_resolved("repo.example", "192.0.2.1".parse().unwrap(), 80));
    }

    #[test]
    fn an_address_is_reached_as_its_name_is() {
        let address = "192.0.2.1".parse().unwrap();
        for (granted, expect) in [
            (&["a.example:80", "192.0.2.1:80"][..], true),
            (&["a.example:80", "192.0.2.0/24:80-90"], true),
            (&["a.example:80", "a.example:443", "192.0.2.1:80"], false),
            (&["a.example:80", "a.example:443", "192.0.2.1:*"], true),
            (&["a.example:*", "192.0.2.1:80"], false),
            (&["a.example:80"], false),
            (&["192.0.2.1:80"], false),
            (&[], false),
        ] {
            assert_eq!(rules(granted).allows_as("A.example.", address), expect, "{granted:?}");
        }
    }
}
