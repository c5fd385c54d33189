//! The examples of docs/sandbox.md: configurations are parsed like the minion's, and console commands are run.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::PathBuf;

use brine_kit::process::run;
use brine_kit::programs::program;
use brine_protocol::config::yaml;
use brine_protocol::value::ValueExt;
use brine_sandbox::Settings;
use brine_tests::{compiled, fits};

fn document() -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/sandbox.md");
    std::fs::read_to_string(path).unwrap()
}

/// Returns the texts between fences of this kind.
fn examples(kind: &str) -> Vec<String> {
    let (document, open) = (document(), format!("```{kind}"));
    let mut examples: Vec<String> = Vec::new();
    let mut inside = false;
    for line in document.lines() {
        if line.starts_with("```") {
            inside = !inside && line == open;
            if inside {
                examples.push(String::new());
            }
        } else if inside && let Some(example) = examples.last_mut() {
            example.push_str(line);
            example.push('\n');
        }
    }
    assert!(!examples.is_empty(), "no examples of {kind}");
    examples
}

#[test]
fn what_is_configured_is_read() {
    for example in examples("yaml") {
        let value = yaml::load(&example).unwrap_or_else(|error| panic!("{error}:\n{example}"));
        let sandbox = value.get("sandbox").unwrap_or_else(|| panic!("nothing under sandbox:\n{example}"));
        if let Err(error) = Settings::read(sandbox) {
            panic!("{error}:\n{example}");
        }
    }
}

/// The table of limits states the actual defaults.
#[test]
fn defaults_are_what_they_are() {
    let limits = "limits: {wall: 60s, cpu: 30s, calls_cpu: 5m, memory: 64MiB, output: 4MiB, log: 64KiB, log_lines: 1000, \
                  host_bytes: 16MiB, host_calls: 10000, written: 256MiB, new_files: 10000}";
    assert!(document().contains(limits));
    let value = yaml::load(limits).unwrap();
    assert_eq!(Settings::read(&value).unwrap().limits, brine_sandbox::Limits::default());
    let compile = "compile: {module: 32MiB, memory: 1GiB, cpu: 60s, file: 128MiB, wall: 5m}";
    assert!(document().contains(compile));
    let value = yaml::load(compile).unwrap();
    assert_eq!(Settings::read(&value).unwrap().compile, brine_sandbox::CompileLimits::default());
}

#[test]
fn what_is_shown_is_what_comes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().display();
    std::fs::write(dir.path().join("minion"), format!("id: example\nroot_dir: {path}\nlog_level: error\n")).unwrap();
    compiled::lay_out(&dir.path().join("var/cache/salt/minion/sandbox"));
    let conf = dir.path().to_str().unwrap();
    for example in examples("console") {
        let (command, expect) = example.split_once('\n').unwrap();
        let words: Vec<&str> = command.split_whitespace().collect();
        let ["$", "salt-call", words @ ..] = words.as_slice() else { panic!("not run: {command}") };
        let output = run(&program("salt-call"), &[&["-c", conf], words].concat());
        let text = format!("{}{}", output.stdout, output.stderr);
        assert!(fits(&text, expect), "{command}\n{text}\nexpected:\n{expect}");
    }
}
