//! Refusals below `/v1` as problem JSON (RFC 9457), wherever they come from.

use axum::extract::{Request, State};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use serde_json::json;

use crate::problem::Problem;
use crate::state::Shared;

/// The layer that replaces the pages of refusals. Status and headers stay.
pub async fn as_json(State(api): Shared, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let path = path.strip_prefix(api.paths.prefix.as_str()).unwrap_or(path);
    let is_read = path == "/v1" || path.starts_with("/v1/");
    let response = next.run(request).await;
    match response.extensions().get::<Problem>().cloned() {
        Some(problem) if is_read => with_json(&problem, response),
        _ => response,
    }
}

fn with_json(problem: &Problem, response: Response) -> Response {
    let status: StatusCode = problem.status();
    let title = status.canonical_reason().unwrap_or_default();
    let told = json!({"type": "about:blank", "title": title, "status": status.as_u16(), "detail": problem.message()});
    let (mut head, _) = response.into_parts();
    head.headers.remove(CONTENT_LENGTH);
    head.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    (head, told.to_string()).into_response()
}
