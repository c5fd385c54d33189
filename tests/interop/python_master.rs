//! A Python salt-master drives a Brine minion. Every command here is Python's.

use brine_tests::process::example;
use brine_tests::salt::{Kind, Master};
use serde_json::json;

#[test]
fn a_python_master_drives_a_brine_minion() {
    // Python's file server remembers its list for 20 s; the module that this test adds is to be seen at once.
    let config = "worker_threads: 3\ntimeout: 15\nfileserver_list_cache_time: 0";
    let master = Master::start_kind(Kind::Python, config);
    let _minion = master.minion_kind(Kind::Brine, "brine", "");
    assert_eq!(master.json("brine", &["test.ping"]), json!(true));
    assert_eq!(master.salt(&["*", "test.ping"]).exits(0).stdout, "brine:\n    True\n");
    let nested = "{a: [1, 2.5, {b: ünïcödé}], c: null}";
    assert_eq!(master.json("brine", &["test.echo", nested]), json!({"a": [1, 2.5, {"b": "ünïcödé"}], "c": null}));
    let arg = master.json("brine", &["test.arg", "1", "x", "key=[1, 2]"]);
    assert_eq!((&arg["args"], &arg["kwargs"]["key"]), (&json!([1, "x"]), &json!([1, 2])));

    let docs = master.salt(&["brine", "sys.doc", "test.ping"]).exits(0);
    assert!(docs.stdout.contains("test.ping:"), "{docs:?}");
    let functions = master.json("brine", &["sys.list_functions", "test"]);
    assert!(functions.as_array().expect("a list").contains(&json!("test.ping")), "{functions}");
    assert!(master.json("brine", &["grains.items"])["id"] == "brine");

    let wrong = master.salt(&["brine", "test.pingg"]).exits(1);
    assert!(wrong.stdout.contains("'test.pingg' is not available."), "{wrong:?}");

    master.serve("_modules/hello.wasm", &std::fs::read(example("hello")).expect("an example"));
    assert_eq!(master.json("brine", &["saltutil.sync_modules"]), json!(["modules.hello"]));
    assert!(master.json("brine", &["hello.world", "Python"]).as_str().expect("text").contains("Python"));
    // A job longer than the timeout: Python's client asks with find_job and waits on.
    assert_eq!(master.json("brine", &["-t", "1", "test.sleep", "3"]), json!(true));
}
