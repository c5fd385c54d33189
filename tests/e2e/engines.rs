//! Engines of the master: that events reach servers, and what odd engines can do.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use brine_kit::process::{proc, run};
use brine_kit::programs::testing;
use brine_kit::wait::{DEADLINE, wait_for};
use brine_protocol::event::{Event, Framing, frame};
use brine_protocol::value::from_json;
use brine_tests::events::Events;
use brine_tests::salt::{Kind, Master};
use serde_json::{Value, json};

/// Answers each request with the next of these statuses, then with 200, and hands out status and body. It ends with the
/// test's process.
pub(crate) fn http_server(statuses: &'static [u16]) -> (u16, Receiver<(u16, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    let (bodies, received) = channel();
    std::thread::spawn(move || {
        let mut statuses = statuses.iter().copied();
        // The client makes a connection for each request.
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream);
            let mut head: Vec<String> = Vec::new();
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).unwrap_or(0) == 0 || line == "\r\n" {
                    break;
                }
                head.push(line.to_ascii_lowercase());
            }
            let length = head.iter().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
            let Some(length) = length else { continue };
            let mut body = vec![0; length];
            reader.read_exact(&mut body).expect("a body");
            let status = statuses.next().unwrap_or(200);
            let mut body: Value = serde_json::from_slice(&body).expect("JSON");
            body["x-of"] = json!(head.iter().find_map(|line| line.strip_prefix("x-of:").map(str::trim)));
            let _ = bodies.send((status, body));
            let _ = write!(reader.get_mut(), "HTTP/1.1 {status} x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }
    });
    (port, received)
}

/// Hands out the lines of all connections.
fn line_server() -> (u16, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    let (lines, received) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                let _ = lines.send(line);
            }
        }
    });
    (port, received)
}

pub(crate) fn fire(master: &Master, tag: &str, data: &Value) {
    let mut bus = wait_for("the master's bus", || UnixStream::connect(master.path("sock/master_event_pull.ipc")).ok());
    bus.write_all(&frame(&Event::new(tag, from_json(data)), Framing::Prefixed)).expect("the master takes events");
}

pub(crate) fn engines(master: &Master) -> Value {
    master.command("salt-run", &["engines.list", "--out", "json"]).exits(0).json()
}

pub(crate) fn wait_engine(master: &Master, name: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
    wait_for(&format!("{name}: {what}"), || Some(engines(master)[name].clone()).filter(&holds))
}

pub(crate) fn log(master: &Master) -> String {
    std::fs::read_to_string(master.path("master.out")).expect("the master's output")
}

#[test]
fn returns_of_jobs_reach_servers() {
    let (http, posts) = http_server(&[503]);
    let (tcp, lines) = line_server();
    let config = format!(
        "engines:\n  - webhook:\n      url: http://127.0.0.1:{http}/in\n      headers: {{X-Of: brine}}\n      tags: ['salt/job/*/ret/*']\n  \
         - lines: {{engine_module: tcp_events, host: 127.0.0.1, port: {tcp}, token: secret-token, tags: 'salt/job/*/ret/*'}}\n  \
         - refused: {{engine_module: webhook, url: 'http://127.0.0.1:9/', tags: 'salt/job/*/ret/*'}}\n\
         sandbox:\n  modules:\n    webhook: {{network: ['127.0.0.1:{http}']}}\n    tcp_events: {{network: ['127.0.0.1:{tcp}']}}\n"
    );
    let master = Master::start(&config);
    let _minion = master.minion("web1");
    master.salt(&["web1", "test.echo", "to the hook"]).exits(0);
    let next = || posts.recv_timeout(DEADLINE).expect("a request");
    let is_ours = |body: &Value| body["data"]["return"] == "to the hook";
    let mut all = vec![next()];
    while !all.last().is_some_and(|(status, body)| *status == 200 && is_ours(body)) {
        all.push(next());
    }
    let (_, body) = all.last().expect("just received");
    assert_eq!(all[0].0, 503);
    assert!(all.iter().any(|(status, body)| *status == 200 && *body == all[0].1), "it is posted again: {all:?}");
    assert_eq!((&body["source"], &body["x-of"]), (&json!("minion web1"), &json!("brine")));
    assert!(body["tag"].as_str().is_some_and(|tag| tag.starts_with("salt/job/") && tag.ends_with("/ret/web1")));
    let line = std::iter::repeat_with(|| lines.recv_timeout(DEADLINE).expect("a line"))
        .find(|line| line.contains("to the hook"))
        .expect("it comes");
    let line: Value = serde_json::from_str(line.strip_prefix("secret-token ").expect("the token")).expect("JSON");
    assert_eq!((&line["tag"], &line["data"]["return"]), (&body["tag"], &json!("to the hook")));
    // A host that was not granted: refused, with the line that grants it.
    let refused = wait_engine(&master, "refused", "an error", |it| it["last_error"].is_string());
    let why = refused["last_error"].as_str().unwrap_or_default();
    assert!(
        why.contains("127.0.0.1:9") && why.contains("under sandbox: modules: in the master's configuration"),
        "{why}"
    );
    assert_eq!(refused["handled"], json!(0));
    // The executors are killed; the next event comes all the same.
    let executors = master.daemon.as_ref().expect("it runs").children();
    for pid in executors {
        if proc(pid, "comm").is_some_and(|name| name.trim() == "brine-executor") {
            run(Path::new("kill"), &["-9", &pid.to_string()]).exits(0);
        }
    }
    master.salt(&["web1", "test.echo", "after the kill"]).exits(0);
    while next().1["data"]["return"] != "after the kill" {}
    let webhook = wait_engine(&master, "webhook", "all is handled", |it| it["handled"] == it["seen"]);
    assert_eq!((&webhook["state"], &webhook["left_out"], &webhook["lost"]), (&json!("running"), &json!(0), &json!(0)));
    assert!(!log(&master).contains("secret-token"), "settings of engines may hold secrets");
    assert!(!master.command("salt-run", &["config.get", "engines"]).stdout.contains("secret-token"));
}

/// The bus takes events only when all of the master's own parts that see them are there.
#[test]
fn an_event_of_the_first_moment_is_seen() {
    let mut master = Master::prepare(Kind::Brine, "");
    // Many reactions make the start longer, and so an event in it more likely.
    let others: String = (0..5_000).map(|n| format!("  - 'never/*/{n}': [/none.sls]\n")).collect();
    let engine =
        |name: &str| format!("  - {name}: {{engine_module: webhook, url: 'http://127.0.0.1:9/', tags: {name}/*}}\n");
    let engines_of_it: String = ["first", "reacted", "later"].map(engine).concat();
    let sls = master.path("react.sls").display().to_string();
    std::fs::write(&sls, "react:\n  runner.event.send: [{args: [{tag: reacted/1}]}]\n").expect("our own folder");
    let conf = std::fs::read_to_string(master.path("conf/master")).expect("just written");
    let conf = format!("{conf}\nengines:\n{engines_of_it}reactor:\n{others}  - first/*: [{sls}]\n");
    std::fs::write(master.path("conf/master"), conf).expect("our own folder");
    for start in 0..3 {
        let socket = master.path("sock/master_event_pull.ipc");
        // Nothing waits between two tries, as the moment is short.
        let first = std::thread::spawn(move || {
            let end = Instant::now() + DEADLINE;
            let mut bus = loop {
                match UnixStream::connect(&socket) {
                    Ok(bus) => break bus,
                    Err(error) => assert!(Instant::now() < end, "no bus: {error}"),
                }
            };
            bus.write_all(&frame(&Event::new("first/1", from_json(&json!({}))), Framing::Prefixed))
                .expect("it is open");
        });
        master.up();
        first.join().expect("the event was fired");
        // The master answers, and so the start is over.
        engines(&master);
        fire(&master, "later/1", &json!({}));
        wait_engine(&master, "later", "the later event", |it| it["seen"] == json!(1));
        assert_eq!(engines(&master)["first"]["seen"], json!(1), "start {start}");
        wait_engine(&master, "reacted", "the reaction to the first event", |it| it["seen"] == json!(1));
        master.stop();
    }
}

/// Marks of reactions that ran.
fn reactions(events: &Events) -> Vec<Value> {
    let all = events.all().into_iter();
    let runs = all.filter(|(tag, data)| {
        tag.starts_with("salt/run/") && tag.ends_with("/new") && data["fun"] == "runner.test.arg"
    });
    runs.map(|(_, data)| data["fun_args"].clone()).collect()
}

#[test]
fn what_an_engine_does_wrong_is_its_own_and_is_said_once() {
    let faults = ["spin", "trap", "large", "fire", "get", "grains"];
    let each: String =
        faults.iter().map(|name| format!("  - {name}: {{engine_module: odd_engine, tags: do/{name}}}\n")).collect();
    let mut master = Master::prepare(Kind::Brine, "");
    let folder = master.path("engines");
    std::fs::create_dir_all(&folder).expect("our own folder");
    std::fs::copy(testing("odd_engine"), folder.join("odd_engine.wasm")).expect("run `make modules` first");
    std::fs::write(
        folder.join("show.sls"),
        "show:\n  runner.test.arg:\n    - args:\n      - mark: {{ data['mark'] }}\n      - by: {{ fired_by|json }}\n",
    )
    .expect("our own folder");
    let show = folder.join("show.sls").display().to_string();
    let config = format!(
        "engines:\n{each}  - good: {{engine_module: odd_engine, tags: 'good/*'}}\n  - poll: {{engine_module: odd_engine, interval: 1}}\n  \
         - crash: {{engine_module: odd_engine, do: crash, tags: do/crash}}\n  - missing: {{tags: do/missing}}\n\
         engines_dirs: [{}]\nreactor:\n  - odd/plain: [{show}]\n  - odd/open: [{show}]\n    from_engines: true\n\
         sandbox: {{limits: {{wall: 2s}}, modules: {{odd_engine: {{events: ['odd/*'], network: ['127.0.0.1:9']}}}}}}\n",
        folder.display()
    );
    let conf = std::fs::read_to_string(master.path("conf/master")).expect("just written");
    std::fs::write(master.path("conf/master"), conf + &config).expect("our own folder");
    master.up();
    let events = master.events();
    for name in faults {
        fire(&master, &format!("do/{name}"), &json!({"do": name, "tag": "other/x", "url": "http://127.0.0.1:8/"}));
    }
    fire(&master, "do/crash", &json!({}));
    fire(&master, "do/missing", &json!({}));
    let error = |name: &str| {
        let engine = wait_engine(&master, name, "an error", |it| it["last_error"].is_string());
        assert_eq!(engine["handled"], json!(0), "{engine}");
        engine["last_error"].as_str().unwrap_or_default().to_owned()
    };
    assert!(error("spin").contains("limit"), "{}", error("spin"));
    assert!(error("large").len() < 5_000);
    assert!(!error("trap").is_empty() && !error("crash").is_empty());
    let why = error("fire");
    assert!(
        why.contains("other/x") && why.contains("odd_engine: {") && why.contains("in the master's configuration"),
        "{why}"
    );
    let why = error("get");
    assert!(why.contains("127.0.0.1:8") && why.contains("odd_engine: {"), "{why}");
    assert!(error("missing").contains("There is no module 'missing'"), "{}", error("missing"));
    // What the broker does not have, traps or fails; in any case it is not there.
    assert!(error("grains").contains("not there on a master"), "{}", error("grains"));
    // An engine that polls knows of its last call, and others go on.
    events.wait("a third call", |tag, data| tag == "odd/poll" && data["calls"] == json!(3));
    // An event of an engine starts a reaction only where this is written.
    fire(&master, "good/1", &json!({"do": "fire", "tag": "odd/plain", "mark": "plain"}));
    events.wait("the engine's event", |tag, _| tag == "odd/plain");
    fire(&master, "good/2", &json!({"do": "fire", "tag": "odd/open", "mark": "open"}));
    let run = wait_for("the reaction to an engine", || reactions(&events).into_iter().next());
    let text = run.to_string();
    assert!(
        text.contains("open") && text.contains("\"kind\":\"engine\"") && text.contains("\"name\":\"good\""),
        "{text}"
    );
    assert_eq!(reactions(&events).len(), 1);
    wait_for("the line about from_engines", || (log(&master).matches("from_engines: true").count() == 1).then_some(()));
    // The event that no call survives is given up, and the failure is said once.
    wait_engine(&master, "trap", "it is given up", |it| it["lost"] == json!(1));
    assert_eq!(log(&master).matches("engine trap failed, and").count(), 1);
    master.stop();
}
