//! `brine:host/http`: HTTP requests. The daemon follows redirects itself and checks each hop as it checked the first
//! one.
//!
//! The connection goes to an address that was checked ([`crate::names`]). Certificates are always verified, bodies
//! are not decompressed, and every size has a bound. A request runs within the future of its call, so it ends with the
//! job.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::{Duration, Instant};

use brine_http::{Answer, Request as Hop, Tls, Url};
use brine_protocol::value::{Value, list, map};
use brine_sandbox::{Broker, ByteBuf, Caller, HostError, HttpOp, HttpRequest, check_host};
use hyper::header::{self, HeaderName};
use hyper::{Method, StatusCode};

use crate::names::{self, Resolver};
use crate::shares::Shares;

/// Upper bound on requests at once, for all jobs; a module has three quarters of it at most. Further requests wait.
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

/// The HTTP client of modules.
pub struct Http {
    resolver: Arc<dyn Resolver>,
    tls: Tls,
    places: Shares,
}

impl Http {
    /// Makes the client of a daemon.
    pub fn new(resolver: Arc<dyn Resolver>) -> Self {
        Self { resolver, tls: Tls::default(), places: Shares::new(AT_ONCE) }
    }

    /// Performs a module's request. Its grant was checked; each hop is checked again.
    ///
    /// # Errors
    /// The request cannot be sent, leads where the caller may not go, or has no answer in time.
    pub async fn answer(&self, broker: &dyn Broker, caller: &Caller, op: HttpOp) -> Result<Value, HostError> {
        let HttpOp::Request(request) = op;
        let asked = request.timeout_ms.map_or(DEFAULT_TIMEOUT, Duration::from_millis);
        let ends = caller.ends.min(Instant::now().checked_add(asked).unwrap_or(caller.ends));
        let origin = Url::parse(&request.url).map_err(HostError::Failed)?.origin();
        let work = async {
            let place = self.places.take(caller.module.as_str()).await;
            let _place = place.ok_or_else(|| HostError::Failed("the daemon is ending".to_owned()))?;
            self.follow(broker, caller, *request).await
        };
        match tokio::time::timeout_at(ends.into(), work).await {
            Ok(answer) => answer,
            Err(_) => Err(HostError::Failed(format!(
                "the request to {origin} was not done in its time, {asked:?} or what the job had left"
            ))),
        }
    }

    async fn follow(&self, broker: &dyn Broker, caller: &Caller, request: HttpRequest) -> Result<Value, HostError> {
        let max_body = request.max_body.unwrap_or(DEFAULT_BODY).min(MAX_BODY);
        let redirects = request.max_redirects.min(MAX_REDIRECTS);
        let mut hop = read(request)?;
        let mut left = redirects;
        loop {
            check_host(broker, caller, &hop.url.host, hop.url.port)?;
            let answer = self.exchange(broker, caller, &hop, max_body).await.map_err(|e| match e {
                HostError::Failed(why) => HostError::Failed(format!("{}: {why}", hop.url.origin())),
                denied => denied,
            })?;
            let Some(location) = answer.location().map_err(HostError::Failed)? else {
                return Ok(value(answer, &hop.url));
            };
            if left == 0 {
                if redirects == 0 {
                    return Ok(value(answer, &hop.url)); // the module handles redirects itself
                }
                return Err(HostError::Failed(format!("{}: more than {redirects} redirects", hop.url.origin())));
            }
            left -= 1;
            hop = redirected(hop, answer.status, location)?;
        }
    }

    async fn exchange(
        &self,
        broker: &dyn Broker,
        caller: &Caller,
        hop: &Hop,
        max_body: u64,
    ) -> Result<Answer, HostError> {
        let url = &hop.url;
        let addresses = names::addresses(broker, &*self.resolver, caller, &url.host, Some(url.port)).await?;
        brine_http::exchange(&self.tls, addresses, hop, max_body).await.map_err(HostError::Failed)
    }
}

/// Checks a module's request.
fn read(request: HttpRequest) -> Result<Hop, HostError> {
    let failed = HostError::Failed;
    let url = Url::parse(&request.url).map_err(failed)?;
    let method = Method::from_bytes(request.method.as_bytes())
        .ok()
        .filter(|method| request.method.len() <= 32 && !matches!(*method, Method::CONNECT | Method::TRACE))
        .ok_or_else(|| failed(format!("{:?} is no method that can be sent", cut(&request.method))))?;
    let headers = brine_http::headers(&request.headers).map_err(failed)?;
    let body = request.body.map(ByteBuf::into_vec).unwrap_or_default();
    if body.len() > MAX_SENT {
        return Err(failed(format!("at most {MAX_SENT} bytes can be sent")));
    }
    Ok(Hop { method, url, headers, body })
}

/// Returns the request that follows a redirect, as browsers and curl form it.
fn redirected(mut hop: Hop, status: StatusCode, location: &str) -> Result<Hop, HostError> {
    let failed = |why: String| HostError::Failed(format!("{}: its redirect {why}", hop.url.origin()));
    let to = hop.url.join(location).map_err(|why| failed(format!("leads nowhere: {why}")))?;
    if hop.url.https && !to.https {
        return Err(HostError::Denied(format!(
            "{} redirects to {}, which is not encrypted: that is not followed",
            hop.url.origin(),
            to.origin()
        )));
    }
    let to_get = match status {
        StatusCode::SEE_OTHER => hop.method != Method::HEAD,
        StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => hop.method == Method::POST,
        _ => false,
    };
    if to_get {
        hop.method = Method::GET;
        hop.body = Vec::new();
        for name in [header::CONTENT_TYPE, header::CONTENT_LANGUAGE, header::CONTENT_ENCODING] {
            hop.headers.remove(name);
        }
    }
    if hop.url.origin() != to.origin() {
        let kept = hop.headers.iter().filter(|(name, _)| HARMLESS.contains(name));
        hop.headers = kept.map(|(name, value)| (name.clone(), value.clone())).collect();
    }
    hop.url = to;
    Ok(hop)
}

fn value(answer: Answer, url: &Url) -> Value {
    let headers = answer.headers.iter().map(|(name, value)| {
        // A header value that is not ASCII is read as Latin-1, its historical encoding.
        let value = value.to_str().map_or_else(|_| latin1(value.as_bytes()), str::to_owned);
        list([Value::from(name.as_str()), Value::from(value)])
    });
    map([
        ("status", Value::from(answer.status.as_u16())),
        ("headers", list(headers)),
        ("body", Value::Binary(answer.body)),
        ("url", Value::from(url.to_string())),
    ])
}

fn latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

/// Shortens a guest's text for an error message.
fn cut(text: &str) -> String {
    text.chars().take(64).collect()
}
