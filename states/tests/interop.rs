//! The answers in `data/` are asked of stock Salt again: a few of them, and all with `BRINE_LONG`. `BRINE_PYTHON` names the
//! interpreter, as in `make interop`.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests start Python")]

mod common;

use std::path::Path;
use std::process::Command;

/// What the script writes.
fn oracle(args: &[&str]) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/states_oracle.py");
    let output = Command::new(common::python()).arg(script).args(args).env("PYTHONHASHSEED", "0").output();
    let output =
        output.unwrap_or_else(|error| panic!("run `make venv` first: {}: {error}", common::python().display()));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Each `step`th line is as it was recorded.
fn compare(what: &str, recorded: &str) {
    let version = oracle(&["version"]);
    if version.trim() != "3008 3.11" {
        eprintln!("no comparison with Salt and Python {version}");
        return;
    }
    let step = if std::env::var_os("BRINE_LONG").is_some() { 1 } else { 45 };
    let now = oracle(&[what, &step.to_string()]);
    let recorded: Vec<&str> = recorded.lines().step_by(step).collect();
    let different: Vec<&str> = now.lines().zip(&recorded).filter(|(a, b)| a != *b).map(|(a, _)| a).collect();
    assert!(different.is_empty(), "data/{what}.jsonl is not its answer:\n{}", different.join("\n"));
    assert_eq!(now.lines().count(), recorded.len());
}

#[test]
fn recorded_compiles_are_stock_salts() {
    compare("trees", include_str!("data/trees.jsonl"));
}

#[test]
fn recorded_runs_are_stock_salts() {
    compare("runs", include_str!("data/runs.jsonl"));
}
