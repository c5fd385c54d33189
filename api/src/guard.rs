//! What each request passes before its path: whose it is, whether it is one request in every reader's eyes, whether its
//! address and its origin may speak to salt-api; and the headers that each answer has.

use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, HOST, HeaderName, REFERRER_POLICY, TRANSFER_ENCODING,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::uri::Authority;
use axum::http::{HeaderValue, Version};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use crate::address::{self, ClientAddress, PeerAddress};
use crate::cors;
use crate::places;
use crate::problem::Problem;
use crate::rules::Rules;
use crate::state::{Api, Shared};
use crate::work::Busy;

/// Names of credentials, which a query must not have: proxies and browsers write queries down.
const NOT_IN_QUERIES: [&str; 4] = ["token", "salt_token", "password", "session_id"];
/// The paths that are not there without sessions, as in Salt.
const OF_SESSIONS: [&str; 4] = ["login", "logout", "minions", "jobs"];

/// The headers of answers that have not set them themselves.
const HEADERS: [(HeaderName, &str); 6] = [
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (CACHE_CONTROL, "private, no-store"),
    (CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
    (X_FRAME_OPTIONS, "DENY"),
    (REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// The layer around all paths.
pub async fn guard(State(api): Shared, mut request: Request, next: Next) -> Response {
    let live = api.live();
    let is_chunked = request.headers().contains_key(TRANSFER_ENCODING);
    let origin = cors::Origin::of(request.headers(), &live.rules);
    let answered = match admit(&live.rules, &api.paths.prefix, &mut request) {
        Err(problem) => problem.into_response(),
        Ok(()) => match cors::preflight(&request, origin.as_ref()) {
            Some(answer) => answer,
            None => work(&api, &live.rules, request, next).await,
        },
    };
    let mut response = answered;
    if is_chunked {
        // Of a request with a length and chunks, hyper shows us only the chunks. A proxy before us may have gone by the length:
        // what follows is then not the request that it took it for.
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    if let Some(origin) = origin {
        origin.allow(&mut response);
    }
    for (name, value) in HEADERS {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

/// Runs the request, if there is room for another one.
async fn work(api: &Api, rules: &Rules, request: Request, next: Next) -> Response {
    let caller = request.extensions().get::<ClientAddress>();
    let counted = caller.and_then(|caller| places::counted(caller.0, &rules.trusted_proxies));
    match api.work.enter(counted, request) {
        Ok((share, request)) => {
            let response = next.run(request).await;
            drop(share);
            response
        }
        Err(Busy) => Problem::busy().into_response(),
    }
}

/// Judges what needs neither body nor credentials, and puts the caller's address into the request.
fn admit(rules: &Rules, prefix: &str, request: &mut Request) -> Result<(), Problem> {
    one_host(request)?;
    let peer = request.extensions().get::<PeerAddress>().copied();
    if let Some(PeerAddress(peer)) = peer {
        let caller = address::of_caller(peer, request.headers(), &rules.trusted_proxies);
        rules.check_address(caller)?;
        request.extensions_mut().insert(caller);
    }
    let path = request.uri().path();
    let first = path.strip_prefix(prefix).unwrap_or(path).trim_start_matches('/').split('/').next().unwrap_or_default();
    if !rules.sessions && OF_SESSIONS.contains(&first) {
        return Err(Problem::not_found());
    }
    let query = request.uri().query().unwrap_or_default();
    let mut names = form_urlencoded::parse(query.as_bytes()).map(|(name, _)| name);
    if names.any(|name| NOT_IN_QUERIES.contains(&&*name)) {
        return Err(Problem::bad("Credentials do not belong into the query"));
    }
    Ok(())
}

/// Makes `Host` the one name of the host that the request is for, wherever it said so. Where two places differ, a proxy
/// may have judged by one and we would judge by the other.
fn one_host(request: &mut Request) -> Result<(), Problem> {
    let wrong = || Problem::bad("A request names its host once");
    let mut given = request.headers().get_all(HOST).iter();
    let (first, second) = (given.next(), given.next());
    if second.is_some() {
        return Err(wrong());
    }
    let text = first.map(|host| host.to_str().map_err(|_| wrong())).transpose()?;
    let target = request.uri().authority();
    match (text, target) {
        (None, None) if request.version() >= Version::HTTP_11 => Err(wrong()),
        (None, None) => Ok(()),
        (Some(host), None) => {
            let is_host = host.parse::<Authority>().is_ok_and(|host| !host.as_str().contains('@'));
            is_host.then_some(()).ok_or_else(wrong)
        }
        (Some(host), Some(target)) => host.eq_ignore_ascii_case(target.as_str()).then_some(()).ok_or_else(wrong),
        (None, Some(target)) => {
            let host = HeaderValue::from_str(target.as_str()).map_err(|_| wrong())?;
            request.headers_mut().insert(HOST, host);
            Ok(())
        }
    }
}
