//! The paths.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{SET_COOKIE, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use brine_client::LogIn;
use brine_protocol::secret::Secret;
use brine_protocol::target::Nodegroups;
use brine_protocol::value::{self, Value, ValueExt};

use crate::answer::Format;
use crate::chunk::{self, Chunk, Client, Given};
use crate::credentials::{self, COOKIE_NAME, TOKEN_HEADER, Token};
use crate::link::Link;
use crate::problem::Problem;
use crate::{body, call};

/// Names of credentials, which a query must not have: proxies and browsers write queries down.
const NOT_IN_QUERIES: [&str; 3] = ["token", "password", "session_id"];

/// What all requests share.
#[derive(Debug)]
pub struct Api {
    /// The way to the master.
    pub link: Arc<dyn Link>,
    /// Whether callers reach it over TLS.
    pub tls: bool,
    live: RwLock<Arc<Live>>,
}

/// The settings that SIGHUP changes.
#[derive(Debug, Clone)]
pub struct Live {
    /// The clients that are offered.
    pub clients: Vec<Client>,
    /// The groups that targets may name.
    pub groups: Nodegroups,
    /// Longest wait for the result of a runner.
    pub rest_timeout: Duration,
}

impl Api {
    /// With these settings.
    pub fn new(link: Arc<dyn Link>, tls: bool, live: Live) -> Self {
        Self { link, tls, live: RwLock::new(Arc::new(live)) }
    }

    /// Applies other settings.
    pub fn set(&self, live: Live) {
        *self.live.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(live);
    }

    fn live(&self) -> Arc<Live> {
        Arc::clone(&self.live.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the caller's token and its data.
    async fn caller(&self, headers: &HeaderMap) -> Result<(Token, Value), Problem> {
        let token = credentials::token(headers)?;
        let data = self.link.token(&token).await?.ok_or_else(Problem::unauthorized)?;
        Ok((token, data))
    }
}

type Shared = State<Arc<Api>>;

/// Makes the router.
pub fn router(api: Arc<Api>) -> Router {
    Router::new()
        .route("/", get(welcome).post(lowstate))
        .route("/login", get(please_log_in).post(log_in))
        .route("/logout", post(log_out))
        .route("/run", post(run))
        .fallback(|| async { Problem::new(StatusCode::NOT_FOUND, "The path was not found.") })
        .method_not_allowed_fallback(|| async {
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "Specified method is invalid for this resource.")
        })
        .layer(middleware::from_fn(no_credentials_in_queries))
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

async fn no_credentials_in_queries(request: Request, next: Next) -> Response {
    let query = request.uri().query().unwrap_or_default();
    let mut names = form_urlencoded::parse(query.as_bytes()).map(|(name, _)| name);
    if names.any(|name| NOT_IN_QUERIES.contains(&&*name)) {
        return Problem::bad("Credentials do not belong into the query").into_response();
    }
    next.run(request).await
}

async fn welcome(State(api): Shared, headers: HeaderMap) -> Result<Response, Problem> {
    let clients = api.live().clients.iter().map(|client| client.name()).collect::<Vec<_>>();
    let welcome = value::map([("return", Value::from("Welcome")), ("clients", value::list(clients))]);
    Ok(Format::wanted(&headers)?.answer(&welcome))
}

async fn please_log_in(headers: HeaderMap) -> Result<Response, Problem> {
    let please = value::map([("status", Value::Nil), ("return", Value::from("Please log in"))]);
    let mut response = Format::wanted(&headers)?.answer(&please);
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Session"));
    Ok(response)
}

async fn log_in(State(api): Shared, headers: HeaderMap, body: Body) -> Result<Response, Problem> {
    let format = Format::wanted(&headers)?;
    let body = body::read(&headers, body).await?;
    let given = Given::read(body.list().and_then(<[_]>::first).unwrap_or(&body));
    let Some((username, password, eauth)) = given.log_in else { return Err(Problem::unauthorized()) };
    let data = api.link.log_in(&LogIn::External { eauth, username, password }).await?;
    let field = |key: &str| data.get(key).cloned().unwrap_or(Value::Nil);
    let token = data.get_text("token").unwrap_or_default();
    let perms = api.link.perms(&Token::parse(token)?).await?;
    let shown = value::map([
        ("token", field("token")),
        ("expire", field("expire")),
        ("start", field("start")),
        ("user", field("name")),
        ("eauth", field("eauth")),
        ("perms", Value::Array(perms)),
    ]);
    let mut response = format.answer(&value::map([("return", value::list([shown]))]));
    let life = field("expire").as_f64().unwrap_or_default() - field("start").as_f64().unwrap_or_default();
    set_cookie(&mut response, token, Duration::try_from_secs_f64(life).unwrap_or_default(), api.tls);
    if let Some(value) = secret_header(token) {
        response.headers_mut().insert(HeaderName::from_static(TOKEN_HEADER), value);
    }
    Ok(response)
}

async fn log_out(State(api): Shared, headers: HeaderMap) -> Result<Response, Problem> {
    let format = Format::wanted(&headers)?;
    let (token, _) = api.caller(&headers).await?;
    api.link.end_token(&token).await?;
    let mut response = format.answer(&value::map([("return", "Your token has been cleared")]));
    set_cookie(&mut response, "", Duration::ZERO, api.tls);
    Ok(response)
}

/// `POST /`: the caller is the token of the header or the cookie, whatever a chunk says.
async fn lowstate(State(api): Shared, headers: HeaderMap, body: Body) -> Result<Response, Problem> {
    let format = Format::wanted(&headers)?;
    let (token, _) = api.caller(&headers).await?;
    let live = api.live();
    let chunks = chunk::parse(body::read(&headers, body).await?, &live.clients, &live.groups)?;
    let mut returns = Vec::with_capacity(chunks.len());
    for chunk in chunks {
        returns.push(call::run(&*api.link, &token, chunk.call, live.rest_timeout).await?);
    }
    Ok(format.answer(&value::map([("return", returns)])))
}

/// `POST /run`: each chunk has its caller's token, or name and password. All of them are proved before a chunk runs.
async fn run(State(api): Shared, headers: HeaderMap, body: Body) -> Result<Response, Problem> {
    let format = Format::wanted(&headers)?;
    let live = api.live();
    let chunks = chunk::parse(body::read(&headers, body).await?, &live.clients, &live.groups)?;
    let mut log_ins = Vec::new();
    let mut calls = Vec::with_capacity(chunks.len());
    for Chunk { call, credentials } in chunks {
        calls.push((prove(&api, credentials, &mut log_ins).await?, call));
    }
    let mut returns = Vec::with_capacity(calls.len());
    for (token, call) in calls {
        returns.push(call::run(&*api.link, &token, call, live.rest_timeout).await?);
    }
    Ok(format.answer(&value::map([("return", returns)])))
}

/// Returns the token of a chunk: its own, or that of its name and password, which are checked once in a request.
async fn prove(api: &Arc<Api>, given: Given, log_ins: &mut Vec<(LogIn, Brief)>) -> Result<Token, Problem> {
    if let Some(token) = given.token {
        let token = Token::parse(token.expose())?;
        return api.link.token(&token).await?.map(|_| token).ok_or_else(Problem::unauthorized);
    }
    let (username, password, eauth) = given.log_in.ok_or_else(Problem::unauthorized)?;
    let log_in = LogIn::External { eauth, username, password };
    if let Some((_, brief)) = log_ins.iter().find(|(known, _)| *known == log_in) {
        return Ok(brief.token.clone());
    }
    // A task, because a caller that leaves meanwhile ends this request, but the token must end as well.
    let (shared, asked) = (Arc::clone(api), log_in.clone());
    let task = tokio::spawn(async move {
        let data = shared.link.log_in(&asked).await?;
        let token = Token::parse(data.get_text("token").unwrap_or_default())?;
        Ok::<_, Problem>(Brief { token, api: shared })
    });
    let unexpected = |_| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "An unexpected error occurred");
    let brief = task.await.map_err(unexpected)??;
    let token = brief.token.clone();
    log_ins.push((log_in, brief));
    Ok(token)
}

/// A token for one request, which ends with it, however that ends.
struct Brief {
    token: Token,
    api: Arc<Api>,
}

impl Drop for Brief {
    fn drop(&mut self) {
        let (token, api) = (self.token.clone(), Arc::clone(&self.api));
        tokio::spawn(async move {
            if let Err(error) = api.link.end_token(&token).await {
                tracing::warn!("the token of a request to /run stays until it expires: {error}");
            }
        });
    }
}

fn set_cookie(response: &mut Response, token: &str, life: Duration, tls: bool) {
    let secure = if tls { "; Secure" } else { "" };
    let cookie = Secret::new(format!(
        "{COOKIE_NAME}={token}; Max-Age={}; Path=/; HttpOnly; SameSite=Strict{secure}",
        life.as_secs()
    ));
    if let Some(value) = secret_header(cookie.expose()) {
        response.headers_mut().insert(SET_COOKIE, value);
    }
}

/// A header that does not print.
fn secret_header(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
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
