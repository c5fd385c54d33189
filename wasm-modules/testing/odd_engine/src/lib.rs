//! For the tests of engines: does what its events say, in odd ways.

wit_bindgen::generate!({
    world: "odd-engine",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/engine-types@1.0.0": brine_guest::host::engine_types,
        "brine:host/events@1.0.0": brine_guest::host::events,
        "brine:host/grains@1.0.0": brine_guest::host::grains,
        "brine:host/http@1.0.0": brine_guest::host::http,
    },
});

use brine_guest::Value;
use brine_guest::host::{events, grains, http};

struct Module;

const MIB: usize = 1 << 20;

impl Guest for Module {
    fn engine(config: Data, events: Vec<Event>, state: Option<Vec<u8>>) -> Result<Answer, String> {
        let calls = state.and_then(|state| state.first().copied()).unwrap_or_default().saturating_add(1);
        if config.value()?.get("do").and_then(Value::text) == Some("crash") {
            panic!("as told");
        }
        for event in &events {
            act(&event.data.value()?)?;
        }
        if events.is_empty() {
            fire("odd/poll", Value::dict([("calls", Value::Int(calls.into()))]))?;
        }
        Ok(Answer { handled: events.len() as u32, error: None, state: Some(vec![calls]) })
    }
}

fn act(data: &Value) -> Result<(), String> {
    let text = |key: &str| data.get(key).and_then(Value::text).unwrap_or_default().to_owned();
    match text("do").as_str() {
        "spin" => loop {
            std::hint::black_box(data);
        },
        "trap" => panic!("as told"),
        // 100 MiB at once.
        "large" => Err("x".repeat(100 * MIB)),
        "fire" => fire(&text("tag"), Value::dict([("mark", Value::Text(text("mark")))])),
        "grains" => {
            grains::items();
            Ok(())
        }
        "get" => {
            let request = http::Request {
                method: "GET".into(),
                url: text("url"),
                headers: Vec::new(),
                body: None,
                timeout_ms: Some(5_000),
                max_body: None,
                max_redirects: 0,
            };
            http::send(&request).map(drop)
        }
        other => Err(format!("it cannot do {other:?}")),
    }
}

fn fire(tag: &str, data: Value) -> Result<(), String> {
    events::fire(tag, &data.into())
}

export!(Module);
