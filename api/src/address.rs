//! The address of a caller: the peer's, or the one that a trusted proxy names.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use ipnet::IpNet;

/// The header in which each proxy appends the address of its own peer.
const FORWARDED_FOR: &str = "x-forwarded-for";
/// Upper bound on the entries read of that header, from the right. No chain of proxies is that long.
const ENTRIES_MAX: usize = 16;

/// The address at the other end of a connection. [`crate::listen`] puts it into each request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerAddress(pub IpAddr);

/// The address of the caller, as limits, log-ins and permissions count it. [`crate::router`] puts it into each request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClientAddress(pub IpAddr);

impl<S: Sync> FromRequestParts<S> for ClientAddress {
    type Rejection = std::convert::Infallible;

    /// A request that came by no connection counts as that of an address that nobody has.
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(parts.extensions.get().copied().unwrap_or(Self(Ipv4Addr::UNSPECIFIED.into())))
    }
}

/// A list of addresses and networks from the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Networks(Arc<[IpNet]>);

impl Networks {
    /// Reads addresses (`192.0.2.7`) and networks (`192.0.2.0/24`).
    ///
    /// # Errors
    /// The first text that is neither.
    pub fn parse<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let network = |text: &str| {
            let text = text.trim();
            let alone = || text.parse::<IpAddr>().map(|address| IpNet::from(address.to_canonical()));
            text.parse::<IpNet>().or_else(|_| alone()).map_err(|_| text.to_owned())
        };
        texts.into_iter().map(network).collect::<Result<_, _>>().map(Self)
    }

    /// Whether the list has nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the address is on the list.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }
}

/// Returns the caller's address. Only a peer among `proxies` is believed, and of what it says only the entries that
/// such proxies appended themselves: the rightmost one that is no proxy's is the caller. A caller can write the others.
pub fn of_caller(peer: IpAddr, headers: &HeaderMap, proxies: &Networks) -> ClientAddress {
    let mut caller = peer.to_canonical();
    let lines = headers.get_all(FORWARDED_FOR).iter().rev();
    // An entry that is no text reads as empty, and so ends the search.
    let mut entries = lines.flat_map(|line| line.to_str().unwrap_or_default().rsplit(',')).take(ENTRIES_MAX);
    while proxies.contains(caller) {
        let Some(address) = entries.next().and_then(parse_entry) else { break };
        caller = address;
    }
    ClientAddress(caller)
}

/// An entry: an address, as proxies write it: alone, with a port, in brackets.
fn parse_entry(text: &str) -> Option<IpAddr> {
    let text = text.trim().trim_matches('"');
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let address = bare.parse().or_else(|_| text.parse::<SocketAddr>().map(|address| address.ip()));
    address.ok().map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(peer: &str, proxies: &[&str], lines: &[&str]) -> String {
        let headers = lines.iter().map(|line| (FORWARDED_FOR.parse().unwrap(), line.parse().unwrap())).collect();
        let proxies = Networks::parse(proxies.iter().copied()).unwrap();
        of_caller(peer.parse().unwrap(), &headers, &proxies).0.to_string()
    }

    #[test]
    fn only_a_trusted_proxy_names_the_caller() {
        let proxies = &["10.0.0.0/8", "192.0.2.1", "2001:db8::/32"][..];
        for (peer, lines, address) in [
            // A stranger's header is ignored, and a proxy's that names nobody.
            ("198.51.100.9", &["203.0.113.5"][..], "198.51.100.9"),
            ("192.0.2.2", &["203.0.113.5"], "192.0.2.2"),
            ("192.0.2.1", &[], "192.0.2.1"),
            // What the caller wrote itself is left of what the proxy appended.
            ("192.0.2.1", &["203.0.113.5"], "203.0.113.5"),
            ("192.0.2.1", &["127.0.0.1, 203.0.113.5"], "203.0.113.5"),
            ("192.0.2.1", &["127.0.0.1", "203.0.113.5"], "203.0.113.5"),
            ("192.0.2.1", &["203.0.113.5, 10.1.1.1 , 10.2.2.2"], "203.0.113.5"),
            ("192.0.2.1", &["10.3.3.3"], "10.3.3.3"),
            // The forms of an entry.
            ("::ffff:192.0.2.1", &["::ffff:203.0.113.5"], "203.0.113.5"),
            ("2001:db8::1", &["[2001:db9::5]:443"], "2001:db9::5"),
            ("192.0.2.1", &["\"[2001:db9::5]\""], "2001:db9::5"),
            ("192.0.2.1", &["203.0.113.5:1234"], "203.0.113.5"),
        ] {
            assert_eq!(caller(peer, proxies, lines), address, "{peer} {lines:?}");
        }
    }

    /// What is no address names nobody: the last proxy that is known counts, and nothing left of it.
    #[test]
    fn hostile_headers_are_bounded() {
        let proxies = &["192.0.2.1", "10.0.0.0/8"];
        for line in
            ["", ",", "unknown", "203.0.113.5,", "203.0.113.5, x", "203.0.113.5, 999.1.1.1", "1", "203.0.113.5, ]["]
        {
            assert_eq!(caller("192.0.2.1", proxies, &[line]), "192.0.2.1", "{line:?}");
        }
        let long = format!("203.0.113.5{}", ", 10.0.0.1".repeat(ENTRIES_MAX));
        assert_eq!(caller("192.0.2.1", proxies, &[&long]), "10.0.0.1");
        let mut headers = HeaderMap::new();
        headers.append(FORWARDED_FOR, "203.0.113.5".parse().unwrap());
        headers.append(FORWARDED_FOR, axum::http::HeaderValue::from_bytes(b"\xff").unwrap());
        let proxies = Networks::parse(["192.0.2.1"]).unwrap();
        let peer = IpAddr::from([192, 0, 2, 1]);
        assert_eq!(of_caller(peer, &headers, &proxies).0, peer);
    }

    #[test]
    fn a_list_has_addresses_and_networks() {
        assert_eq!(Networks::parse(["192.0.2.7", "192.0.2.0/33"]), Err("192.0.2.0/33".to_owned()));
        for wrong in ["", "*", "host", "10.0.0.0/8/8"] {
            assert_eq!(Networks::parse([wrong]), Err(wrong.to_owned()));
        }
        let list = Networks::parse(["::ffff:192.0.2.7", "10.0.0.0/8"]).unwrap();
        assert!(list.contains("192.0.2.7".parse().unwrap()) && list.contains("::ffff:10.9.9.9".parse().unwrap()));
        assert!(!list.contains("192.0.2.8".parse().unwrap()) && Networks::default().is_empty());
    }
}
