//! `salt-module new`: a new module passes its own test, and a build reports what is missing.

use std::fs;
use std::path::Path;

use brine_kit::process::run_with;
use brine_kit::programs::program;

use crate::build::{built, salt_module, source};

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
