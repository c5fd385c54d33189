//! The messages that authors in Python and JavaScript get when a module fails or prints: `trouble_py/` and
//! `trouble_js/` beside this file.

use std::thread;

use brine_tests::long;

use crate::build::built;
use crate::{keep, start};

#[test]
fn errors_that_nothing_catches_are_told_and_what_is_printed_is_logged() {
    // Two interpreters with another program in each are compiled for it.
    if !long() {
        eprintln!("only in the long form: BRINE_LONG is not set");
        return;
    }
    let [python, js] = thread::scope(|scope| {
        let python = scope.spawn(|| built("tests/languages/trouble_py", "trouble_py"));
        let js = built("tests/languages/trouble_js", "trouble_js");
        [python.join().unwrap(), js]
    });
    let (master, minion) = start("{}");
    master.serve("_modules/trouble_py.wasm", &python);
    master.serve("_modules/trouble_js.wasm", &js);
    master.salt(&["-t", "900", "web1", "saltutil.sync_modules"]).exits(0);
    keep(&minion);

    for (module, raised, logged) in [
        ("trouble_py", "KeyError: 'a key' (module.py, line 10)", "File \"module.py\", line 10, in make"),
        ("trouble_js", "TypeError: ", "module.js:2:"),
    ] {
        let make = format!("{module}.make");
        let failed = master.salt(&["web1", &make, "raises"]).exits(1);
        assert!(failed.stdout.contains(raised), "{failed:?}");
        assert!(failed.stdout.contains("(module."), "{failed:?}");
        minion.running().wait_log(logged);
        let failed = master.salt(&["web1", &make, "fails"]).exits(1);
        assert!(failed.stdout.contains("as it says"), "{failed:?}");
        assert_eq!(master.json("web1", &[&make, &format!("prints_{module}")]), "done");
        minion.running().wait_log(&format!("printed prints_{module}"));
    }

    // The same in a state.
    let state = |words: &[&str]| -> serde_json::Value {
        let all = [&["--out", "json", "web1", "state.single", "trouble_py.made"], words].concat();
        let output = master.salt(&all);
        let value: serde_json::Value =
            serde_json::from_str(&output.stdout).unwrap_or_else(|why| panic!("{why}: {output:?}"));
        let result = value["web1"].as_object().unwrap().values().next().unwrap();
        serde_json::json!([result["result"], result["comment"], result["changes"]])
    };
    let raised = "An exception occurred in this state: KeyError: 'a key' (module.py, line 10)";
    assert_eq!(state(&["raises"]), serde_json::json!([false, raised, {}]));
    assert_eq!(state(&["prints_a_state"]), serde_json::json!([true, "done", {}]));
    assert_eq!(state(&["again", "more={a: 1}"]), serde_json::json!([true, "done", {"a": 1}]));
    minion.running().wait_log("printed prints_a_state");
}
