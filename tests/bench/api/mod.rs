//! salt-api under load: calls of many clients at once over TLS.

mod http;
mod server;
mod streams;

use std::time::{Duration, Instant};

use brine_tests::salt::Kind;
use hyper::StatusCode;
use serde_json::{Value, json};

use crate::rows::{Figures, Key};
use crate::table::Figure;
use crate::usage;
use http::Caller;
use server::{ID, Server};

/// Clients at once, each with a connection.
const CLIENTS: usize = 50;
/// Event streams at once: Brine's, and Python's, each of which has a thread there.
const STREAMS: usize = 1_000;
const PYTHON_STREAMS: usize = 50;

/// Measures the calls for so long each.
pub(crate) fn measure(kind: Kind, each: Duration, figures: &mut Figures) {
    if !server::is_there(kind) {
        eprintln!("bench: CherryPy is not there: Python's salt-api is left out");
        return;
    }
    let server = Server::start(kind);
    figures.insert(Key::ApiIdle, Figure::one(usage::pss(server.daemon.pid())));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let token = runtime.block_on(server.log_in());
    let ping = json!([{"client": "local", "tgt": ID, "fun": "test.ping"}]);
    let publish = json!([{"client": "local_async", "tgt": ID, "fun": "test.ping"}]);
    let keys = json!([{"client": "wheel", "fun": "key.list_all"}]);
    let calls = [
        (&ping, Key::ApiLocal, Some(Key::ApiLocalP99), "/return/0/bench"),
        (&publish, Key::ApiAsync, None, "/return/0/jid"),
        (&keys, Key::ApiWheel, Some(Key::ApiWheelP99), "/return/0/data/return/minions/0"),
    ];
    for (body, rate, tail, there) in calls {
        runtime.block_on(calls_of_all(&server, &token, body, there, each / 10));
        let began = Instant::now();
        let times = runtime.block_on(calls_of_all(&server, &token, body, there, each));
        let elapsed = began.elapsed();
        if times.is_empty() {
            eprintln!("bench: {kind:?}: no call of {body} succeeded");
            continue;
        }
        figures.insert(rate, Figure { runs: times.len(), ..Figure::one(per_second(times.len(), elapsed)) });
        if let Some(tail) = tail {
            let figure = Figure::ms(&times);
            figures.insert(tail, Figure { runs: times.len(), ..Figure::one(figure.p99.unwrap_or(figure.median)) });
        }
    }
    let count = if kind == Kind::Brine { STREAMS } else { PYTHON_STREAMS };
    let streams::Received { times, lost } = runtime.block_on(streams::measure(&server, &token, count, each));
    if !times.is_empty() {
        let figure = Figure::ms(&times);
        figures
            .insert(Key::ApiStreams, Figure { runs: times.len(), ..Figure::one(figure.p99.unwrap_or(figure.median)) });
    }
    figures.insert(Key::ApiStreamsLost, Figure::one(per_second(lost, Duration::from_secs(1))));
}

/// Lets all clients call for so long, one call after the other, and returns the durations of the calls that succeeded:
/// those whose answer has a value at `there`.
async fn calls_of_all(server: &Server, token: &str, body: &Value, there: &str, each: Duration) -> Vec<Duration> {
    let until = Instant::now() + each;
    let clients = (0..CLIENTS).map(|_| {
        let mut caller = Caller::new(&server.address, token);
        async move {
            let mut times = Vec::new();
            while Instant::now() < until {
                let began = Instant::now();
                let (status, answer) = caller.post("/", body).await;
                let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
                if status == StatusCode::OK && answer.pointer(there).is_some_and(|value| *value != Value::Bool(false)) {
                    times.push(began.elapsed());
                }
            }
            times
        }
    });
    futures_util::future::join_all(clients).await.concat()
}

#[allow(clippy::cast_precision_loss, reason = "a rate for people")]
fn per_second(calls: usize, elapsed: Duration) -> f64 {
    calls as f64 / elapsed.as_secs_f64()
}
