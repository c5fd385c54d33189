//! Modules from the Python master's file server, from several environments.

use brine_kit::programs::{example, testing};
use serde_json::json;

use super::super::client::{answers, call, calls};
use super::Fleet;

pub(super) fn check(fleet: &Fleet) {
    let master = &fleet.master;
    let hello = std::fs::read(example("hello")).expect("an example");
    let large = std::fs::read(testing("large")).expect("a module of the tests");
    master.serve("_modules/hello.wasm", &hello);
    // Brine ignores Python modules beside it.
    master.serve("_modules/pymodule.py", b"def f():\n    return 1\n");
    std::fs::write(master.path("srv/dev/_modules/large.wasm"), &large).expect("our own folder");
    answers(
        master,
        "brine1",
        &[
            ("saltutil.sync_modules", json!([]), json!(["modules.hello"])),
            ("saltutil.sync_modules", json!([]), json!([])),
            ("hello.world", json!(["Python"]), json!("Hello, Python! This is brine1.")),
            ("saltutil.sync_modules", json!(["dev"]), json!(["modules.large"])),
            ("large.text", json!([3]), json!("xxx")),
            ("saltutil.sync_modules", json!(["base,dev"]), json!([])),
        ],
    );
    // A minion without a sync fetches the module at its first call.
    assert_eq!(
        calls(master, &[call("brine2", "hello.world", json!([]))])[0]["brine2"],
        "Hello, world! This is brine2."
    );
    let all = calls(master, &[call("*", "saltutil.sync_all", json!([]))]).remove(0);
    assert_eq!((&all["brine1"]["modules"], &all["python"]["modules"]), (&json!([]), &json!(["modules.pymodule"])));
    std::fs::remove_file(master.path("srv/salt/_modules/hello.wasm")).expect("our own file");
    answers(
        master,
        "brine1",
        &[
            ("saltutil.sync_modules", json!([]), json!(["modules.hello"])),
            ("sys.list_functions", json!(["hello"]), json!([])),
        ],
    );
}
