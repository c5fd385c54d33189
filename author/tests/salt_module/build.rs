//! new and build: from nothing to a module that runs.
use std::path::Path;
use std::process::Command;

use brine_kit::files::set_mode;

use crate::bench::Bench;

/// Shared by builds: the crates that make bindings take most of a minute. What is built is the author's own crate each time.
const TARGET: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/author-modules");

/// `salt-module build`, as in the module's folder.
fn build(dir: &Path, args: &[&str]) -> (i32, String) {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("salt-module"));
    let output = command.arg("build").args(args).current_dir(dir).env("CARGO_TARGET_DIR", TARGET).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(said).unwrap())
}

#[test]
fn a_new_module_in_rust_builds_runs_passes_its_test_and_is_the_same_everywhere() {
    let bench = Bench::new();
    bench.good("new disk_report --lang rust");
    let dir = bench.path("disk_report");
    let (code, said) = build(&dir, &[]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("disk_report.wasm: disk_report 0.1.0, "), "{said}");
    assert!(said.contains("  disk_report.world(name: option<string>) -> string"), "{said}");
    let run = bench.good("run disk_report/disk_report.wasm world name=Ada");
    assert_eq!(run, "local:\n    Hello, Ada! This is local.\n");
    let looked = bench.good("inspect disk_report/disk_report.wasm --no-compile");
    assert!(looked.contains("Says hello to `name`, or to the world."), "{looked}");
    assert!(looked.contains("nothing that has to be granted"), "{looked}");
    let wasm = bench.read("disk_report/disk_report.wasm");
    assert!(wasm.len() < 100_000, "{}", wasm.len());

    // The same source elsewhere, under another name of the folder, signed and written elsewhere.
    bench.good("keygen -o ops --no-password");
    std::fs::create_dir(bench.path("out")).unwrap();
    bench.good("new disk_report --lang rust --dir elsewhere/copy");
    let (code, said) = build(&bench.path(""), &["elsewhere/copy", "-o", "out/disk_report.wasm", "--sign", "ops.key"]);
    assert_eq!(code, 0, "{said}");
    assert!(bench.read("out/disk_report.wasm") == wasm, "the same source made other bytes");
    bench.good("verify out/disk_report.wasm --key ops.pub");
    let here = bench.path("").canonicalize().unwrap();
    let here = here.to_str().unwrap().as_bytes();
    assert!(!wasm.windows(here.len()).any(|bytes| bytes == here), "the module names a folder of this machine");

    let test = Command::new("cargo").arg("test").current_dir(&dir).env("CARGO_TARGET_DIR", TARGET).output().unwrap();
    assert!(test.status.success(), "{}", String::from_utf8_lossy(&test.stderr));
    assert!(!String::from_utf8_lossy(&test.stderr).contains("warning"), "{}", String::from_utf8_lossy(&test.stderr));

    // The author's mistake is the compiler's to explain, and nothing is written.
    bench.write(
        "disk_report/src/lib.rs",
        "wit_bindgen::generate!({ world: \"disk-report\", path: \"wit\", generate_all });",
    );
    std::fs::remove_file(bench.path("disk_report/disk_report.wasm")).unwrap();
    bench.write("disk_report/src/lib.rs", "fn broken( {");
    let (code, said) = build(&dir, &[]);
    assert!(code == 1 && said.contains("error: this file contains an unclosed delimiter"), "{said}");
    assert!(said.ends_with("salt-module: cargo failed: what it said is above\n"), "{said}");
    assert!(!bench.path("disk_report/disk_report.wasm").exists());
}

#[test]
fn what_cannot_be_built_says_why() {
    let bench = Bench::new();
    bench.write("empty/readme", "");
    bench.write("bare/Cargo.toml", "");
    for (folder, wit) in [
        ("two", "package a:b; world one { export f: func(); } world two { export f: func(); }"),
        ("none", "package a:b; interface i { f: func(); }"),
        ("mute", "package a:b; world mute { import brine:host/job@1.0.0; }"),
        ("odd", "package a:b; world odd {"),
        ("lost", "package a:b; world lost { import brine:host/nothing@1.0.0; export f: func(); }"),
        ("good", "package a:b; world good { import brine:host/job@1.0.0; export f: func(); }"),
    ] {
        bench.write(&format!("{folder}/Cargo.toml"), "");
        bench.write(&format!("{folder}/wit/world.wit"), wit);
    }
    bench.write("core.wasm", brine_kit::wat::wasm("(module)"));
    for (words, code, expect) in [
        ("build nowhere", 66, "nowhere cannot be read"),
        ("build empty", 65, "empty is no module's folder: there is none of Cargo.toml (Rust)"),
        ("build bare", 65, "has no wit/ folder"),
        ("build two", 65, "there are 2 worlds, and a module is one of them: --world one, two"),
        ("build two --world three", 65, "there is no world three; there are: one, two"),
        ("build none", 65, "there is no world; a module's is `world NAME"),
        ("build mute", 65, "the world mute exports nothing, so there is nothing to call"),
        ("build odd", 65, "world.wit:"),
        ("build lost", 65, "world.wit:1:"),
        ("build good -o nowhere/good.wasm", 73, "there is no folder nowhere"),
        ("build good -o good", 73, "it is a folder; name a file"),
        ("build good --sign none.key", 66, "none.key cannot be read"),
        ("build good -o Good.wasm --sign none.key", 65, "lower-case letters"),
        ("docs core.wasm --wit good/wit -o x.wasm", 65, "is a core WebAssembly module, not a component"),
        ("docs none.wasm --wit good/wit -o x.wasm", 66, "none.wasm cannot be read"),
    ] {
        let err = bench.bad(words, code);
        assert!(err.contains(expect), "{words}: {err}");
    }
    // The host's WIT is laid down and kept up to date, and where the author has it elsewhere that stays.
    let laid = bench.path("good/wit/deps/brine-host/job.wit");
    let job = std::fs::read_to_string(&laid).unwrap();
    std::fs::write(&laid, "package brine:host@1.0.0; interface job { older: func(); }").unwrap();
    bench.bad("build good -o good", 73);
    assert_eq!(std::fs::read_to_string(&laid).unwrap(), job);
    let own = "package brine:host@1.0.0; interface job { only: func(); }";
    bench.write("good/wit/deps/own.wit", own);
    std::fs::remove_dir_all(bench.path("good/wit/deps/brine-host")).unwrap();
    bench.bad("build good -o good", 73);
    assert!(!bench.path("good/wit/deps/brine-host").exists());
}

#[test]
fn a_rust_without_the_target_is_told_how_to_get_it() {
    let bench = Bench::new();
    bench.good("new hello --lang rust");
    bench.write("rustc", "#!/bin/sh\necho /nowhere/lib/rustlib/wasm32-unknown-unknown/lib\n");
    set_mode(bench.path("rustc"), 0o755);
    for (rustc, expect) in [
        (
            "rustc",
            "salt-module: this Rust cannot build for wasm32-unknown-unknown yet: run `rustup target add wasm32-unknown-unknown`\n",
        ),
        ("none", "; install Rust: https://rustup.rs\n"),
    ] {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("salt-module"));
        let output = command
            .args(["build", "hello"])
            .current_dir(bench.path(""))
            .env("RUSTC", bench.path(rustc))
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(1) && said.ends_with(expect), "{said}");
    }
}

#[test]
fn new_modules_have_names_and_folders_of_their_own() {
    let bench = Bench::new();
    bench.write("full/readme", "");
    for (words, code, expect) in [
        ("new Hello --lang rust", 64, "lower-case letters, digits and _ only"),
        ("new a_1 --lang rust", 64, "each word, between the _, begins with a letter"),
        ("new full --lang rust", 73, "it is there already and not empty; choose another with --dir"),
        ("new hello", 64, "--lang <LANG>"),
        ("new hello --lang cobol", 64, "rust, python, js, c"),
    ] {
        let err = bench.bad(words, code);
        assert!(err.contains(expect), "{words}: {err}");
    }
    let said = bench.good("new world --lang rust --dir deep/folder");
    assert!(said.contains("cd deep/folder\n  salt-module build\n  salt-module run world.wasm world\n"), "{said}");
    // A word of WIT's own can be a module's name.
    let wit = String::from_utf8(bench.read("deep/folder/wit/world.wit")).unwrap();
    assert!(wit.contains("world %world {"), "{wit}");
}
