//! What the policy says where an answer leads on: the names in a list, the next hop of a redirect.

use brine_protocol::target::Glob;
use brine_sandbox::{Caller, HostError, Names};
use ipnet::IpNet;

use crate::fileclient::Listing;

/// Whether a name in a list is one that this caller may ask for; of a folder: whether anything in it could be.
pub(super) fn allows_file(caller: &Caller, what: Listing, name: &str) -> bool {
    let Names::Only(globs) = &caller.grants.files else { return true };
    let below = matches!(what, Listing::Dirs | Listing::EmptyDirs).then(|| format!("{name}/x"));
    globs.iter().map(|glob| Glob::new(&glob.replace("**", "*"))).any(|glob| {
        glob.matches(name) || below.as_ref().is_some_and(|below| glob.matches(below))
    })
}

/// Whether this caller may connect there, by the name or the address that it says.
pub(super) fn check_host(caller: &Caller, host: &str, port: u16) -> Result<(), HostError> {
    let address = super::network::literal(host);
    let granted = caller.grants.direct.network.iter().any(|rule| {
        let (first, last) = rule.ports;
        let same = match address {
            Some(address) => rule.host.parse::<IpNet>().ok().or_else(|| super::network::literal(&rule.host).map(IpNet::from))
                .is_some_and(|net| net.contains(&address)),
            None => rule.host == host,
        };
        same && first <= port && port <= last
    });
    if granted { Ok(()) } else { Err(HostError::Denied(format!("{host}:{port} was not granted to this module"))) }
}
