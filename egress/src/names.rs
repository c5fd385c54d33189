//! Decides which addresses a module may connect to. A name is resolved once, here, so that the connection goes to the
//! addresses that were checked.
//!
//! The owner of a name decides which addresses it resolves to. A name may therefore lead to this host, by loopback or by
//! an address of its interfaces, to a link-local neighbour or to the address where clouds serve credentials. A module
//! reaches such an address only if its grant names the address itself.

use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use brine_protocol::value::{Value, list};
use brine_sandbox::special::{behind, special};
use brine_sandbox::{Broker, Caller, HostError, NetworkOp, tell_of_special};
use futures_util::future::BoxFuture;
use tokio::sync::Semaphore;

use crate::netlink::OwnAddresses;

/// Upper bound on look-ups at once. A look-up in the system's resolver cannot be cancelled, so one that timed out
/// counts until it ends.
const LOOKUPS: usize = 16;
/// Time for one look-up. The system's resolver waits 5 s for each of its servers.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(10);
/// Upper bound on the addresses of one name that are considered.
const MAX_ADDRESSES: usize = 32;
/// Upper bound on the bytes of a name, from DNS.
const MAX_NAME: usize = 253;

/// What a look-up found.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// All addresses of the name.
    pub addresses: Vec<IpAddr>,
    /// Those of this host, as they are now: interfaces come and go.
    pub own: OwnAddresses,
}

/// Resolves names.
pub trait Resolver: Send + Sync + 'static {
    /// Looks a name up.
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Found>>;
}

/// The system's resolver.
#[derive(Debug)]
pub struct SystemResolver(Arc<Semaphore>);

impl Default for SystemResolver {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(LOOKUPS)))
    }
}

impl Resolver for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Found>> {
        Box::pin(async move {
            let place = Arc::clone(&self.0).acquire_owned().await.map_err(io::Error::other)?;
            let name = name.to_owned();
            let lookup = tokio::task::spawn_blocking(move || {
                let _place = place;
                let addresses = (name.as_str(), 0).to_socket_addrs()?.map(|address| address.ip()).collect();
                // Without them, it cannot be judged where the name leads.
                let own =
                    OwnAddresses::read().map_err(|e| io::Error::other(format!("no addresses of this host: {e}")))?;
                Ok(Found { addresses, own })
            });
            lookup.await.map_err(io::Error::other)?
        })
    }
}

/// Performs an operation of `wasi:sockets/ip-name-lookup`: returns an array of addresses as text.
///
/// # Errors
/// The name has no address, or none that this caller may reach.
pub async fn resolve(
    broker: &dyn Broker,
    resolver: &dyn Resolver,
    caller: &Caller,
    op: NetworkOp,
) -> Result<Value, HostError> {
    let NetworkOp::Resolve { name } = op;
    let addresses = addresses(broker, resolver, caller, &name, None).await?;
    Ok(list(addresses.iter().map(ToString::to_string)))
}

/// Returns the addresses that `name`, a host name or an address, stands for and that this caller may reach on `port`;
/// without a port, on any port.
pub(crate) async fn addresses(
    broker: &dyn Broker,
    resolver: &dyn Resolver,
    caller: &Caller,
    name: &str,
    port: Option<u16>,
) -> Result<Vec<IpAddr>, HostError> {
    if let Some(literal) = literal(name) {
        return match why_not_special(caller, literal, port) {
            Some(why) => {
                tell_of_special(broker, caller, literal, port);
                Err(HostError::Denied(format!("{name} {why}")))
            }
            None => Ok(vec![literal]),
        };
    }
    if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(HostError::Failed(format!("{name:?} is no host name")));
    }
    let failed = |why: String| HostError::Failed(format!("{name} cannot be resolved: {why}"));
    let Found { addresses, own } = match tokio::time::timeout(LOOKUP_TIMEOUT, resolver.resolve(name)).await {
        Err(_) => return Err(failed(format!("no answer within {LOOKUP_TIMEOUT:?}"))),
        Ok(found) => found.map_err(|e| failed(e.to_string()))?,
    };
    let mut good = Vec::new();
    let mut refused = None;
    for address in addresses.into_iter().take(MAX_ADDRESSES).map(|address| address.to_canonical()) {
        let why = why_not_special(caller, address, port).or_else(|| why_not_own(caller, name, address, &own, port));
        match why {
            None if !good.contains(&address) => good.push(address),
            None => {}
            Some(why) => refused = Some((address, format!("{name} resolves to {address}, which {why}"))),
        }
    }
    match refused {
        _ if !good.is_empty() => Ok(good),
        Some((address, why)) => {
            tell_of_special(broker, caller, address, port);
            Err(HostError::Denied(why))
        }
        None => Err(failed("it has no address".to_owned())),
    }
}

/// Parses an address with or without brackets.
fn literal(host: &str) -> Option<IpAddr> {
    let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    inner.parse().ok().map(|address: IpAddr| address.to_canonical())
}

/// Says why this caller may not reach a special address; none if it may, or if the address is an ordinary one.
fn why_not_special(caller: &Caller, address: IpAddr, port: Option<u16>) -> Option<String> {
    let special = special(address)?;
    let written = address.to_string();
    let by_address = match port {
        Some(port) => caller.grants.allows_host(&written, port),
        None => caller.grants.allows_name(&written),
    };
    (!by_address).then(|| format!("is {special}: that is reached only where the address itself was granted"))
}

/// Says the same of an address of this host's interfaces. It looks like an ordinary one to an executor, which lets a module connect to it at
/// every port of the name: so without a port, the address has to be granted at each of them.
fn why_not_own(caller: &Caller, name: &str, address: IpAddr, own: &OwnAddresses, port: Option<u16>) -> Option<String> {
    if special(address).is_some() || !(own.contains(address) || own.contains(behind(address))) {
        return None;
    }
    let (by_address, at) = match port {
        Some(port) => (caller.grants.allows_host(&address.to_string(), port), ""),
        None => (caller.grants.allows_as(name, address), ", at the ports of the name"),
    };
    (!by_address).then(|| format!("is this host itself: that is reached only where the address itself was granted{at}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_systems_resolver_tells_this_hosts_addresses() {
        let found = SystemResolver::default().resolve("localhost").await.unwrap();
        assert!(!found.addresses.is_empty());
        assert!(found.addresses.iter().all(|address| found.own.contains(*address)), "{found:?}");
    }
}
