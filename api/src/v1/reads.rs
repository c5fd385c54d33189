//! The paths of the reads. A path without a query of the same name is 404; a parameter that the query does not take is 400.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use brine_protocol::value::{self, Value, ValueExt as _, map};

use crate::address::ClientAddress;
use crate::body;
use crate::link::{Caller, LinkError};
use crate::problem::Problem;
use crate::state::{Api, Shared};
use crate::table::{Proof, Table};

/// Upper bound on the parameters of a query; each read takes a few.
const PARAMETERS_MAX: usize = 64;

/// Adds the paths.
pub fn add(table: Table<Arc<Api>>) -> Table<Arc<Api>> {
    table
        .get("/v1/me", Proof::Token, "The caller, and what it may do", me)
        .get("/v1/fleet", Proof::Token, "Minions, a page at a time", |from, api, query, headers| {
            list("fleet", from, api, query, headers)
        })
        .get("/v1/fleet/{id}", Proof::Token, "A minion", |one, from, api, query, headers| {
            single(("minion", "id"), one, from, api, query, headers)
        })
        .get("/v1/jobs", Proof::Token, "Jobs, a page at a time", |from, api, query, headers| {
            list("jobs", from, api, query, headers)
        })
        .get("/v1/jobs/{jid}", Proof::Token, "A job with its returns", |one, from, api, query, headers| {
            single(("job", "jid"), one, from, api, query, headers)
        })
        .get("/v1/keys", Proof::Token, "Keys with fingerprints, a page at a time", |from, api, query, headers| {
            list("keys", from, api, query, headers)
        })
        .get("/v1/modules", Proof::Token, "Modules of master and minions", |from, api, query, headers| {
            list("modules", from, api, query, headers)
        })
        .get("/v1/held", Proof::Token, "Updates that hosts hold back", |from, api, query, headers| {
            list("held", from, api, query, headers)
        })
        .post("/v1/plan", Proof::Token, "What a call would need, before it is made", plan)
}

type From = Extension<ClientAddress>;

/// `GET /v1/me`: the token's data, and what its user may do.
async fn me(
    Extension(from): From,
    State(api): Shared,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (caller, data) = api.caller(&headers, from).await?;
    let may = ask(&api, &caller, "me", parameters(query.as_deref())?).await?;
    let perms = api.link.perms(&caller).await?;
    let clients: Vec<&str> = api.live().clients.iter().map(|client| client.name()).collect();
    let field = |key: &str| data.get(key).cloned().unwrap_or(Value::Nil);
    Ok(json(&map([
        ("user", field("name")),
        ("eauth", field("eauth")),
        ("start", field("start")),
        ("expire", field("expire")),
        ("clients", value::list(clients)),
        ("perms", Value::Array(perms)),
        ("may", may),
    ])))
}

async fn list(
    name: &'static str,
    Extension(from): From,
    State(api): Shared,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (caller, _) = api.caller(&headers, from).await?;
    Ok(json(&ask(&api, &caller, name, parameters(query.as_deref())?).await?))
}

async fn single(
    (name, key): (&'static str, &'static str),
    Path(one): Path<String>,
    Extension(from): From,
    State(api): Shared,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (caller, _) = api.caller(&headers, from).await?;
    let mut args = parameters(query.as_deref())?;
    if args.has(key) {
        return Err(twice(key));
    }
    args.insert(key, one);
    Ok(json(&ask(&api, &caller, name, args).await?))
}

/// `POST /v1/plan`: a read with a body, because targets are long.
async fn plan(State(api): Shared, Extension(from): From, headers: HeaderMap, body: Body) -> Result<Response, Problem> {
    let (caller, _) = api.caller(&headers, from).await?;
    let args = body::read(&headers, body).await?;
    Ok(json(&ask(&api, &caller, "plan", args).await?))
}

/// Asks the master. The token was good, so a refusal is about the user's rights.
async fn ask(api: &Api, caller: &Caller, name: &str, args: Value) -> Result<Value, Problem> {
    let mut reply = api.link.query(caller, name, args).await.map_err(|error| match error {
        LinkError::Denied(_) => Problem::new(StatusCode::FORBIDDEN, "You have no permission to see this"),
        error => error.into(),
    })?;
    let answer = reply.remove("answer").unwrap_or(Value::Nil);
    if answer.is_nil() {
        return Err(Problem::new(StatusCode::NOT_FOUND, "There is no such thing here, or it is not yours to see"));
    }
    Ok(answer)
}

/// Returns the parameters of a query, each as its text.
fn parameters(query: Option<&str>) -> Result<Value, Problem> {
    let mut args = value::empty_map();
    for (name, text) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        if args.has(&name) {
            return Err(twice(&name));
        }
        if args.entries().is_some_and(|args| args.len() == PARAMETERS_MAX) {
            return Err(Problem::bad(format!("there are more than {PARAMETERS_MAX} parameters")));
        }
        args.insert(&name, text.into_owned());
    }
    Ok(args)
}

fn twice(name: &str) -> Problem {
    Problem::bad(format!("the parameter {:?} is given twice", name.chars().take(64).collect::<String>()))
}

fn json(answer: &Value) -> Response {
    let mut response = Body::from(value::to_json(answer).to_string()).into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_is_given_once() {
        let args = parameters(Some("q=web%2A&limit=5&state=")).unwrap();
        assert_eq!(args, map([("q", "web*"), ("limit", "5"), ("state", "")]));
        assert_eq!(parameters(None).unwrap(), value::empty_map());
        assert_eq!(parameters(Some("q=a&q=b")).unwrap_err().status(), StatusCode::BAD_REQUEST);
    }
}
