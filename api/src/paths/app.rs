//! Pages for browsers: an application of the operator's (`app`, `static`), such as SaltGUI, or else the console.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::header::{ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::{Next, map_response};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, get_service};
use tower::ServiceExt as _;
use tower_http::services::{ServeDir, ServeFile};

use crate::console;
use crate::pages::{AppOpts, ICON};
use crate::problem::Problem;
use crate::state::{Api, Shared};

/// Adds the paths of the application.
pub fn routes(opts: &AppOpts) -> Router<Arc<Api>> {
    let mut router = Router::new();
    let below = format!("{}/{{*rest}}", opts.path);
    if let Some(page) = &opts.page {
        let file = || get_service(ServeFile::new(page));
        router = router.route(&opts.path, file()).route(&below, file());
    }
    if let Some(folder) = &opts.folder {
        router = router.nest_service(&opts.folder_path, ServeDir::new(folder).append_index_html_on_directories(false));
    }
    if let Some(icon) = &opts.icon {
        router = router.route(ICON, get_service(ServeFile::new(icon)));
    }
    router = router.layer(map_response(as_a_page));
    if opts.page.is_none() {
        router = router
            .route(&opts.path, get(console_page))
            .route(&below, get(console_page))
            .route(&format!("{}{}/{{version}}/{{name}}", opts.path, console::FOLDER), get(console_file));
    }
    router
}

async fn console_page(State(api): Shared, headers: HeaderMap) -> Response {
    console::page(&headers, &api.paths.prefix, &api.app.path)
}

async fn console_file(headers: HeaderMap, Path((version, name)): Path<(String, String)>) -> Result<Response, Problem> {
    console::file(&headers, &version, &name).ok_or_else(Problem::not_found)
}

/// Where the application or the console is, as far as there is one.
pub fn paths(opts: &AppOpts) -> Vec<&str> {
    let page = (opts.page.is_some() || console::is_there()).then_some(opts.path.as_str());
    let folder = opts.folder.as_ref().map(|_| opts.folder_path.as_str());
    page.into_iter().chain(folder).chain(opts.icon.as_ref().map(|_| ICON)).collect()
}

/// The paths whose answer is a stream. Whoever opens one of them in a browser wants that.
const STREAMS: [&str; 2] = ["/events", "/ws"];

/// Answers the page to whoever looks at any other path with a browser, as Salt does.
pub async fn to_browsers(State(api): Shared, request: Request, next: Next) -> Response {
    let page = api.app.page.as_ref();
    if page.is_none() && !console::is_there() {
        return next.run(request).await;
    }
    let path = request.uri().path();
    let path = path.strip_prefix(&api.paths.prefix).unwrap_or(path);
    let is_own = [&api.app.path, &api.app.folder_path]
        .into_iter()
        .any(|own| path.strip_prefix(own.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')));
    if is_own
        || STREAMS.contains(&path)
        || !matches!(*request.method(), Method::GET | Method::HEAD)
        || !wants_page(request.headers())
    {
        return next.run(request).await;
    }
    let Some(page) = page else { return console_page(State(api), request.headers().clone()).await };
    match ServeFile::new(page).oneshot(request).await {
        Ok(response) => as_a_page(response.into_response()).await,
        Err(never) => match never {},
    }
}

/// Sets the headers of a file: browsers ask each time whether it is still the same, and what it may load is said by the
/// application itself.
async fn as_a_page(mut response: Response) -> Response {
    // A file that is not there has a page that says so, as each other path.
    if response.status() == StatusCode::NOT_FOUND {
        return Problem::not_found().into_response();
    }
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static("frame-ancestors 'none'"));
    response
}

/// Whether `Accept` names HTML, as browsers do for what a person opens, and nothing of what the paths answer before it.
fn wants_page(headers: &HeaderMap) -> bool {
    let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let mut kinds = accept.split(',').map(|kind| kind.split(';').next().unwrap_or_default().trim());
    kinds.find(|kind| ["text/html", "application/json", "application/x-yaml", "text/event-stream"].contains(kind))
        == Some("text/html")
}

/// A path that is not there.
pub async fn nothing() -> Problem {
    Problem::not_found()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_want_pages() {
        let wants = |accept: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, accept.parse().unwrap());
            wants_page(&headers)
        };
        assert!(wants("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"));
        for other in ["", "*/*", "application/json", "application/json, text/html", "text/event-stream", "image/png"] {
            assert!(!wants(other), "{other}");
        }
    }
}
