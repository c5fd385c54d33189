//! Modules from the master's file server to the sandbox, including bad ones.

use brine_kit::programs::example;
use brine_tests::salt::Master;
use serde_json::json;

fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(example(name)).expect("an example module")
}

#[test]
fn a_new_module_is_fetched_when_it_is_first_called() {
    let master = Master::start("");
    let _minion = master.minion("web1");
    master.serve("_modules/hello.wasm", &bytes("hello"));
    let answer = master.json("web1", &["hello.world", "Brine"]);
    assert!(answer.as_str().expect("text").contains("Brine"), "{answer}");
    // Like Salt's, the command merges the docs of all minions.
    let docs = master.salt(&["--out=json", "--static", "web1", "sys.doc", "hello"]).exits(0).json();
    assert!(docs["hello.world"].as_str().expect("a doc text").len() > 10, "{docs}");
    assert_eq!(master.json("web1", &["sys.list_functions", "hello"]), json!(["hello.world"]));
}

#[test]
fn sync_modules_tells_what_changed() {
    let master = Master::start("");
    let _minion = master.minion("web1");
    assert_eq!(master.json("web1", &["saltutil.sync_modules"]), json!([]));
    master.serve("_modules/hello.wasm", &bytes("hello"));
    assert_eq!(master.json("web1", &["saltutil.sync_modules"]), json!(["modules.hello"]));
    assert_eq!(master.json("web1", &["saltutil.sync_modules"]), json!([]));
    let modules = master.json("web1", &["sys.list_modules"]);
    assert_eq!(
        modules,
        json!([
            "aliases",
            "alternatives",
            "archive",
            "beacons",
            "cmd",
            "config",
            "cp",
            "cron",
            "debconf",
            "defaults",
            "dig",
            "disk",
            "dnsutil",
            "environ",
            "event",
            "file",
            "git",
            "grains",
            "group",
            "hashutil",
            "hello",
            "hosts",
            "http",
            "ini",
            "iptables",
            "jinja",
            "key",
            "kmod",
            "local",
            "locale",
            "logrotate",
            "match",
            "mine",
            "mount",
            "network",
            "pillar",
            "pip",
            "pkg",
            "postgres",
            "ps",
            "publish",
            "random",
            "rawfile_json",
            "receipts",
            "salt_version",
            "saltutil",
            "sandbox",
            "schedule",
            "service",
            "shadow",
            "slsutil",
            "ssh",
            "state",
            "status",
            "sys",
            "sysctl",
            "tcp_events",
            "temp",
            "test",
            "timezone",
            "user",
            "virtualenv",
            "webhook",
        ])
    );
}

#[test]
fn a_malformed_module_is_refused_by_name_and_the_last_good_one_serves_on() {
    let master = Master::start("");
    let _minion = master.minion("web1");
    master.serve("_modules/hello.wasm", &bytes("hello"));
    master.json("web1", &["hello.world", "one"]);
    master.serve("_modules/hello.wasm", b"\0asm this is no component");
    let refused = master.salt(&["*", "saltutil.sync_modules"]).exits(1);
    assert!(refused.stdout.contains("hello"), "{refused:?}");
    let answer = master.json("web1", &["hello.world", "two"]);
    assert!(answer.as_str().expect("text").contains("two"), "{answer}");
}

#[test]
fn an_endless_loop_is_stopped_while_others_answer() {
    let master = Master::start("");
    let _minion = master.minion_kind(brine_tests::salt::Kind::Brine, "web1", "sandbox: {limits: {wall: 3s}}");
    master.serve("_modules/spin.wasm", &bytes("spin"));
    let events = master.events();
    let jid = master.start_job(&["*", "spin.forever"]);
    brine_kit::wait::wait_for("spin.forever to run", || {
        let running = master.json("web1", &["saltutil.running"]);
        running.as_array().expect("a list").iter().any(|job| job["fun"] == "spin.forever").then_some(())
    });
    let started = std::time::Instant::now();
    assert_eq!(master.json("web1", &["test.ping"]), json!(true));
    assert!(started.elapsed().as_secs_f64() < 2.0, "a ping beside it took {:?}", started.elapsed());
    let event = events.wait_return(&jid, "web1");
    let text = event["return"].as_str().expect("an error text").to_owned();
    assert!(text.contains("spin.forever") && text.contains("3 s") && !text.contains('\n'), "{text}");
    assert_eq!((&event["retcode"], &event["success"]), (&json!(1), &json!(false)));
}

#[test]
fn kill_job_ends_a_job_at_once() {
    let master = Master::start("");
    let _minion = master.minion("web1");
    let events = master.events();
    let jid = master.start_job(&["*", "test.sleep", "50"]);
    let found = brine_kit::wait::wait_for("test.sleep to run", || {
        let found = master.json("web1", &["saltutil.find_job", &jid]);
        (found["fun"] == "test.sleep").then_some(found)
    });
    assert_eq!(found["jid"], jid.as_str());
    let started = std::time::Instant::now();
    master.salt(&["*", "saltutil.kill_job", &jid]).exits(0);
    let event = events.wait_return(&jid, "web1");
    assert!(started.elapsed().as_secs() < 10);
    assert_eq!(event["success"], json!(false), "{event}");
}

#[test]
fn a_memory_bomb_gets_one_clear_line() {
    let master = Master::start("");
    let _minion = master.minion("web1");
    master.serve("_modules/spin.wasm", &bytes("spin"));
    let output = master.salt(&["*", "spin.bomb"]).exits(1);
    assert!(output.stdout.contains("memory"), "{output:?}");
    assert_eq!(master.json("web1", &["test.ping"]), json!(true));
}
