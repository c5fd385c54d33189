//! The returner: posts each return.

use brine_guest::host::{config, http};
use brine_guest::{Value, json};

/// The time for one request.
const TIMEOUT_MS: u64 = 20_000;
/// Of the answer only the status is read.
const MAX_BODY: u64 = 64 * 1024;

fn setting(name: &str) -> Result<Option<Value>, String> {
    config::get(name).map(|value| value.value()).transpose()
}

/// Posts a return.
///
/// # Errors
/// One line, where the server does not take it.
pub(crate) fn post(ret: &Value) -> Result<bool, String> {
    let Some(Value::Text(url)) = setting("http.url")? else {
        return Err("the setting http.url says where returns are posted; it is not set".into());
    };
    let mut headers = vec![("Content-Type".to_owned(), "application/json".to_owned())];
    match setting("http.headers")? {
        None | Some(Value::None) => {}
        Some(Value::Dict(more)) => {
            headers.extend(more.iter().map(|(name, value)| (name.to_text(), value.to_text())));
        }
        Some(_) => return Err("the setting http.headers is to be a dict".into()),
    }
    let response = http::send(&http::Request {
        method: "POST".into(),
        url,
        headers,
        body: Some(json::to_text(ret).into_bytes()),
        timeout_ms: Some(TIMEOUT_MS),
        max_body: Some(MAX_BODY),
        // What a redirect makes of a POST differs between servers.
        max_redirects: 0,
    })?;
    match response.status {
        200..=299 => Ok(true),
        status => Err(format!("the server answers with the status {status}")),
    }
}
