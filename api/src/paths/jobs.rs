//! `/jobs`: what the job store has.

use axum::Extension;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use brine_protocol::value::{self, Value, ValueExt as _};

use crate::address::ClientAddress;
use crate::answer::Format;
use crate::chunk::Client;
use crate::link::Caller;
use crate::problem::Problem;
use crate::query;
use crate::state::{Api, Shared};

/// `GET /jobs[/JID]`, or `?jid=JID`. Salt takes a `timeout` as well, and does nothing with it.
pub async fn show(
    State(api): Shared,
    Extension(from): Extension<ClientAddress>,
    jid: Option<Path<String>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (caller, _) = api.caller(&headers, from).await?;
    let format = Format::wanted(&headers)?;
    let answer = match query::parameter(jid, query.as_deref(), "jid", &["timeout"])? {
        Some(jid) => one(&api, &caller, jid).await?,
        None => {
            let jobs = api.run(&caller, Client::Runner, "jobs.list_jobs", []).await?;
            value::map([("return", value::list([jobs]))])
        }
    };
    Ok(format.answer(&answer))
}

async fn one(api: &Api, caller: &Caller, jid: String) -> Result<Value, Problem> {
    let info = api.run(caller, Client::Runner, "jobs.list_job", [("jid", Value::from(jid))]).await?;
    let unknown = || Problem::new(StatusCode::NOT_FOUND, "There is no such job.");
    let results = info.get("Result").and_then(Value::entries).filter(|_| !info.has("Error")).ok_or_else(unknown)?;
    let ret = |(id, result): &(Value, Value)| (id.clone(), result.get("return").cloned().unwrap_or(Value::Nil));
    let returns = Value::Map(results.iter().map(ret).collect());
    Ok(value::map([("info", value::list([info])), ("return", value::list([returns]))]))
}
