//! `/hook`: what another system says becomes an event, `salt/netapi/hook/TAG`, on which the master's side may act.

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION};
use axum::response::Response;
use brine_protocol::value::{self, Value, ValueExt as _};

use crate::address::ClientAddress;
use crate::answer::Format;
use crate::body;
use crate::credentials::{self, TOKEN_HEADER};
use crate::link::LinkError;
use crate::problem::Problem;
use crate::state::Shared;

/// `POST /hook`.
pub async fn plain(
    state: Shared,
    from: Extension<ClientAddress>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    tagged(state, from, Path(String::new()), headers, body).await
}

/// `POST /hook/TAG`. Whether a token is needed, the master decides.
pub async fn tagged(
    State(api): Shared,
    Extension(from): Extension<ClientAddress>,
    Path(tag): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let caller = if credentials::are_given(&headers) { Some(api.caller(&headers, from).await?.0) } else { None };
    let (raw, post) = body::read_both(&headers, body).await?;
    let mut told = shown(&headers);
    told.insert("Remote-Addr", from.0.to_string());
    let data = value::map([("body", Value::from(raw)), ("post", post), ("headers", told)]);
    api.link.fire_hook(caller.as_ref(), from.0, &tag, data).await.map_err(|error| match error {
        LinkError::Denied(_) => Problem::unauthorized(),
        error => error.into(),
    })?;
    // Many senders of hooks accept a type that is none of these, and do not look at the answer.
    let format = Format::wanted(&headers)?;
    Ok(format.answer(&value::map([("success", true)])))
}

/// The headers, with names as Salt writes them, without credentials.
fn shown(headers: &HeaderMap) -> Value {
    let secret = |name: &str| {
        [AUTHORIZATION.as_str(), PROXY_AUTHORIZATION.as_str(), COOKIE.as_str(), TOKEN_HEADER].contains(&name)
    };
    let shown = headers.iter().filter(|(name, _)| !secret(name.as_str()));
    value::map(shown.map(|(name, text)| (title(name.as_str()), String::from_utf8_lossy(text.as_bytes()).into_owned())))
}

/// `x-github-event` as `X-Github-Event`.
fn title(name: &str) -> String {
    let mut begins = true;
    let title = name.chars().map(|c| {
        let c = if begins { c.to_ascii_uppercase() } else { c };
        begins = c == '-';
        c
    });
    title.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn credentials_are_no_headers_of_an_event() {
        let mut headers = HeaderMap::new();
        for name in ["authorization", "proxy-authorization", "cookie", "x-auth-token", "x-github-event"] {
            headers.insert(name, "secret".parse().unwrap());
        }
        assert_eq!(value::to_json(&shown(&headers)), json!({"X-Github-Event": "secret"}));
    }
}
