//! Grains that modules find and users set, and the mine, with a master that targets by them.

use brine_tests::salt::{Kind, Master};
use serde_json::json;

/// A component whose function `grains` returns `{"tier": "gold"}`.
const SITE: &str = r#"(component
    (core module $m
        (memory (export "memory") 1)
        (data (i32.const 0) "tiergold")
        (data (i32.const 64) "\00\00\00\00\04\00\00\00\04\00\00\00\04\00\00\00")
        (data (i32.const 96) "\40\00\00\00\01\00\00\00")
        (func (export "grains") (result i32) i32.const 96))
    (core instance $i (instantiate $m))
    (func (export "grains") (result (list (tuple string string)))
        (canon lift (core func $i "grains") (memory (core memory $i "memory")))))"#;

#[test]
fn a_master_targets_by_grains_of_modules_and_of_users() {
    let master = Master::start("");
    let minion = master.minion_kind(Kind::Brine, "m1", "grains: {site: north}\ngrains_blacklist: [cpu_*]");
    let _other = master.minion("m2");
    let who = |grain: &str| {
        let output = master.salt(&["--out=json", "--static", "-G", grain, "test.ping"]);
        serde_json::from_str::<serde_json::Value>(&output.stdout).unwrap_or_default()
    };
    assert_eq!(master.json("m1", &["grains.item", "cpu_model", "site"]), json!({"cpu_model": "", "site": "north"}));
    assert_eq!(master.json("m1", &["grains.get", "sandbox:walls:no_new_privs"]), json!(true));

    // A module's grains are there as soon as the module is, for the minion and for the master's targets.
    master.serve("_modules/site.wasm", &brine_kit::wat::wasm(SITE));
    assert_eq!(master.json("m1", &["saltutil.sync_modules"]), json!(["modules.site"]));
    assert_eq!(master.json("m1", &["grains.get", "tier"]), json!("gold"));
    assert_eq!(who("tier:gold"), json!({"m1": true}));
    // So is what a user sets.
    assert_eq!(master.json("m1", &["grains.setval", "role", "web"]), json!({"role": "web"}));
    assert_eq!(who("role:web"), json!({"m1": true}));
    assert_eq!(master.json("m1", &["grains.append", "deep:roles", "[a, b]"]), json!({"deep": {"roles": ["a", "b"]}}));
    let file = minion.path("conf/grains");
    assert_eq!(std::fs::read_to_string(&file).expect("the grains file"), "deep:\n  roles:\n  - a\n  - b\nrole: web\n");
    assert_eq!(who("deep:roles:b"), json!({"m1": true}));
    let removed = json!({"changes": {"role": null}, "comment": "", "result": true});
    assert_eq!(master.json("m1", &["grains.delkey", "role"]), removed);
    assert!(who("role:web").is_null(), "nobody is matched, and the client says so in words");
    // The command on the host has the same grains.
    let local = minion.salt_call(&["--local", "--out=json", "grains.item", "tier", "deep:roles:0"]).exits(0).json();
    assert_eq!(local["local"], json!({"tier": "gold", "deep:roles:0": "a"}));
    let all = minion.salt_call(&["-g", "--out=json"]).exits(0).json();
    assert_eq!((&all["local"]["tier"], &all["local"]["site"]), (&json!("gold"), &json!("north")));
}

#[test]
fn minions_read_each_others_mine() {
    let master = Master::start("");
    let mine = "mine_functions: {grains.get: [id], alias: [{mine_function: grains.get}, role], failing: {mine_function: \
                test.raise_exception}, some: {mine_function: test.ping, allow_tgt: m3}, gone: {mine_function: no.where}}";
    let _first = master.minion_kind(Kind::Brine, "m1", &format!("grains: {{role: web}}\n{mine}"));
    let _second = master.minion("m2");
    assert_eq!(master.json("m1", &["mine.update"]), json!(true));
    let get = |args: &[&str]| master.json("m2", &[&["mine.get"], args].concat());
    assert_eq!(get(&["*", "alias"]), json!({"m1": "web"}));
    assert_eq!(get(&["role:web", "grains.get", "grain"]), json!({"m1": "m1"}));
    assert_eq!(get(&["m1", "alias,grains.get"]), json!({"alias": {"m1": "web"}, "grains.get": {"m1": "m1"}}));
    for (args, why) in
        [(&["*", "some"][..], "it is for m3 only"), (&["*", "failing"], "it failed"), (&["m2", "alias"], "m2 has none")]
    {
        assert_eq!(get(args), json!({}), "{why}");
    }
    let valid = master.json("m1", &["mine.valid"]);
    assert_eq!((&valid["alias"], &valid["grains.get"]), (&json!({"grains.get": ["role"]}), &json!(["id"])), "{valid}");
    assert!(valid.get("gone").is_none() && valid.get("some").is_some(), "{valid}");
    assert_eq!(master.json("m2", &["mine.valid"]), json!(null));
    assert_eq!(master.json("m1", &["mine.send", "no.where"]), json!(false));
    // With `clear`, nothing else stays.
    assert_eq!(
        master.json("m1", &["mine.update", "clear=True", "mine_functions={only: {mine_function: test.ping}}"]),
        json!(true)
    );
    assert_eq!((get(&["*", "only"]), get(&["*", "alias"])), (json!({"m1": true}), json!({})));
    assert_eq!(master.json("m1", &["mine.flush"]), json!(true));
    assert_eq!(get(&["*", "only"]), json!({}));
    assert_eq!(master.json("m1", &["mine.send", "only", "mine_function=test.ping"]), json!(true));
    // What a minion gave stays while its key is rejected, and nobody sees it.
    let run = |args: &[&str]| master.command("salt-run", args).exits(0).json();
    assert_eq!(run(&["--out=json", "mine.get", "*", "only"]), json!({"m1": true}));
    master.command("salt-key", &["-y", "-r", "m1", "--include-accepted"]).exits(0);
    assert_eq!((get(&["*", "only"]), run(&["--out=json", "mine.get", "*", "only"])), (json!({}), json!({})));
    master.command("salt-key", &["-y", "-a", "m1", "--include-rejected"]).exits(0);
    assert_eq!(get(&["*", "only"]), json!({"m1": true}));
}
