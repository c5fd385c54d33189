//! The reads of salt-api's console (docs/api-v1.md), in front of a real master and minion.

use brine_kit::wait::wait_for;
use serde_json::{Value, json};

use crate::api::{Api, Reply};

/// Reads a path with a token.
fn get(api: &Api, token: &str, path: &str) -> Value {
    let reply = api.send("GET", path, &[("X-Auth-Token", token)], "");
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")), "{path}: {reply:?}");
    assert_eq!(reply.header("cache-control"), Some("private, no-store"));
    reply.json()
}

/// The status of a refusal, which says itself in JSON.
fn refused(reply: &Reply) -> u16 {
    assert_eq!(reply.header("content-type"), Some("application/problem+json"), "{reply:?}");
    let problem = reply.json();
    assert_eq!(problem["status"], json!(reply.status), "{reply:?}");
    assert!(problem["title"].is_string() && problem["detail"].is_string(), "{reply:?}");
    reply.status
}

#[test]
fn the_reads() {
    let api = Api::start();
    let (admin, joe) = (api.log_in("admin"), api.log_in("joe"));
    let events = api.master.events();

    let me = get(&api, &joe, "/v1/me");
    assert_eq!(
        (&me["user"], &me["eauth"], &me["perms"]),
        (&json!("joe"), &json!("sharedsecret"), &json!(["test.ping"]))
    );
    let may = &me["may"];
    assert_eq!((&may["fleet"], &may["keys"], &may["wheels"]), (&json!(true), &json!(false), &json!([])));
    assert!(me["clients"].as_array().unwrap().contains(&json!("local_async")));
    assert!(get(&api, &admin, "/v1/me")["may"]["wheels"].as_array().unwrap().contains(&json!("key.accept")));

    // The minion tells of its modules with its grains, once all of them are ready.
    let fleet = wait_for("the minion to tell of its modules", || {
        let fleet = get(&api, &joe, "/v1/fleet?q=m*&limit=5");
        fleet["items"][0]["modules"].is_object().then_some(fleet)
    });
    let m1 = &fleet["items"][0];
    assert_eq!(
        (&m1["id"], &m1["key"], &fleet["next"], &fleet["total"]),
        (&json!("m1"), &json!("accepted"), &json!(null), &json!(1))
    );
    assert!(m1["os"].is_string() && m1["version"].is_string() && m1["reported"].is_f64(), "{m1}");
    assert_eq!(fleet["counts"]["pending"], json!(null), "joe may not list keys");
    assert!(m1["modules"]["total"].as_u64() > Some(3), "{m1}");
    let one = get(&api, &admin, "/v1/fleet/m1");
    let modules = one["sandbox"]["modules"].as_array().unwrap();
    let test = modules.iter().find(|module| module["name"] == "test").unwrap();
    assert_eq!(
        (test["sha256"].as_str().map(str::len), &test["usable"], &test["drift"]),
        (Some(64), &json!(true), &json!(false))
    );
    assert!(one["fingerprint"].is_string() && one["grains"]["fqdn"].is_string(), "{one}");

    let keys = get(&api, &admin, "/v1/keys");
    assert_eq!(keys["items"], json!([{"id": "m1", "state": "accepted", "fingerprint": one["fingerprint"]}]));
    let modules = get(&api, &joe, "/v1/modules?q=test");
    let test_module = &modules["items"][0];
    assert_eq!(
        (&test_module["name"], &test_module["versions"][0]["minions"]),
        (&json!("test"), &json!(1)),
        "{modules}"
    );
    assert_eq!(get(&api, &joe, "/v1/held"), json!({"items": [], "next": null, "unknown": 0}));
    let plan = |token: &str, fun: &str| {
        let body = json!({"tgt": "*", "fun": fun, "arg": []});
        api.post("/v1/plan", &[("X-Auth-Token", token)], &body).json()
    };
    let ping = plan(&joe, "test.ping");
    assert_eq!((&ping["allowed"], &ping["expected"], &ping["some"]), (&json!(true), &json!(1), &json!(["m1"])));
    assert_eq!((&ping["groups"][0]["sha256"], &ping["unknown"]), (&test["sha256"], &json!(0)), "{ping}");
    let forbidden = plan(&joe, "cmd.run");
    assert_eq!((&forbidden["allowed"], &forbidden["expected"]), (&json!(false), &json!(0)), "{forbidden}");

    // None of this started anything.
    let started =
        events.all().into_iter().filter(|(tag, _)| tag.starts_with("salt/job") || tag.starts_with("salt/run"));
    assert_eq!(started.count(), 0);

    let run = json!({"client": "local", "tgt": "m1", "fun": "test.ping"});
    assert_eq!(api.post("/", &[("X-Auth-Token", &admin)], &run).status, 200);
    let jobs = get(&api, &admin, "/v1/jobs");
    let job = &jobs["items"][0];
    assert_eq!(
        (&job["fun"], &job["user"], &job["expected"], &job["returned"]),
        (&json!("test.ping"), &json!("admin"), &json!(1), &json!(1))
    );
    let path = format!("/v1/jobs/{}", job["jid"].as_str().unwrap());
    let job = get(&api, &admin, &path);
    let item = &job["items"][0];
    assert_eq!((&item["id"], &item["state"], &item["return"]), (&json!("m1"), &json!("ok"), &json!(true)));
    assert_eq!(item["usage"][0]["sha256"], test["sha256"], "{item}");
    assert!(item["usage"][0]["memory_peak"].as_u64() > Some(0), "{item}");
    assert_eq!(get(&api, &joe, "/v1/jobs")["items"], json!([]), "joe may not list others' jobs");

    let as_joe = |path: &str| refused(&api.send("GET", path, &[("X-Auth-Token", &joe)], ""));
    assert_eq!(as_joe(&path), 404);
    assert_eq!(as_joe("/v1/fleet/none"), 404);
    assert_eq!(as_joe("/v1/none"), 404);
    assert_eq!(as_joe("/v1/keys"), 403);
    assert_eq!(as_joe("/v1/fleet?limit=0"), 400);
    assert_eq!(as_joe("/v1/fleet?q=a&q=b"), 400);
    assert_eq!(as_joe("/v1/jobs?key=x"), 400);
    assert_eq!(refused(&api.post("/v1/fleet", &[("X-Auth-Token", &joe)], &json!({}))), 405);
    for path in ["/v1/me", "/v1/fleet", "/v1/jobs", "/v1/keys", "/v1/modules", "/v1/held", &path] {
        assert_eq!(refused(&api.send("GET", path, &[], "")), 401, "{path}");
        assert_eq!(refused(&api.send("GET", path, &[("X-Auth-Token", &"0".repeat(64))], "")), 401, "{path}");
        let cookie = format!("session_id={admin}");
        assert_eq!(api.send("GET", path, &[("Cookie", &cookie)], "").status, 200, "{path}");
        let foreign = [("Cookie", cookie.as_str()), ("Origin", "http://evil.example")];
        assert_eq!(refused(&api.send("GET", path, &foreign, "")), 403, "{path}");
    }
    let foreign = [("Cookie", &*format!("session_id={admin}")), ("Origin", "http://evil.example")];
    assert_eq!(refused(&api.post("/v1/plan", &foreign, &json!({"tgt": "*", "fun": "test.ping"}))), 403);
}

/// A module that the minion has is replaced at the master: the master knows of the difference, and of its end, without
/// asking the minion.
#[test]
fn drift_is_seen_and_ends() {
    let api = Api::start();
    let token = api.log_in("admin");
    let wasm = std::fs::read(brine_kit::programs::example("hello")).expect("an example");
    let mut other = wasm.clone();
    // A custom section: the same module with another hash.
    other.extend([0, 2, 1, b'x']);
    let module = |path: &str| get(&api, &token, path)["items"][0].clone();
    api.master.serve("_modules/hello.wasm", &wasm);
    assert_eq!(module("/v1/modules?q=hello")["served"][0]["signed"], json!(false));
    api.master.salt(&["m1", "saltutil.sync_modules"]);
    wait_for("the minion to tell of the module", || {
        (module("/v1/modules?q=hello")["versions"][0]["served"] == json!(true)).then_some(())
    });
    api.master.serve("_modules/hello.wasm", &other);
    assert_eq!(module("/v1/modules?q=hello")["drift"], json!(1));
    assert_eq!(get(&api, &token, "/v1/fleet")["items"][0]["modules"]["drift"], json!(1));
}
