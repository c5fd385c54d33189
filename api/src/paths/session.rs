//! `/login` and `/logout`: the master's tokens.

use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{SET_COOKIE, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::Response;
use brine_client::LogIn;
use brine_protocol::pyrepr;
use brine_protocol::secret::Secret;
use brine_protocol::value::{self, Value, ValueExt};

use crate::address::ClientAddress;
use crate::answer::Format;
use crate::body;
use crate::chunk::Given;
use crate::credentials::{self, COOKIE_NAME, TOKEN_HEADER, Token};
use crate::link::{Caller, LinkError};
use crate::problem::Problem;
use crate::state::Shared;

/// `GET /login`.
pub async fn ask(headers: HeaderMap) -> Result<Response, Problem> {
    let please = value::map([("status", Value::Nil), ("return", Value::from("Please log in"))]);
    let mut response = Format::wanted(&headers)?.answer(&please);
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Session"));
    Ok(response)
}

/// `POST /login`.
pub async fn log_in(
    State(api): Shared,
    Extension(from): Extension<ClientAddress>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let format = Format::wanted(&headers)?;
    let body = body::read(&headers, body).await?;
    let given = Given::read(body.list().and_then(<[_]>::first).unwrap_or(&body));
    let wrong = || Problem::unauthorized_because("Could not authenticate using provided credentials");
    let (username, password, eauth) = given.log_in.ok_or_else(wrong)?;
    let live = api.live();
    live.rules.check_user(&username, from)?;
    let log_in = LogIn::External { eauth, username, password, token_expire: given.expire };
    let data = api.link.log_in(&log_in, from.0).await.map_err(|error| match error {
        LinkError::Denied(_) => wrong(),
        error => error.into(),
    })?;
    let field = |key: &str| data.get(key).cloned().unwrap_or(Value::Nil);
    let token = data.get_text("token").unwrap_or_default();
    let caller = Caller { token: Token::parse(token)?, address: from.0 };
    let perms = api.link.perms(&caller).await?;
    let shown = value::map([
        ("token", field("token")),
        ("expire", field("expire")),
        ("start", field("start")),
        ("user", field("name")),
        ("eauth", field("eauth")),
        ("perms", shown(perms)),
    ]);
    let mut response = format.answer(&value::map([("return", value::list([shown]))]));
    let life = field("expire").as_f64().unwrap_or_default() - field("start").as_f64().unwrap_or_default();
    // A page of another site could otherwise put its visitor into a session of its own choice.
    if live.rules.sessions && !credentials::is_foreign(&headers, &live.rules, api.tls) {
        set_cookie(&mut response, token, Duration::try_from_secs_f64(life).unwrap_or_default(), api.tls);
    }
    if let Some(value) = secret_header(token) {
        response.headers_mut().insert(HeaderName::from_static(TOKEN_HEADER), value);
    }
    Ok(response)
}

/// Permissions as Salt shows them: each once, texts before what is no text, both in order; an empty map if there are none.
fn shown(perms: Vec<Value>) -> Value {
    let (mut texts, mut others): (Vec<Value>, Vec<Value>) = perms.into_iter().partition(|perm| perm.text().is_some());
    texts.sort_by(|a, b| a.text().cmp(&b.text()));
    texts.dedup();
    others.sort_by_cached_key(pyrepr::repr);
    others.dedup();
    texts.append(&mut others);
    if texts.is_empty() { value::empty_map() } else { Value::Array(texts) }
}

/// `POST /logout`.
pub async fn log_out(
    State(api): Shared,
    Extension(from): Extension<ClientAddress>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (caller, _) = api.caller(&headers, from).await?;
    let format = Format::wanted(&headers)?;
    api.link.end_token(&caller).await?;
    let mut response = format.answer(&value::map([("return", "Your token has been cleared")]));
    set_cookie(&mut response, "", Duration::ZERO, api.tls);
    Ok(response)
}

fn set_cookie(response: &mut Response, token: &str, life: Duration, tls: bool) {
    let secure = if tls { "; Secure" } else { "" };
    let cookie = Secret::new(format!(
        "{COOKIE_NAME}={token}; Max-Age={}; Path=/; HttpOnly; SameSite=Strict{secure}",
        life.as_secs()
    ));
    if let Some(value) = secret_header(cookie.expose()) {
        response.headers_mut().insert(SET_COOKIE, value);
    }
}

/// A header that does not print.
fn secret_header(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn permissions_are_in_salts_order() {
        let shown = |perms: serde_json::Value| {
            value::to_json(&shown(value::from_json(&perms).list().unwrap_or_default().to_vec()))
        };
        assert_eq!(shown(json!(["grains.*", "@wheel", "grains.*"])), json!(["@wheel", "grains.*"]));
        let by_minion = json!([{"G@id:b": ["@jobs"]}, "z", {"G@id:a": ["@jobs"]}, {"G@id:b": ["@jobs"]}]);
        assert_eq!(shown(by_minion), json!(["z", {"G@id:a": ["@jobs"]}, {"G@id:b": ["@jobs"]}]));
        assert_eq!(shown(json!([])), json!({}));
    }
}
