//! The minion's data and the master's data for it: grains in the master's cache, the pillar, the configuration.

use brine_tests::salt::Master;
use serde_json::{Value, json};

use super::super::client::{answers, call, calls};
use super::Fleet;

/// Mine functions: under their own name, under an alias, and restricted to some minions.
const MINE: &str = r#"{"grains.get": ["id"], "alias": [{"mine_function": "grains.get"}, "role"], "some": {"mine_function": "grains.get", "key": "id", "allow_tgt": "brine*"}}"#;

/// Writes the pillar of all minions.
pub(super) fn pillar(master: &Master, known: &str) {
    let top = "base:\n  '*': [common]\n";
    let common = format!(
        "known: {known}\nonly: {{{{ grains['id'] }}}}\nweb: {{tls: [a, b], 'k:x': 1}}\nrole: {{{{ grains.get('role') }}}}\nmine_functions: {MINE}\n"
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
    let versions = run(&["manage.versions"]);
    assert!(versions["Up to date"]["python"].is_string(), "{versions}");
    assert!(versions["Minion requires update"]["brine1"].is_string(), "{versions}");
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

    // `pillar.items` returns the current pillar. The pillar of jobs changes only with a refresh.
    pillar(master, "v2");
    let mine: Value = serde_json::from_str(MINE).expect("JSON");
    let fresh = json!({"mine_functions": mine, "known": "v2", "only": "brine1", "web": {"tls": ["a", "b"], "k:x": 1}, "role": "web"});
    answers(
        master,
        "brine1",
        &[
            ("pillar.items", json!([]), fresh),
            ("pillar.ls", json!([]), json!(["known", "only", "web", "role", "mine_functions"])),
            ("pillar.get", json!(["known"]), json!("v1")),
            ("saltutil.refresh_pillar", json!([]), json!(true)),
            ("pillar.get", json!(["known"]), json!("v2")),
        ],
    );

    shown(master, &run);

    // Changed grains reach the master's cache, and so its targets, only with a refresh.
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

/// The mine: filled by the minions, read by the master's runner and by the Python minion.
fn shown(master: &Master, run: &dyn Fn(&[&str]) -> Value) {
    let all = json!({"brine1": true, "brine2": true, "python": true});
    assert_eq!(calls(master, &[call("*", "mine.update", json!([]))]), [all]);
    let ids = json!({"brine1": "brine1", "brine2": "brine2", "python": "python"});
    assert_eq!(run(&["mine.get", "*", "grains.get"]), ids);
    assert_eq!(run(&["mine.get", "*", "alias"]), json!({"brine1": "web", "brine2": "", "python": ""}));
    let get = |fun: &str| call("python", "mine.get", json!(["*", fun]));
    let [shown, hidden] = calls(master, &[get("grains.get"), get("some")]).try_into().expect("two");
    assert_eq!((&shown["python"], &hidden["python"]), (&ids, &json!({})));
    answers(
        master,
        "brine1",
        &[
            ("mine.send", json!(["sent", "role", "mine_function=grains.get"]), json!(true)),
            ("mine.delete", json!(["alias"]), json!(true)),
        ],
    );
    assert_eq!(run(&["mine.get", "*", "sent"]), json!({"brine1": "web"}));
    assert_eq!(run(&["mine.get", "brine*", "alias"]), json!({"brine2": ""}));
}
