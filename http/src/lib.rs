//! HTTP requests with bounds: a strict reader of addresses, TLS that always verifies, one request on a connection of
//! its own.
//!
//! It neither resolves names nor follows redirects: who asks decides which addresses a name may lead to.
#![forbid(unsafe_code)]

mod exchange;
mod tls;
mod url;

pub use exchange::{Answer, Request, exchange};
pub use tls::Tls;
pub use url::{Origin, Url};

use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};

/// Upper bounds on the headers of a request.
const MAX_HEADERS: usize = 100;
const MAX_HEADER_BYTES: usize = 32 << 10;

/// Headers that the client sets itself, because they frame or route the message.
const OURS: &[HeaderName] = &[
    header::HOST,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::CONNECTION,
    header::UPGRADE,
    header::TE,
    header::TRAILER,
    header::EXPECT,
    header::PROXY_AUTHORIZATION,
    header::PROXY_AUTHENTICATE,
];

/// Checks the headers of a request. Names the client, and accepts every type, where they do not say otherwise.
///
/// # Errors
/// There are too many, one is not valid, or one is the client's own. The values are not repeated.
pub fn headers(given: &[(String, String)]) -> Result<HeaderMap, String> {
    let bytes: usize = given.iter().map(|(name, value)| name.len() + value.len()).sum();
    if given.len() > MAX_HEADERS || bytes > MAX_HEADER_BYTES {
        return Err(format!("at most {MAX_HEADERS} headers of {MAX_HEADER_BYTES} bytes can be sent"));
    }
    let mut headers = HeaderMap::new();
    for (name, value) in given {
        let no = |why: &str| format!("the header {:?} {why}", name.chars().take(64).collect::<String>());
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| no("has no valid name"))?;
        if OURS.contains(&name) || name.as_str().starts_with("proxy-") || name.as_str() == "keep-alive" {
            return Err(no("is set by the client"));
        }
        headers.append(name.clone(), HeaderValue::from_str(value).map_err(|_| no("has no valid value"))?);
    }
    let agent = HeaderValue::from_static(concat!("brine/", env!("CARGO_PKG_VERSION")));
    headers.entry(header::USER_AGENT).or_insert(agent);
    headers.entry(header::ACCEPT).or_insert(HeaderValue::from_static("*/*"));
    Ok(headers)
}

impl Answer {
    /// The target of a redirect; none if the response is no redirect.
    ///
    /// # Errors
    /// It has several targets, or one that is not ASCII.
    pub fn location(&self) -> Result<Option<&str>, String> {
        if !matches!(self.status.as_u16(), 301 | 302 | 303 | 307 | 308) {
            return Ok(None);
        }
        let mut locations = self.headers.get_all(header::LOCATION).iter();
        match (locations.next(), locations.next()) {
            (None, _) => Ok(None),
            (Some(location), None) => match location.to_str() {
                Ok(location) => Ok(Some(location)),
                Err(_) => Err("the redirect has a location that is not ASCII".to_owned()),
            },
            (Some(_), Some(_)) => Err("the redirect has two locations".to_owned()),
        }
    }
}
