//! `brine:host/http`: HTTP requests. The minion follows redirects itself and checks each hop as it checked the first
//! one.
//!
//! The connection goes to an address that was checked ([`super::network`]). Certificates are always verified, bodies
//! are not decompressed, and every size has a bound. A request runs within the future of its call, so it ends with the
//! job.

mod exchange;
#[cfg(test)]
mod tests;
mod tls;
mod url;

use std::sync::Arc;
use std::time::{Duration, Instant};

use brine_protocol::value::{Value, list, map};
use brine_sandbox::{ByteBuf, Caller, HostError, HttpOp, HttpRequest, check_host};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, StatusCode};
use tokio::sync::Semaphore;

use super::network::Resolver;
use super::{MinionBroker, Perform};
use tls::Tls;
use url::Url;

/// Upper bound on requests at once, for all jobs. Further requests wait.
const AT_ONCE: usize = 64;
/// The time for a whole request, redirects included, if the module sets none.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// The default bound and the largest bound on the body of a response. The body must fit a message to the executor and
/// the executor's memory.
const DEFAULT_BODY: u64 = 4 << 20;
const MAX_BODY: u64 = 16 << 20;
/// Upper bound on the body of a request.
const MAX_SENT: usize = 16 << 20;
/// Upper bound on redirects. No usual client follows more.
const MAX_REDIRECTS: u32 = 20;
/// Upper bounds on the headers of a request.
const MAX_HEADERS: usize = 100;
const MAX_HEADER_BYTES: usize = 32 << 10;

/// Headers that the HTTP client sets itself, because they frame or route the message.
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
/// Headers that are sent on when a redirect leads to another origin. Any other header may be a credential.
const HARMLESS: &[HeaderName] = &[
    header::ACCEPT,
    header::ACCEPT_CHARSET,
    header::ACCEPT_ENCODING,
    header::ACCEPT_LANGUAGE,
    header::CACHE_CONTROL,
    header::CONTENT_LANGUAGE,
    header::CONTENT_TYPE,
    header::IF_MODIFIED_SINCE,
    header::IF_NONE_MATCH,
    header::RANGE,
    header::USER_AGENT,
];

impl Perform<HttpOp> for MinionBroker {
    async fn perform(&self, caller: &Caller, op: HttpOp) -> Result<Value, HostError> {
        self.http.answer(caller, op).await
    }
}

/// The HTTP client of modules.
pub(super) struct Http {
    resolver: Arc<dyn Resolver>,
    tls: Tls,
    places: Semaphore,
}

/// A checked request within the bounds.
struct Hop {
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: Vec<u8>,
}

/// A response.
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Http {
    pub(super) fn new(resolver: Arc<dyn Resolver>) -> Self {
        Self { resolver, tls: Tls::default(), places: Semaphore::new(AT_ONCE) }
    }

    pub(super) async fn answer(&self, caller: &Caller, op: HttpOp) -> Result<Value, HostError> {
        let HttpOp::Request(request) = op;
        let asked = request.timeout_ms.map_or(DEFAULT_TIMEOUT, Duration::from_millis);
        let ends = caller.ends.min(Instant::now().checked_add(asked).unwrap_or(caller.ends));
        let origin = Url::parse(&request.url).map_err(HostError::Failed)?.origin();
        let work = async {
            let _place =
                self.places.acquire().await.map_err(|_| HostError::Failed("the minion is ending".to_owned()))?;
            self.follow(caller, *request).await
        };
        match tokio::time::timeout_at(ends.into(), work).await {
            Ok(answer) => answer,
            Err(_) => Err(HostError::Failed(format!(
                "the request to {origin} was not done in its time, {asked:?} or what the job had left"
            ))),
        }
    }

    async fn follow(&self, caller: &Caller, request: HttpRequest) -> Result<Value, HostError> {
        let max_body = request.max_body.unwrap_or(DEFAULT_BODY).min(MAX_BODY);
        let redirects = request.max_redirects.min(MAX_REDIRECTS);
        let mut hop = Hop::read(request)?;
        let mut left = redirects;
        loop {
            check_host(caller, &hop.url.host, hop.url.port)?;
            let answer = self.exchange(caller, &hop, max_body).await.map_err(|e| match e {
                HostError::Failed(why) => HostError::Failed(format!("{}: {why}", hop.url.origin())),
                denied => denied,
            })?;
            let Some(location) = answer.location()? else { return Ok(answer.value(&hop.url)) };
            if left == 0 {
                if redirects == 0 {
                    return Ok(answer.value(&hop.url)); // the module handles redirects itself
                }
                return Err(HostError::Failed(format!("{}: more than {redirects} redirects", hop.url.origin())));
            }
            left -= 1;
            hop = hop.redirected(answer.status, location)?;
        }
    }
}

impl Hop {
    fn read(request: HttpRequest) -> Result<Self, HostError> {
        let failed = HostError::Failed;
        let url = Url::parse(&request.url).map_err(failed)?;
        let method = Method::from_bytes(request.method.as_bytes())
            .ok()
            .filter(|method| request.method.len() <= 32 && !matches!(*method, Method::CONNECT | Method::TRACE))
            .ok_or_else(|| failed(format!("{:?} is no method that can be sent", cut(&request.method))))?;
        let bytes: usize = request.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        if request.headers.len() > MAX_HEADERS || bytes > MAX_HEADER_BYTES {
            return Err(failed(format!("at most {MAX_HEADERS} headers of {MAX_HEADER_BYTES} bytes can be sent")));
        }
        let mut headers = HeaderMap::new();
        for (name, value) in &request.headers {
            let no = |why: &str| failed(format!("the header {:?} {why}", cut(name)));
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| no("has no valid name"))?;
            if OURS.contains(&name) || name.as_str().starts_with("proxy-") || name.as_str() == "keep-alive" {
                return Err(no("is set by the minion"));
            }
            headers.append(name.clone(), HeaderValue::from_str(value).map_err(|_| no("has no valid value"))?);
        }
        let agent = HeaderValue::from_static(concat!("brine/", env!("CARGO_PKG_VERSION")));
        headers.entry(header::USER_AGENT).or_insert(agent);
        headers.entry(header::ACCEPT).or_insert(HeaderValue::from_static("*/*"));
        let body = request.body.map(ByteBuf::into_vec).unwrap_or_default();
        if body.len() > MAX_SENT {
            return Err(failed(format!("at most {MAX_SENT} bytes can be sent")));
        }
        Ok(Self { method, url, headers, body })
    }

    /// Returns the request that follows a redirect, as browsers and curl form it.
    fn redirected(mut self, status: StatusCode, location: &str) -> Result<Self, HostError> {
        let failed = |why: String| HostError::Failed(format!("{}: its redirect {why}", self.url.origin()));
        let to = self.url.join(location).map_err(|why| failed(format!("leads nowhere: {why}")))?;
        if self.url.https && !to.https {
            return Err(HostError::Denied(format!(
                "{} redirects to {}, which is not encrypted: that is not followed",
                self.url.origin(),
                to.origin()
            )));
        }
        let to_get = match status {
            StatusCode::SEE_OTHER => self.method != Method::HEAD,
            StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => self.method == Method::POST,
            _ => false,
        };
        if to_get {
            self.method = Method::GET;
            self.body = Vec::new();
            for name in [header::CONTENT_TYPE, header::CONTENT_LANGUAGE, header::CONTENT_ENCODING] {
                self.headers.remove(name);
            }
        }
        if self.url.origin() != to.origin() {
            let kept = self.headers.iter().filter(|(name, _)| HARMLESS.contains(name));
            self.headers = kept.map(|(name, value)| (name.clone(), value.clone())).collect();
        }
        self.url = to;
        Ok(self)
    }
}

impl Answer {
    /// The target of a redirect; none if the response is no redirect.
    fn location(&self) -> Result<Option<&str>, HostError> {
        if !matches!(self.status.as_u16(), 301 | 302 | 303 | 307 | 308) {
            return Ok(None);
        }
        let mut locations = self.headers.get_all(header::LOCATION).iter();
        match (locations.next(), locations.next()) {
            (None, _) => Ok(None),
            (Some(location), None) => match location.to_str() {
                Ok(location) => Ok(Some(location)),
                Err(_) => Err(HostError::Failed("the redirect has a location that is not ASCII".to_owned())),
            },
            (Some(_), Some(_)) => Err(HostError::Failed("the redirect has two locations".to_owned())),
        }
    }

    fn value(self, url: &Url) -> Value {
        let headers = self.headers.iter().map(|(name, value)| {
            // A header value that is not ASCII is read as Latin-1, its historical encoding.
            let value = value.to_str().map_or_else(|_| latin1(value.as_bytes()), str::to_owned);
            list([Value::from(name.as_str()), Value::from(value)])
        });
        map([
            ("status", Value::from(self.status.as_u16())),
            ("headers", list(headers)),
            ("body", Value::Binary(self.body)),
            ("url", Value::from(url.to_string())),
        ])
    }
}

fn latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

/// Shortens a guest's text for an error message.
fn cut(text: &str) -> String {
    text.chars().take(64).collect()
}
