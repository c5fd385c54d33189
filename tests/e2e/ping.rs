//! The way of a job: from `salt` through the sandbox and back.

use brine_tests::salt::{Kind, Master, Minion};
use serde_json::json;

#[test]
fn first_ping_after_the_key_was_accepted() {
    let master = Master::start("");
    let events = master.events();
    let mut minion = Minion::prepare(Kind::Brine, "web1", master.ret_port, "");
    minion.up();
    events.wait("pending", |tag, data| tag == "salt/auth" && data["id"] == "web1" && data["act"] == "pend");
    let keys = master.command("salt-key", &["-L", "--no-color"]).exits(0);
    assert_eq!(keys.stdout, "Accepted Keys:\nDenied Keys:\nUnaccepted Keys:\nweb1\nRejected Keys:\n");

    let nobody = master.salt(&["*", "test.ping"]).exits(2);
    assert!(nobody.stdout.contains("No minions matched the target. No command was sent, no jid was assigned."));

    master.command("salt-key", &["-y", "-a", "web1"]).exits(0);
    events.wait_tag("salt/minion/web1/start");
    assert_eq!(master.salt(&["*", "test.ping"]).exits(0).stdout, "web1:\n    True\n");
    assert_eq!(master.salt(&["*", "test.ping", "--out=txt"]).exits(0).stdout, "web1: True\n");
    assert_eq!(master.salt(&["--out=json", "*", "test.ping"]).exits(0).json(), json!({"web1": true}));
    // The files are for Python's clients; Brine's clients declare that they read none.
    let files = std::fs::read_dir(master.path("cache/jobs")).expect("the folder for Python's clients").count();
    assert_eq!(files, 0, "no files for Python's clients");
}

#[test]
fn values_of_every_kind_come_back_as_they_went() {
    let master = Master::start("");
    let _minion = master.minion("web1");
    for (argument, expected) in [
        ("text", json!("text")),
        ("7", json!(7)),
        ("-3", json!(-3)),
        ("1.5", json!(1.5)),
        ("True", json!(true)),
        ("ünïcödé ☃", json!("ünïcödé ☃")),
        ("[1, two, {three: [4, null]}]", json!([1, "two", {"three": [4, null]}])),
        ("{a: {b: {c: [1, 2.5, x]}}}", json!({"a": {"b": {"c": [1, 2.5, "x"]}}})),
    ] {
        assert_eq!(master.json("web1", &["test.echo", argument]), expected, "{argument}");
    }
    let arg = master.json("web1", &["test.arg", "1", "two", "key=value", "list=[1, 2]"]);
    assert_eq!(arg["args"], json!([1, "two"]));
    assert_eq!(arg["kwargs"]["key"], json!("value"));
    assert_eq!(arg["kwargs"]["list"], json!([1, 2]));
}

#[test]
fn targets_by_glob_list_and_pcre() {
    let master = Master::start("");
    let _minions = ["db1", "web1", "web2"].map(|id| master.minion(id));
    let who = |args: &[&str]| {
        let mut all = vec!["--out=json", "--static"];
        all.extend(args);
        let json = master.salt(&all).exits(0).json();
        let mut ids: Vec<_> = json.as_object().expect("a dict of minions").keys().cloned().collect();
        ids.sort();
        ids.join(" ")
    };
    assert_eq!(who(&["*", "test.ping"]), "db1 web1 web2");
    assert_eq!(who(&["web*", "test.ping"]), "web1 web2");
    assert_eq!(who(&["web[2-9]", "test.ping"]), "web2");
    assert_eq!(who(&["-L", "db1,web2", "test.ping"]), "db1 web2");
    assert_eq!(who(&["-E", "(db|web)1", "test.ping"]), "db1 web1");
}

#[test]
fn every_return_says_what_it_used() {
    let master = Master::start("");
    let events = master.events();
    let _minion = master.minion("web1");
    let jid = master.start_job(&["*", "test.fib", "20"]);
    let event = events.wait_return(&jid, "web1");
    for key in ["wall_us", "cpu_us", "memory_peak", "host_calls", "bytes_in", "bytes_out"] {
        assert!(event["usage"][key].is_u64(), "{key} in {event}");
    }
    assert_eq!(event["usage"]["sha256"].as_str().map(str::len), Some(64), "{event}");
    assert!(event["usage"]["memory_peak"].as_u64() > Some(0), "{event}");
}

#[test]
fn the_master_remembers_returns_across_a_restart() {
    let mut master = Master::start("");
    let events = master.events();
    let _minion = master.minion("web1");
    let jid = master.start_job(&["*", "test.echo", "kept"]);
    events.wait_return(&jid, "web1");
    master.stop();
    master.up();
    let looked_up = master.command("salt-run", &["jobs.lookup_jid", &jid, "--out=json"]).exits(0);
    assert_eq!(looked_up.json(), json!({"web1": "kept"}));
}

#[test]
fn salt_call_runs_in_the_same_sandbox() {
    let master = Master::start("");
    let minion = master.minion("web1");
    let local = minion.salt_call(&["--local", "test.ping"]).exits(0);
    assert_eq!(local.stdout, "local:\n    True\n");
    let events = master.events();
    let remote = minion.salt_call(&["test.echo", "hi"]).exits(0);
    assert_eq!(remote.stdout, "local:\n    hi\n");
    let event =
        events.wait("the return of salt-call", |tag, data| tag.ends_with("/ret/web1") && data["fun"] == "test.echo");
    assert_eq!(event["return"], "hi");
    let unknown = minion.salt_call(&["--local", "test.nothing"]).exits(255);
    assert!(unknown.stderr.contains("'test.nothing' is not available."), "{unknown:?}");
}
