//! What the minion says of itself and what the master has for it: grains in the master's cache, the pillar, the configuration.

use brine_tests::salt::Master;
use serde_json::json;

use super::super::client::{answers, call, calls};
use super::Fleet;

/// Writes the pillar of all minions.
pub(super) fn pillar(master: &Master, known: &str) {
    let top = "base:\n  '*': [common]\n";
    let common = format!(
        "known: {known}\nonly: {{{{ grains['id'] }}}}\nweb: {{tls: [a, b], 'k:x': 1}}\nrole: {{{{ grains.get('role') }}}}\n"
    );
    for (name, text) in [("top.sls", top), ("common.sls", &common)] {
        std::fs::write(master.path("srv/pillar").join(name), text).expect("our own folder");
    }
}

pub(super) fn check(fleet: &Fleet) {
    let master = &fleet.master;
    let run = |args: &[&str]| master.command("salt-run", &[&["--out=json"], args].concat()).exits(0).json();
    let up = run(&["manage.up"]);
    assert_eq!(up, json!(["brine1", "brine2", "python"]));
    let versions = run(&["manage.versions"]).to_string();
    assert!(versions.contains("brine1") && versions.contains("Up to date"), "{versions}");
    let cached = run(&["cache.grains", "tgt=brine1"]);
    assert_eq!((&cached["brine1"]["role"], &cached["brine1"]["id"]), (&json!("web"), &json!("brine1")));

    let made = ["os", "os_family", "osrelease", "kernel", "cpuarch", "host", "saltversioninfo"]
        .map(|grain| call("*", "grains.get", json!([grain])));
    for answer in &calls(master, &made)[..6] {
        assert_eq!(answer["brine1"], answer["python"], "a grain that Salt has otherwise");
    }
    answers(
        master,
        "brine1",
        &[
            ("grains.item", json!(["id", "none"]), json!({"id": "brine1", "none": ""})),
            ("grains.get", json!(["nested:tier:0"]), json!("front")),
            ("grains.has_value", json!(["role"]), json!(true)),
            ("pillar.get", json!(["known"]), json!("v1")),
            ("pillar.get", json!(["web:tls:1"]), json!("b")),
            ("pillar.get", json!(["web|k:x", "delimiter=|"]), json!(1)),
            ("pillar.get", json!(["none", "x"]), json!("x")),
            (
                "pillar.item",
                json!(["known", "web:tls", "none"]),
                json!({"known": "v1", "web:tls": ["a", "b"], "none": ""}),
            ),
            ("pillar.keys", json!(["web"]), json!(["tls", "k:x"])),
            ("pillar.raw", json!(["role"]), json!("web")),
            ("config.get", json!(["id"]), json!("brine1")),
            ("config.get", json!(["role"]), json!("web")),
            ("config.get", json!(["web:tls"]), json!(["a", "b"])),
            ("config.get", json!(["web|k:x", "", "|"]), json!(1)),
            ("config.get", json!(["master_port"]), json!(master.ret_port)),
            ("config.get", json!(["none", 7]), json!(7)),
        ],
    );

    // The master's answer to `pillar.items` is of now; what jobs see changes when it is told to.
    pillar(master, "v2");
    let fresh = json!({"known": "v2", "only": "brine1", "web": {"tls": ["a", "b"], "k:x": 1}, "role": "web"});
    answers(
        master,
        "brine1",
        &[
            ("pillar.items", json!([]), fresh),
            ("pillar.ls", json!([]), json!(["known", "only", "web", "role"])),
            ("pillar.get", json!(["known"]), json!("v1")),
            ("saltutil.refresh_pillar", json!([]), json!(true)),
            ("pillar.get", json!(["known"]), json!("v2")),
        ],
    );

    // Grains that change on the host reach the master's cache and so its targets when they are refreshed, and not before.
    let file = fleet.first.path("conf/grains");
    std::fs::write(&file, "role: db\nadded: 1\n").expect("our own folder");
    let refreshed = master.events();
    let by_role = || call("added:1", "test.ping", json!([])).tgt_type("grain");
    let before = calls(master, &[by_role(), call("brine1", "saltutil.refresh_modules", json!([])), by_role()]);
    assert_eq!(before, [json!({}), json!({"brine1": true}), json!({})]);
    answers(master, "brine1", &[("saltutil.refresh_grains", json!([]), json!(true))]);
    refreshed.wait_tag("minion/refresh/brine1");
    assert_eq!(calls(master, &[by_role()]), [json!({"brine1": true})]);
    assert_eq!(run(&["cache.grains", "tgt=brine1"])["brine1"]["added"], json!(1));
    std::fs::remove_file(&file).expect("our own file");
    answers(master, "brine1", &[("saltutil.refresh_grains", json!([]), json!(true))]);
    assert_eq!(calls(master, &[by_role()]), [json!({})]);
}
