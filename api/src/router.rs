//! The paths of salt-api, and the layers around them.

use std::sync::Arc;

use axum::Router;
use axum::http::{StatusCode, Uri};
use axum::middleware;

use crate::guard;
use crate::paths::{app, events, hook, jobs, keys, lowstate, minions, session, stats, token};
use crate::problem::Problem;
use crate::state::Api;
use crate::table::{Proof, Table};
use crate::v1;

/// Makes the router.
pub fn router(api: Arc<Api>) -> Router {
    let paths = v1::add(Table::new())
        .get("/", Proof::None, "The clients that are enabled", lowstate::welcome)
        .post("/", Proof::Token, "Runs functions: a chunk, or a list of chunks", lowstate::lowstate)
        .get("/login", Proof::None, "Asks for a log-in", session::ask)
        .post("/login", Proof::Body, "Begins a session", session::log_in)
        .post("/logout", Proof::Token, "Ends the token", session::log_out)
        .post("/run", Proof::Body, "Runs functions without a session: credentials in each chunk", lowstate::run)
        .get("/events", Proof::Token, "Events as they come: server-sent events", events::events)
        .get("/ws", Proof::Token, "Events as they come: a WebSocket", events::ws)
        .post(
            &api.paths.hook,
            Proof::Token,
            "Fires the event of a hook; without a token if webhook_disable_auth is set",
            hook::plain,
        )
        .post(&format!("{}/{{*tag}}", api.paths.hook), Proof::Token, "The same, with a tag of its own", hook::tagged)
        .post("/token", Proof::Body, "Makes tokens: a bare list", token::make)
        .get("/run", Proof::None, "The clients that are enabled", lowstate::welcome)
        .get("/token", Proof::None, "The clients that are enabled", lowstate::welcome)
        .get("/minions", Proof::Token, "The grains of all minions, or of the minion `mid`", minions::grains)
        .post("/minions", Proof::Token, "Starts jobs", minions::publish)
        .get("/minions/{id}", Proof::Token, "The grains of a minion", minions::grains)
        .get("/jobs", Proof::Token, "The jobs that are stored, or the job `jid`", jobs::show)
        .post("/jobs", Proof::Token, "Runs functions, as /", lowstate::lowstate)
        .get("/jobs/{jid}", Proof::Token, "A job and its returns", jobs::show)
        .get("/keys", Proof::Token, "The keys of minions, or the fingerprint of the minion `mid`", keys::show)
        .post("/keys", Proof::Body, "Makes and accepts the key of a minion: a tar", keys::make)
        .get("/keys/{id}", Proof::Token, "Fingerprints", keys::show)
        .get("/stats", Proof::Token, "Counts; without a token if stats_disable_auth is set", stats::show)
        .files(app::routes(&api.app), &app::paths(&api.app))
        .router(&api.paths.prefix);
    let prefix = api.paths.prefix.as_str();
    let paths = if prefix.is_empty() { paths } else { Router::new().nest(prefix, paths) };
    paths
        .fallback(app::nothing)
        .method_not_allowed_fallback(|| async {
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "Specified method is invalid for this resource")
        })
        .layer(middleware::from_fn_with_state(Arc::clone(&api), app::to_browsers))
        .layer(middleware::from_fn_with_state(Arc::clone(&api), guard::guard))
        .layer(middleware::from_fn_with_state(Arc::clone(&api), v1::as_json))
        .layer(middleware::from_fn_with_state(Arc::clone(&api), stats::count))
        .with_state(api)
}

/// The same address without empty parts of its path, such as at its end: they name the same in Salt.
pub fn without_empty_parts(uri: &Uri) -> Option<Uri> {
    let path = uri.path();
    if !path.starts_with('/') || path == "/" || !path.contains("//") && !path.ends_with('/') {
        return None;
    }
    let mut short = String::with_capacity(path.len());
    for part in path.split('/').filter(|part| !part.is_empty()) {
        short.push('/');
        short.push_str(part);
    }
    let short = if short.is_empty() { "/" } else { &short };
    uri.query().map_or_else(|| short.to_owned(), |query| format!("{short}?{query}")).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_parts_of_a_path_are_left_out() {
        let short = |uri: &str| without_empty_parts(&uri.parse().unwrap()).map(|uri| uri.to_string());
        for (long, shorter) in [
            ("/login/", "/login"),
            ("/login//?a=1", "/login?a=1"),
            ("//", "/"),
            ("/hook//a///b/", "/hook/a/b"),
            ("//evil.example/login", "/evil.example/login"),
        ] {
            assert_eq!(short(long).as_deref(), Some(shorter), "{long}");
        }
        for same in ["/", "/login", "/login?a=//", "/hook/a%2F%2Fb", "*"] {
            assert_eq!(short(same), None, "{same}");
        }
    }
}
