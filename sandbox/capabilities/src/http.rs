//! HTTP requests: a URL in its normal form to a granted host, without anything that could change the request on the
//! way.

use crate::forms::{MAX_BULK, malformed, size};
use crate::hosts::NetworkHost;
use crate::prelude::*;
use crate::reach::check_host;
use crate::rules::{one_port, rule_text};

/// Upper bound on the bytes of a URL. Servers accept 8 KiB.
const MAX_URL: usize = 8_192;
/// Upper bound on the headers of one request.
const MAX_HEADERS: usize = 100;
/// Upper bound on the bytes of all headers.
const MAX_HEADERS_BYTES: usize = 64 << 10;
/// Upper bound on the bytes of a method.
const MAX_METHOD: usize = 32;
/// Upper bound on the redirects that the host's client follows.
const MAX_REDIRECTS: u32 = 20;

/// Headers that decide where a request ends or which server gets it. Only the host's client writes them.
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

/// `brine:host/http`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum HttpOp {
    /// Sends one request and follows redirects. Returns a map: `status`, `headers` (array of pairs), `body` (binary),
    /// `url` (of the last request).
    Request(Box<HttpRequest>),
}

/// An HTTP request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpRequest {
    /// `GET`
    pub method: String,
    /// `http://` or `https://`
    pub url: String,
    /// Names and values.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Option<ByteBuf>,
    /// Time for the whole request.
    pub timeout_ms: Option<u64>,
    /// Upper bound on the bytes of the answer's body. A longer body is an error.
    pub max_body: Option<u64>,
    /// Redirects to follow. Each is checked like the first request.
    pub max_redirects: u32,
}

impl Operation for HttpOp {
    const INTERFACE: &'static str = "brine:host/http";

    fn size(&self) -> Size {
        let Self::Request(request) = self;
        let HttpRequest { method, url, headers, body, .. } = &**request;
        let content = body.as_ref().map_or(0, |body| body.len());
        Size { names: method.len() + url.len() + Size::pairs(headers), content, ..Size::default() }
    }

    fn check(self, _: &Asker<'_>, granted: &Grants) -> Result<Self, Refusal> {
        let Self::Request(mut request) = self;
        form(&request)?;
        let url = Url::read(&request.url)?;
        check_host(granted, &url.host.to_string(), url.port)?;
        request.url = url.to_string();
        request.max_redirects = request.max_redirects.min(MAX_REDIRECTS);
        Ok(Self::Request(request))
    }

    /// A request may change what it reaches, whatever its method.
    fn planned(self, _: &Grants) -> Planned<Self> {
        let Self::Request(request) = self;
        Planned::Stop(format!("send: {} {}", request.method, request.url))
    }
}

fn form(request: &HttpRequest) -> Result<(), Refusal> {
    if request.method.len() > MAX_METHOD || !is_token(&request.method) || request.method.eq_ignore_ascii_case("connect")
    {
        return Err(malformed("the method", "is not one as GET, and CONNECT is not taken"));
    }
    if request.headers.len() > MAX_HEADERS {
        return Err(malformed(
            "the request",
            &format!("has {} headers; the most is {MAX_HEADERS}", request.headers.len()),
        ));
    }
    for (name, value) in &request.headers {
        if !is_token(name) {
            return Err(malformed("the name of a header", "is not one"));
        }
        if OWN_HEADERS.iter().any(|own| own.eq_ignore_ascii_case(name)) {
            return Err(malformed(&format!("the header {name}"), "is the host's to write"));
        }
        if value.chars().any(|c| c.is_control() && c != '\t') {
            return Err(malformed(&format!("the header {name}"), "has control characters"));
        }
    }
    let bytes = request.headers.iter().map(|(name, value)| name.len() + value.len() + 4).sum();
    size("the headers", bytes, MAX_HEADERS_BYTES)?;
    size("the body", request.body.as_ref().map_or(0, |body| body.len()), MAX_BULK)
}

/// Checks for a token of HTTP (RFC 9110 §5.6.2).
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|c| c.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&c))
}

/// A parsed URL. The request uses the URL written from these parts, so that the client cannot read it differently.
struct Url {
    https: bool,
    host: NetworkHost,
    port: u16,
    /// Path and query.
    rest: String,
}

impl Url {
    fn read(text: &str) -> Result<Self, Refusal> {
        let bad = |why: &str| Err(malformed("the URL", why));
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
        // An address in brackets contains colons too.
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
        let authority = rule_text(&one_port(&self.host, self.port));
        let usual = if self.port == usual { authority.strip_suffix(&format!(":{usual}")) } else { None };
        write!(f, "{scheme}://{}{}", usual.unwrap_or(&authority), self.rest)
    }
}
