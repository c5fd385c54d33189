//! `/minions`: the grains of minions, and jobs that nobody waits for.

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use brine_protocol::value::{self, Value, ValueExt as _};

use crate::address::ClientAddress;
use crate::answer::Format;
use crate::chunk::{self, Client};
use crate::problem::Problem;
use crate::state::Shared;
use crate::{body, call, query};

/// `GET /minions[/ID]`, or `?mid=ID`.
pub async fn grains(
    State(api): Shared,
    Extension(from): Extension<ClientAddress>,
    id: Option<Path<String>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (caller, _) = api.caller(&headers, from).await?;
    let format = Format::wanted(&headers)?;
    let target = query::parameter(id, query.as_deref(), "mid", &[])?.unwrap_or_else(|| "*".to_owned());
    let found = api.run(&caller, Client::Local, "grains.items", [("tgt", Value::from(target))]).await?;
    Ok(format.answer(&value::map([("return", value::list([found]))])))
}

/// `POST /minions`: chunks as for `/`, whose client is `local_async`.
pub async fn publish(
    State(api): Shared,
    Extension(from): Extension<ClientAddress>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let (caller, _) = api.caller(&headers, from).await?;
    let format = Format::wanted(&headers)?;
    let live = api.live();
    let lowstate = named(body::read(&headers, body).await?);
    let chunks = chunk::parse(lowstate, &live.clients, &live.groups)?;
    let mut returns = Vec::with_capacity(chunks.len());
    for chunk in chunks {
        returns.extend(call::run(&*api.link, &caller, chunk.call, live.rest_timeout).await?);
    }
    let jobs = returns.iter().filter_map(|published| published.get("jid"));
    let links = jobs.map(|jid| value::map([("href", format!("{}/jobs/{}", api.paths.prefix, jid.python_str()))]));
    let links = value::map([("jobs", value::list(links))]);
    let answer = value::map([("return", Value::Array(returns)), ("_links", links)]);
    let mut response = format.answer(&answer);
    *response.status_mut() = StatusCode::ACCEPTED;
    Ok(response)
}

/// Names the only client that this path has in each chunk, whatever it says.
fn named(lowstate: Value) -> Value {
    let one = |mut chunk: Value| {
        if chunk.entries().is_some() {
            chunk.insert("client", Client::LocalAsync.name());
        }
        chunk
    };
    match lowstate {
        Value::Array(chunks) => Value::Array(chunks.into_iter().map(one).collect()),
        chunk => one(chunk),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn chunks_have_one_client() {
        let read = |json: serde_json::Value| value::to_json(&named(value::from_json(&json)));
        assert_eq!(read(json!({"fun": "a"})), json!({"fun": "a", "client": "local_async"}));
        let one = json!({"client": "local_async"});
        assert_eq!(read(json!([{"client": "local"}, {}, {"client": 1}])), json!([one, one, one]));
        assert_eq!(read(json!("a")), json!("a"));
    }
}
