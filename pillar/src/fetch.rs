//! Fetches documents for `http_json` and `http_yaml`.
//!
//! The operator wrote the address, so every address that its name has is reached. A redirect is followed only to the
//! same server: its answer does not decide where else the master sends requests.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use brine_http::{Request, Tls, Url};
use hyper::{Method, StatusCode};
use tokio::runtime::Handle;

use crate::ext::{Fetch, Get};

/// Bound on redirects. A document that moved takes one.
const REDIRECTS_MAX: usize = 5;
/// Bound on the addresses of a name that are tried.
const ADDRESSES_MAX: usize = 4;

/// The client.
pub struct HttpFetch {
    runtime: Handle,
    tls: Tls,
}

impl HttpFetch {
    /// Makes a client that runs on this runtime, while a thread outside of it waits.
    pub fn new(runtime: Handle) -> Self {
        Self { runtime, tls: Tls::default() }
    }

    async fn follow(&self, get: &Get<'_>) -> Result<Vec<u8>, String> {
        let mut url = Url::parse(get.url)?;
        let origin = url.origin();
        let said = |why: String| format!("{origin}: {why}");
        for _ in 0..=REDIRECTS_MAX {
            let headers = brine_http::headers(get.headers)?;
            let addresses = addresses(&url).await.map_err(said)?;
            let request = Request { method: Method::GET, url: url.clone(), headers, body: Vec::new() };
            let answer = brine_http::exchange(&self.tls, addresses, &request, get.max as u64).await.map_err(said)?;
            let Some(location) = answer.location().map_err(said)? else {
                return match answer.status {
                    StatusCode::OK => Ok(answer.body),
                    other => Err(said(format!("the answer has the status {}", other.as_u16()))),
                };
            };
            let to = url.join(location).map_err(said)?;
            if to.origin() != origin {
                return Err(said(format!("it redirects to {}, which is another server and not asked", to.origin())));
            }
            url = to;
        }
        Err(said(format!("it redirects more than {REDIRECTS_MAX} times")))
    }
}

impl Fetch for HttpFetch {
    fn get(&self, get: &Get<'_>) -> Result<Vec<u8>, String> {
        let left = get.ends.saturating_duration_since(Instant::now()).min(get.timeout);
        let late = |left: Duration| {
            let origin = Url::parse(get.url).map_or_else(|why| why, |url| url.origin().to_string());
            format!("{origin}: no answer within {:.1} s", left.as_secs_f64())
        };
        self.runtime
            .block_on(async { tokio::time::timeout(left, self.follow(get)).await })
            .unwrap_or_else(|_| Err(late(left)))
    }
}

async fn addresses(url: &Url) -> Result<Vec<IpAddr>, String> {
    if let Ok(address) = url.host.parse::<IpAddr>() {
        return Ok(vec![address]);
    }
    let found = tokio::net::lookup_host((url.host.as_str(), url.port)).await;
    let found = found.map_err(|error| format!("its name cannot be resolved: {error}"))?;
    Ok(found.map(|address: SocketAddr| address.ip()).take(ADDRESSES_MAX).collect())
}
