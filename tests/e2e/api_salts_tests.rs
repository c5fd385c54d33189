//! What Salt's own tests of rest_cherrypy check (`tests/pytests/…/netapi`), with a master and a minion behind it.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::api::{Api, PASSWORD, Reply};
use crate::api_events::Stream;

const FORM: (&str, &str) = ("Content-Type", "application/x-www-form-urlencoded");
/// A minion whose key is accepted and that never comes.
const JERRY: &str = "jerry";

fn form(api: &Api, path: &str, headers: &[(&str, &str)], fields: &[(&str, &str)]) -> Reply {
    let encode = |text: &str| {
        let byte = |byte: u8| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'_' => char::from(byte).to_string(),
            other => format!("%{other:02X}"),
        };
        text.bytes().map(byte).collect::<String>()
    };
    let body: Vec<String> = fields.iter().map(|(key, value)| format!("{}={}", encode(key), encode(value))).collect();
    let mut all = vec![FORM];
    all.extend(headers);
    api.send("POST", path, &all, &body.join("&"))
}

const CREDS: [(&str, &str); 3] = [("username", "admin"), ("password", PASSWORD), ("eauth", "sharedsecret")];
const PING: [(&str, &str); 3] = [("client", "local"), ("tgt", "m1"), ("fun", "test.ping")];

#[test]
fn log_ins_and_log_outs() {
    let api = Api::start();
    for path in ["/", "/login"] {
        assert_eq!(api.send("GET", path, &[], "").status, 200, "{path}");
    }
    for path in ["/", "/hook"] {
        assert_eq!(api.send("POST", path, &[FORM], "{}").status, 401, "{path}");
    }
    let reply = form(&api, "/login", &[], &CREDS);
    let found = reply.json()["return"][0].clone();
    let token = found["token"].as_str().expect("a token");
    assert!(reply.header("set-cookie").is_some_and(|cookie| cookie.contains(&format!("session_id={token}"))));
    assert_eq!((&found["user"], &found["eauth"]), (&json!("admin"), &json!("sharedsecret")));
    assert_eq!(found["perms"], json!([".*", "@runner", "@wheel"]));
    assert_eq!(form(&api, "/login", &[], &[("totally", "invalid_creds")]).status, 401);
    assert_eq!(form(&api, "/logout", &[("X-Auth-Token", token)], &[]).status, 200);
    assert_eq!(form(&api, "/logout", &[("X-Auth-Token", token)], &[]).status, 401, "it has ended");
}

/// The permissions in the answer of a log-in, by user and by group: each once, in Python's order.
#[test]
fn permissions_are_told_in_one_order() {
    let files = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| files.path().join(name).display().to_string();
    let users = ["bytest", "bygroup", "byminion", "bywheel", "byjobs", "byrunner", "byargs", "both"];
    let lines: String = users.iter().map(|user| format!("{user}:{user}-secret\n")).collect();
    std::fs::write(path("users"), lines).expect("our own folder");
    std::fs::write(path("groups"), "wheels: both bygroup\n").expect("our own folder");
    let args = r#"[{"*": [{"my_mod.*": {"args": ["a1.*", ".*", "a3.*"], "kwargs": {"kwa": "kwa.*", "kwb": "kwb"}}}]}]"#;
    let config = format!(
        "external_auth:\n  file:\n    ^filename: {}\n    ^groupfile: {}\n    bytest: ['test.*']\n    \
         byminion: [{{'G@id:master2': ['@jobs']}}, {{'G@id:master1': ['@jobs']}}]\n    bywheel: ['@wheel']\n    byjobs: ['@jobs']\n    \
         byrunner: [{{'@runner': [active]}}]\n    byargs: {args}\n    both: ['@wheel', 'grains.*', '@wheel']\n    \
         wheels%: ['@wheel', 'grains.*', '@runner']\n",
        path("users"),
        path("groups"),
    );
    let api = Api::start_plain(&config);
    for (user, perms) in [
        ("bytest", json!(["test.*"])),
        ("bygroup", json!(["@runner", "@wheel", "grains.*"])),
        ("byminion", json!([{"G@id:master1": ["@jobs"]}, {"G@id:master2": ["@jobs"]}])),
        ("bywheel", json!(["@wheel"])),
        ("byjobs", json!(["@jobs"])),
        ("byrunner", json!([{"@runner": ["active"]}])),
        ("byargs", serde_json::from_str(args).expect("our own text")),
        ("both", json!(["@runner", "@wheel", "grains.*"])),
    ] {
        let password = format!("{user}-secret");
        let reply = form(&api, "/login", &[], &[("username", user), ("password", &password), ("eauth", "file")]);
        assert_eq!(reply.json()["return"][0]["perms"], perms, "{user}");
    }
}

/// All forms of a body, to a minion that does not return. (Salt's test has `false` here, since its job does not exist either.)
#[test]
fn forms_in_and_out() {
    let api = Api::start_as("timeout: 1\ngather_job_timeout: 1", "");
    std::fs::copy(api.master.path("pki/minions/m1"), api.master.path(&format!("pki/minions/{JERRY}"))).expect("a key");
    let token = api.log_in("admin");
    let key = ("X-Auth-Token", token.as_str());
    let low = json!({"client": "local", "fun": "test.ping", "tgt": JERRY}).to_string();
    for (kind, body) in [
        (FORM.1, format!("client=local&fun=test.ping&tgt={JERRY}")),
        ("application/json", low.clone()),
        ("text/plain", low),
        ("application/x-yaml", format!("client: local\nfun: test.ping\ntgt: {JERRY}\n")),
        ("text/yaml", format!("client: local\nfun: test.ping\ntgt: {JERRY}\n")),
    ] {
        let reply = api.send("POST", "/", &[key, ("Content-Type", kind)], &body);
        let begins = r#"{"return": [{"jerry": "Minion did not return. [No response]\nThe minions may not have all "#;
        assert!(reply.status == 200 && reply.body.starts_with(begins), "{kind}: {reply:?}");
    }
    for (accept, kind) in [
        ("*/*", "application/json"),
        ("application/json", "application/json"),
        ("application/x-yaml", "application/x-yaml"),
    ] {
        let reply = api.send("GET", "/", &[("Accept", accept)], "");
        assert_eq!((reply.status, reply.header("content-type")), (200, Some(kind)), "{accept}");
    }
    assert_eq!(api.send("GET", "/", &[], "").header("content-type"), Some("application/json"));
    assert_eq!(api.send("GET", "/", &[("Accept", "application/ms-word")], "").status, 406);
}

#[test]
fn arguments_of_runners() {
    let api = Api::start();
    let token = api.log_in("admin");
    let key = ("X-Auth-Token", token.as_str());
    let named = json!({"ext_source": "redis"});
    let checked = |reply: Reply, args: Value| {
        let found = reply.json()["return"][0].clone();
        assert_eq!((&found["args"], &found["kwargs"]), (&args, &named), "{reply:?}");
    };
    for (arg, args) in [(json!([1234, 5678]), json!([1234, 5678])), (json!(1234), json!([1234]))] {
        let low = json!({"client": "runner", "fun": "test.arg", "arg": arg, "kwarg": named});
        checked(api.post("/", &[key], &low), args.clone());
        let mut fields = vec![("client", "runner"), ("fun", "test.arg"), ("kwarg", "{'ext_source': 'redis'}")];
        let texts: Vec<String> = args.as_array().expect("a list").iter().map(Value::to_string).collect();
        fields.extend(texts.iter().map(|text| ("arg", text.as_str())));
        checked(form(&api, "/", &[key], &fields), args);
    }
}

/// A wait is a number or its text; without one, `rest_timeout` bounds it.
#[test]
fn a_runner_is_waited_for_as_long_as_the_call_says() {
    let api = Api::start_as("rest_timeout: 1", "");
    let token = api.log_in("admin");
    let key = ("X-Auth-Token", token.as_str());
    let sleep = [("client", "runner"), ("fun", "test.sleep"), ("s_time", "2")];
    let timed = |more: &[(&str, &str)]| {
        let began = Instant::now();
        (form(&api, "/", &[key], &[&sleep[..], more].concat()).status, began.elapsed())
    };
    let (status, took) = timed(&[]);
    assert!(status == 504 && took < Duration::from_millis(1_900), "{status} after {took:?}");
    let (status, took) = timed(&[("timeout", "0.5")]);
    assert!(status == 504 && took < Duration::from_millis(950), "{status} after {took:?}");
    assert_eq!(timed(&[("timeout", "600")]).0, 200);
    assert_eq!(
        api.post("/", &[key], &json!({"client": "runner", "fun": "test.sleep", "s_time": 2, "timeout": 60})).status,
        200
    );
    for bad in ["nope", "-5"] {
        assert_eq!(timed(&[("timeout", bad)]).0, 400, "{bad}");
    }
}

#[test]
fn runs_without_a_session() {
    let api = Api::start();
    let run = |more: &[(&str, &str)]| form(&api, "/run", &[], &[&PING[..], more].concat());
    assert_eq!(run(&CREDS).status, 200);
    assert_eq!(run(&[&CREDS[..], &[("id_", "some-minion-name")]].concat()).status, 200);
    for bad in [
        ("totally", "invalid_creds"),
        ("token", ""),
        ("ToKen", ""),
        ("token", "bad"),
        ("token", "/etc/passwd"),
        ("token", "/tmp/does-not-exist"),
    ] {
        assert_eq!(run(&[bad]).status, 401, "{bad:?}");
    }
    // The job is in the list.
    let token = api.log_in("admin");
    let jobs = api.send("GET", "/jobs", &[("X-Auth-Token", &token)], "").json();
    let jobs = jobs["return"][0].as_object().expect("a map").clone();
    assert!(jobs.values().any(|job| job["Function"] == "test.ping"), "{jobs:?}");
}

#[test]
fn a_client_that_is_not_enabled_is_named() {
    let api =
        Api::start_plain(&format!("external_auth: {{sharedsecret: {{admin: ['.*']}}}}\nsharedsecret: {PASSWORD}"));
    let reply = form(&api, "/run", &[], &[&PING[..], &CREDS].concat());
    let why = "Client disabled: 'local'. Add to 'netapi_enable_clients' master config option to enable";
    assert!(reply.status == 400 && reply.body.contains(why), "{reply:?}");
}

/// The stream takes no query, whatever it is called, and a browser that opens it gets it instead of a page.
#[test]
fn the_stream_has_no_query_and_is_no_page() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let page = folder.path().join("index.html");
    std::fs::write(&page, "<p>page").expect("our own folder");
    let api = Api::start_with(&format!(", app: {}", page.display()));
    let token = api.log_in("admin");
    let key = ("X-Auth-Token", token.as_str());
    for query in ["token=cafebabe", "salt_token=cafebabe", "some_future_param=anything", "x"] {
        assert_eq!(api.send("GET", &format!("/events?{query}"), &[key], "").status, 400, "{query}");
    }
    let accept = ("Accept", "text/html,application/xhtml+xml,*/*;q=0.8");
    assert_eq!(api.send("GET", "/", &[accept], "").body, "<p>page");
    let text = Stream::open(&api, &[key, accept]).leave();
    assert!(text.to_ascii_lowercase().contains("content-type: text/event-stream"), "{text}");
}
