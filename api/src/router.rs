//! The table of paths.

use std::sync::Arc;

use axum::Router;
use axum::http::{StatusCode, Uri};
use axum::middleware;
use axum::routing::{get, post};

use crate::guard;
use crate::paths::{app, events, hook, jobs, keys, lowstate, minions, session, stats, token};
use crate::problem::Problem;
use crate::state::Api;
use crate::v1;

/// Makes the router.
pub fn router(api: Arc<Api>) -> Router {
    let paths = Router::new()
        .route("/", get(lowstate::welcome).post(lowstate::lowstate))
        .route("/login", get(session::ask).post(session::log_in))
        .route("/logout", post(session::log_out))
        .route("/run", post(lowstate::run))
        .route("/events", get(events::events))
        .route("/ws", get(events::ws))
        .route("/hook", post(hook::plain))
        .route("/hook/{*tag}", post(hook::tagged))
        .route("/token", post(token::make))
        .route("/minions", get(minions::grains).post(minions::publish))
        .route("/minions/{id}", get(minions::grains))
        .route("/jobs", get(jobs::list))
        .route("/jobs/{jid}", get(jobs::one))
        .route("/keys", get(keys::list).post(keys::make))
        .route("/keys/{id}", get(keys::one))
        .route("/stats", get(stats::show))
        .merge(v1::routes())
        .merge(app::routes(&api.app));
    let paths = if api.prefix.is_empty() { paths } else { Router::new().nest(&api.prefix, paths) };
    paths
        .fallback(app::nothing)
        .method_not_allowed_fallback(|| async {
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "Specified method is invalid for this resource.")
        })
        .layer(middleware::from_fn_with_state(Arc::clone(&api), app::to_browsers))
        .layer(middleware::from_fn_with_state(Arc::clone(&api), guard::guard))
        .layer(middleware::from_fn_with_state(Arc::clone(&api), v1::as_json))
        .layer(middleware::from_fn_with_state(Arc::clone(&api), stats::count))
        .with_state(api)
}

/// The same address without a `/` at its end, where Salt has the same path.
pub fn without_slash(uri: &Uri) -> Option<Uri> {
    let path = uri.path();
    let short = path.trim_end_matches('/');
    if short.len() == path.len() || short.is_empty() && path == "/" {
        return None;
    }
    let short = if short.is_empty() { "/" } else { short };
    uri.query().map_or_else(|| short.to_owned(), |query| format!("{short}?{query}")).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slash_at_the_end_is_left_out() {
        let short = |uri: &str| without_slash(&uri.parse().unwrap()).map(|uri| uri.to_string());
        for (long, shorter) in [("/login/", "/login"), ("/login//?a=1", "/login?a=1"), ("//", "/")] {
            assert_eq!(short(long).as_deref(), Some(shorter), "{long}");
        }
        for same in ["/", "/login", "/login?a=/"] {
            assert_eq!(short(same), None, "{same}");
        }
    }
}
