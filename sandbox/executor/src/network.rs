//! The addresses that a call may connect to: granted addresses and networks, and the addresses of granted names that
//! the minion resolved during this call. An address of a name is allowed only at that name's ports. It is never allowed
//! if it is special: this host, a link-local address, an unspecified or multicast address, or an address where clouds
//! serve credentials. The addresses of this host's interfaces are the minion's to leave out.
//!
//! System calls beside the usual: `socket` (TCP), `connect`, `getsockname`, `getpeername`, `getsockopt`, `setsockopt`,
//! `shutdown`.

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use brine_sandbox_wire::hosts::{NetworkHost, plain};
use brine_sandbox_wire::special::special;
use brine_sandbox_wire::{LogLevel, NetworkRule, Wanted};
use wasmtime_wasi::sockets::SocketAddrUse;

use crate::line::Line;

/// Upper bounds on the addresses of one name and of one call.
const MAX_OF_NAME: usize = 64;
const MAX_OF_CALL: usize = 1_024;

/// The network grants of a call and the names that it resolved.
#[derive(Debug, Default)]
pub struct Network {
    rules: Vec<NetworkRule>,
    found: Mutex<Vec<(String, IpAddr)>>,
}

impl Network {
    /// From the granted rules.
    #[must_use]
    pub fn new(rules: &[NetworkRule]) -> Self {
        Self { rules: rules.to_vec(), found: Mutex::default() }
    }

    /// Whether no connection is possible.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Whether a connection to this address is allowed.
    #[must_use]
    pub fn allows(&self, to: SocketAddr) -> bool {
        let address = plain(to.ip());
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let behind = |rule: &NetworkRule| found.iter().any(|(name, found)| *name == rule.host && *found == address);
        self.rules
            .iter()
            .filter(|rule| rule.opens(to.port()))
            .any(|rule| rule.means(&NetworkHost::Address(address)) || behind(rule))
    }

    /// Records the addresses that the minion found for a name. Returns those that the guest may connect to at some
    /// port.
    pub fn learn(&self, name: &str, addresses: &[IpAddr]) -> Vec<IpAddr> {
        let Some(NetworkHost::Name(name)) = NetworkHost::read(name) else { return Vec::new() };
        let host = NetworkHost::Name(name.clone());
        let granted = self.rules.iter().any(|rule| rule.means(&host));
        let mut usable = Vec::new();
        for address in addresses.iter().take(MAX_OF_NAME).map(|address| plain(*address)) {
            let literal = self.rules.iter().any(|rule| rule.means(&NetworkHost::Address(address)));
            let by_name = granted && special(address).is_none();
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

/// The line of the log about a refused connection.
pub fn not_granted(to: SocketAddr, module: &str) -> String {
    format!(
        "a connection to {to} was not granted to module {module}; the owner of this host grants it by this line under sandbox: modules: \
         in the minion's configuration: {module}: {{network: [\"{to}\"]}}"
    )
}

/// Whether a guest may do this with this address.
pub fn check(
    network: Arc<Network>,
    line: Arc<Line>,
    module: Arc<str>,
) -> impl Fn(SocketAddr, SocketAddrUse) -> Pin<Box<dyn Future<Output = bool> + Send + Sync>> + Send + Sync + 'static {
    move |address, wanted| {
        let allowed = match wanted {
            // Before a connection is made it is asked for this.
            SocketAddrUse::TcpBind => address.ip().is_unspecified() && address.port() == 0,
            SocketAddrUse::TcpConnect => {
                let allowed = network.allows(address);
                if !allowed {
                    line.log(LogLevel::Warning, &not_granted(address, &module));
                    line.refused(Wanted::Connection { to: address });
                }
                allowed
            }
            _ => false,
        };
        Box::pin(async move { allowed })
    }
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
            // Only the ports of that name are allowed.
            ("192.0.2.1:80", false),
            ("127.0.0.1:443", true),
            ("127.0.0.2:443", false),
            ("169.254.169.254:443", false),
        ] {
            assert_eq!(allows(&network, to), allowed, "{to}");
        }
        // Addresses of a name that was not granted are not recorded.
        assert!(network.learn("evil.example", &["192.0.2.9".parse().unwrap()]).is_empty());
        assert!(!allows(&network, "192.0.2.9:443"));
    }
}
