//! examples/disk_report: one module in four languages.

use std::fs;
use std::thread;

use serde_json::{Value, json};

use crate::build::{built, source};
use crate::{keep, start};

/// Folder and name of the module.
const LANGUAGES: [(&str, &str); 4] =
    [("rust", "disk_report_rust"), ("python", "disk_report_py"), ("js", "disk_report_js"), ("c", "disk_report_c")];
/// Tolerance in bytes for the numbers of a file system between two reads, because other processes write to it
/// meanwhile.
const MEANWHILE: u64 = 4 << 30;

#[test]
fn the_wit_is_the_same_in_all_languages() {
    let [rust, others @ ..] = LANGUAGES.map(|(folder, _)| {
        fs::read_to_string(source(&format!("examples/disk_report/{folder}/wit/world.wit"))).unwrap()
    });
    assert!(others.iter().all(|wit| *wit == rust));
}

#[test]
fn four_languages_say_the_same() {
    // Two builds at a time, for a small machine.
    let make = |(folder, module): (&str, &str)| built(&format!("examples/disk_report/{folder}"), module);
    let components = thread::scope(|scope| {
        let slow = scope.spawn(|| [make(LANGUAGES[1]), make(LANGUAGES[0])]);
        let (js, c) = (make(LANGUAGES[2]), make(LANGUAGES[3]));
        let [python, rust] = slow.join().unwrap();
        [rust, python, js, c]
    });
    let grants: Vec<String> = LANGUAGES.iter().map(|(_, module)| format!("{module}: {{disks: true}}")).collect();
    let (master, minion) = start(&format!("{{{}}}", grants.join(", ")));
    for ((_, module), component) in LANGUAGES.iter().zip(&components) {
        master.serve(&format!("_modules/{module}.wasm"), component);
    }
    // The minion's sync at its start may fetch some of them first.
    master.salt(&["-t", "900", "web1", "saltutil.sync_modules"]).exits(0);
    keep(&minion);
    let modules = master.json("web1", &["sys.list_modules"]);
    assert!(LANGUAGES.iter().all(|(_, module)| modules.as_array().unwrap().contains(&json!(module))), "{modules}");

    let usage = master.json("web1", &["disk.usage", "a"]);
    let reports = LANGUAGES.map(|(_, module)| master.json("web1", &[&format!("{module}.report")]));
    for (report, (_, module)) in reports.iter().zip(LANGUAGES) {
        same(report, &reports[0], module);
        like_disk_usage(report, &usage);
        let rows = report.as_array().unwrap();
        let one = master.json("web1", &[&format!("{module}.report"), "mount=/"]);
        assert_eq!(one.as_array().unwrap().len(), 1, "{one}");
        assert!(rows.iter().any(|row| row["mount_point"] == "/" && row["size"] == one[0]["size"]), "{one}\n{report}");

        let unknown = master.salt(&["web1", &format!("{module}.report"), "mount=/nope"]).exits(1);
        assert!(unknown.stdout.contains("nothing is mounted at \"/nope\""), "{unknown:?}");
    }

    for (_, module) in LANGUAGES {
        let function = format!("{module}.report");
        assert_eq!(master.json("web1", &["sys.list_functions", module]), json!([function]));
        let spec = json!({"args": ["mount"], "defaults": [null], "varargs": null, "kwargs": null});
        assert_eq!(master.json("web1", &["sys.argspec", module]), json!({ &function: spec }));
        let docs = master.salt(&["--out=json", "--static", "web1", "sys.doc", module]).exits(0).json();
        let doc = docs[&function].as_str().unwrap_or_else(|| panic!("{docs}"));
        assert!(
            doc.contains("Reports how full the mounted file systems are") && doc.contains("CLI Example:"),
            "{docs}"
        );
    }
}

/// Checks that both reports have the same rows, apart from changes meanwhile.
fn same(report: &Value, other: &Value, module: &str) {
    let (rows, others) = (report.as_array().unwrap(), other.as_array().unwrap());
    assert_eq!(rows.len(), others.len(), "{module}: {report}\n{other}");
    for (row, other) in rows.iter().zip(others) {
        assert_eq!(row.as_object().unwrap().len(), 7, "{module}: {row}");
        for key in ["mount_point", "device", "fstype", "size"] {
            assert_eq!(row[key], other[key], "{module}: {row}\n{other}");
        }
        for key in ["used", "available"] {
            let (one, two) = (row[key].as_u64().unwrap(), other[key].as_u64().unwrap());
            assert!(one.abs_diff(two) <= MEANWHILE, "{module}: {row}\n{other}");
        }
        let (used, left) = (row["used"].as_u64().unwrap(), row["available"].as_u64().unwrap());
        let percent = (used * 100).div_ceil((used + left).max(1));
        assert_eq!(row["percent"], json!(percent), "{module}: {row}");
    }
    assert!(rows.iter().zip(others).any(|(row, other)| row == other), "{module}: {report}\n{other}");
}

/// Checks that `disk.usage a` has a row for each mount point, as text and in KiB.
fn like_disk_usage(report: &Value, usage: &Value) {
    let number = |row: &Value, key: &str| row[key].as_str().unwrap().parse::<u64>().unwrap();
    let with_blocks = usage.as_object().unwrap().values().filter(|row| number(row, "1K-blocks") > 0).count();
    let rows = report.as_array().unwrap();
    assert_eq!(rows.len(), with_blocks, "{report}\n{usage}");
    for row in rows {
        let theirs = &usage[row["mount_point"].as_str().unwrap()];
        assert_eq!(row["device"], theirs["filesystem"], "{row}\n{theirs}");
        assert_eq!(row["size"].as_u64().unwrap().div_ceil(1024), number(theirs, "1K-blocks"), "{row}\n{theirs}");
        for key in ["used", "available"] {
            let difference = row[key].as_u64().unwrap().abs_diff(number(theirs, key) * 1024);
            assert!(difference <= MEANWHILE, "{row}\n{theirs}");
        }
    }
}
