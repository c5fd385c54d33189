//! Events as Python's salt-api 3008.5 wrote them for the same calls (`api_events.txt`): a job, a call of the wheel, a run.

use serde_json::{Value, json};

use crate::api::Api;
use crate::api_events::Stream;

const RECORDED: &str = include_str!("api_events.txt");

/// Tag and data of each event in a text, with what differs from run to run replaced by its form.
fn read(text: &str) -> Vec<(String, Value)> {
    text.split("\n\n").filter(|record| record.starts_with("tag: ")).map(one).collect()
}

fn one(record: &str) -> (String, Value) {
    let mut lines = record.lines();
    let mut line = |name: &str| lines.next().and_then(|line| line.strip_prefix(name)).expect(name).to_owned();
    let (tag, data) = (line("tag: "), line("data: "));
    // Salt's form down to the blanks, which scripts without a JSON parser go by.
    assert!(data.starts_with("{\"data\": {\"") && data.ends_with(&format!("}}, \"tag\": \"{tag}\"}}")), "{record}");
    let data: Value = serde_json::from_str(&data).expect("JSON");
    assert_eq!(data["tag"], json!(tag));
    let data = data["data"].as_object().expect("a map").iter();
    // Brine's own words: what a job used, and the tag of a call of the wheel.
    let data = data.filter(|(key, _)| !["usage", "tag"].contains(&key.as_str()));
    (without_jid(&tag), data.map(|(key, value)| (key.clone(), form(key, value))).collect())
}

fn without_jid(text: &str) -> String {
    let is_jid = |part: &str| part.len() == 20 && part.bytes().all(|byte| byte.is_ascii_digit());
    text.split('/').map(|part| if is_jid(part) { "JID" } else { part }).collect::<Vec<_>>().join("/")
}

fn form(key: &str, value: &Value) -> Value {
    match value {
        Value::String(text) if key == "_stamp" => {
            let digits = |c: char| if c.is_ascii_digit() { '0' } else { c };
            json!(text.chars().map(digits).collect::<String>())
        }
        Value::Number(time) if key == "ts" => json!(time.is_u64()),
        Value::String(text) => json!(without_jid(text)),
        Value::Object(keys) if key == "return" && keys.contains_key("local") => {
            let mut keys = keys.clone();
            keys["local"] = json!("KEYS");
            Value::Object(keys)
        }
        other => other.clone(),
    }
}

#[test]
fn events_are_written_as_by_salt() {
    let api = Api::start();
    let token = api.log_in("admin");
    let stream = Stream::of(&api, &token);
    for call in [
        json!({"client": "local", "tgt": "*", "fun": "test.ping"}),
        json!({"client": "wheel", "fun": "key.list_all"}),
        json!({"client": "runner", "fun": "manage.up"}),
    ] {
        assert_eq!(api.post("/", &[("X-Auth-Token", &token)], &call).status, 200, "{call}");
    }
    let recorded = read(RECORDED);
    let last = recorded.last().expect("events").0.clone();
    brine_kit::wait::wait_for("the last event", || {
        read(&whole(&stream.text())).iter().any(|(tag, _)| *tag == last).then_some(())
    });
    let text = stream.leave();
    let (_, body) = text.split_once("\r\n\r\n").expect("a head");
    assert!(body.starts_with("retry: 400\ntag: "), "{body}");
    let mut ids = Vec::new();
    for record in whole(&text).split("\n\n").filter(|record| record.contains("tag: ")) {
        let id = record.lines().last().and_then(|line| line.strip_prefix("id: ")).expect("the last line is the id");
        let (epoch, seq) = id.split_once('-').expect("two parts");
        ids.push((epoch.to_owned(), seq.parse::<u64>().expect("a number")));
    }
    assert!(ids.is_sorted() && ids.windows(2).all(|two| two[0] != two[1]), "{ids:?}");
    let found = read(&whole(&text));
    for (tag, data) in recorded {
        let ours = found.iter().find(|(found, _)| *found == tag);
        let (_, ours) = ours.unwrap_or_else(|| panic!("no {tag}: {text}"));
        assert_eq!(*ours, data, "{tag}");
    }
}

/// The events that are whole.
fn whole(text: &str) -> String {
    let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let body = body.strip_prefix("retry: 400\n").unwrap_or(body);
    body.rsplit_once("\n\n").map_or_else(String::new, |(whole, _)| format!("{whole}\n\n"))
}
