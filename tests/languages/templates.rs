//! `salt-module new`: a new module passes its own test, and a build reports what is missing.

use std::fs;
use std::path::Path;

use brine_kit::process::run_with;
use brine_kit::programs::program;

use crate::build::{built, guest_rustc, salt_module, source};

#[test]
fn a_new_module_passes_its_own_test() {
    for (lang, test) in [("python", "python3 -B -m unittest"), ("js", "node --test"), ("c", "make test")] {
        let dir = tempfile::tempdir().unwrap();
        let hello = dir.path().join("hello");
        let new = salt_module(&["new", "hello", "--lang", lang, "--dir", hello.to_str().unwrap()], &[]).exits(0);
        assert!(new.stdout.contains("salt-module build"), "{new:?}");
        let line = format!("cd '{}' && {test}", hello.display());
        run_with(Path::new("/bin/sh"), &["-c", &line], &[]).exits(0);
    }
}

/// The template of a state, in the languages that have one: a dry run of what Rust's makes; Python's is compiled as any
/// other module (`trouble.rs` runs one).
#[test]
fn a_new_module_with_a_state_is_built() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    for lang in ["rust", "python"] {
        let (folder, module) = (path(lang), path(&format!("{lang}/greet.wasm")));
        salt_module(&["new", "greet", "--state", "--lang", lang, "--dir", &folder], &[]).exits(0);
        let rustc = guest_rustc();
        let built = salt_module(&["build", &folder], &[("RUSTC", rustc.as_str())]).exits(0);
        assert!(built.stdout.contains("  greet.states.written(name: string, who: option<string>) -> "), "{built:?}");
        if lang == "python" {
            continue;
        }
        let (file, grant) = (path("hello.txt"), format!("changes: {{{}: rw}}", dir.path().display()));
        let words = ["run", "--state", &module, "written", &file, "who=Ada", "--grant", &grant];
        let dry = salt_module(&[&words[..], &["--test"]].concat(), &[]).exits(0);
        let plan = format!("\nPlan, which was not done:\n    greet.states.written: would write: {file} (27 bytes)\n");
        assert!(dry.stdout.ends_with(&plan) && dry.stdout.contains("Result: None"), "{dry:?}");
        assert!(!Path::new(&file).exists());
        salt_module(&words, &[]).exits(0);
        assert_eq!(fs::read_to_string(&file).unwrap(), "Hello, Ada! This is local.\n");
        let again = salt_module(&words, &[]).exits(0);
        assert!(again.stdout.contains("says hello\n") && again.stdout.contains("Succeeded: 1\n"), "{again:?}");
    }
    let none = salt_module(&["new", "greet", "--state", "--lang", "c", "--dir", &path("c")], &[]).exits(64);
    assert!(none.stderr.contains("--state is for Rust and Python"), "{none:?}");
}

#[test]
fn c_is_the_same_bytes_in_every_folder() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let builds = [one.path().join("c"), two.path().join("a much longer name/below/c")].map(|folder| {
        fs::create_dir_all(folder.parent().unwrap()).unwrap();
        let copy = format!("cp -rL '{}' '{}'", source("examples/disk_report/c").display(), folder.display());
        run_with(Path::new("/bin/sh"), &["-c", &copy], &[]).exits(0);
        salt_module(&["build", folder.to_str().unwrap()], &[]).exits(0);
        fs::read(folder.join("disk_report.wasm")).unwrap()
    });
    assert!(builds[0] == builds[1]);
    assert!(builds[0] == built("examples/disk_report/c", "disk_report_c"));
}

#[test]
fn what_is_missing_is_said() {
    let empty = tempfile::tempdir().unwrap();
    let path = empty.path().to_str().unwrap();
    for (lang, words) in [
        ("python", "there is no python3 -m venv here (python3); on Debian: `apt-get install python3 python3-venv`"),
        ("c", "there is no python3 -m venv here (python3); on Debian: `apt-get install python3 python3-venv`"),
        ("js", "there is no npm here (npm); on Debian: `apt-get install nodejs npm` (node 18 or newer)"),
    ] {
        let folder = source(&format!("examples/disk_report/{lang}"));
        let env = [("PATH", path), ("XDG_CACHE_HOME", path)];
        let args = ["build", folder.to_str().unwrap(), "-o", &format!("{path}/x.wasm")];
        let output = run_with(&program("salt-module"), &args, &env).exits(1);
        assert!(output.stderr.contains(words), "{output:?}");
    }
}
