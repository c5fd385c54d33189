//! Pillars over the wire: each minion gets its own, and bad input costs nobody else anything.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use brine_protocol::value::{Value, ValueExt, empty_map, map};

use crate::harness::{Deadline as _, SOON, TestMaster, TestMinion, decode, mode};

/// A master with pillar files.
async fn master(extra: &str, files: &[(&str, &str)]) -> TestMaster {
    let master = TestMaster::start(&format!("pillar_roots: {{base: [pillar]}}\n{extra}")).await;
    for (path, text) in files {
        write(&master, path, text);
    }
    master
}

fn write(master: &TestMaster, path: &str, text: &str) {
    let path = master.path("pillar").join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn request(grains: Value) -> Value {
    map([
        ("cmd", Value::from("_pillar")),
        ("grains", grains),
        ("saltenv", Value::Nil),
        ("pillarenv", Value::Nil),
        ("pillar_override", empty_map()),
        ("ver", Value::from("2")),
    ])
}

fn with(mut load: Value, name: &str, value: impl Into<Value>) -> Value {
    load.insert(name, value);
    load
}

async fn pillar(master: &TestMaster, minion: &TestMinion, load: Value) -> Value {
    let sealed = minion.session().seal_request(load).unwrap();
    let reply = master.raw(sealed.payload).await;
    minion.session().open_pillar_reply(&reply, &sealed.nonce).unwrap()
}

fn error(pillar: &Value) -> String {
    let errors = pillar.get("_errors").and_then(ValueExt::list).unwrap_or_default();
    assert_eq!(errors.len(), 1, "{errors:?}");
    errors[0].python_str()
}

const FILES: &[(&str, &str)] = &[
    ("top.sls", "base:\n  web1: [web]\n  db1: [db]\n  'role:db':\n    - match: grain\n    - claimed\n"),
    ("web.sls", "role: web\nid: {{ grains.id }}\n"),
    ("db.sls", "password: hunter2\n"),
    ("claimed.sls", "claimed: true\n"),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_minion_gets_its_own_pillar_only() {
    let master = master("", FILES).await;
    let (web, db) = (master.minion("web1", 1).await, master.minion("db1", 2).await);
    let grains = |id: &str, role: &str| map([("id", id), ("role", role)]);
    let own = map([("role", "web"), ("id", "web1")]);
    assert_eq!(pillar(&master, &web, request(grains("db1", "x"))).await, own, "a grain does not say who it is");
    assert_eq!(pillar(&master, &db, request(empty_map())).await, map([("password", "hunter2")]));
    let claimed = pillar(&master, &web, request(grains("web1", "db"))).await;
    assert_eq!(claimed.get("claimed"), Some(&Value::from(true)), "grains are its own word, as in Salt");
    // An id in the load that is another's, within web1's session.
    let load = with(with(with(request(empty_map()), "id", "db1"), "tok", "good"), "cmd", "_pillar");
    let refused = decode(&master.raw(web.envelope(load.clone(), "web1", 3)).await);
    assert_eq!(refused, Value::from("bad load"));
    // The envelope names another, which has another session.
    assert_eq!(decode(&master.raw(web.envelope(load, "db1", 3)).await), Value::from("bad load"));
}

#[tokio::test(flavor = "multi_thread")]
async fn targets_see_the_last_whole_pillar() {
    let master = master("", FILES).await;
    let web = master.minion("web1", 1).await;
    let kept = || std::fs::read(master.path("cache/pillar/web1.p")).unwrap();
    pillar(&master, &web, request(empty_map())).await;
    let good = kept();
    assert_eq!(mode(master.path("cache/pillar/web1.p")), 0o600);
    let given = with(request(empty_map()), "pillar_override", map([("role", "given")]));
    assert_eq!(pillar(&master, &web, given).await.get_text("role"), Some("given"));
    assert_eq!(kept(), good, "what one job was given is not kept");
    write(&master, "web.sls", "role: {{ nope }}\n");
    let broken = pillar(&master, &web, request(empty_map())).await;
    assert_eq!(error(&broken), "Rendering SLS 'web' failed. Please see master log for details.");
    assert_eq!(kept(), good);
    write(&master, "web.sls", "role: new\n");
    pillar(&master, &web, request(empty_map())).await;
    assert_ne!(kept(), good);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_beyond_the_bounds_get_an_error() {
    let master = master("pillar_max_override: 1000", FILES).await;
    let web = master.minion("web1", 1).await;
    let large = map([("x", "x".repeat(4 << 20))]);
    let refused = error(&pillar(&master, &web, request(large)).await);
    assert!(refused.contains("cannot be compiled"), "{refused}");
    let given = with(request(empty_map()), "pillar_override", map([("x", "x".repeat(1000))]));
    assert!(error(&pillar(&master, &web, given).await).contains("cannot be compiled"));
    let missing = with(request(empty_map()), "pillarenv", "nope");
    let missing = error(&pillar(&master, &web, missing).await);
    assert_eq!(missing, "No matching pillar environment for environment 'nope' found");
    // Deeper than a request may be.
    let deep = (0..1_000).fold(Value::Nil, |inner, _| Value::Array(vec![inner]));
    let sealed = web.session().seal_request(request(map([("deep", deep)]))).unwrap();
    let reply = master.raw(sealed.payload).await;
    assert!(web.session().open_pillar_reply(&reply, &sealed.nonce).is_err());
    let own = pillar(&master, &web, request(empty_map())).await;
    assert_eq!(own.get_text("role"), Some("web"), "the next request is answered");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_template_keeps_nobody_waiting() {
    let files = [("top.sls", "base:\n  slow*: ['s*']\n  web1: [web]\n"), ("web.sls", "role: web\n")];
    let master = master("pillar_workers: 1\npillar_timeout: 20\nrender_max_steps: 1000000000", &files).await;
    // It takes until `pillar_timeout`, which is looked at between files.
    for n in 0..2_000 {
        write(&master, &format!("s{n}.sls"), "{% for i in range(20000) %}{% set x = i %}{% endfor %}\n");
    }
    let (slow, web) = (master.minion("slow1", 1).await, master.minion("web1", 2).await);
    let began = Instant::now();
    let waiting = async {
        let answer = pillar(&master, &slow, request(empty_map())).await;
        (answer, began.elapsed())
    };
    let others = async {
        for _ in 0..5 {
            let own = SOON.within(pillar(&master, &web, request(empty_map()))).await;
            assert_eq!(own, map([("role", "web")]));
        }
        began.elapsed()
    };
    let ((_, slow), quick) = tokio::join!(waiting, others);
    assert!(quick < slow, "{quick:?} {slow:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn kept_pillars_are_compiled_again_when_asked() {
    for backend in ["disk", "memory"] {
        let master = master(&format!("pillar_cache: true\npillar_cache_backend: {backend}"), FILES).await;
        let web = master.minion("web1", 1).await;
        let role = async |load| pillar(&master, &web, load).await.get_text("role").map(str::to_owned);
        assert_eq!(role(request(empty_map())).await.as_deref(), Some("web"));
        write(&master, "web.sls", "role: new\n");
        assert_eq!(role(request(empty_map())).await.as_deref(), Some("web"), "{backend}");
        let given = with(request(empty_map()), "pillar_override", map([("role", "given")]));
        assert_eq!(role(given).await.as_deref(), Some("given"));
        let clean = with(request(empty_map()), "clean_cache", true);
        assert_eq!(role(clean).await.as_deref(), Some("new"), "{backend}");
        assert_eq!(master.path("cache/pillar_cache/web1/all.p").exists(), backend == "disk");
    }
}

/// What a web server does with each connection.
fn serve(answer: impl Fn(&mut std::net::TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let _ = stream.read(&mut [0; 4096]);
            answer(&mut stream);
        }
    });
    address
}

fn document(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

async fn external(address: SocketAddr, extra: &str) -> (Value, Duration) {
    let config = format!("ext_pillar: [{{http_json: {{url: 'http://{address}/%s'}}}}]\n{extra}");
    let master = master(&config, FILES).await;
    let web = master.minion("web1", 1).await;
    let began = Instant::now();
    let answer = SOON.within(pillar(&master, &web, request(empty_map()))).await;
    (answer, began.elapsed())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_web_server_does_costs_little() {
    let good = serve(|stream| drop(stream.write_all(document("{\"more\": 1}").as_bytes())));
    let (answer, _) = Box::pin(external(good, "")).await;
    assert_eq!(answer.get("more"), Some(&Value::from(1)));
    assert_eq!(answer.get("_errors"), None);
    let moved =
        serve(|stream| drop(stream.write_all(b"HTTP/1.1 302 Found\r\nLocation: /web1\r\nContent-Length: 0\r\n\r\n")));
    let secret = serve(|stream| drop(stream.write_all(document("{\"password\": \"hunter2\"}").as_bytes())));
    let elsewhere = serve(move |stream| {
        let head = format!("HTTP/1.1 302 Found\r\nLocation: http://{secret}/\r\nContent-Length: 0\r\n\r\n");
        drop(stream.write_all(head.as_bytes()));
    });
    let large = serve(|stream| {
        let _ = stream.write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", 50 << 20).as_bytes());
        while stream.write_all(&[b' '; 1 << 16]).is_ok() {}
    });
    let endless = serve(|stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        while stream.write_all(&[b' '; 1 << 16]).is_ok() {}
    });
    let broken = serve(|stream| drop(stream.write_all(document("no JSON").as_bytes())));
    let failing = serve(|stream| drop(stream.write_all(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n")));
    let (closed, hang) = (serve(|_| {}), serve(|stream| drop(stream.read(&mut [0; 1]))));
    for (what, address) in [
        ("moved for ever", moved),
        ("elsewhere", elsewhere),
        ("large", large),
        ("endless", endless),
        ("broken", broken),
        ("failing", failing),
        ("closed", closed),
        ("hang", hang),
    ] {
        let (answer, took) = Box::pin(external(address, "ext_pillar_http_timeout: 2")).await;
        assert_eq!(error(&answer), "Failed to load ext_pillar http_json: please see master log for details", "{what}");
        assert_eq!(answer.get_text("role"), Some("web"), "{what}: the rest is there");
        assert_eq!(answer.get("password"), None, "{what}");
        assert!(took < SOON, "{what} took {took:?}");
    }
}
