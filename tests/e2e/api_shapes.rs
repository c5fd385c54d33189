//! Calls of Python's salt-api 3008.5 whose answers are too long, or too much the host's own, to be compared whole: the
//! form of each answer is. And those whose function is none of Brine's.

use serde_json::{Value, json};

use crate::api::{Api, PASSWORD};

/// Grains that the recorded answer begins with.
const GRAINS: [&str; 5] = ["machine_id", "master", "server_id", "localhost", "fqdn"];
/// What `/stats` has below the name of each part in the recorded answer, where it means something here.
const STATS: [(&str, &[&str]); 2] = [
    (
        "CherryPy Applications",
        &[
            "Enabled",
            "Current Time",
            "Current Requests",
            "Requests/Second",
            "Server Version",
            "Start Time",
            "Total Requests",
            "Uptime",
            "Requests",
        ],
    ),
    ("Cheroot HTTPServer", &["Enabled", "Run time", "Requests", "Worker Threads"]),
];

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap_or_else(|| panic!("no map: {value}")).keys().map(String::as_str).collect()
}

fn sorted(mut names: Vec<&str>) -> Vec<&str> {
    names.sort_unstable();
    names
}

#[test]
fn long_answers_have_salts_form() {
    let api = Api::start();
    let token = api.log_in("admin");
    let headers = [("X-Auth-Token", token.as_str())];
    let call = |chunk: Value| api.post("/", &headers, &chunk).json()["return"][0].clone();
    let get = |path: &str| api.send("GET", path, &headers, "").json();

    let events = api.master.events();
    let started = call(json!({"client": "local_async", "tgt": "*", "fun": "test.echo", "arg": ["hi"]}));
    let jid = started["jid"].as_str().expect("a jid");
    events.wait_return(jid, "m1");
    // runner_jobs_list_jobs, get_jobs
    for jobs in [call(json!({"client": "runner", "fun": "jobs.list_jobs"})), get("/jobs")["return"][0].clone()] {
        let mut job = jobs[jid].clone();
        let start = job["StartTime"].take();
        assert!(start.as_str().is_some_and(|start| start.len() == "2026, Nov 20 13:43:16.583443".len()), "{start}");
        assert_eq!(
            job,
            json!({"Function": "test.echo", "Arguments": ["hi"], "Target": "*", "Target-type": "glob",
                   "User": "admin", "StartTime": null})
        );
    }
    // A runner that chooses its outputter, as jobs.lookup_jid of a run of states: the choice is a part of the answer.
    let none = json!({"client": "runner", "fun": "jobs.list_jobs", "search_function": "zz.*", "outputter": "nested"});
    assert_eq!(call(none), json!({"outputter": "nested", "data": {}}));
    // runner_cache_grains, get_minions, get_minions_m1
    for minions in [
        call(json!({"client": "runner", "fun": "cache.grains", "tgt": "*"})),
        get("/minions")["return"][0].clone(),
        get("/minions/m1")["return"][0].clone(),
    ] {
        assert_eq!(keys(&minions), ["m1"]);
        for grain in GRAINS {
            assert!(!minions["m1"][grain].is_null(), "{grain}: {minions}");
        }
    }
    // wheel_config_values
    let mut wheel = call(json!({"client": "wheel", "fun": "config.values"}));
    let values = wheel["data"]["return"].take();
    assert_eq!((&wheel["data"]["fun"], &wheel["data"]["success"]), (&json!("wheel.config.values"), &json!(true)));
    assert_eq!(wheel["tag"], wheel["data"]["tag"]);
    assert_eq!((&values["sharedsecret"], &values["interface"]), (&Value::Null, &json!("127.0.0.1")), "{values}");
    // get_stats
    let stats = get("/stats");
    for (part, names) in STATS {
        let found = keys(&stats).into_iter().find(|name| name.starts_with(part)).expect("the part");
        assert_eq!(sorted(keys(&stats[found])), sorted(names.to_vec()), "{part}");
    }
    // token
    let log_in = json!({"username": "admin", "password": PASSWORD, "eauth": "sharedsecret"});
    let made = api.post("/token", &[], &log_in).json();
    assert_eq!(sorted(keys(&made[0])), ["eauth", "expire", "name", "start", "token"]);
    assert!(made[0]["start"].is_f64() && made[0]["expire"].is_f64(), "times");
}

#[test]
fn what_brine_does_not_have_is_said_in_a_good_answer() {
    let api = Api::start();
    let token = api.log_in("admin");
    let headers = [("X-Auth-Token", token.as_str())];
    // beacons_list, schedule_list: there are none.
    for fun in ["beacons.list", "schedule.list"] {
        let chunk =
            json!({"client": "local", "fun": fun, "kwarg": {"return_yaml": false}, "tgt_type": "glob", "tgt": "*"});
        let reply = api.post("/", &headers, &chunk);
        assert_eq!((reply.status, &reply.json()["return"][0]["m1"]), (200, &json!({})), "{fun}");
    }
    // pillar_obfuscate, mine_valid: the host has neither a pillar nor functions for the mine.
    for (fun, answer) in [("pillar.obfuscate", json!({})), ("mine.valid", json!(null))] {
        let reply = api.post("/", &headers, &json!({"client": "local", "fun": fun, "tgt_type": "glob", "tgt": "*"}));
        assert_eq!((reply.status, reply.json()), (200, json!({"return": [{"m1": answer}]})), "{fun}");
    }
    // SaltGUI asks for the orchestrations that there are, and Salt has no better answer.
    let chunk = json!({"client": "runner", "fun": "state.orchestrate_show_sls", "arg": ["*"]});
    let reply = api.post("/", &headers, &chunk);
    let said = reply.json()["return"][0].as_object().and_then(|of_master| of_master.values().next()).cloned();
    assert_eq!(said, Some(json!(["No matching sls found for '*' in env 'base'"])), "{reply:?}");
}
