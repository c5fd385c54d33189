//! `/token`: tokens for requests to `/run`, without a session.

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use brine_client::LogIn;
use brine_protocol::value::{self, Value, ValueExt as _};

use crate::address::ClientAddress;
use crate::answer::Format;
use crate::body;
use crate::chunk::{CHUNKS_MAX, Given};
use crate::link::LinkError;
use crate::problem::Problem;
use crate::state::Shared;

/// The fields of a token's data, in Salt's order.
const FIELDS: [&str; 5] = ["start", "expire", "name", "eauth", "token"];

/// `POST /token`: one log-in, or a list of them. The answer is a bare list. All are complete before the first is tried.
pub async fn make(
    State(api): Shared,
    Extension(from): Extension<ClientAddress>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let format = Format::wanted(&headers)?;
    let body = body::read(&headers, body).await?;
    let given = body.list().unwrap_or(std::slice::from_ref(&body));
    if given.len() > CHUNKS_MAX {
        return Err(Problem::bad(format!("A request has at most {CHUNKS_MAX} log-ins")));
    }
    let rules = api.live();
    let mut log_ins = Vec::with_capacity(given.len());
    for one in given {
        let incomplete = || Problem::bad("Require \"username\", \"password\", and \"eauth\" params");
        let given = Given::read(one);
        let (username, password, eauth) = given.log_in.ok_or_else(incomplete)?;
        rules.rules.check_user(&username, from)?;
        log_ins.push(LogIn::External { eauth, username, password, token_expire: given.expire });
    }
    let mut tokens = Vec::with_capacity(log_ins.len());
    for log_in in &log_ins {
        let data = api.link.log_in(log_in, from.0).await.map_err(|error| match error {
            // Salt repeats the name. Into its place, people write passwords.
            LinkError::Denied(_) => Problem::unauthorized_because("Authentication failure of type \"eauth\" occurred."),
            error => error.into(),
        })?;
        tokens.push(value::map(FIELDS.map(|key| (key, data.get(key).cloned().unwrap_or(Value::Nil)))));
    }
    Ok(format.answer(&value::list(tokens)))
}
