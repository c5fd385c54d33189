//! Who salt-api does nothing for. The tests are named by the faults that Salt had.

use std::cell::Cell;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use brine_kit::process::children;
use brine_kit::wait::wait_for;
use brine_tests::events::Events;
use rustix::process::Signal;
use serde_json::{Value, json};

use super::api::{Api, PASSWORD, WRONG};

const CLIENTS: [&str; 8] =
    ["local", "local_async", "local_batch", "local_subset", "runner", "runner_async", "wheel", "wheel_async"];

/// Where an endpoint takes its credentials from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// A token in a header or in the cookie; whatever a body says.
    Header,
    /// Each chunk of the body; whatever a header says.
    Body,
}

/// What an endpoint is sent.
#[derive(Debug, Clone, Copy)]
enum Sent {
    /// Nothing.
    Nothing,
    /// A chunk of each client.
    EachClient,
    /// This.
    Json(&'static str),
}

/// An endpoint that does nothing without credentials. A new one is one row.
type Endpoint = (&'static str, &'static str, Place, Sent);

const ENDPOINTS: &[Endpoint] = &[
    ("POST", "/", Place::Header, Sent::EachClient),
    ("POST", "/run", Place::Body, Sent::EachClient),
    ("GET", "/minions", Place::Header, Sent::Nothing),
    ("GET", "/minions/m1", Place::Header, Sent::Nothing),
    ("POST", "/minions", Place::Header, Sent::Json(r#"{"tgt": "m1", "fun": "test.arg"}"#)),
    ("GET", "/jobs", Place::Header, Sent::Nothing),
    ("GET", "/jobs/20260101000000000000", Place::Header, Sent::Nothing),
    ("GET", "/keys", Place::Header, Sent::Nothing),
    ("GET", "/keys/m1", Place::Header, Sent::Nothing),
    ("POST", "/keys", Place::Body, Sent::Json(r#"{"mid": "made"}"#)),
    ("GET", "/stats", Place::Header, Sent::Nothing),
    ("POST", "/hook/a/b", Place::Header, Sent::Json("{}")),
    ("GET", "/events", Place::Header, Sent::Nothing),
    ("GET", "/ws", Place::Header, Sent::Nothing),
    ("GET", "/v1/me", Place::Header, Sent::Nothing),
    ("GET", "/v1/fleet", Place::Header, Sent::Nothing),
    ("GET", "/v1/fleet/m1", Place::Header, Sent::Nothing),
    ("GET", "/v1/jobs", Place::Header, Sent::Nothing),
    ("GET", "/v1/jobs/20260101000000000000", Place::Header, Sent::Nothing),
    ("GET", "/v1/keys", Place::Header, Sent::Nothing),
    ("GET", "/v1/modules", Place::Header, Sent::Nothing),
    ("GET", "/v1/held", Place::Header, Sent::Nothing),
    ("POST", "/v1/plan", Place::Header, Sent::Json(r#"{"tgt": "m1", "tgt_type": "glob", "fun": "test.arg"}"#)),
    // Last: it ends the token.
    ("POST", "/logout", Place::Header, Sent::Nothing),
];

fn chunk(client: &str) -> Value {
    let fun = if client.starts_with("wheel") { "key.list_all" } else { "test.arg" };
    let mut chunk = json!({"client": client, "fun": fun});
    if client.starts_with("local") {
        chunk["tgt"] = json!("m1");
    }
    chunk
}

/// All that is sent to all endpoints.
fn all_sent() -> impl Iterator<Item = (&'static str, &'static str, Place, Value)> {
    ENDPOINTS.iter().flat_map(|&(method, path, place, sent)| {
        let bodies = match sent {
            Sent::Nothing => vec![json!({})],
            Sent::EachClient => CLIENTS.map(chunk).to_vec(),
            Sent::Json(text) => vec![serde_json::from_str(text).expect("our own text")],
        };
        bodies.into_iter().map(move |body| (method, path, place, body))
    })
}

fn with(body: &Value, more: &Value) -> Value {
    let mut body = body.clone();
    for (key, value) in more.as_object().expect("a map") {
        body[key] = value.clone();
    }
    body
}

fn log_in(eauth: &str, password: &str) -> Value {
    json!({"username": "admin", "password": password, "eauth": eauth})
}

fn send(api: &Api, method: &str, path: &str, headers: &[(&str, &str)], body: &Value) -> u16 {
    let mut all = vec![("Content-Type", "application/json")];
    all.extend(headers);
    api.send(method, path, &all, &body.to_string()).status
}

/// Asserts that every endpoint refuses this token, wherever it is.
fn refuse_everywhere(api: &Api, name: &str, token: &str) {
    for (method, path, place, body) in all_sent() {
        if place == Place::Body {
            let status = send(api, method, path, &[], &with(&body, &json!({"token": token})));
            assert_eq!(status, 401, "{name}: {method} {path} {body}");
            continue;
        }
        let (bearer, cookie) = (format!("Bearer {token}"), format!("session_id={token}"));
        for header in [("X-Auth-Token", token), ("Authorization", &bearer), ("Cookie", &cookie)] {
            assert_eq!(send(api, method, path, &[header], &body), 401, "{name}: {method} {path} {body} {header:?}");
        }
    }
}

fn start(settings: &str) -> Api {
    Api::start_as(settings, ", trusted_proxies: [127.0.0.1]")
}

/// Returns the number of jobs, runs and calls of the wheel since `events` began, without one that this starts at the end.
fn started(api: &Api, events: &Events) -> usize {
    let last = format!("salt/job/{}/new", api.master.start_job(&["m1", "test.ping"]));
    events.wait_tag(&last);
    let began = |tag: &str| ["salt/job/", "salt/run/", "salt/wheel/"].iter().any(|form| tag.starts_with(form));
    events.all().iter().filter(|(tag, _)| began(tag) && tag.ends_with("/new") && *tag != last).count()
}

/// Every client, at each endpoint, with each kind of bad credential: 401, and nothing starts.
#[test]
fn cve_2020_25592_and_2021_25281_bad_credentials_start_nothing() {
    let api = start("");
    let (token, revoked) = (api.log_in("admin"), api.log_in("admin"));
    assert_eq!(send(&api, "POST", "/logout", &[("X-Auth-Token", &revoked)], &json!({})), 200);
    let unknown = "0123456789abcdef".repeat(4);
    // The test itself: with good ones, each of these is something else than 401.
    for (method, path, place, body) in all_sent().filter(|(_, path, ..)| !["/logout", "/events", "/ws"].contains(path))
    {
        let status = match place {
            Place::Header => send(&api, method, path, &[("X-Auth-Token", &token)], &body),
            Place::Body => send(&api, method, path, &[], &with(&body, &json!({"token": token}))),
        };
        assert!(matches!(status, 200 | 202 | 404), "{method} {path} {body}: {status}");
    }
    let events = api.master.events();
    let tokens = [
        ("empty", ""),
        ("auto", "auto"),
        ("not hexadecimal", "not-hex"),
        ("not hexadecimal, of the right length", &"g".repeat(64)),
        ("unknown", &unknown),
        ("revoked", &revoked),
        ("a path", "../../pki/master.pem"),
        ("too short", &token[..63]),
        ("too long", &format!("{token}0")),
    ];
    for (name, token) in tokens {
        refuse_everywhere(&api, name, token);
    }
    // Each wrong password comes from an address of its own: what one address may try is another test's.
    let callers = Cell::new(0);
    let address = || {
        callers.set(callers.get() + 1);
        format!("198.51.100.{}", callers.get())
    };
    for (method, path, place, body) in all_sent() {
        let own = |more: &Value| with(&body, more);
        if place == Place::Header {
            // What counts is the header, whatever the body says.
            let right =
                [json!({}), json!({"token": token}), log_in("sharedsecret", PASSWORD), log_in("auto", PASSWORD)];
            for more in right {
                assert_eq!(send(&api, method, path, &[], &own(&more)), 401, "{method} {path} without a token: {more}");
                let wrong = [("X-Auth-Token", &*unknown), ("Authorization", &format!("Bearer {token}"))];
                assert_eq!(send(&api, method, path, &wrong, &own(&more)), 401, "{method} {path}: the first header");
            }
            continue;
        }
        for more in [
            json!({}),
            json!({"token": null}),
            json!({"token": 1}),
            json!({"token": true}),
            json!({"token": [token]}),
            json!({"token": {"token": token}}),
            json!({"username": "admin", "eauth": "sharedsecret"}),
            json!({"username": "admin", "password": PASSWORD}),
            json!({"password": PASSWORD, "eauth": "sharedsecret"}),
            json!({"username": "admin", "password": [PASSWORD], "eauth": "sharedsecret"}),
            json!({"username": {"admin": 1}, "password": PASSWORD, "eauth": "sharedsecret"}),
            json!({"key": "x", "user": "root"}),
            // A wrong token is not helped by a right password.
            json!({"token": unknown, "username": "admin", "password": PASSWORD, "eauth": "sharedsecret"}),
        ] {
            // Header and cookie are ignored.
            let status = send(&api, method, path, &[("X-Auth-Token", &token)], &own(&more));
            assert_eq!(status, 401, "{method} {path} {body} with {more}");
        }
        // Each of these takes a second.
        for more in [log_in("sharedsecret", WRONG), log_in("auto", PASSWORD), log_in("sharedsecret", "")] {
            let status = send(&api, method, path, &[("X-Forwarded-For", &address())], &own(&more));
            assert_eq!(status, 401, "{method} {path} {body} with {more}");
        }
    }
    for bad in [json!({}), log_in("sharedsecret", WRONG), log_in("auto", PASSWORD), json!({"token": token})] {
        let headers = [("X-Auth-Token", &*token), ("X-Forwarded-For", &address())];
        assert_eq!(send(&api, "POST", "/login", &headers, &bad), 401, "{bad}");
    }
    for (bad, status) in [(json!({}), 400), (json!({"token": token}), 400), (log_in("sharedsecret", WRONG), 401)] {
        let headers = [("X-Auth-Token", &*token), ("X-Forwarded-For", &address())];
        assert_eq!(send(&api, "POST", "/token", &headers, &bad), status, "{bad}");
    }
    assert_eq!(started(&api, &events), 0);
    assert!(!api.master.path("pki/minions/made.pub").exists());
}

/// The first use of a token after its end is refused, as all later ones are.
#[test]
fn cve_2021_3144_an_expired_token_is_none() {
    let api = start("token_expire: 4");
    let mut expire = 0.0_f64;
    let fresh: Vec<String> = all_sent()
        .map(|_| {
            let reply = api.post("/login", &[], &log_in("sharedsecret", PASSWORD));
            let data = &reply.json()["return"][0];
            expire = expire.max(data["expire"].as_f64().expect("a time"));
            data["token"].as_str().expect("a token").to_owned()
        })
        .collect();
    let last = fresh.last().expect("there are endpoints");
    assert_eq!(send(&api, "GET", "/stats", &[("X-Auth-Token", last)], &json!({})), 200, "the test itself");
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs_f64();
    wait_for("the tokens' end", || (now() >= expire).then_some(()));
    let events = api.master.events();
    for (token, (method, path, place, body)) in fresh.iter().zip(all_sent()) {
        let status = match place {
            Place::Header => send(&api, method, path, &[("X-Auth-Token", token)], &body),
            Place::Body => send(&api, method, path, &[], &with(&body, &json!({"token": token}))),
        };
        assert_eq!(status, 401, "{method} {path} {body}: the first use");
    }
    refuse_everywhere(&api, "expired", last);
    assert_eq!(started(&api, &events), 0);
}

/// A token ends when its system is removed from the configuration.
#[test]
fn a_token_of_a_removed_system_is_none() {
    let api = start("");
    let token = api.log_in("admin");
    let path = api.master.path("conf/master");
    let config = std::fs::read_to_string(&path).expect("our own file");
    let removed = config.replace("external_auth: {sharedsecret:", "external_auth: {pam:");
    assert_ne!(config, removed);
    std::fs::write(&path, removed).expect("our own file");
    api.master.daemon.as_ref().expect("it runs").signal(Signal::HUP);
    let status = || send(&api, "GET", "/stats", &[("X-Auth-Token", &token)], &json!({}));
    wait_for("the master to take the configuration up", || (status() == 401).then_some(()));
    let events = api.master.events();
    refuse_everywhere(&api, "of a removed system", &token);
    let log_in = api.post("/login", &[], &log_in("sharedsecret", PASSWORD));
    assert_eq!(log_in.status, 401);
    assert_eq!(started(&api, &events), 0);
}

/// There is no ssh client, and salt-api starts no program.
#[test]
fn cve_2020_16846_and_2021_3197_there_is_no_ssh_client() {
    let api = start("");
    let token = api.log_in("admin");
    let before = children(api.daemon.pid());
    for more in [
        json!({}),
        json!({"ssh_priv": "|touch /tmp/pwned"}),
        json!({"ssh_options": ["ProxyCommand=touch /tmp/pwned"]}),
        json!({"ssh_remote_port_forwards": "a;touch /tmp/pwned", "roster_file": "/etc/passwd", "ssh_port": "22;id"}),
    ] {
        for (name, status) in [("ssh", 400), ("local_async", 200)] {
            let chunk = with(&json!({"client": name, "tgt": "m1", "fun": "test.ping", "token": token}), &more);
            for path in ["/", "/run"] {
                assert_eq!(send(&api, "POST", path, &[("X-Auth-Token", &token)], &chunk), status, "{path} {chunk}");
            }
        }
    }
    assert_eq!(children(api.daemon.pid()), before);
}

/// No password and no token is in a log at any level, in the audit log, in an event, or in a refusal, whatever form it came in.
#[test]
fn cve_2021_25284_no_secret_is_written_down() {
    let api = start("");
    let token = api.log_in("admin");
    let events = api.master.events();
    let unknown = "fedcba9876543210".repeat(4);
    let (json, form, yaml) = ("application/json", "application/x-www-form-urlencoded", "application/x-yaml");
    let both = format!(r#"{{"username": "admin", "password": "{PASSWORD}", "token": "{token}""#);
    let chunk = r#""client": "local_async", "tgt": "m1", "fun": "test.ping""#;
    let bodies = [
        (json, log_in("sharedsecret", WRONG).to_string()),
        (json, format!("{both}}}")),
        // Malformed in every way.
        (json, both.clone()),
        (json, format!("{both}, {chunk}, \"kwarg\": [\"{PASSWORD}\"]}}")),
        (json, format!("{both}, {chunk}, \"timeout\": \"{PASSWORD}\"}}")),
        (json, format!("[\"{PASSWORD}\", \"{token}\"]")),
        (json, format!("{{{chunk}, \"token\": \"{unknown}\"}}")),
        (json, format!("{{{chunk}, \"token\": [\"{token}\"], \"password\": {{\"{PASSWORD}\": 1}}}}")),
        (json, format!("{{\"username\": \"admin\", \"password\": \"{WRONG}\", \"eauth\": \"auto\", {chunk}}}")),
        (yaml, format!("{{password: {PASSWORD}, token: {token}")),
        (yaml, format!("password: *{PASSWORD}\ntoken: !!{token} x")),
        (form, format!("username=admin&password={PASSWORD}&token={token}&kwarg=%7B{PASSWORD}")),
        ("text/html", format!("{PASSWORD} {token}")),
        (json, format!("\u{1}{PASSWORD}{token}")),
    ];
    let mut answers = String::new();
    for (n, (media, body)) in bodies.iter().enumerate() {
        for path in ["/", "/run", "/login", "/token", "/minions", "/keys", "/logout", "/none", "/ws/x"] {
            // Wrong passwords count for an address of their own.
            let address = format!("198.51.100.{n}");
            let headers = [("Content-Type", *media), ("X-Auth-Token", &*unknown), ("X-Forwarded-For", &address)];
            let reply = api.send("POST", path, &headers, body);
            // The answer of a good log-in is a token, but not one of these.
            answers += &format!("{} {}\n", reply.head, reply.body);
        }
    }
    let basic = format!("Basic {PASSWORD}");
    let (bearer, cookie) = (format!("Bearer {token}x"), format!("session_id={token}x; a={PASSWORD}"));
    for header in
        [("Authorization", &*basic), ("Authorization", &bearer), ("Cookie", &cookie), ("X-Auth-Token", PASSWORD)]
    {
        let reply = api.send("POST", "/", &[header], "{}");
        assert_eq!(reply.status, 401);
        answers += &format!("{} {}\n", reply.head, reply.body);
    }
    for (path, status) in [
        (format!("/?token={token}"), 400),
        (format!("/login?username=admin&password={PASSWORD}&eauth=sharedsecret"), 400),
        (format!("/?%74oken={token}"), 400),
        (format!("/ws/{token}"), 404),
        (format!("/events/{token}"), 404),
        (format!("/{PASSWORD}"), 404),
    ] {
        let reply = api.send("GET", &path, &[], "");
        assert_eq!(reply.status, status, "{path}");
        answers += &format!("{} {}\n", reply.head, reply.body);
    }
    started(&api, &events);
    let written = api.written();
    assert!(written.contains("a mk_token request from local"), "the log is the right one");
    for secret in [PASSWORD, WRONG, &token, &unknown] {
        let line = answers.lines().find(|line| line.contains(secret));
        assert_eq!(line, None, "an answer has a secret");
        let line = written.lines().find(|line| line.contains(secret));
        assert_eq!(line, None, "a secret was written down");
        let told = events.all().iter().any(|(tag, data)| tag.contains(secret) || data.to_string().contains(secret));
        assert!(!told, "an event has a secret");
    }
}

/// An account that PAM does not let in is refused, whatever its password is.
#[test]
fn cve_2022_22967_a_locked_account_is_refused() {
    if std::env::var_os("BRINE_TEST_WITHOUT_PAM").is_some() {
        eprintln!("nothing is tested: BRINE_TEST_WITHOUT_PAM is set");
        return;
    }
    let service = format!("brine-api-test-{}", std::process::id());
    let path = std::path::Path::new("/etc/pam.d").join(&service);
    let lines = |account: &str| format!("auth required pam_permit.so\naccount required {account}\n");
    if let Err(error) = std::fs::write(&path, lines("pam_permit.so")) {
        panic!("PAM cannot be tested: {}: {error}; run this as root, or set BRINE_TEST_WITHOUT_PAM=1", path.display());
    }
    let api = start(&format!("auth.pam.service: {service}"));
    let config_file = api.master.path("conf/master");
    let config = std::fs::read_to_string(&config_file).expect("our own file");
    let config = config.replace("external_auth: {", "external_auth: {pam: {daemon: ['.*']}, ");
    std::fs::write(&config_file, config).expect("our own file");
    api.master.daemon.as_ref().expect("it runs").signal(Signal::HUP);
    let daemon = json!({"username": "daemon", "password": "x", "eauth": "pam"});
    let tried = Cell::new(0);
    let status = |path: &str, body: &Value| {
        tried.set(tried.get() + 1);
        send(&api, "POST", path, &[("X-Forwarded-For", &format!("198.51.100.{}", tried.get()))], body)
    };
    wait_for("the master to take the configuration up", || (status("/login", &daemon) == 200).then_some(()));
    assert_eq!(status("/run", &with(&chunk("local_async"), &daemon)), 200, "the test itself");
    let events = api.master.events();
    std::fs::write(&path, lines("pam_deny.so")).expect("it was written before");
    let refused = ["/login", "/token", "/run", "/keys"]
        .map(|path| status(path, &with(&with(&chunk("local_async"), &json!({"mid": "made"})), &daemon)));
    std::fs::remove_file(&path).expect("our own file");
    assert_eq!(refused, [401; 4]);
    assert_eq!(started(&api, &events), 0);
}

/// When the master dies, requests are 503 at once, and none of them waits for it.
#[test]
fn a_master_that_dies_is_503_within_a_second() {
    let mut api = start("");
    let token = api.log_in("admin");
    api.master.kill();
    let killed = Instant::now();
    let mut longest = Duration::ZERO;
    while killed.elapsed() < Duration::from_secs(2) {
        for (method, path, place, body) in
            all_sent().chain([("POST", "/login", Place::Body, log_in("sharedsecret", PASSWORD))])
        {
            let body =
                if place == Place::Body && path != "/login" { with(&body, &json!({"token": token})) } else { body };
            let began = Instant::now();
            let status = send(&api, method, path, &[("X-Auth-Token", &token)], &body);
            longest = longest.max(began.elapsed());
            assert_eq!(status, 503, "{method} {path} {:?} after the master died", killed.elapsed());
        }
    }
    assert!(longest < Duration::from_secs(1), "the longest took {longest:?}");
    println!("the longest took {longest:?}");
}
