//! The module `webhook`: an engine. Its documentation is in `wit/world.wit`.

wit_bindgen::generate!({
    world: "webhook",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/engine-types@1.0.0": brine_guest::host::engine_types,
        "brine:host/http@1.0.0": brine_guest::host::http,
    },
});

use brine_guest::host::http;
use brine_guest::{Value, json};

/// The time for one request.
const TIMEOUT_MS: u64 = 10_000;
/// The most requests of one call: they fit into a call's time, however slow the server is.
const MAX_REQUESTS: usize = 5;
/// Of the answer only the status is read.
const MAX_BODY: u64 = 64 * 1024;

struct Module;

impl Guest for Module {
    fn engine(config: Data, events: Vec<Event>, _: Option<Vec<u8>>) -> Result<Answer, String> {
        let (url, headers) = settings(&config.value()?)?;
        let (mut handled, mut error) = (0, None);
        for event in events.iter().take(MAX_REQUESTS) {
            if let Err(why) = post(&url, &headers, event) {
                error = Some(why);
                break;
            }
            handled += 1;
        }
        Ok(Answer { handled, error, state: None })
    }
}

fn settings(config: &Value) -> Result<(String, Vec<(String, String)>), String> {
    let Some(Value::Text(url)) = config.get("url") else {
        return Err("the engine's setting url says where events are posted; it is not set".into());
    };
    let mut headers = vec![("Content-Type".to_owned(), "application/json".to_owned())];
    match config.get("headers") {
        None | Some(Value::None) => {}
        Some(Value::Dict(more)) => headers.extend(more.iter().map(|(name, value)| (name.to_text(), value.to_text()))),
        Some(_) => return Err("the engine's setting headers is to be a dict".into()),
    }
    Ok((url.clone(), headers))
}

fn post(url: &str, headers: &[(String, String)], event: &Event) -> Result<(), String> {
    let body = Value::dict([
        ("tag", Value::Text(event.tag.clone())),
        ("data", event.data.value()?),
        ("source", Value::Text(event.source.clone())),
    ]);
    let response = http::send(&http::Request {
        method: "POST".into(),
        url: url.to_owned(),
        headers: headers.to_vec(),
        body: Some(json::to_text(&body).into_bytes()),
        timeout_ms: Some(TIMEOUT_MS),
        max_body: Some(MAX_BODY),
        // What a redirect makes of a POST differs between servers.
        max_redirects: 0,
    })?;
    match response.status {
        200..=299 => Ok(()),
        status => Err(format!("the server answers with the status {status}")),
    }
}

export!(Module);
