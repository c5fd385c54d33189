//! `/jobs`: what the job store has.

use axum::Extension;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use brine_protocol::value::{self, Value, ValueExt as _};

use crate::address::ClientAddress;
use crate::answer::Format;
use crate::chunk::Client;
use crate::problem::Problem;
use crate::state::Shared;

/// `GET /jobs`.
pub async fn list(
    State(api): Shared,
    Extension(from): Extension<ClientAddress>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let format = Format::wanted(&headers)?;
    let (caller, _) = api.caller(&headers, from).await?;
    let jobs = api.run(&caller, Client::Runner, "jobs.list_jobs", []).await?;
    Ok(format.answer(&value::map([("return", value::list([jobs]))])))
}

/// `GET /jobs/JID`.
pub async fn one(
    State(api): Shared,
    Extension(from): Extension<ClientAddress>,
    Path(jid): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let format = Format::wanted(&headers)?;
    let (caller, _) = api.caller(&headers, from).await?;
    let info = api.run(&caller, Client::Runner, "jobs.list_job", [("jid", Value::from(jid))]).await?;
    let Some(results) = info.get("Result").and_then(Value::entries) else {
        return Err(Problem::new(StatusCode::NOT_FOUND, "There is no such job."));
    };
    if info.has("Error") {
        return Err(Problem::new(StatusCode::NOT_FOUND, "There is no such job."));
    }
    let ret = |(id, result): &(Value, Value)| (id.clone(), result.get("return").cloned().unwrap_or(Value::Nil));
    let returns = Value::Map(results.iter().map(ret).collect());
    Ok(format.answer(&value::map([("info", value::list([info])), ("return", value::list([returns]))])))
}
