//! Decides which addresses a module may connect to. A name is resolved once, here, so that the connection goes to the
//! addresses that were checked.
//!
//! The owner of a name decides which addresses it resolves to. A name may therefore lead to this host, to a link-local
//! neighbour or to the address where clouds serve credentials. A module reaches such an address only if its grant names
//! the address itself.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use brine_protocol::value::{Value, list};
use brine_sandbox::{Broker, Caller, HostError, NetworkOp, tell_of_special};
use futures_util::future::BoxFuture;
use tokio::sync::Semaphore;

/// Upper bound on look-ups at once. A look-up in the system's resolver cannot be cancelled, so one that timed out
/// counts until it ends.
const LOOKUPS: usize = 16;
/// Time for one look-up. The system's resolver waits 5 s for each of its servers.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(10);
/// Upper bound on the addresses of one name that are considered.
const MAX_ADDRESSES: usize = 32;
/// Upper bound on the bytes of a name, from DNS.
const MAX_NAME: usize = 253;

/// Resolves names.
pub trait Resolver: Send + Sync + 'static {
    /// Returns all addresses of a name.
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
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
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let place = Arc::clone(&self.0).acquire_owned().await.map_err(io::Error::other)?;
            let name = name.to_owned();
            let lookup = tokio::task::spawn_blocking(move || {
                let _place = place;
                let found: Vec<IpAddr> = (name.as_str(), 0).to_socket_addrs()?.map(|address| address.ip()).collect();
                Ok(found)
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
        return match why_not(caller, literal, port) {
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
    let found = match tokio::time::timeout(LOOKUP_TIMEOUT, resolver.resolve(name)).await {
        Err(_) => return Err(failed(format!("no answer within {LOOKUP_TIMEOUT:?}"))),
        Ok(found) => found.map_err(|e| failed(e.to_string()))?,
    };
    let mut good = Vec::new();
    let mut refused = None;
    for address in found.into_iter().take(MAX_ADDRESSES).map(|address| address.to_canonical()) {
        match why_not(caller, address, port) {
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

/// Says why this caller may not reach an address; none if it may.
fn why_not(caller: &Caller, address: IpAddr, port: Option<u16>) -> Option<String> {
    let special = special(address)?;
    let written = address.to_string();
    let by_address = match port {
        Some(port) => caller.grants.allows_host(&written, port),
        None => caller.grants.allows_name(&written),
    };
    (!by_address).then(|| format!("is {special}: that is reached only where the address itself was granted"))
}

/// Addresses where clouds serve credentials to their machines.
const METADATA: &[IpAddr] = &[
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
];

/// Says of which special kind an address is; none for an ordinary address. Names must not lead to special addresses.
fn special(address: IpAddr) -> Option<&'static str> {
    if METADATA.contains(&address) {
        return Some("where a cloud keeps this machine's credentials");
    }
    match address {
        IpAddr::V4(v4) => special_v4(v4),
        IpAddr::V6(v6) => special_v6(v6),
    }
}

fn special_v4(v4: Ipv4Addr) -> Option<&'static str> {
    let [a, b, ..] = v4.octets();
    if v4.is_loopback() {
        Some("this host itself")
    } else if a == 0 {
        Some("no address of a host")
    } else if (a, b) == (169, 254) {
        Some("link-local, where a cloud keeps this machine's credentials")
    } else if v4.is_multicast() {
        Some("a multicast group")
    } else if a >= 240 {
        Some("broadcast or reserved")
    } else {
        None
    }
}

fn special_v6(v6: Ipv6Addr) -> Option<&'static str> {
    let s = v6.segments();
    if v6.is_loopback() {
        return Some("this host itself");
    }
    if v6.is_unspecified() {
        return Some("no address of a host");
    }
    if v6.is_multicast() {
        return Some("a multicast group");
    }
    if s[0] & 0xffc0 == 0xfe80 || s[0] & 0xffc0 == 0xfec0 {
        return Some("link-local");
    }
    // IPv6 addresses that contain an IPv4 address: mapped, compatible, NAT64 (both prefixes), 6to4.
    let v4 = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    let inner = match s {
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] | [0x64, 0xff9b, 0 | 1, .., high, low] => v4(high, low),
        [0, 0, 0, 0, 0xffff, 0, high, low] | [0x2002, high, low, ..] => v4(high, low),
        _ => return None,
    };
    special(IpAddr::V4(inner))
}
