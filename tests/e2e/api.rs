//! salt-api in front of a master with a minion. `api_calls.json` has what Python's salt-api 3008.5 answered to the same
//! calls, with the values that differ from run to run replaced by words.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use brine_kit::ports::free_ports;
use brine_kit::process::{Daemon, run};
use brine_kit::programs::program;
use brine_kit::wait::wait_for;
use brine_tests::salt::{Master, Minion};
use serde_json::{Value, json};

pub(super) const PASSWORD: &str = "right-horse-battery";
pub(super) const WRONG: &str = "wrong-horse-battery";
const CLIENTS: [&str; 8] =
    ["local", "local_async", "local_batch", "local_subset", "runner", "runner_async", "wheel", "wheel_async"];

/// A master, its minion, and salt-api in front of them.
pub(super) struct Api {
    // Ends first.
    pub(super) daemon: Daemon,
    pub(super) port: u16,
    _minion: Minion,
    pub(super) master: Master,
}

/// An answer.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: String,
}

impl Reply {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("no JSON ({error}): {self:?}"))
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
    }
}

impl Api {
    pub(super) fn start() -> Self {
        Self::start_with("")
    }

    /// Starts it with further settings below `rest_cherrypy`, as in `, root_prefix: /salt`.
    pub(super) fn start_with(more: &str) -> Self {
        Self::start_as("", more)
    }

    /// Starts it with further settings of the master as well.
    pub(super) fn start_as(settings: &str, more: &str) -> Self {
        Self::start_for("admin: ['.*', '@runner', '@wheel'], joe: [test.ping]", more, settings)
    }

    /// Starts it for these users, with further settings below `rest_cherrypy`, and of the master.
    pub(super) fn start_for(users: &str, more: &str, of_master: &str) -> Self {
        let config = format!(
            "external_auth: {{sharedsecret: {{{users}}}}}\nsharedsecret: {PASSWORD}\n\
             nodegroups: {{web: 'L@m1'}}\nnetapi_enable_clients: [{}]\n{of_master}",
            CLIENTS.join(", ")
        );
        Self::begin(&config, more)
    }

    /// Starts it with these settings of the master alone: without users and clients, unless they name some.
    pub(super) fn start_plain(config: &str) -> Self {
        Self::begin(config, "")
    }

    fn begin(config: &str, more: &str) -> Self {
        let [port] = free_ports();
        let master = Master::start(&format!(
            "{config}\napi_logfile: api.log\napi_pidfile: api.pid\naudit_log: audit.log\n\
             rest_cherrypy: {{host: 127.0.0.1, port: {port}, disable_ssl: True{more}}}"
        ));
        let minion = master.minion("m1");
        let daemon =
            Daemon::start(&program("salt-api"), &["-c", &master.conf(), "-l", "trace"], &master.path("api.out"));
        wait_for("salt-api to listen", || TcpStream::connect(("127.0.0.1", port)).ok().map(drop));
        daemon.wait_log("the master's event bus is there");
        Self { daemon, port, _minion: minion, master }
    }

    pub(super) fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        send(self.port, method, path, headers, body)
    }

    pub(super) fn post(&self, path: &str, headers: &[(&str, &str)], body: &Value) -> Reply {
        post(self.port, path, headers, body)
    }

    pub(super) fn log_in(&self, user: &str) -> String {
        let reply = self.post("/login", &[], &json!({"username": user, "password": PASSWORD, "eauth": "sharedsecret"}));
        assert_eq!(reply.status, 200, "{reply:?}");
        let token = reply.json()["return"][0]["token"].as_str().expect("a token").to_owned();
        assert!(reply.head.contains(&format!("\nX-Auth-Token: {token}\r\n")), "scripts look for that: {}", reply.head);
        let cookie = reply.header("set-cookie").expect("a cookie");
        assert!(cookie.starts_with(&format!("session_id={token}; ")), "{cookie}");
        assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
        token
    }

    /// The files that a secret could be in.
    pub(super) fn written(&self) -> String {
        let read = |name| std::fs::read_to_string(self.master.path(name)).unwrap_or_default();
        ["api.out", "api.log", "master.out", "log", "audit.log"].map(read).concat()
    }
}

/// Sends a request to the salt-api at this port of loopback.
pub(super) fn send(port: u16, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("salt-api listens");
    let mut request = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
    // A body that is too long is refused before it is read.
    let _ = stream.write_all(request.as_bytes());
    let mut reply = Vec::new();
    let _ = stream.read_to_end(&mut reply);
    let reply = String::from_utf8(reply).expect("UTF-8");
    let (head, body) = reply.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {reply:?}"));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    Reply { status, head: head.to_owned(), body: body.to_owned() }
}

/// Sends it JSON.
pub(super) fn post(port: u16, path: &str, headers: &[(&str, &str)], body: &Value) -> Reply {
    let mut all = vec![("Content-Type", "application/json")];
    all.extend(headers);
    send(port, "POST", path, &all, &body.to_string())
}

/// Replaces what differs from run to run.
fn normal(key: &str, value: &Value) -> Value {
    match value {
        _ if key == "local" => json!("KEYS"),
        Value::Object(entries) => {
            // Brine's jobs tell what they used.
            let entries = entries.iter().filter(|(key, _)| *key != "usage");
            Value::Object(entries.map(|(key, value)| (key.clone(), normal(key, value))).collect())
        }
        Value::Array(items) => items.iter().map(|item| normal("", item)).collect(),
        Value::String(text) => {
            let is_jid = |text: &str| text.len() == 20 && text.bytes().all(|byte| byte.is_ascii_digit());
            let (before, last) = text.rsplit_once('/').map_or(("", text.as_str()), |(before, last)| (before, last));
            json!(match text.as_str() {
                _ if key == "StartTime" => "TIME".to_owned(),
                _ if is_jid(text) => "JID".to_owned(),
                _ if is_jid(last) => format!("{before}/JID"),
                _ if text == env!("CARGO_PKG_VERSION") => "VERSION".to_owned(),
                _ if text.len() == 95 && text.matches(':').count() == 31 => "FINGERPRINT".to_owned(),
                // Brine adds which modules there are.
                _ if text.contains("' is not available.") =>
                    format!("{}.", text.split_inclusive('.').take(2).collect::<String>().trim_end_matches('.')),
                _ => text.clone(),
            })
        }
        other => other.clone(),
    }
}

#[test]
fn calls_are_answered_as_by_salt() {
    let api = Api::start();
    let token = api.log_in("admin");
    let calls: Vec<Value> = serde_json::from_str(include_str!("api_calls.json")).expect("our own file");
    let events = api.master.events();
    let mut echoed = String::new();
    for call in calls {
        let name = call["name"].as_str().expect("a name");
        let body = call["body"].to_string().replace("ECHOED", &echoed).replace("PASSWORD", PASSWORD);
        let headers = [("Content-Type", "application/json"), ("X-Auth-Token", token.as_str())];
        let headers = if call["token"] == json!(false) { &headers[..1] } else { &headers };
        let (method, path) = (call["method"].as_str().unwrap_or("POST"), call["path"].as_str().unwrap_or("/"));
        let path = path.replace("ECHOED", &echoed);
        let reply = api.send(method, &path, headers, if method == "GET" { "" } else { &body });
        assert_eq!(json!(reply.status), call["status"], "{name}: {reply:?}");
        if reply.status >= 400 {
            assert_eq!(reply.header("content-type"), Some("text/html;charset=utf-8"), "{name}");
            let title = format!("<title>{} Unauthorized</title>", reply.status);
            assert!(
                reply.body.starts_with("<!DOCTYPE html PUBLIC\n") && reply.body.contains(&title),
                "{name}: {reply:?}"
            );
            continue;
        }
        assert_eq!(reply.header("content-type"), Some("application/json"), "{name}");
        assert_eq!(normal("", &reply.json()), call["response"], "{name}: {reply:?}");
        if name == "local_async" {
            echoed = reply.json()["return"][0]["jid"].as_str().expect("a jid").to_owned();
            events.wait_return(&echoed, "m1");
        }
    }
    assert_eq!(api.post("/", &[("X-Auth-Token", &token)], &json!({})).status, 401, "after the log-out");
}

/// The forms of requests and answers, and what is refused before anything runs.
#[test]
fn forms_and_refusals() {
    let api = Api::start();
    let token = api.log_in("admin");
    let key = ("X-Auth-Token", token.as_str());
    let ping = json!({"client": "local", "tgt": "m1", "fun": "test.ping"});
    let form = "client=local&tgt=m1&fun=test.arg&arg=1&arg=x%3D2&kwarg=%7By%3A+%5B3%5D%7D";
    let types = [
        ("application/x-www-form-urlencoded", form.to_owned()),
        ("text/yaml", "{client: local, tgt: m1, fun: test.arg, arg: [1, x=2], kwarg: {'y': [3]}}".to_owned()),
        (
            "text/plain",
            json!({"client": "local", "tgt": "m1", "fun": "test.arg", "arg": [1, "x=2"], "kwarg": {"y": [3]}})
                .to_string(),
        ),
    ];
    for (media, body) in &types {
        let reply = api.send("POST", "/", &[key, ("Content-Type", media)], body);
        assert_eq!(
            reply.json(),
            json!({"return": [{"m1": {"args": [1], "kwargs": {"x": 2, "y": [3]}}}]}),
            "{media}: {reply:?}"
        );
    }
    // Texts stay what they are, but in forms; a function that wants a number takes one in a text.
    let texts = json!({"client": "local", "tgt": "m1", "fun": "test.arg", "arg": ["1.10", "true", "[ -f x ]", "0644"]});
    assert_eq!(api.post("/", &[key], &texts).json()["return"][0]["m1"]["args"], texts["arg"]);
    let fib = json!({"client": "local", "tgt": "m1", "fun": "test.fib", "kwarg": {"num": "10"}});
    assert_eq!(api.post("/", &[key], &fib).json()["return"][0]["m1"][0], json!(55));
    let form = "client=local&tgt=m1&fun=test.arg&arg=1.10&arg=%221.10%22&timeout=&ret=";
    let reply = api.send("POST", "/", &[key, ("Content-Type", "application/x-www-form-urlencoded")], form);
    assert_eq!(reply.json()["return"][0]["m1"]["args"], json!([1.1, "1.10"]), "{reply:?}");
    let yaml = api.post("/", &[key, ("Accept", "application/x-yaml")], &ping);
    assert_eq!(
        (yaml.header("content-type"), yaml.body.as_str()),
        (Some("application/x-yaml"), "return:\n- m1: true\n")
    );
    assert_eq!(api.post("/", &[("Authorization", &format!("Bearer {token}"))], &ping).status, 200);
    let cookie = format!("a=b; session_id={token}");
    assert_eq!(api.post("/", &[("Cookie", &cookie)], &ping).status, 200);
    assert_eq!(api.post("/", &[("Cookie", &cookie), ("Origin", "http://localhost")], &ping).status, 200);
    assert_eq!(api.send("GET", "/login/", &[], "").json()["return"], json!("Please log in"));

    let events = api.master.events();
    assert_eq!(api.post("/", &[("Cookie", &cookie), ("Origin", "http://evil")], &ping).status, 403);
    assert_eq!(api.post("/", &[key], &json!([ping, {"client": "local"}])).status, 400, "the second chunk is malformed");
    assert_eq!(api.post("/", &[key], &json!(vec![ping.clone(); 101])).status, 400, "too many chunks");
    assert_eq!(api.post("/", &[key], &json!({"client": "ssh", "tgt": "m1", "fun": "test.ping"})).status, 400);
    assert_eq!(api.send("POST", "/", &[key, ("Content-Type", "text/html")], &ping.to_string()).status, 406);
    assert_eq!(api.post("/", &[key, ("Accept", "text/html")], &ping).status, 406);
    assert_eq!(api.post(&format!("/?token={token}"), &[key], &ping).status, 400, "a token in the query");
    assert_eq!(api.post("/", &[key], &json!({"x": "x".repeat(1 << 20)})).status, 413);
    let reply = api.send("PUT", "/", &[key], "");
    assert_eq!((reply.status, reply.header("allow")), (405, Some("GET,HEAD,POST")));
    assert_eq!(api.send("GET", "/none", &[key], "").status, 404);
    let run = json!([
        {"client": "local", "tgt": "m1", "fun": "test.ping", "token": token},
        {"client": "local", "tgt": "m1", "fun": "test.ping", "token": "0".repeat(64)},
    ]);
    assert_eq!(api.post("/run", &[], &run).status, 401, "the second chunk's token is none");
    let joe = api.log_in("joe");
    let key = ("X-Auth-Token", joe.as_str());
    for forbidden in [
        json!({"client": "local", "tgt": "m1", "fun": "test.arg"}),
        json!({"client": "runner", "fun": "jobs.active"}),
        json!({"client": "wheel", "fun": "key.list_all", "user": "root", "key": "x", "cmd": "ping"}),
    ] {
        assert_eq!(api.post("/", &[key], &forbidden).status, 401, "{forbidden}");
    }
    assert_eq!(started(&api, &events, &joe), 0);
}

/// Without a certificate, passwords would cross the network in clear text.
#[test]
fn without_a_certificate_it_does_not_start() {
    let [port] = free_ports();
    let master = Master::prepare(brine_tests::salt::Kind::Brine, &format!("rest_cherrypy: {{port: {port}}}"));
    let output = run(&program("salt-api"), &["-c", &master.conf()]).exits(64);
    assert!(output.stderr.contains("set ssl_crt and ssl_key below rest_cherrypy"), "{output:?}");
}

/// salt-api waits for its master, and says meanwhile that it is away.
#[test]
fn a_master_that_is_away_is_503() {
    let mut api = Api::start();
    let token = api.log_in("admin");
    let ping = json!({"client": "local", "tgt": "m1", "fun": "test.ping"});
    api.master.stop();
    let status = || api.post("/", &[("X-Auth-Token", &token)], &ping).status;
    wait_for("salt-api to notice", || (status() == 503).then_some(()));
    assert_eq!(api.send("GET", "/", &[], "").status, 200);
    api.master.up();
    let status = || api.post("/", &[("X-Auth-Token", &token)], &ping).status;
    wait_for("the session to go on", || (status() == 200).then_some(()));
    assert!(api.daemon.terminate().success());
}

/// Returns the number of jobs, runs and calls of the wheel since `events` began. The last one is known.
fn started(api: &Api, events: &brine_tests::events::Events, token: &str) -> usize {
    let last = json!({"client": "local_async", "tgt": "m1", "fun": "test.ping"});
    let jid = api.post("/", &[("X-Auth-Token", token)], &last).json()["return"][0]["jid"].clone();
    let last = format!("salt/job/{}/new", jid.as_str().expect("a jid"));
    events.wait_tag(&last);
    let began = |tag: &str| ["salt/job/", "salt/run/", "salt/wheel/"].iter().any(|form| tag.starts_with(form));
    events.all().iter().filter(|(tag, _)| began(tag) && tag.ends_with("/new") && *tag != last).count()
}
