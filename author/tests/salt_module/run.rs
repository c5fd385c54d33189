//! run: the minion's own engine and checks, and words that say what to do.

use std::path::{Path, PathBuf};

use crate::bench::Bench;

/// The built modules are beside the programs: `tools/build-modules.sh`.
pub(crate) fn built(name: &str) -> Vec<u8> {
    let program = PathBuf::from(assert_cmd::cargo::cargo_bin!("salt-module"));
    let target = program.parent().and_then(Path::parent).unwrap();
    let found = ["examples", "modules"].iter().find_map(|dir| std::fs::read(target.join(dir).join(name)).ok());
    found.unwrap_or_else(|| panic!("{name} is not built: tools/build-modules.sh {}", target.join("modules").display()))
}

fn bench() -> Bench {
    let bench = Bench::new();
    for name in ["hello.wasm", "spin.wasm", "disk.wasm", "cmd.wasm", "ini.wasm", "sysctl.wasm", "test.wasm"] {
        bench.write(name, built(name));
    }
    bench
}

#[test]
fn a_function_returns_as_with_salt_call() {
    let bench = bench();
    assert_eq!(bench.good("run hello.wasm world"), "local:\n    Hello, world! This is local.\n");
    assert_eq!(
        bench.good("run hello.wasm hello.world name=Ada --out json"),
        "{\n    \"local\": \"Hello, Ada! This is local.\"\n}\n"
    );
    let ended = bench.run("run hello.wasm world Ada --usage --out json");
    assert!(ended.code == 0 && ended.err.contains("memory_peak:") && ended.out.starts_with('{'), "{ended:?}");
    let list = bench.good("run hello.wasm");
    assert!(list.ends_with("  hello.world(name: option<string>) -> string\n"), "{list}");
    for (words, code, expect) in [
        ("run hello.wasm nope", 1, "'hello.nope' is not available. Functions of hello: world."),
        ("run hello.wasm other.world", 64, "hello.wasm is the module hello, not other"),
        ("run hello.wasm world 1 2", 1, "Usage: hello.world(name: option<string>) -> string"),
        ("run hello.wasm world who=1", 1, "who"),
        ("run hello.wasm world --out nope", 64, "there is no outputter nope"),
        ("run hello.wasm world --log-level loud", 64, "--log-level: \"loud\" is not a log level"),
        ("run none.wasm world", 66, "none.wasm cannot be read"),
        ("run spin.wasm panic", 1, "spin.panic"),
    ] {
        let err = bench.bad(words, code);
        assert!(err.contains(expect), "{words}: {err}");
    }
}

#[test]
fn refusals_name_the_grant_and_the_grant_lifts_them() {
    let bench = bench();
    let err = bench.bad("run disk.wasm percent /", 1);
    assert!(err.contains("Here it is granted by: --grant 'disks: true'"), "{err}");
    for grant in ["disks", "{disks: true, pillar: [a]}"] {
        let ended = bench.run_in(&bench.path(""), &["run", "disk.wasm", "percent", "/", "--grant", grant]);
        assert!(ended.code == 0 && ended.out.ends_with("%\n"), "{grant}: {ended:?}");
    }
    // Linked, and refused by the broker when it is used.
    let err = bench.bad("run cmd.wasm run ls", 1);
    assert!(err.contains("--grant 'process: [/PATH/OF/PROGRAM]'"), "{err}");
    let least = ["changes: {}", "functions: []", "files: []"].map(|grant| ["--grant", grant]).concat();
    let echo = |process: &str| {
        let words = ["run", "cmd.wasm", "run", "/bin/echo hi", "--grant", process];
        bench.run_in(&bench.path(""), &[&words[..], &least].concat())
    };
    let none = echo("process: [/bin/true]");
    assert_eq!(none.code, 1, "{none:?}");
    let hint = none.err.split_once("Here it is granted by: --grant '").unwrap().1.trim_end().trim_end_matches('\'');
    let granted = echo(hint);
    assert!(granted.code == 0 && granted.out == "local:\n    hi\n", "{hint}: {granted:?}");

    for (grant, expect) in [
        ("dsks: true", "--grant dsks: there is no such grant; there are grains,"),
        ("disks: 7", "--grant disks: true or false is expected, not 7"),
        ("[", "it is written as in --grant 'filesystem: {/srv: ro}'"),
        ("filesystem: {srv: ro}", "--grant filesystem"),
    ] {
        let ended = bench.run_in(&bench.path(""), &["run", "disk.wasm", "percent", "/", "--grant", grant]);
        assert!(ended.code == 64 && ended.err.contains(expect), "{grant}: {ended:?}");
    }
}

#[test]
fn limits_hold() {
    let bench = bench();
    let limited = |words: &[&str]| bench.run_in(&bench.path(""), &[&["run", "spin.wasm"], words].concat());
    let ended = limited(&["forever", "--limit", "wall: 300ms"]);
    assert!(ended.code == 1 && ended.err.contains("wall clock limit of 300 ms"), "{ended:?}");
    let ended = limited(&["bomb", "--limit", "memory: 8MiB"]);
    assert!(ended.code == 1 && ended.err.contains("memory limit of 8 MiB"), "{ended:?}");
    let ended = limited(&["bomb", "--limit", "memory: 1"]);
    assert!(ended.code == 64 && ended.err.contains("--limit memory: 1 is not between"), "{ended:?}");
}

/// As `state.single` on a minion, with the outputter and the exit codes of Salt.
#[test]
fn a_state_runs_and_a_dry_run_changes_nothing() {
    let bench = bench();
    let list = bench.good("run --state ini.wasm");
    assert!(list.contains("  ini.options_present(name: string, "), "{list}");
    assert!(bench.good("run ini.wasm").ends_with("It has states too: salt-module run --state ini.wasm\n"));

    let folder = bench.path("app.ini").parent().unwrap().display().to_string();
    let grant = format!("changes: {{{folder}: rw}}");
    let run = |more: &[&str]| {
        let path = bench.path("app.ini").display().to_string();
        let words = ["run", "--state", "ini.wasm", "options_present", &path, "sections={a: {b: c}}", "--grant", &grant];
        bench.run_in(&bench.path(""), &[&words[..], more].concat())
    };
    let dry = run(&["--test"]);
    assert!(dry.code == 0 && dry.out.contains("    Function: ini.options_present\n      Result: None\n"), "{dry:?}");
    assert!(dry.out.contains("Comment: Changed key b in section a.\n"), "{dry:?}");
    assert!(!bench.path("app.ini").exists());
    let done = run(&[]);
    assert!(done.code == 0 && done.out.contains("      Result: True\n") && !done.out.contains("Plan"), "{done:?}");
    assert_eq!(bench.read("app.ini"), b"[a]\nb = c\n".as_slice());
    let again: serde_json::Value = serde_json::from_str(&run(&["--out", "json"]).out).unwrap();
    let result = again["local"].as_object().unwrap().values().next().unwrap();
    assert_eq!((&result["result"], &result["changes"]), (&true.into(), &serde_json::json!({})));

    // A state that is stopped at its first program has it in the plan.
    let words =
        ["run", "--state", "sysctl.wasm", "present", "a.b", "value=1", "--test", "--grant", "changes: {/etc: ro}"];
    let stopped = bench.run_in(&bench.path(""), &[&words[..], &["--grant", "process: [/usr/sbin/sysctl]"]].concat());
    let plan = "\n\nPlan, which was not done:\n    sysctl.states.present: would run: /usr/sbin/sysctl -n a.b\n";
    assert!(stopped.code == 0 && stopped.out.ends_with(plan), "{stopped:?}");
    // A refusal is the state's result, with the option that lifts it.
    let refused = bench.run_in(&bench.path(""), &[&words[..], &["--grant", "process: [/bin/true]"]].concat());
    assert!(refused.code == 2 && refused.err.contains("Here it is granted by: --grant 'process: ["), "{refused:?}");

    let few = ["--grant", "functions: []"];
    for (words, code, expect) in [
        ("test.wasm fail_without_changes x", 2, "Failed:    1"),
        ("test.wasm succeed_with_changes x", 0, "Function: test.succeed_with_changes"),
        ("test.wasm test.nop x", 0, "Comment: Success!"),
        ("test.wasm nop name=x", 0, "Comment: Success!"),
        ("test.wasm ping x", 1, "'test.ping' is not available. States of test: "),
        ("test.wasm nop", 64, "test.nop NAME [ARGUMENT=VALUE…]"),
        ("test.wasm nop x y", 64, "test.nop NAME [ARGUMENT=VALUE…]"),
        ("hello.wasm world x", 1, "hello has no states"),
        ("test.wasm nop x --limit memory", 64, "--limit memory"),
    ] {
        let words: Vec<&str> = ["run", "--state"].into_iter().chain(words.split(' ')).chain(few).collect();
        let ended = bench.run_in(&bench.path(""), &words);
        assert!(
            ended.code == code && (ended.out.contains(expect) || ended.err.contains(expect)),
            "{words:?}: {ended:?}"
        );
    }
    bench.bad("run hello.wasm world --test", 64);
}
