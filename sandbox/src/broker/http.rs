//! HTTP requests: a URL in its plain form to a granted host, and nothing in it that makes it another request on the way.

use brine_sandbox_wire::{HostError, HttpOp, HttpRequest, NetworkRule};

use super::Caller;
use super::check::{MAX_BULK, check_host, failed};
use super::names::size;
use crate::grants::rule_text;
use brine_sandbox_wire::hosts::Host as NetworkHost;

/// Bytes of a URL; servers take 8 KiB.
const MAX_URL: usize = 8_192;
/// Headers of one request.
const MAX_HEADERS: usize = 100;
/// Bytes of all of them.
const MAX_HEADERS_BYTES: usize = 64 << 10;
/// Bytes of a method.
const MAX_METHOD: usize = 32;
/// What the host's client follows at most.
const MAX_REDIRECTS: u32 = 20;

/// Headers that decide where a request ends or to whom it goes: the host's client writes them.
const OWN_HEADERS: [&str; 13] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

pub(super) fn check(caller: &Caller, op: HttpOp) -> Result<HttpOp, HostError> {
    let HttpOp::Request(mut request) = op;
    form(&request)?;
    let url = Url::read(&request.url)?;
    check_host(caller, &url.host.to_string(), url.port)?;
    request.url = url.to_string();
    request.max_redirects = request.max_redirects.min(MAX_REDIRECTS);
    Ok(HttpOp::Request(request))
}

fn form(request: &HttpRequest) -> Result<(), HostError> {
    if request.method.len() > MAX_METHOD || !is_token(&request.method) || request.method.eq_ignore_ascii_case("connect")
    {
        return Err(failed("the method", "is not one as GET, and CONNECT is not taken"));
    }
    if request.headers.len() > MAX_HEADERS {
        return Err(failed(
            "the request",
            &format!("has {} headers; the most is {MAX_HEADERS}", request.headers.len()),
        ));
    }
    for (name, value) in &request.headers {
        if !is_token(name) {
            return Err(failed("the name of a header", "is not one"));
        }
        if OWN_HEADERS.iter().any(|own| own.eq_ignore_ascii_case(name)) {
            return Err(failed(&format!("the header {name}"), "is the host's to write"));
        }
        if value.chars().any(|c| c.is_control() && c != '\t') {
            return Err(failed(&format!("the header {name}"), "has control characters"));
        }
    }
    let bytes = request.headers.iter().map(|(name, value)| name.len() + value.len() + 4).sum();
    size("the headers", bytes, MAX_HEADERS_BYTES)?;
    size("the body", request.body.as_ref().map_or(0, |body| body.len()), MAX_BULK)
}

/// A token of HTTP (RFC 9110 §5.6.2).
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|c| c.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&c))
}

/// A rule for one host at one port.
pub(super) fn rule(host: &NetworkHost, port: u16) -> NetworkRule {
    NetworkRule { host: host.to_string(), ports: (port, port) }
}

/// What is known of a URL once it was read; it is written again from this, so that who sends the request reads no other.
struct Url {
    https: bool,
    host: NetworkHost,
    port: u16,
    /// Path and query.
    rest: String,
}

impl Url {
    fn read(text: &str) -> Result<Self, HostError> {
        let bad = |why: &str| Err(failed("the URL", why));
        if text.len() > MAX_URL {
            return bad(&format!("has {} bytes; the most is {MAX_URL}", text.len()));
        }
        if !text.bytes().all(|c| c.is_ascii_graphic()) || text.contains(['\\', '"', '<', '>', '^', '`', '{', '|', '}'])
        {
            return bad("has characters that a URL cannot have; write them as %XX");
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return bad("does not begin with http:// or https://");
        };
        let https = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return bad("does not begin with http:// or https://"),
        };
        let rest = rest.split_once('#').map_or(rest, |(rest, _fragment)| rest);
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(end);
        if authority.contains('@') {
            return bad("has a user in it; write an Authorization header");
        }
        // In brackets there are colons too.
        let colon = authority.rfind(':').filter(|colon| !authority[*colon..].contains(']'));
        let (host, port) = match colon {
            Some(colon) => (&authority[..colon], Some(&authority[colon + 1..])),
            None => (authority, None),
        };
        if host.contains(':') && !host.starts_with('[') {
            return bad("has an address without brackets");
        }
        let Some(host) = NetworkHost::read(host) else {
            return bad("names no host, or an address in another form than a.b.c.d");
        };
        let port = match port {
            None => Some(if https { 443 } else { 80 }),
            Some(port) if port.bytes().all(|c| c.is_ascii_digit()) => port.parse().ok().filter(|port| *port > 0),
            Some(_) => None,
        };
        let Some(port) = port else { return bad("has a port that is none") };
        let slash = if rest.starts_with('/') { "" } else { "/" };
        Ok(Self { https, host, port, rest: format!("{slash}{rest}") })
    }
}

impl std::fmt::Display for Url {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (scheme, usual) = if self.https { ("https", 443) } else { ("http", 80) };
        let authority = rule_text(&rule(&self.host, self.port));
        let usual = if self.port == usual { authority.strip_suffix(&format!(":{usual}")) } else { None };
        write!(f, "{scheme}://{}{}", usual.unwrap_or(&authority), self.rest)
    }
}
