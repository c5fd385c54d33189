//! A Brine master drives a Python salt-minion. Every command here is Brine's.

use brine_tests::salt::{Kind, Master};
use serde_json::json;

#[test]
fn a_brine_master_drives_a_python_minion() {
    let master = Master::start("timeout: 20");
    let minion = master.minion_kind(Kind::Python, "python", "");
    assert_eq!(master.json("python", &["test.ping"]), json!(true));
    assert_eq!(master.json("python", &["cmd.run", "echo out; echo ünïcödé"]), json!("out\nünïcödé"));
    assert!(master.json("python", &["test.version"]).as_str().expect("text").starts_with("3008"));
    assert_eq!(master.json("python", &["grains.get", "id"]), json!("python"));
    let arg = master.json("python", &["test.arg", "1", "{a: [b]}", "key=value"]);
    assert_eq!((&arg["args"], &arg["kwargs"]["key"]), (&json!([1, {"a": ["b"]}]), &json!("value")));

    master.serve("folder/file.txt", &b"0123456789".repeat(300_000));
    let target = minion.path("fetched.txt").display().to_string();
    assert_eq!(master.json("python", &["cp.get_file", "salt://folder/file.txt", &target]), json!(target));
    assert_eq!(std::fs::read(&target).expect("fetched"), b"0123456789".repeat(300_000));
    let files = master.json("python", &["cp.list_master"]);
    assert!(files.as_array().expect("a list").contains(&json!("folder/file.txt")), "{files}");
}

#[test]
fn both_kinds_of_minion_answer_one_command() {
    let master = Master::start("timeout: 20");
    let _python = master.minion_kind(Kind::Python, "python", "");
    let _brine = master.minion("brine");
    let all = master.salt(&["--out=json", "--static", "*", "test.ping"]).exits(0).json();
    assert_eq!(all, json!({"brine": true, "python": true}));
}
