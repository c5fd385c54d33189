//! `/` and `/run`: lowstate chunks.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use brine_client::LogIn;
use brine_protocol::value::{self, Value, ValueExt};

use crate::address::ClientAddress;
use crate::answer::Format;
use crate::chunk::{self, Chunk, Given};
use crate::credentials::Token;
use crate::link::{Caller, LinkError};
use crate::problem::Problem;
use crate::state::{Api, Shared};
use crate::work::Share;
use crate::{body, call};

/// `GET /`.
pub async fn welcome(State(api): Shared, headers: HeaderMap) -> Result<Response, Problem> {
    let clients = api.live().clients.iter().map(|client| client.name()).collect::<Vec<_>>();
    let welcome = value::map([("return", Value::from("Welcome")), ("clients", value::list(clients))]);
    Ok(Format::wanted(&headers)?.answer(&welcome))
}

/// `POST /`: the caller is the token of the header or the cookie, whatever a chunk says.
pub async fn lowstate(
    State(api): Shared,
    Extension(from): Extension<ClientAddress>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let (caller, _) = api.caller(&headers, from).await?;
    let format = Format::wanted(&headers)?;
    let live = api.live();
    let chunks = chunk::parse(body::read(&headers, body).await?, &live.clients, &live.groups)?;
    let mut returns = Vec::with_capacity(chunks.len());
    for chunk in chunks {
        returns.extend(call::run(&*api.link, &caller, chunk.call, live.rest_timeout).await?);
    }
    Ok(format.answer(&value::map([("return", returns)])))
}

/// `POST /run`: each chunk has its caller's token, or name and password. All of them are proved before a chunk runs.
pub async fn run(
    State(api): Shared,
    Extension(from): Extension<ClientAddress>,
    Extension(share): Extension<Share>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let format = Format::wanted(&headers)?;
    let live = api.live();
    let chunks = chunk::parse(body::read(&headers, body).await?, &live.clients, &live.groups)?;
    let returns = run_chunks(&api, chunks, from, &share).await?;
    Ok(format.answer(&value::map([("return", returns)])))
}

/// Runs chunks, each for its own caller.
///
/// # Errors
/// When a caller is nobody, before any of them runs; or when one of them fails.
pub async fn run_chunks(
    api: &Arc<Api>,
    chunks: Vec<Chunk>,
    from: ClientAddress,
    share: &Share,
) -> Result<Vec<Value>, Problem> {
    let live = api.live();
    let mut log_ins = Vec::new();
    let mut calls = Vec::with_capacity(chunks.len());
    for Chunk { call, credentials } in chunks {
        let has_token = credentials.token.is_some();
        calls.push((prove(api, credentials, from, share, &mut log_ins).await?, has_token, call));
    }
    let mut returns = Vec::with_capacity(calls.len());
    for (caller, has_token, call) in calls {
        let done = call::run(&*api.link, &caller, call, live.rest_timeout).await;
        returns.extend(done.map_err(|problem| if has_token { problem } else { problem.of_a_password() })?);
    }
    Ok(returns)
}

/// A caller of a chunk that is nobody, in Salt's words.
fn unproven() -> Problem {
    Problem::unauthorized_because("Authentication error occurred.")
}

/// Returns the caller of a chunk by its own token, or by that of its name and password, which are checked once in a request.
async fn prove(
    api: &Arc<Api>,
    given: Given,
    from: ClientAddress,
    share: &Share,
    log_ins: &mut Vec<(LogIn, Brief)>,
) -> Result<Caller, Problem> {
    if let Some(token) = given.token {
        let token = Token::parse(token.expose()).map_err(|_| Problem::unauthorized_because("Invalid token"))?;
        let caller = Caller { token, address: from.0 };
        return match api.confirm(&caller).await {
            Err(problem) if problem == Problem::unauthorized() => Err(unproven()),
            confirmed => confirmed.map(|_| caller),
        };
    }
    let none = || Problem::unauthorized_because("No authentication credentials given");
    let (username, password, eauth) = given.log_in.ok_or_else(none)?;
    api.live().rules.check_user(&username, from)?;
    let log_in = LogIn::External { eauth, username, password, token_expire: None };
    if let Some((_, brief)) = log_ins.iter().find(|(known, _)| *known == log_in) {
        return Ok(brief.caller.clone());
    }
    // A task, because a caller that leaves meanwhile ends this request, but the token must end as well.
    // As long as it asks the master, it counts as work.
    let (shared, asked, share) = (Arc::clone(api), log_in.clone(), share.clone());
    let task = tokio::spawn(async move {
        let data = shared.link.log_in(&asked, from.0).await.map_err(|error| match error {
            LinkError::Denied(_) => unproven(),
            error => error.into(),
        })?;
        let token = Token::parse(data.get_text("token").unwrap_or_default())?;
        drop(share);
        Ok::<_, Problem>(Brief { caller: Caller { token, address: from.0 }, api: shared })
    });
    let unexpected = |_| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "An unexpected error occurred");
    let brief = task.await.map_err(unexpected)??;
    let caller = brief.caller.clone();
    log_ins.push((log_in, brief));
    Ok(caller)
}

/// A token for one request, which ends with it, however that ends.
struct Brief {
    caller: Caller,
    api: Arc<Api>,
}

impl Drop for Brief {
    fn drop(&mut self) {
        let (caller, api) = (self.caller.clone(), Arc::clone(&self.api));
        tokio::spawn(async move {
            if let Err(error) = api.link.end_token(&caller).await {
                tracing::warn!("the token of a request to /run stays until it expires: {error}");
            }
        });
    }
}
