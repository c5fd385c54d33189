//! `/keys`: the keys of minions, and new ones.

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use brine_protocol::ids::MinionId;
use brine_protocol::value::{self, Value, ValueExt};

use super::lowstate;
use crate::address::ClientAddress;
use crate::answer::Format;
use crate::body;
use crate::chunk::{self, Client};
use crate::link::Caller;
use crate::problem::Problem;
use crate::query;
use crate::state::{Api, Shared};
use crate::work::Share;

/// `GET /keys`: the keys, and `GET /keys/ID` or `?mid=ID`: fingerprints.
pub async fn show(
    State(api): Shared,
    Extension(from): Extension<ClientAddress>,
    id: Option<Path<String>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (caller, _) = api.caller(&headers, from).await?;
    let format = Format::wanted(&headers)?;
    let keys = match query::parameter(id, query.as_deref(), "mid", &[])? {
        None => result(&api, &caller, "key.list_all", None).await?,
        Some(id) => {
            let mut keys = result(&api, &caller, "key.finger", Some(("match", Value::from(id)))).await?;
            // Asked for a minion, Salt does not tell the master's own.
            keys.remove("local");
            keys
        }
    };
    Ok(format.answer(&value::map([("return", keys)])))
}

/// `POST /keys`: makes and accepts a minion's key, with the credentials in the body, and answers both halves as a tar.
pub async fn make(
    State(api): Shared,
    Extension(from): Extension<ClientAddress>,
    Extension(share): Extension<Share>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let body = body::read(&headers, body).await?;
    let mut asked = match body {
        Value::Array(mut chunks) if chunks.len() == 1 => chunks.remove(0),
        other => other,
    };
    let id = asked.get_text("mid").and_then(|id| MinionId::try_from(id).ok());
    let id = id.ok_or_else(|| Problem::bad("mid must be the id of a minion"))?;
    asked.remove("mid");
    for (key, value) in [("client", Client::Wheel.name()), ("fun", "key.gen_accept"), ("id_", id.as_str())] {
        asked.insert(key, value);
    }
    let live = api.live();
    let mut chunks = chunk::parse(asked, &live.clients, &live.groups)?;
    let made = lowstate::run_chunks(&api, std::mem::take(&mut chunks), from, &share).await?;
    let made = made.first();
    if made.and_then(|made| made.traverse("data:success", ":")) == Some(&Value::from(false)) {
        let why = made.and_then(|made| made.traverse("data:return", ":")).map(ValueExt::python_str).unwrap_or_default();
        let why = why.lines().find(|line| !line.trim().is_empty()).unwrap_or("The key was not made");
        return Err(Problem::bad(why));
    }
    let made = made.and_then(|made| made.traverse("data:return", ":"));
    let half = |name| made.and_then(|made| made.get_text(name)).filter(|pem| !pem.is_empty());
    let (Some(public), Some(private)) = (half("pub"), half("priv")) else {
        return Err(Problem::new(StatusCode::CONFLICT, "There is a key for this minion already."));
    };
    let tar = tar_of([("minion.pub", public, 0o644), ("minion.pem", private, 0o400)])
        .map_err(|_| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "An unexpected error occurred"))?;
    let mut response = tar.into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-tar"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // An id has no quotes and no control characters.
    if let Ok(name) = HeaderValue::from_str(&format!("attachment; filename=\"saltkeys-{id}.tar\"")) {
        headers.insert(CONTENT_DISPOSITION, name);
    }
    Ok(response)
}

async fn result(api: &Api, caller: &Caller, fun: &str, arg: Option<(&str, Value)>) -> Result<Value, Problem> {
    let reply = api.run(caller, Client::Wheel, fun, arg).await?;
    Ok(reply.traverse("data:return", ":").cloned().unwrap_or_else(value::empty_map))
}

fn tar_of<const N: usize>(files: [(&str, &str, u32); N]) -> std::io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, content, mode) in files {
        let mut header = tar::Header::new_ustar();
        header.set_size(content.len() as u64);
        header.set_mode(mode);
        // Blank numbers are none to every reader.
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        archive.append_data(&mut header, name, content.as_bytes())?;
    }
    archive.into_inner()
}
