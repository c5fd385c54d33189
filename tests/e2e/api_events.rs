//! Events and hooks of salt-api: who sees what, until when, and nothing twice or missing.

use std::io::{Read, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use brine_kit::wait::wait_for;
use brine_protocol::envelope::Envelope;
use brine_protocol::msgpack::{self, Limits};
use brine_protocol::nodes::{ToMaster, ToNode, frame};
use brine_protocol::value::{self, Value as Salt, map};
use serde_json::{Value, json};

use super::api::{Api, PASSWORD};

/// A stream of server-sent events, which a thread reads.
pub(super) struct Stream {
    text: Arc<Mutex<String>>,
    reader: std::thread::JoinHandle<()>,
    socket: TcpStream,
}

impl Stream {
    pub(super) fn open(api: &Api, headers: &[(&str, &str)]) -> Self {
        Self::at(api.port, headers)
    }

    /// A stream of the salt-api at this port.
    pub(super) fn at(port: u16, headers: &[(&str, &str)]) -> Self {
        let mut socket = TcpStream::connect(("127.0.0.1", port)).expect("salt-api listens");
        // HTTP/1.0 has no chunks, so what comes is the text.
        let mut request = "GET /events HTTP/1.0\r\nHost: localhost\r\n".to_owned();
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        socket.write_all(format!("{request}\r\n").as_bytes()).expect("a request");
        let text = Arc::<Mutex<String>>::default();
        let (shared, mut from) = (Arc::clone(&text), socket.try_clone().expect("a socket"));
        let reader = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(n @ 1..) = from.read(&mut buffer) {
                shared.lock().expect("no panic").push_str(&String::from_utf8_lossy(&buffer[..n]));
            }
        });
        let stream = Self { text, reader, socket };
        wait_for("the stream to begin", || stream.text().contains("\r\n\r\nretry: 400\n").then_some(()));
        stream
    }

    pub(super) fn of(api: &Api, token: &str) -> Self {
        Self::open(api, &[("X-Auth-Token", token)])
    }

    pub(super) fn text(&self) -> String {
        self.text.lock().expect("no panic").clone()
    }

    pub(super) fn wait(&self, part: &str) {
        wait_for(part, || self.text().contains(part).then_some(()));
    }

    /// Waits for the end of the stream. Returns all of its text.
    pub(super) fn end(self) -> String {
        self.reader.join().expect("no panic");
        self.text.lock().expect("no panic").clone()
    }

    pub(super) fn leave(self) -> String {
        self.socket.shutdown(std::net::Shutdown::Both).expect("it was open");
        self.end()
    }
}

/// The tags and ids of a stream's events.
pub(super) fn events(text: &str) -> Vec<(String, String)> {
    let field =
        |event: &str, name: &str| event.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().to_owned();
    let (_, body) = text.split_once("\r\n\r\n").expect("a head");
    // What is cut off has no end.
    let whole = body.rsplit_once("\n\n").map_or("", |(whole, _)| whole);
    let events = whole.split("\n\n").filter(|event| event.contains("tag: "));
    events.map(|event| (field(event, "tag: "), field(event, "id: "))).collect()
}

fn start(api: &Api, token: &str, fun: &str, arg: &str) -> String {
    let job = json!({"client": "local_async", "tgt": "m1", "fun": fun, "arg": [arg]});
    let job = if arg.is_empty() { json!({"client": "local_async", "tgt": "m1", "fun": fun}) } else { job };
    let reply = api.post("/", &[("X-Auth-Token", token)], &job);
    reply.json()["return"][0]["jid"].as_str().unwrap_or_else(|| panic!("a jid: {reply:?}")).to_owned()
}

fn log_out(api: &Api, token: &str) {
    assert_eq!(api.post("/logout", &[("X-Auth-Token", token)], &json!({})).status, 200);
}

#[test]
fn events_are_of_ones_own_jobs_and_of_what_one_may_start() {
    let users = "ann: [test.ping, test.arg], bob: [test.ping, '@jobs'], cat: [test.version], root: ['grains.items'], \
                 ops: [test.ping, '@events']";
    let api = Api::start_for(users, "", "");
    let tokens = ["ann", "bob", "cat", "root", "ops"].map(|user| api.log_in(user));
    let [ann, bob, cat, root, ops] = tokens.each_ref().map(|token| Stream::of(&api, token));
    // Before ann's jobs: whoever may call this runner sees the arguments of all that runs.
    let runs = [("X-Auth-Token", tokens[1].as_str())];
    let run = api.post("/", &runs, &json!({"client": "runner", "fun": "jobs.active"}));
    assert_eq!(run.status, 200, "{run:?}");
    let private = start(&api, &tokens[0], "test.arg", "private-word");
    let public = start(&api, &tokens[0], "test.ping", "");
    // A job of this host's root, whom nobody is by the name of a log-in.
    let of_root = api.master.start_job(&["m1", "test.echo", "roots-word"]);
    for jid in [&private, &public, &of_root] {
        ops.wait(&format!("tag: salt/job/{jid}/ret/m1"));
    }
    assert_eq!(api.post("/hook/last", &[("X-Auth-Token", &tokens[4])], &json!({})).status, 200);
    ops.wait("tag: salt/netapi/hook/last");
    // Log-outs end the streams, so what has not come does not come.
    for token in &tokens {
        log_out(&api, token);
    }
    let [ann, bob, cat, root, ops] = [ann, bob, cat, root, ops].map(Stream::end);
    let sees = |text: &str, part: &str| text.contains(part);
    let ret = |jid: &str| format!("tag: salt/job/{jid}/ret/m1");
    for (name, text, private_too, public_too, run_too, root_too) in [
        ("ann", &ann, true, true, false, false),
        ("bob", &bob, false, true, true, false),
        ("cat", &cat, false, false, false, false),
        ("root", &root, false, false, false, false),
        ("ops", &ops, true, true, true, true),
    ] {
        assert_eq!(sees(text, &ret(&private)), private_too, "{name}: {text}");
        assert_eq!(sees(text, "private-word"), private_too, "{name}: {text}");
        assert_eq!(sees(text, &ret(&public)), public_too, "{name}: {text}");
        assert_eq!(sees(text, "tag: salt/run/"), run_too, "{name}: {text}");
        assert_eq!(sees(text, "roots-word"), root_too, "{name}: {text}");
        assert_eq!(sees(text, "salt/netapi/hook/last"), name == "ops", "{name}: {text}");
    }
    for token in &tokens {
        assert!(![&ann, &bob, &cat, &root, &ops].iter().any(|text| text.contains(token)), "an event has a token");
    }
    assert!(!events(&ann).is_empty() && events(&ann).iter().all(|(_, id)| id.split_once('-').is_some()), "{ann}");
}

#[test]
fn a_stream_ends_with_its_token() {
    let api = Api::start_for("ann: [test.ping]", "", "token_expire: 6");
    let began = Instant::now();
    let (first, second) = (api.log_in("ann"), api.log_in("ann"));
    let stream = Stream::of(&api, &first);
    log_out(&api, &first);
    let logged_out = Instant::now();
    stream.end();
    assert!(logged_out.elapsed() < Duration::from_secs(1), "{:?}", logged_out.elapsed());
    let stream = Stream::of(&api, &second);
    stream.end();
    let lasted = began.elapsed();
    assert!(lasted > Duration::from_secs(5) && lasted < Duration::from_millis(7_900), "{lasted:?}");
    for bad in ["", "auto", &first, &second, &"0".repeat(64)] {
        assert_eq!(api.send("GET", "/events", &[("X-Auth-Token", bad)], "").status, 401, "{bad}");
    }
    assert_eq!(api.send("GET", "/events", &[], "").status, 401);
    let token = api.log_in("ann");
    let cookie = format!("session_id={token}");
    for (path, more) in [("/events", vec![]), ("/ws", upgrade())] {
        let mut headers = vec![("Cookie", cookie.as_str()), ("Origin", "http://evil.example")];
        headers.extend(more);
        assert_eq!(api.send("GET", path, &headers, "").status, 403, "{path}: a page of another site");
    }
    let wrong = [("X-Auth-Token", token.as_str()), ("Last-Event-ID", "yesterday")];
    assert_eq!(api.send("GET", "/events", &wrong, "").status, 400);
}

#[test]
fn a_stream_resumes_without_loss_and_goes_on_after_a_restart() {
    let mut api = Api::start_for("ann: [test.ping]", "", "");
    let token = api.log_in("ann");
    let whole = Stream::of(&api, &token);
    let mut parts = Vec::new();
    let mut last = String::new();
    for _ in 0..3 {
        let key = ("X-Auth-Token", token.as_str());
        let stream = match last.as_str() {
            "" => Stream::open(&api, &[key]),
            last => Stream::open(&api, &[key, ("Last-Event-ID", last)]),
        };
        let jid = start(&api, &token, "test.ping", "");
        stream.wait(&format!("tag: salt/job/{jid}/publish"));
        // In the midst of what goes on; the rest comes after the next connection.
        let jid = start(&api, &token, "test.ping", "");
        let seen = events(&stream.leave());
        last.clone_from(&seen.last().expect("events").1);
        parts.extend(seen);
        whole.wait(&format!("tag: salt/job/{jid}/ret/m1"));
    }
    let stream = Stream::open(&api, &[("X-Auth-Token", &token), ("Last-Event-ID", &last)]);
    let all = events(&whole.text());
    // The third part may have been all of it already; then nothing comes again.
    if all.last().expect("events").1 != last {
        stream.wait(&all.last().expect("events").1);
    }
    parts.extend(events(&stream.text()));
    assert_eq!(parts, all, "nothing twice or missing");

    api.master.stop();
    let ping = json!({"client": "local", "tgt": "m1", "fun": "test.ping"});
    let away = Instant::now();
    wait_for("the master's absence", || {
        (api.post("/", &[("X-Auth-Token", &token)], &ping).status == 503).then_some(())
    });
    assert_eq!(api.send("GET", "/events", &[("X-Auth-Token", &token)], "").status, 503);
    assert!(away.elapsed() < Duration::from_secs(2), "{:?}", away.elapsed());
    api.master.up();
    stream.wait("tag: brine/events/lost");
    wait_for("the minion to return", || {
        let reply = api.post("/", &[("X-Auth-Token", &token)], &ping);
        (reply.status == 200 && reply.json()["return"][0]["m1"] == json!(true)).then_some(())
    });
    wait_for("the stream to go on", || {
        let text = stream.text();
        text.split("brine/events/lost").last().expect("text").contains("/ret/m1").then_some(())
    });
    let text = stream.text();
    let lost = text.lines().filter(|line| line.contains("\"lost\": null")).count();
    assert_eq!(lost, 1, "one start of the master, one note: {text}");
}

#[test]
fn hooks_need_a_token_unless_the_master_says_otherwise() {
    let api = Api::start_for("ann: [test.ping]", "", "");
    let token = api.log_in("ann");
    let bus = api.master.events();
    let cookie = format!("session_id={token}");
    assert_eq!(api.post("/hook/a", &[], &json!({"x": 1})).status, 401);
    assert_eq!(api.post("/hook/a", &[("X-Auth-Token", &"0".repeat(64))], &json!({"x": 1})).status, 401);
    assert_eq!(api.post("/hook/a", &[("Cookie", &cookie), ("Origin", "http://evil")], &json!({"x": 1})).status, 403);
    let reply = api.post("/hook/git/push", &[("X-Auth-Token", &token), ("X-Event", "push")], &json!({"x": [1]}));
    assert_eq!((reply.status, reply.json()), (200, json!({"success": true})), "{reply:?}");
    let data = bus.wait_tag("salt/netapi/hook/git/push");
    assert_eq!((&data["post"], &data["body"]), (&json!({"x": [1]}), &json!("{\"x\":[1]}")), "{data}");
    assert_eq!(data["headers"]["X-Event"], json!("push"), "{data}");
    let form = [("Content-Type", "application/x-www-form-urlencoded"), ("X-Auth-Token", token.as_str())];
    assert_eq!(api.send("POST", "/hook", &form, "x=1").status, 200);
    bus.wait_tag("salt/netapi/hook");
    assert_eq!(api.send("POST", "/hook/form", &form, "x=1").status, 200);
    let data = bus.wait_tag("salt/netapi/hook/form");
    assert_eq!((&data["post"], &data["body"]), (&json!({"x": "1"}), &json!("x=1")), "{data}");
    // Text that is no JSON is itself; a proxy's credentials are none of ours.
    let text = [("Content-Type", "text/plain"), ("X-Auth-Token", token.as_str()), ("Authorization", "Basic YTpi")];
    assert_eq!(api.send("POST", "/hook/text", &text, "build 7").status, 200);
    let data = bus.wait_tag("salt/netapi/hook/text");
    assert_eq!((&data["post"], &data["body"]), (&json!("build 7"), &json!("build 7")), "{data}");
    assert!(data["headers"]["Remote-Addr"].is_string(), "{data}");
    let told = bus.all();
    assert!(!told.iter().any(|(_, data)| data.to_string().contains(&token)), "an event has a token");
    assert!(!told.iter().any(|(tag, _)| tag == "salt/netapi/hook/a"), "a hook without a token was fired");
    drop(api);
    let api = Api::start_for("ann: [test.ping]", ", webhook_disable_auth: True", "");
    let bus = api.master.events();
    assert_eq!(api.post("/hook/a", &[("X-Auth-Token", &"0".repeat(64))], &json!({})).status, 401, "a wrong token");
    assert_eq!(api.post("/hook/a", &[], &json!({"x": 1})).status, 200);
    bus.wait_tag("salt/netapi/hook/a");
}

/// What another program of the master's user could say on the socket proves no more than a token.
#[test]
fn the_socket_takes_tokens_and_nothing_else() {
    let api = Api::start();
    let path = locate(&api.master.path(""), "master_api.ipc");
    assert_eq!(std::fs::metadata(&path).expect("a socket").permissions().mode() & 0o777, 0o600);
    let mut node = Node::connect(&path);
    let bus = api.master.events();
    let key = std::fs::read_to_string(locate(&api.master.path(""), ".root_key")).expect("root's key");
    let job = |more: &[(&str, &str)]| {
        let mut load = map([
            ("cmd", "publish"),
            ("tgt", "*"),
            ("tgt_type", "glob"),
            ("fun", "test.ping"),
            ("ret", ""),
            ("jid", ""),
        ]);
        for (name, text) in more {
            value::ValueExt::insert(&mut load, name, *text);
        }
        value::ValueExt::insert(&mut load, "arg", Salt::Array(Vec::new()));
        load
    };
    let error = |reply: &Value| reply["error"]["name"].as_str().unwrap_or_default().contains("Authentication");
    for refused in [
        job(&[("key", &key), ("user", "root")]),
        job(&[("eauth", "sharedsecret"), ("username", "admin"), ("password", PASSWORD)]),
        map([("cmd", "wheel"), ("fun", "key.list_all"), ("key", &key)]),
        map([("cmd", "runner"), ("fun", "jobs.active"), ("key", &key)]),
        map([("cmd", "fire_hook"), ("tag", "salt/netapi/hook/x"), ("key", &key)]),
    ] {
        let reply = node.ask(&refused);
        assert!(error(&reply), "{refused}: {reply}");
    }
    let token = api.log_in("admin");
    for tag in ["salt/auth", "salt/netapi/hook/", "salt/netapi/hookx/y", "salt/job/20260101000000000000/new"] {
        let hook = map([
            ("cmd", Salt::from("fire_hook")),
            ("tag", tag.into()),
            ("token", token.as_str().into()),
            ("data", map([("x", 1)])),
        ]);
        assert_eq!(node.ask(&hook)["error"]["name"], json!("SaltInvocationError"), "{tag}");
    }
    // Failed log-ins count for the address that the node names.
    let wrong = map([("cmd", "mk_token"), ("eauth", "sharedsecret"), ("username", "x"), ("password", "y")]);
    let replies = node.ask_all(&vec![wrong.clone(); 12]);
    assert!(replies.iter().any(|reply| *reply == json!("")), "{replies:?}");
    let reply = node.ask(&wrong);
    assert_eq!(reply["error"]["name"], json!("TooMany"), "{reply}");
    assert!(reply["error"]["retry_after"].as_f64().is_some_and(|wait| wait > 0.0), "{reply}");
    start(&api, &token, "test.ping", "");
    bus.wait("a job", |tag, _| tag.ends_with("/ret/m1"));
    let started = bus.all().iter().filter(|(tag, _)| tag.ends_with("/new")).count();
    assert_eq!(started, 1, "only the last job was started");
}

fn locate(dir: &std::path::Path, name: &str) -> std::path::PathBuf {
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_name() == name {
                return entry.path();
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            }
        }
    }
    panic!("there is no {name}");
}

/// A node that says what it likes.
struct Node {
    socket: UnixStream,
    next: u64,
}

impl Node {
    fn connect(path: &std::path::Path) -> Self {
        Self { socket: UnixStream::connect(path).expect("the master listens"), next: 1 }
    }

    fn ask(&mut self, load: &Salt) -> Value {
        self.ask_all(std::slice::from_ref(load)).remove(0)
    }

    fn ask_all(&mut self, loads: &[Salt]) -> Vec<Value> {
        for load in loads {
            let address = std::net::IpAddr::from([192, 0, 2, 7]);
            let payload = Envelope::clear(load.clone()).encode();
            let request = ToMaster::Request { id: self.next, address, until: u64::MAX, payload };
            self.next += 1;
            self.socket.write_all(&frame(&request.encode())).expect("a request");
        }
        let mut replies = Vec::new();
        while replies.len() < loads.len() {
            let mut length = [0; 4];
            self.socket.read_exact(&mut length).expect("a message");
            let mut message = vec![0; u32::from_be_bytes(length) as usize];
            self.socket.read_exact(&mut message).expect("a message");
            if let ToNode::Reply { payload, .. } = ToNode::decode(&message).expect("a message") {
                replies.push(value::to_json(&msgpack::decode(&payload, &Limits::REQUEST).expect("a reply")));
            }
        }
        replies
    }
}

fn upgrade() -> Vec<(&'static str, &'static str)> {
    vec![
        ("Upgrade", "websocket"),
        ("Connection", "Upgrade"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ]
}

/// Reads what a server sends over a WebSocket until `enough`; its frames are not masked.
fn read_until(socket: &mut TcpStream, enough: impl Fn(&str) -> bool) -> String {
    let mut text = String::new();
    let mut buffer = [0; 4096];
    while !enough(&text) {
        let n = socket.read(&mut buffer).expect("a frame");
        assert!(n > 0, "the socket ended: {text}");
        text.push_str(&String::from_utf8_lossy(&buffer[..n]));
    }
    text
}

#[test]
fn a_websocket_has_the_same_events() {
    let api = Api::start_for("ann: [test.ping]", "", "");
    let token = api.log_in("ann");
    let mut headers = upgrade();
    assert_eq!(api.send("GET", "/ws", &headers, "").status, 401);
    headers.push(("X-Auth-Token", &token));
    assert_eq!(api.send("GET", &format!("/ws/{token}"), &headers, "").status, 404);
    assert_eq!(api.send("GET", "/ws", &headers[4..], "").status, 400, "no WebSocket's request");
    let mut socket = TcpStream::connect(("127.0.0.1", api.port)).expect("salt-api listens");
    let lines: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    socket.write_all(format!("GET /ws HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n").as_bytes()).expect("a request");
    let head = read_until(&mut socket, |text| text.contains("\r\n\r\n"));
    assert!(head.starts_with("HTTP/1.1 101 ") && head.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{head}");
    let say = |socket: &mut TcpStream, text: &[u8]| {
        let mut frame = vec![0x81, 0x80 | u8::try_from(text.len()).expect("short"), 0, 0, 0, 0];
        frame.extend_from_slice(text);
        socket.write_all(&frame).expect("a frame");
    };
    say(&mut socket, b"websocket client ready");
    let jid = start(&api, &token, "test.ping", "");
    let text = read_until(&mut socket, |text| text.contains(&format!("salt/job/{jid}/ret/m1\"}}\n\n")));
    assert!(
        text.contains("data: {\"data\": {") && text.contains(&format!("\"tag\": \"salt/job/{jid}/new\"}}\n\n")),
        "{text}"
    );
    log_out(&api, &token);
    let began = Instant::now();
    let end = read_until(&mut socket, |text| text.contains("The token has ended"));
    assert!(began.elapsed() < Duration::from_secs(1), "{end}");
}
