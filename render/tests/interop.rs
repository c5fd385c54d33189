//! As `yaml.rs`, `jinja.rs` and `functions.rs`, with a Python Salt that is asked now. `BRINE_PYTHON` names its interpreter, as in `make interop`.
#![allow(clippy::disallowed_methods, reason = "tests start Python")]

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

fn python() -> PathBuf {
    let installed = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/venv/salt-3008/bin/python");
    std::env::var_os("BRINE_PYTHON").map_or_else(installed, PathBuf::from)
}

/// What a script of `tests/python` writes.
fn script(name: &str, args: &[&str]) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python").join(name);
    let output = Command::new(python()).arg(script).args(args).env("PYTHONHASHSEED", "0").output();
    let output = output.unwrap_or_else(|error| panic!("run `make venv` first: {}: {error}", python().display()));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("JSON is text")
}

fn oracle(args: &[&str]) -> String {
    script("yaml_oracle.py", args)
}

/// Whether the answers in `data/` are of this Salt and this Python.
fn is_recorded_version() -> bool {
    let version = oracle(&["version"]);
    let recorded = version.trim() == "3008 3.11";
    if !recorded {
        eprintln!("no comparison with Salt and Python {version}");
    }
    recorded
}

#[test]
fn recorded_answers_are_stock_salts() {
    if is_recorded_version() {
        assert!(oracle(&["load", "1", "2500"]) == include_str!("data/load.jsonl"), "data/load.jsonl is not its answer");
        assert!(oracle(&["dump", "1", "2000"]) == include_str!("data/dump.jsonl"), "data/dump.jsonl is not its answer");
        assert!(oracle(&["json", "1", "1500"]) == include_str!("data/json.jsonl"), "data/json.jsonl is not its answer");
        let jinja = script("jinja_oracle.py", &[]);
        assert!(jinja == include_str!("data/jinja.jsonl"), "data/jinja.jsonl is not its answer");
        let functions = script("functions_oracle.py", &[]);
        assert!(functions == include_str!("data/functions.jsonl"), "data/functions.jsonl is not its answer");
    }
}

#[test]
fn other_texts_and_values_are_equal_too() {
    if is_recorded_version() {
        let count = if std::env::var_os("BRINE_LONG").is_some() { "40000" } else { "3000" };
        common::compare(&oracle(&["load", "2", count]), common::check_load);
        common::compare(&oracle(&["dump", "2", count]), common::check_dump);
        common::compare(&oracle(&["json", "2", count]), common::check_json);
    }
}

/// `BRINE_YAML_FOLDERS` and `BRINE_FORMULA_ANSWERS` name folders of YAML files, and of answers about formulas.
#[test]
fn files_of_formulas_are_equal() {
    if let Ok(folders) = std::env::var("BRINE_YAML_FOLDERS") {
        let folders: Vec<&str> = std::iter::once("files").chain(folders.split(':')).collect();
        common::compare(&oracle(&folders), common::check_load);
    }
    if let Ok(folder) = std::env::var("BRINE_FORMULA_ANSWERS") {
        common::compare(&oracle(&["answers", &folder]), common::check_dump);
        common::compare(&oracle(&["reload", &folder]), common::check_load);
    }
}
