//! What holds of every body, whatever its form was.

use axum::response::IntoResponse as _;
use brine_api::chunk::{self, Call, Client, Given};
use brine_api::problem::Problem;
use brine_client::LogIn;
use brine_protocol::target::Nodegroups;
use brine_protocol::value::{self, Value, ValueExt as _};

/// The keys of a request to the master that a caller never sets.
const OF_REQUESTS: [&str; 3] = ["cmd", "key", "user"];
/// The longest page that says why a request is refused.
const PAGE_MAX: u64 = 4 << 10;

/// Follows a body as far as it goes before the master is asked.
pub fn follow(body: Result<Value, Problem>) {
    let body = match body {
        Ok(body) => body,
        Err(problem) => return refused(problem),
    };
    let _ = Given::read(&body);
    let _ = value::to_json(&body).to_string();
    let clients: Vec<Client> = Client::names().split(", ").filter_map(Client::parse).collect();
    let chunks = match chunk::parse(body, &clients, &Nodegroups::default()) {
        Ok(chunks) => chunks,
        Err(problem) => return refused(problem),
    };
    assert!(chunks.len() <= chunk::CHUNKS_MAX);
    for chunk in chunks {
        match chunk.call {
            Call::Local { job, .. } => {
                let load = job.load(&LogIn::Token("t".to_owned().into()));
                assert_eq!(load.get_text("cmd"), Some("publish"));
                assert!(!load.has("key") && load.get_text("jid").is_none_or(str::is_empty));
            }
            Call::Master { kwargs, .. } => {
                for (name, _) in kwargs {
                    assert!(!name.starts_with("__") && !OF_REQUESTS.contains(&name.as_str()) || name == "user", "{name}");
                }
            }
            _ => {}
        }
    }
}

/// A refusal is a short page of one of a few statuses.
fn refused(problem: Problem) {
    let status = problem.status().as_u16();
    assert!(matches!(status, 400 | 401 | 406 | 413), "{status}");
    let response = problem.into_response();
    let length = axum::body::HttpBody::size_hint(response.body()).exact();
    assert!(length.is_some_and(|length| length < PAGE_MAX), "{length:?}");
}
