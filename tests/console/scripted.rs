//! A server that answers the console's reads as a master with many or hostile minions would. The page itself comes from a
//! salt-api without a master.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use brine_kit::ports::free_ports;
use brine_kit::process::Daemon;
use brine_kit::programs::program;
use brine_kit::wait::wait_for;
use serde_json::{Value, json};

/// What a hostile minion calls itself or returns.
pub(crate) const HOSTILE: &str =
    "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>\u{202e}txt.exe\u{2066}";

/// The server.
pub(crate) struct Scripted {
    pub(crate) port: u16,
    pub(crate) state: Arc<State>,
    _api: Daemon,
    _folder: tempfile::TempDir,
}

/// What its answers depend on.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) minions: usize,
    /// The return of the hostile job.
    pub(crate) output: String,
    pub(crate) is_in: AtomicBool,
    pub(crate) away: AtomicBool,
    /// Events each hundredth of a second.
    pub(crate) events: AtomicU64,
    /// Events sent so far.
    pub(crate) sent: AtomicU64,
    /// What was started.
    pub(crate) started: Mutex<Vec<Value>>,
}

impl Scripted {
    pub(crate) fn start(state: State) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let [api] = free_ports();
        let root = folder.path().display();
        let config = format!(
            "root_dir: {root}\nnetapi_enable_clients: [local_async]\napi_logfile: {root}/api.log\napi_pidfile: {root}/api.pid\n\
             sock_dir: {root}\nrest_cherrypy: {{host: 127.0.0.1, port: {api}, disable_ssl: True}}\n"
        );
        std::fs::write(folder.path().join("master"), config).expect("a folder to write");
        let conf = folder.path().display().to_string();
        let daemon = Daemon::start(&program("salt-api"), &["-c", &conf], &folder.path().join("api.out"));
        wait_for("salt-api to listen", || TcpStream::connect(("127.0.0.1", api)).ok().map(drop));
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let state = Arc::new(state);
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || answer(&stream, &shared, api));
            }
        });
        Self { port, state, _api: daemon, _folder: folder }
    }

    pub(crate) fn url(&self, page: &str) -> String {
        format!("http://127.0.0.1:{}/#/{page}", self.port)
    }
}

fn answer(mut stream: &TcpStream, state: &State, api: u16) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let mut words = head.split(' ');
    let (method, target) = (words.next()?, words.next()?);
    let length =
        head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.trim().parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let param =
        |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')).unwrap_or_default();
    let number = |name: &str| param(name).parse::<usize>().ok();
    let is_api = path.starts_with("/v1/") || ["/events", "/login", "/logout"].contains(&path) || method == "POST";
    if !is_api {
        return forward(stream, &head, api);
    }
    let mut send = |status: &str, body: &Value| {
        let body = body.to_string();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        stream.write_all((head + &body).as_bytes()).ok()
    };
    if state.away.load(Ordering::SeqCst) {
        return send("503 Service Unavailable", &json!({"detail": "The master is away."}));
    }
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    match path {
        "/login" if body["password"] != "right" => {
            return send("401 Unauthorized", &json!({"detail": "Could not authenticate"}));
        }
        "/login" => {
            state.is_in.store(true, Ordering::SeqCst);
            return send("200 OK", &json!({"return": [{}]}));
        }
        "/logout" => {
            state.is_in.store(false, Ordering::SeqCst);
            return send("200 OK", &json!({"return": "Your token has been cleared"}));
        }
        _ if !state.is_in.load(Ordering::SeqCst) => {
            return send("401 Unauthorized", &json!({"detail": "No good token"}));
        }
        "/events" => return events(stream, state),
        "/" => {
            state.started.lock().expect("no panic").push(body[0].clone());
            let result = if body[0]["client"] == "wheel" {
                json!({"data": {"success": true, "return": {}}})
            } else {
                json!({"jid": "20261123190000000001", "minions": []})
            };
            return send("200 OK", &json!({"return": [result]}));
        }
        _ => {}
    }
    let (from, limit) = (number("cursor").unwrap_or(0), number("limit").unwrap_or(100));
    let page = |total: usize, item: &dyn Fn(usize) -> Value| {
        let to = total.min(from + limit);
        json!({"items": (from..to).map(item).collect::<Vec<_>>(), "next": if to < total { json!(to.to_string()) } else { Value::Null }})
    };
    let answer = match path {
        "/v1/me" => {
            json!({"user": "ann", "eauth": "pam", "start": 1.5, "expire": 4e9, "clients": ["local_async", "wheel"], "perms": [".*"],
            "may": {"fleet": true, "jobs": true, "keys": true, "everywhere": true, "runners": [], "wheels": ["key.accept_dict", "key.delete_dict"]}})
        }
        "/v1/fleet" => {
            let mut list = page(state.minions, &minion);
            list["total"] = json!(state.minions);
            list["counts"] = json!({"accepted": state.minions, "connected": state.minions, "pending": 1, "rejected": 0, "denied": 0});
            list
        }
        "/v1/jobs" => page(state.minions, &|at| job(&format!("2026112319{:010}", 1_000_000 - at))),
        "/v1/keys" => {
            let mut list = page(
                2,
                &|at| json!({"id": if at == 0 { "new" } else { HOSTILE }, "state": "pending", "fingerprint": "12:ab:34"}),
            );
            list["total"] = json!(2);
            list["counts"] = json!({"accepted": 0, "pending": 2, "rejected": 0, "denied": 0});
            list["master"] = json!("aa:bb");
            list
        }
        "/v1/modules" => {
            json!({"items": [{"name": HOSTILE, "served": [{"env": "base", "sha256": "cd".repeat(32), "size": 81234, "signed": true}], "drift": 1, "held": 1,
            "versions": [{"version": "1.2.0", "sha256": "ab".repeat(32), "origin": "base", "signed_by": [HOSTILE], "minions": 1, "some": [HOSTILE], "served": false,
            "asks": ["http"], "grants": [{"has": {"all": {"env": [HOSTILE]}, "pkgtool.x": {"env": [HOSTILE]}}, "missing": [HOSTILE], "minions": 1, "some": ["web1"]}]}]}], "next": null, "minions": 1, "unknown": 1})
        }
        "/v1/held" => {
            json!({"items": [{"name": "pkgtool", "why": HOSTILE, "held": {"version": HOSTILE, "sha256": "cd".repeat(32), "size": 5, "origin": "base", "signed_by": [], "signed": null},
            "in_use": null, "functions": {"added": ["x"], "removed": [], "changed": []}, "permissions": {"added": {HOSTILE: HOSTILE}, "removed": {}},
            "lines": "sandbox: x", "approve": "salt-call --local sandbox.approve pkgtool sha256=cd", "minions": 1, "some": [HOSTILE]}], "next": null, "unknown": 0})
        }
        "/v1/plan" => {
            json!({"allowed": body["fun"] != "cmd.run", "fun": body["fun"], "module": "pkgtool", "expected": 40, "connected": 39, "away": 1, "some": ["web1"],
            "groups": [{"minions": 39, "some": ["web1"], "usable": true, "version": "1.2.0", "sha256": "ab", "asks": ["http", "process"], "has": {"all": {"http": ["https://deb.debian.org/"]}},
            "missing": ["sandbox: {modules: {pkgtool: {process: {}}}}"], "held": null}], "without": 0, "unknown": 1})
        }
        _ if path.starts_with("/v1/fleet/") => {
            let mut one = minion(1);
            one["grains"] = json!({"fqdn": HOSTILE});
            one["fingerprint"] = json!("12:ab");
            one["sandbox"] = json!({"modules": []});
            one
        }
        _ if path.starts_with("/v1/jobs/") => {
            let usage = json!([{"wall_us": 12034, "cpu_us": 9001, "memory_peak": 1_114_112, "host_calls": 7, "bytes_in": 4096, "bytes_out": 512, "sha256": "ab".repeat(32)}]);
            let mut one = job("20261123190000000001");
            one["missing"] = json!(1);
            one["last"] = json!(1.76e9);
            one["items"] = json!([
                {"id": HOSTILE, "state": "failed", "at": 1.76e9, "retcode": 2, "return": state.output, "bytes": 9, "usage": usage},
                {"id": "web9", "state": "missing", "at": null, "retcode": null, "return": null, "bytes": null, "usage": []},
                {"id": "web1", "state": "ok", "at": 1.76e9, "retcode": 0, "return": {HOSTILE: [HOSTILE]}, "bytes": 9, "usage": []},
            ]);
            one["next"] = Value::Null;
            one
        }
        _ => return send("404 Not Found", &json!({"detail": "Nothing"})),
    };
    send("200 OK", &answer)
}

fn minion(at: usize) -> Value {
    let id = if at == 3 { HOSTILE.to_owned() } else { format!("web{at:05}") };
    json!({"id": id, "key": "accepted", "connected": true, "reported": 1.76e9, "version": "0.9.0", "os": "Debian", "osrelease": "13", "os_family": "Debian",
        "kernel": "Linux", "cpuarch": "x86_64", "modules": {"total": 31, "drift": at % 2, "held": 0, "missing": 0}})
}

fn job(jid: &str) -> Value {
    json!({"jid": jid, "fun": "state.apply", "args": [HOSTILE], "user": "ann", "target": "web*", "target_type": "glob", "start": 1.76e9,
        "expected": 3, "returned": 2, "failed": 1})
}

fn events(mut stream: &TcpStream, state: &State) -> Option<()> {
    stream
        .write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\nretry: 400\n")
        .ok()?;
    let (mut seq, began) = (0, Instant::now());
    loop {
        if state.away.load(Ordering::SeqCst) {
            return None;
        }
        let mut batch = String::new();
        // By the clock, so that a busy machine's sleeps do not make them fewer.
        let due = began.elapsed().as_millis() as u64 * state.events.load(Ordering::SeqCst) / 10;
        while seq < due {
            seq += 1;
            let data = json!({"tag": "", "data": {"return": HOSTILE, "seq": seq, "fill": "x".repeat(300)}});
            batch.push_str(&format!("tag: brine/test/{seq}\ndata: {data}\nid: 1-{seq}\n\n"));
        }
        stream.write_all(batch.as_bytes()).ok()?;
        state.sent.store(seq, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Sends a request on to salt-api.
fn forward(mut stream: &TcpStream, head: &str, api: u16) -> Option<()> {
    let mut upstream = TcpStream::connect(("127.0.0.1", api)).ok()?;
    let lines = head.lines().filter(|line| !line.to_ascii_lowercase().starts_with("connection:") && !line.is_empty());
    let mut request: String = lines.flat_map(|line| [line, "\r\n"]).collect();
    request.push_str("Connection: close\r\n\r\n");
    upstream.write_all(request.as_bytes()).ok()?;
    std::io::copy(&mut upstream, &mut stream).ok().map(drop)
}
