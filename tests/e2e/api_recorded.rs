//! Events as Python's salt-api 3008.5 wrote them for the same calls (`api_events.txt`): a job, a call of the wheel, a run.

use std::io::{Read as _, Write as _};

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

/// Who waits for events is told now and then that the other end is there: 15 seconds after the last line.
#[test]
fn a_quiet_stream_has_comments() {
    let api = Api::start();
    let stream = Stream::of(&api, &api.log_in("joe"));
    brine_kit::wait::wait_for("a comment", || stream.text().ends_with("retry: 400\n:\n\n").then_some(()));
}

/// A call that waits for returns goes on when the master comes back, and was sent once.
#[test]
fn a_call_outlives_the_master() {
    let mut api = Api::start();
    let token = api.log_in("admin");
    let key = format!("X-Auth-Token: {token}");
    let bus = api.master.events();
    let call = json!({"client": "local", "tgt": "m1", "fun": "test.sleep", "arg": [3], "timeout": 60});
    let (port, body) = (api.port, call.to_string());
    let waiting = std::thread::spawn(move || {
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).expect("salt-api listens");
        let head = format!(
            "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{key}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all((head + &body).as_bytes()).expect("a request");
        let mut reply = String::new();
        stream.read_to_string(&mut reply).expect("UTF-8");
        reply
    });
    bus.wait("the job", |tag, data| tag.ends_with("/new") && data["fun"] == "test.sleep");
    // The event is earlier than the master's answer, without which the call is 503. Another call comes after both.
    let ping = json!({"client": "local", "tgt": "m1", "fun": "test.ping"});
    assert_eq!(api.post("/", &[("X-Auth-Token", &token)], &ping).json(), json!({"return": [{"m1": true}]}));
    api.master.stop();
    api.master.up();
    let reply = waiting.join().expect("no panic");
    assert!(reply.starts_with("HTTP/1.1 200 ") && reply.ends_with(r#"{"return": [{"m1": true}]}"#), "{reply}");
    let jobs = api.post("/", &[("X-Auth-Token", &token)], &json!({"client": "runner", "fun": "jobs.list_jobs"})).json();
    let jobs = jobs["return"][0].as_object().expect("a map").values();
    assert_eq!(jobs.filter(|job| job["Function"] == "test.sleep").count(), 1);
}

/// The events that are whole.
fn whole(text: &str) -> String {
    let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let body = body.strip_prefix("retry: 400\n").unwrap_or(body);
    body.rsplit_once("\n\n").map_or_else(String::new, |(whole, _)| format!("{whole}\n\n"))
}
