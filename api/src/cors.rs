//! Cross-origin requests: what the browser of a page of another site is told. `cors_origins` has the exceptions; all
//! other pages are told nothing, so their browsers show them no answer and send no token for them.

use axum::extract::Request;
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ORIGIN, VARY,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};

use crate::problem::Problem;
use crate::rules::{Rules, Trust};

/// The headers that such pages may send, besides those that all may.
const REQUEST_HEADERS: &str = "Accept, Authorization, Content-Type, Last-Event-ID, X-Auth-Token, X-Requested-With";
/// The headers that such pages may read.
const ANSWER_HEADERS: &str = "Retry-After, X-Auth-Token";
/// Seconds for which a browser remembers what it was told, as in Salt.
const MAX_AGE: &str = "1400";

/// The origin of a request.
#[derive(Debug)]
pub struct Origin {
    header: HeaderValue,
    trust: Trust,
}

impl Origin {
    /// Of a request with these headers. None, if it has no `Origin`, or several.
    pub fn of(headers: &HeaderMap, rules: &Rules) -> Option<Self> {
        let mut given = headers.get_all(ORIGIN).iter();
        let header = given.next().filter(|_| given.next().is_none())?;
        Some(Self { header: header.clone(), trust: rules.origins.trust(header.to_str().ok()?) })
    }

    /// Tells the browser that this origin's pages may read the answer. `*` never comes with the permission to send cookies.
    pub fn allow(&self, response: &mut Response) {
        let headers = response.headers_mut();
        headers.append(VARY, HeaderValue::from_static("Origin"));
        let allowed = match self.trust {
            Trust::None => return,
            Trust::WithoutCookie => HeaderValue::from_static("*"),
            Trust::Full => {
                headers.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
                self.header.clone()
            }
        };
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, allowed);
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(ANSWER_HEADERS));
    }
}

/// Answers a browser that asks whether it may send a request. None, if this is no such question.
pub fn preflight(request: &Request, origin: Option<&Origin>) -> Option<Response> {
    // Salt answers it without `Access-Control-Request-Method` as well.
    let origin = origin.filter(|_| request.method() == Method::OPTIONS)?;
    if origin.trust == Trust::None {
        let why =
            "Pages of this origin may not use this service; cors_origins below rest_cherrypy names those that may";
        return Some(Problem::new(StatusCode::FORBIDDEN, why).into_response());
    }
    let mut response = StatusCode::OK.into_response();
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST"));
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(REQUEST_HEADERS));
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(MAX_AGE));
    Some(response)
}
