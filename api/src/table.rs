//! The table of paths, from which both the router and `/openapi.json` come, so that neither has what the other lacks.

use axum::Router;
use axum::handler::Handler;
use axum::http::header::CONTENT_TYPE;
use axum::routing::{MethodFilter, get, on};
use serde_json::{Map, Value, json};

/// Where the description of all paths is.
const DESCRIPTION: &str = "/openapi.json";

/// What proves the caller of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// Nothing.
    None,
    /// Name and password, or tokens, in the body.
    Body,
    /// The token.
    Token,
}

/// Paths with their handlers and descriptions.
#[derive(Debug)]
pub struct Table<S> {
    router: Router<S>,
    paths: Map<String, Value>,
}

impl<S: Clone + Send + Sync + 'static> Table<S> {
    /// Without a path.
    pub fn new() -> Self {
        Self { router: Router::new(), paths: Map::new() }
    }

    /// Adds a path that answers GET (and HEAD).
    #[must_use]
    pub fn get<T: 'static>(self, path: &str, proof: Proof, summary: &str, handler: impl Handler<T, S>) -> Self {
        let (router, mut paths) = (self.router.route(path, on(MethodFilter::GET, handler)), self.paths);
        describe(&mut paths, path, "get", proof, summary);
        Self { router, paths }
    }

    /// Adds a path that answers POST.
    #[must_use]
    pub fn post<T: 'static>(self, path: &str, proof: Proof, summary: &str, handler: impl Handler<T, S>) -> Self {
        let (router, mut paths) = (self.router.route(path, on(MethodFilter::POST, handler)), self.paths);
        describe(&mut paths, path, "post", proof, summary);
        Self { router, paths }
    }

    /// Adds files: `router` answers GET at these paths and below them, to everybody.
    #[must_use]
    pub fn files(self, router: Router<S>, at: &[&str]) -> Self {
        let (router, mut paths) = (self.router.merge(router), self.paths);
        for path in at {
            describe(&mut paths, path, "get", Proof::None, "Files for browsers, here and below");
        }
        Self { router, paths }
    }

    /// The router of all paths and of their description. `prefix` stands before each of them.
    pub fn router(mut self, prefix: &str) -> Router<S> {
        describe(&mut self.paths, DESCRIPTION, "get", Proof::None, "This description");
        let text = description(&self.paths, prefix).to_string();
        self.router.route(DESCRIPTION, get(|| async { ([(CONTENT_TYPE, "application/json")], text) }))
    }
}

impl<S: Clone + Send + Sync + 'static> Default for Table<S> {
    fn default() -> Self {
        Self::new()
    }
}

fn describe(paths: &mut Map<String, Value>, path: &str, method: &str, proof: Proof, summary: &str) {
    // The rest of a path is one parameter there as well.
    let path = &*path.replace("{*", "{");
    let parameter = |name: &str| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}});
    let parameters: Vec<Value> = path.split(['{', '}']).skip(1).step_by(2).map(parameter).collect();
    let mut operation = json!({
        "summary": summary,
        "parameters": parameters,
        "responses": {
            "2XX": {"description": "The answer, as JSON or YAML"},
            "default": {"description": "A refusal: a page of HTML"},
        },
    });
    if method == "post" {
        let kinds = ["application/json", "application/x-www-form-urlencoded", "application/x-yaml"];
        let content: Map<String, Value> = kinds.into_iter().map(|kind| (kind.to_owned(), json!({}))).collect();
        operation["requestBody"] = json!({"required": true, "content": content});
    }
    match proof {
        Proof::Token => operation["security"] = json!([{"header": []}, {"bearer": []}, {"cookie": []}]),
        Proof::Body => operation["description"] = json!("The body has the credentials."),
        Proof::None => {}
    }
    let item = paths.entry(path).or_insert_with(|| json!({}));
    item[method] = operation;
}

fn description(paths: &Map<String, Value>, prefix: &str) -> Value {
    json!({
        "openapi": "3.1.0",
        "info": {"title": "salt-api", "version": env!("CARGO_PKG_VERSION")},
        "servers": [{"url": if prefix.is_empty() { "/" } else { prefix }}],
        "paths": paths,
        "components": {"securitySchemes": {
            "header": {"type": "apiKey", "in": "header", "name": "X-Auth-Token"},
            "bearer": {"type": "http", "scheme": "bearer"},
            "cookie": {"type": "apiKey", "in": "cookie", "name": "session_id"},
        }},
    })
}
