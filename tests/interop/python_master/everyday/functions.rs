//! Lists of functions, their documentation, and errors about unknown functions.

use brine_tests::salt::line;
use serde_json::{Value, json};

use super::super::client::{Call, call, calls};
use super::Fleet;

pub(super) fn check(fleet: &Fleet) {
    let master = &fleet.master;
    let docs = master.salt(&["brine1", "sys.doc", "test.ping"]).exits(0);
    assert!(docs.stdout.starts_with("test.ping:\n\n    Returns `True`"), "{docs:?}");
    let made = [
        call("*", "sys.list_modules", json!([])),
        call("*", "sys.list_functions", json!(["saltutil"])),
        call("*", "sys.argspec", json!(["test.echo"])),
        call("*", "test.version", json!([])),
        call("brine1", "sys.doc", json!([])),
        call("brine1", "cmd.run", json!(["id -u"])),
        call("brine1", "test.fib", json!(["x"])),
    ];
    let [modules, functions, argspec, version, docs, refused, wrong] = calls(master, &made).try_into().expect("seven");
    let standard = json!([
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
    ]);
    assert_eq!(modules["brine1"], standard);
    let theirs: Vec<&Value> = functions["python"].as_array().expect("a list").iter().collect();
    let ours = functions["brine1"].as_array().expect("a list");
    // New in 3008, and the others in 3007.
    let newer = ["saltutil.sync_resources", "saltutil.sync_tops", "saltutil.sync_wrapper"];
    let newer = match line() {
        3008.. => &[],
        3007 => &newer[..1],
        _ => &newer[..],
    };
    let strange = |name: &&Value| !theirs.contains(name) && !newer.contains(&name.as_str().unwrap_or_default());
    assert_eq!(ours.iter().find(strange), None, "not Salt's names: {functions}");
    assert_eq!(argspec["brine1"]["test.echo"]["args"], json!(["text"]));
    assert_eq!(argspec["python"]["test.echo"]["args"], json!(["text"]));
    assert!(version["brine1"].as_str().is_some_and(|v| v.split('.').count() == 3), "{version}");
    assert!(docs["brine1"].as_object().is_some_and(|docs| docs.len() > 100), "{docs}");
    // The error tells the owner of the host and the caller what to configure.
    let refused = refused["brine1"].as_str().expect("text");
    assert!(refused.contains("process.run was refused") && refused.contains("cmd: {process: [/"), "{refused}");
    assert!(wrong["brine1"].as_str().is_some_and(|text| text.contains("test.fib(num: u32)")), "{wrong}");

    // Functions that Brine does not have get the same error as unknown functions in Salt, and other minions' returns
    // are unaffected.
    let absent = ["lxc.start", "zfs.list", "mine.get_docker", "test.pingg", "no_dot"];
    let made: Vec<Call> = absent.iter().map(|fun| call("brine1", fun, json!([]))).collect();
    for (fun, answer) in absent.iter().zip(calls(master, &made)) {
        let said = answer["brine1"].as_str().unwrap_or_default();
        assert!(said.starts_with(&format!("'{fun}' is not available.")), "{answer}");
    }
    let output = master.salt(&["brine1", "lxc.start"]).exits(1);
    assert!(output.stdout.contains("'lxc.start' is not available."), "{output:?}");
    // States run; this master has no top file.
    let answer = calls(master, &[call("brine1", "state.apply", json!([]))]).remove(0);
    let none = &answer["brine1"]["no_|-states_|-states_|-None"];
    let said = none["comment"].as_str().unwrap_or_default();
    assert!(said.starts_with("No Top file or master_tops data matches found.") && none["result"] == false, "{answer}");

    // Several functions in one job.
    let multi = ["brine1", "test.ping,test.arg,grains.get,test.pingg", ",", "1 x=2", ",", "id", ",", ""];
    let output = master.salt(&[&["--out=json", "--static", "--args-separator=,"], &multi[..]].concat());
    let all = &output.json()["brine1"];
    assert_eq!((&all["test.ping"], &all["grains.get"]), (&json!(true), &json!("brine1")), "{output:?}");
    assert!(all["test.pingg"].as_str().is_some_and(|text| text.contains("is not available.")), "{all}");
}
