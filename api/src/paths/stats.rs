//! `/stats`.

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::middleware::Next;
use axum::response::Response;

use crate::address::ClientAddress;
use crate::answer::Format;
use crate::problem::Problem;
use crate::state::Shared;

/// Counts each request.
pub async fn count(State(api): Shared, request: Request, next: Next) -> Response {
    let current = api.stats.begin();
    let response = next.run(request).await;
    current.answered(response.status());
    response
}

/// `GET /stats`.
pub async fn show(
    State(api): Shared,
    Extension(from): Extension<ClientAddress>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if !api.live().open_stats {
        api.caller(&headers, from).await?;
    }
    let format = Format::wanted(&headers)?;
    Ok(format.answer(&api.stats.value(api.link.is_up())))
}
