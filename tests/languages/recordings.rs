//! A call of each example is recorded on a minion, and runs again from the recording without one.

use std::fs;
use std::path::PathBuf;
use std::thread;

use brine_tests::long;
use serde_json::{Value, json};

use crate::build::{built, salt_module};
use crate::{keep, start};

/// Modules, their folders, and calls of them. Those with an interpreter are compiled again for each replay.
const MODULES: [(&str, &str, &[&str]); 6] = [
    ("disk_report_rust", "examples/disk_report/rust", &["report", "report mount=/nope"]),
    ("disk_report_c", "examples/disk_report/c", &["report", "report mount=/nope"]),
    ("disk_report_py", "examples/disk_report/python", &["report", "report mount=/nope"]),
    ("disk_report_js", "examples/disk_report/js", &["report", "report mount=/nope"]),
    ("trouble_py", "tests/languages/trouble_py", &["make raises", "make fails", "make prints"]),
    ("trouble_js", "tests/languages/trouble_js", &["make raises", "make fails", "make prints"]),
];

#[test]
fn a_recorded_call_is_the_same_in_four_languages() {
    let modules = if long() { &MODULES[..] } else { &MODULES[..2] };
    // Two builds at a time, for a small machine.
    let make = |(name, folder, _): &(&'static str, &str, _)| (*name, built(folder, name));
    let components: Vec<(&str, Vec<u8>)> = thread::scope(|scope| {
        let half = modules.len() / 2;
        let others = scope.spawn(move || modules[..half].iter().map(make).collect::<Vec<_>>());
        let mut all: Vec<_> = modules[half..].iter().map(make).collect();
        all.extend(others.join().unwrap());
        all
    });
    let entry = |(name, ..): &(&str, &str, _)| match name.starts_with("disk") {
        true => format!("{name}: {{disks: true, record: on}}"),
        false => format!("{name}: {{record: on}}"),
    };
    let entries: Vec<String> = modules.iter().map(entry).collect();
    let (master, minion) = start(&format!("{{{}}}", entries.join(", ")));
    for (name, component) in &components {
        master.serve(&format!("_modules/{name}.wasm"), component);
    }
    master.salt(&["-t", "900", "web1", "saltutil.sync_modules"]).exits(0);
    keep(&minion);

    let tests = tempfile::tempdir().unwrap();
    let path = |name: &str| tests.path().join(name);
    let mut names = Vec::new();
    for (name, component) in &components {
        fs::write(path(&format!("{name}.wasm")), component).unwrap();
        let calls = MODULES.iter().find(|(module, ..)| module == name).unwrap().2;
        for call in calls {
            let (function, argument) = call.split_once(' ').unwrap_or((call, ""));
            let function = format!("{name}.{function}");
            let words: Vec<&str> = ["web1", &function, argument].into_iter().filter(|word| !word.is_empty()).collect();
            let called = master.salt(&[&["--out=json", "--static"], &words[..]].concat());
            let returned = called.json()["web1"].clone();
            let recording = newest(&minion.path("cache/recordings"));
            let file_name = recording.file_name().unwrap().to_str().unwrap().to_owned();
            assert!(file_name.ends_with(&format!("-{function}-1.recording")), "{file_name}");
            fs::rename(&recording, path(&file_name)).unwrap();
            let replayed = salt_module(&["replay", path(&file_name).to_str().unwrap(), "--out=json"], &[]).exits(0);
            assert!(replayed.stderr.starts_with("The same as in the recording, with "), "{replayed:?}");
            same(&replayed.json()["local"], &returned, call);
            names.push(file_name);
        }
    }
    // All of them again, as an author tests his modules.
    let folder = tests.path().to_str().unwrap();
    let tested = salt_module(&["test", folder], &[]).exits(0);
    assert!(
        names.iter().all(|name| tested.stdout.lines().any(|line| line.starts_with(name) && line.ends_with("  ok")))
    );
    assert!(tested.stdout.ends_with(&format!("{0} recordings: {0} ok, 0 not\n", names.len())), "{tested:?}");

    // Another language asks for the same here. A module that asks for nothing does not.
    let one = names.iter().find(|name| name.contains("disk_report_rust.report")).unwrap();
    let c = components.iter().find(|(name, _)| *name == "disk_report_c").unwrap();
    let changed = tempfile::tempdir().unwrap();
    let other = changed.path().join("disk_report_rust.wasm");
    fs::write(&other, &c.1).unwrap();
    let words = ["replay", path(one).to_str().unwrap(), other.to_str().unwrap(), "--out=json"].map(str::to_owned);
    salt_module(&words.each_ref().map(String::as_str), &[]).exits(0);
}

/// Returns the newest file of a folder.
fn newest(folder: &std::path::Path) -> PathBuf {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.max_by_key(|path| fs::metadata(path).unwrap().modified().unwrap()).unwrap()
}

/// Checks a replayed return. A failure is wrapped by the minion, and its text is in it.
fn same(replayed: &Value, returned: &Value, call: &str) {
    match replayed.as_str() {
        Some(text) if replayed != returned => {
            assert!(returned.as_str().is_some_and(|all| all.contains(text)), "{call}: {replayed}\n{returned}");
        }
        _ => assert_eq!(replayed, returned, "{call}"),
    }
    assert_ne!(*replayed, json!(null), "{call}");
}
