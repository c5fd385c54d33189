//! Salt's other paths in front of a real master: what the calls of `api_calls.json` do not show.

use serde_json::{Value, json};

use crate::api::{Api, PASSWORD, WRONG};

fn log_in(password: &str) -> Value {
    json!({"username": "admin", "password": password, "eauth": "sharedsecret"})
}

#[test]
fn tokens_grains_and_jobs() {
    let api = Api::start();
    // A bare list of tokens, for one log-in or for several; all of them complete before one is tried.
    let made = api.post("/token", &[], &json!([log_in(PASSWORD), log_in(PASSWORD)])).json();
    let [first, second] = made.as_array().expect("a list").as_slice() else { panic!("two tokens: {made}") };
    assert_eq!((&first["name"], &first["eauth"]), (&json!("admin"), &json!("sharedsecret")));
    assert_ne!(first["token"], second["token"]);
    for incomplete in [json!({}), json!([log_in(PASSWORD), {"username": "admin", "password": PASSWORD}])] {
        assert_eq!(api.post("/token", &[], &incomplete).status, 400, "{incomplete}");
    }
    assert_eq!(api.post("/token", &[], &log_in(WRONG)).status, 401);
    let token = first["token"].as_str().expect("a token");
    let headers = [("X-Auth-Token", token)];
    let get = |path: &str| api.send("GET", path, &headers, "");
    for path in ["/minions", "/minions/m1", "/minions/m1/"] {
        let reply = get(path).json();
        assert_eq!(reply["return"][0]["m1"]["id"], "m1", "{path}: {reply}");
    }
    assert_eq!(get("/minions/nobody").json(), json!({"return": [{}]}));
    for other in [json!({"client": "local"}), json!([{}, {"client": "runner"}])] {
        assert_eq!(api.post("/minions", &headers, &other).status, 400, "{other}");
    }
    let started =
        api.post("/minions", &headers, &json!([{"tgt": "*", "fun": "test.ping"}, {"tgt": "none", "fun": "test.ping"}]));
    let reply = started.json();
    let jid = reply["return"][0]["jid"].as_str().expect("a jid");
    assert_eq!((started.status, &reply["_links"]), (202, &json!({"jobs": [{"href": format!("/jobs/{jid}")}]})));
    assert!(get("/jobs").json()["return"][0][jid]["Function"] == "test.ping");
    assert_eq!(get("/jobs/20200101000000000000").status, 404);
    // Batches answer for each minion, subsets once.
    let batch = json!({"client": "local_batch", "tgt": "*", "fun": "test.echo", "arg": ["x"], "batch": 1});
    assert_eq!(api.post("/", &headers, &batch).json(), json!({"return": [{"m1": "x"}]}));
    let nobody = json!({"client": "local_batch", "tgt": "nobody", "fun": "test.ping", "batch": 1});
    assert_eq!(api.post("/", &headers, &nobody).json(), json!({"return": []}));
    let some = json!({"client": "local_subset", "tgt": "*", "fun": "test.ping", "subset": 1});
    assert_eq!(api.post("/", &headers, &some).json(), json!({"return": [{"m1": true}]}));
    let unknown = json!({"client": "local_subset", "tgt": "*", "fun": "no.such", "subset": 1});
    assert_eq!(api.post("/", &headers, &unknown).json(), json!({"return": [{}]}));
    let refused = api.send("DELETE", "/minions", &headers, "");
    assert_eq!((refused.status, refused.header("allow")), (405, Some("GET,HEAD,POST")));
}

#[test]
fn new_keys_come_as_a_tar() {
    let api = Api::start();
    let asked = |id: &str, password: &str| {
        let mut body = log_in(password);
        body["mid"] = json!(id);
        body
    };
    // The cookie and the header do not count here.
    let token = api.log_in("admin");
    assert_eq!(api.post("/keys", &[("X-Auth-Token", &token)], &json!({"mid": "new1"})).status, 401);
    assert_eq!(api.post("/keys", &[], &asked("new1", WRONG)).status, 401);
    for bad in ["", "../x", "a/b", "-x\n"] {
        assert_eq!(api.post("/keys", &[], &asked(bad, PASSWORD)).status, 400, "{bad:?}");
    }
    let reply = api.post("/keys", &[], &asked("new1", PASSWORD));
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/x-tar")), "{reply:?}");
    assert_eq!(reply.header("content-disposition"), Some("attachment; filename=\"saltkeys-new1.tar\""));
    for part in ["minion.pub", "minion.pem", "-----BEGIN PUBLIC KEY-----", "PRIVATE KEY-----"] {
        assert!(reply.body.contains(part), "{part}");
    }
    let keys = api.send("GET", "/keys", &[("X-Auth-Token", &token)], "").json();
    assert_eq!(keys["return"]["minions"], json!(["m1", "new1"]));
    assert_eq!(api.post("/keys", &[], &asked("new1", PASSWORD)).status, 409, "a key is not replaced");
}

#[test]
fn pages_and_the_prefix() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let files = folder.path().join("files");
    std::fs::create_dir(&files).expect("our own folder");
    for (name, text) in [("page.html", "<p>page"), ("files/a.js", "code"), ("secret", "secret")] {
        std::fs::write(folder.path().join(name), text).expect("our own folder");
    }
    let dir = folder.path().display();
    let api = Api::start_with(&format!(
        ", root_prefix: /salt, app: {dir}/page.html, static: {dir}/files, saltgui_x: 1, thread_pool: 7"
    ));
    let html = [("Accept", "text/html,*/*;q=0.8")];
    for path in ["/salt", "/salt/", "/salt/jobs", "/salt/app", "/salt/app/some/page"] {
        let reply = api.send("GET", path, &html, "");
        assert_eq!((reply.status, reply.body.as_str()), (200, "<p>page"), "{path}");
        assert_eq!(reply.header("content-security-policy"), Some("frame-ancestors 'none'"), "{path}");
    }
    assert_eq!(api.send("GET", "/salt/static/a.js", &[], "").body, "code");
    for outside in
        ["/salt/static/../secret", "/salt/static/%2e%2e/secret", "/salt/static/..%2fsecret", "/salt/static//etc/passwd"]
    {
        let reply = api.send("GET", outside, &[], "");
        assert!(reply.status >= 400 && !reply.body.contains("secret"), "{outside}: {reply:?}");
    }
    assert_eq!(api.send("GET", "/salt", &[], "").json()["return"], "Welcome");
    assert_eq!(api.send("GET", "/login", &[], "").status, 404, "outside of the prefix");
    assert_eq!(api.send("GET", "/salty/login", &[], "").status, 404, "outside of the prefix");
    assert_eq!(api.post("/salt/login", &[], &log_in(PASSWORD)).status, 200);
    let log = std::fs::read_to_string(api.master.path("api.out")).expect("a log");
    assert!(log.contains("rest_cherrypy: saltgui_x, thread_pool has no effect here"), "{log}");
}

#[test]
fn counts_have_salts_names() {
    let api = Api::start();
    assert_eq!(api.send("GET", "/stats", &[], "").status, 401);
    let token = api.log_in("joe");
    let stats = api.send("GET", "/stats", &[("X-Auth-Token", &token)], "").json();
    let names: Vec<&String> = stats.as_object().expect("a map").keys().collect();
    assert!(
        names.contains(&&"CherryPy Applications".to_owned())
            && names.iter().any(|name| name.starts_with("Cheroot HTTPServer"))
    );
    assert_eq!(stats["CherryPy Applications"]["Enabled"], true);
    assert!(stats["CherryPy Applications"]["Total Requests"].as_u64() >= Some(3), "{stats}");
    assert!(stats["Brine"]["requests_refused"].as_u64() >= Some(1), "{stats}");
}
