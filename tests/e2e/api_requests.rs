//! Requests as clients of Salt's rest_cherrypy write them, with what its version 3008 answers.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::api::{Api, PASSWORD, Reply, WRONG};

/// A minion whose key is accepted and that never comes.
const GONE: &str = "gone";

fn log_in(password: &str) -> Value {
    json!({"username": "admin", "password": password, "eauth": "sharedsecret"})
}

fn with(map: &Value, more: &Value) -> Value {
    let mut all = map.clone();
    all.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
    all
}

/// The message in a page of a refusal.
fn why(reply: &Reply) -> (u16, &str) {
    let text = reply.body.split_once("<p>").and_then(|(_, rest)| rest.split_once("</p>"));
    (reply.status, text.unwrap_or_else(|| panic!("no page: {reply:?}")).0)
}

/// Salt's RunnerClient leaves out what the function does not take, wherever it is in the chunk.
#[test]
fn a_runner_does_not_see_what_it_does_not_take() {
    let api = Api::start();
    let token = api.log_in("admin");
    let call = |more: Value| {
        let chunk = with(&json!({"client": "runner", "fun": "manage.up"}), &more);
        api.post("/", &[("X-Auth-Token", &token)], &chunk).json()["return"][0].clone()
    };
    for more in [
        json!({"bogus": 1, "expr_form": "glob", "ret": ""}),
        json!({"kwarg": {"bogus": 1}}),
        json!({"arg": ["bogus=1"]}),
        json!({"arg": ["m1"], "bogus": 1}),
        json!({"tgt": "m1", "tgt_type": "glob", "timeout": 60, "gather_job_timeout": 10}),
    ] {
        assert_eq!(call(more.clone()), json!(["m1"]), "{more}");
    }
    let whole = call(json!({"full_return": true, "bogus": 1, "tgt": "m1"}));
    assert_eq!(whole["data"]["fun_args"], json!([{"tgt": "m1"}]), "{whole}");
    // What it takes, it sees; and too many places are an error.
    assert_eq!(call(json!({"tgt": "none*", "bogus": 1})), json!([]));
    let many = call(json!({"arg": [1, 2, 3, 4, 5]}));
    assert!(many.as_str().is_some_and(|text| text.contains("takes from 0 to 4 positional arguments")), "{many}");
    // The wheel knows one word by itself.
    let wheel = |more: Value| {
        let chunk = with(&json!({"client": "wheel", "fun": "key.list_all"}), &more);
        api.post("/", &[("X-Auth-Token", &token)], &chunk).json()["return"][0]["data"].clone()
    };
    assert_eq!(wheel(json!({"match": "*"}))["return"]["minions"], json!(["m1"]));
    assert_eq!(wheel(json!({"bogus": 1}))["success"], json!(false));
    // On the command line it is an error, as in Salt.
    let output = api.master.command("salt-run", &["manage.up", "bogus=1"]);
    assert!(format!("{output:?}").contains("unexpected keyword argument 'bogus'"), "{output:?}");
}

/// The last part of a path may be in the query as well, by the name of Salt's parameter.
#[test]
fn a_minion_or_a_job_is_named_in_the_path_or_in_the_query() {
    let api = Api::start();
    let token = api.log_in("admin");
    let key = ("X-Auth-Token", token.as_str());
    let get = |path: &str| api.send("GET", path, &[key], "");
    let ping = json!({"client": "local", "tgt": "*", "fun": "test.ping", "full_return": true});
    let done = api.post("/", &[key], &ping).json();
    let jid = done["return"][0]["m1"]["jid"].as_str().expect("a jid").to_owned();
    for path in [format!("/jobs/{jid}"), format!("/jobs?jid={jid}"), format!("/jobs//{jid}/?timeout=5")] {
        assert_eq!(get(&path).json()["info"][0]["jid"], json!(jid), "{path}");
    }
    assert!(get("/jobs?timeout=5").json()["return"][0].get(&jid).is_some());
    for (path, found) in [("/minions/none", json!({})), ("/minions?mid=none", json!({}))] {
        assert_eq!(get(path).json(), json!({"return": [found]}), "{path}");
    }
    for path in ["/minions/m1", "/minions?mid=m1", "/minions?mid=", "//minions//m1//"] {
        assert!(get(path).json()["return"][0]["m1"]["id"] == "m1", "{path}");
    }
    for path in ["/keys/m1", "/keys?mid=m1", "/keys?mid=m*"] {
        assert!(get(path).json()["return"]["minions"]["m1"].is_string(), "{path}");
    }
    assert_eq!(get("/keys?mid=").json()["return"]["minions"], json!(["m1"]));
    // A filter that is not known is not taken for none.
    for path in ["/minions?id=m1", "/keys?id=m1", "/jobs?id=1", "/keys/m1?mid=m1", "/keys?mid=m1&mid=m2"] {
        assert_eq!(why(&get(path)), (404, "Nothing matches the given URI"), "{path}");
    }
    // What Salt's handlers inherit from that of `/`.
    for path in ["/run", "/token"] {
        assert_eq!(get(path).json()["return"], json!("Welcome"), "{path}");
    }
    let ping = json!({"client": "local", "tgt": "*", "fun": "test.ping"});
    assert_eq!(api.post("/jobs", &[key], &ping).json(), json!({"return": [{"m1": true}]}));
    assert_eq!(api.post("/jobs", &[], &ping).status, 401);
}

#[test]
fn refusals_have_salts_words() {
    let api = Api::start();
    let (admin, joe) = (api.log_in("admin"), api.log_in("joe"));
    let key = ("X-Auth-Token", admin.as_str());
    let ping = json!({"client": "local", "tgt": "m1", "fun": "test.ping"});
    let none = (401, "No permission -- see authorization schemes");
    assert_eq!(why(&api.post("/", &[], &ping)), none);
    assert_eq!(why(&api.post("/", &[("X-Auth-Token", &"0".repeat(40))], &ping)), none);
    // Whoever is nobody hears that first, whatever it accepts.
    assert_eq!(why(&api.post("/", &[("Accept", "text/html")], &ping)), none);
    assert_eq!(why(&api.post("/hook/x", &[], &json!({}))), none);
    let html = "Your client sent this Accept header: text/html. But this resource only emits these media types: \
                application/json, application/x-yaml.";
    assert_eq!(why(&api.post("/", &[key, ("Accept", "text/html")], &ping)), (406, html));
    let denied = |call: Value| {
        let reply = api.post("/", &[("X-Auth-Token", &joe)], &call);
        let (status, text) = why(&reply);
        assert_eq!(status, 401, "{call}");
        text.to_owned()
    };
    let local = with(&ping, &json!({"fun": "test.arg"}));
    for client in ["local", "local_async", "local_batch", "local_subset"] {
        assert_eq!(denied(with(&local, &json!({"client": client}))), "Authorization error occurred.", "{client}");
    }
    for client in ["runner", "runner_async", "wheel"] {
        let text = "Authentication failure of type \"token\" occurred for user joe.";
        assert_eq!(denied(json!({"client": client, "fun": "key.list_all"})), text, "{client}");
    }
    let by_password = with(&log_in(PASSWORD), &json!({"username": "joe", "client": "runner", "fun": "test.arg"}));
    let text = "Authentication failure of type \"eauth\" occurred for user joe.";
    assert_eq!(why(&api.post("/run", &[], &by_password)), (401, text));
    let wrong = (401, "Could not authenticate using provided credentials");
    for bad in [log_in(WRONG), json!({}), json!({"username": "admin"})] {
        assert_eq!(why(&api.post("/login", &[], &bad)), wrong, "{bad}");
    }
    let eauth = (401, "Authentication failure of type \"eauth\" occurred.");
    assert_eq!(why(&api.post("/token", &[], &log_in(WRONG))), eauth);
    let run = |more: Value| why(&api.post("/run", &[], &with(&ping, &more))).1.to_owned();
    assert_eq!(run(json!({})), "No authentication credentials given");
    assert_eq!(run(json!({"token": "none"})), "Invalid token");
    assert_eq!(run(log_in(WRONG)), "Authentication error occurred.");
    assert_eq!(run(json!({"token": "0".repeat(64)})), "Authentication error occurred.");
    assert_eq!(why(&api.send("POST", "/", &[key], "")), (400, "Lowstates must be a list"));
    assert_eq!(why(&api.send("PUT", "/", &[key], "")), (405, "Specified method is invalid for this resource"));
}

/// The size of a new key may be a text, as in a form; what is wrong with it is said.
#[test]
fn a_key_of_a_size_in_a_text() {
    let api = Api::start();
    let make = |more: Value| api.post("/keys", &[], &with(&log_in(PASSWORD), &more));
    let form = format!("mid=new1&keysize=2048&username=admin&eauth=sharedsecret&password={PASSWORD}");
    let reply = api.send("POST", "/keys", &[("Content-Type", "application/x-www-form-urlencoded")], &form);
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/x-tar")), "{reply:?}");
    for bad in [json!("many"), json!(100_000), json!(-1), json!([2048])] {
        let reply = make(json!({"mid": "new2", "keysize": bad}));
        let (status, text) = why(&reply);
        assert!(status == 400 && text.contains("keysize must be a number of bits up to 8192"), "{bad}: {reply:?}");
    }
    assert_eq!(make(json!({"mid": "new2"})).status, 200, "nothing was left of those");
}

/// A chunk says how long the minions have to answer whether they run the job.
#[test]
fn a_call_waits_as_long_as_its_chunk_says() {
    let api = Api::start_as("timeout: 300\ngather_job_timeout: 300", "");
    let token = api.log_in("admin");
    assert_eq!(api.post("/keys", &[], &with(&log_in(PASSWORD), &json!({"mid": GONE}))).status, 200);
    for client in ["local", "local_batch"] {
        for second in [json!(1), json!("1")] {
            let began = Instant::now();
            let chunk = json!({"client": client, "tgt": "m1,gone", "tgt_type": "list", "fun": "test.ping", "batch": 2,
                               "timeout": second, "gather_job_timeout": second});
            let reply = api.post("/", &[("X-Auth-Token", &token)], &chunk);
            assert_eq!(reply.json()["return"][0]["m1"], json!(true), "{reply:?}");
            assert!(began.elapsed() < Duration::from_secs(100), "{client} took {:?}", began.elapsed());
        }
    }
    let wrong = json!({"client": "local", "tgt": "m1", "fun": "test.ping", "gather_job_timeout": "soon"});
    assert_eq!(
        why(&api.post("/", &[("X-Auth-Token", &token)], &wrong)),
        (400, "gather_job_timeout must be a number of seconds")
    );
}
