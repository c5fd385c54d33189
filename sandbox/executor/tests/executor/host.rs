//! The host's interfaces as guests use them: the requests to the minion and the results.

use crate::common::{Executor, assert_failed, compile, forward, pack, returned};
use brine_sandbox_wire::{ConfigOp, FailKind, GrainsOp, HostError, HostOp, JobsOp, ModulesOp, Outcome};
use serde_json::{Value, json};

struct Case {
    interface: &'static str,
    wat: String,
    args: Value,
    op: HostOp,
    reply: Value,
    expected: Value,
}

async fn ask(executor: &mut Executor, case: &Case, reply: Result<Vec<u8>, HostError>) -> Outcome {
    executor.ask(&case.wat, case.interface, &case.args, &case.op, reply).await
}

const MODULE_TYPES: &str = r#"
    (type $parameter' (record (field "name" string) (field "type" string) (field "optional" bool) (field "rest" bool)))
    (export "parameter" (type $parameter (eq $parameter')))
    (type $function' (record (field "name" string) (field "parameters" (list $parameter))
        (field "result" (option string)) (field "doc" (option string))))
    (export "function" (type $function (eq $function')))
    (type $module' (record (field "name" string) (field "doc" (option string)) (field "sha256" string)
        (field "origin" string) (field "functions" (list $function)) (field "imports" (list string))))
    (export "module" (type $module (eq $module')))"#;

fn cases() -> Vec<Case> {
    let describe =
        format!(r#"{MODULE_TYPES} (export "describe" (func (param "name" string) (result (option $module))))"#);
    let described = "(option (tuple string (option string) string string
        (list (tuple string (list (tuple string string bool bool)) (option string) (option string))) (list string)))";
    let names = r#"(export "names" (func (result (list string))))"#;
    let sync = r#"(export "sync" (func (param "saltenv" (option (list string))) (result (result (list string) (error string)))))"#;
    let refresh = r#"(export "refresh-facts" (func (param "grains" bool) (param "pillar" bool) (result (result (error string)))))"#;
    let get =
        r#"(export "get" (func (param "key" string) (param "delimiter" (option string)) (result (option $data))))"#;
    let setting = r#"(export "get" (func (param "key" string) (result (option $data))))"#;
    let find = r#"(export "find" (func (param "jid" string) (result $data)))"#;
    vec![
        Case {
            interface: "grains",
            wat: forward(
                "grains",
                get,
                "get",
                "i32 i32 i32 i32 i32",
                r#"(param "k" string) (param "d" (option string))"#,
                "(option $d)",
            ),
            args: json!(["a:b", "|"]),
            op: HostOp::Grains(GrainsOp::Get { key: "a:b".into(), delimiter: Some("|".into()) }),
            reply: json!({"x": 1}),
            expected: json!({"x": 1}),
        },
        Case {
            interface: "config",
            wat: forward("config", setting, "get", "i32 i32", r#"(param "k" string)"#, "(option $d)"),
            args: json!(["master"]),
            op: HostOp::Config(ConfigOp::Get { key: "master".into() }),
            reply: json!(null),
            expected: json!(null),
        },
        Case {
            interface: "jobs",
            wat: forward("jobs", find, "find", "i32 i32", r#"(param "j" string)"#, "$d"),
            args: json!(["2026"]),
            op: HostOp::Jobs(JobsOp::Find { jid: "2026".into() }),
            reply: json!({}),
            expected: json!({}),
        },
        Case {
            interface: "modules",
            wat: forward("modules", names, "names", "", "", "(list string)"),
            args: json!([]),
            op: HostOp::Modules(ModulesOp::Names),
            reply: json!(["a", "b"]),
            expected: json!(["a", "b"]),
        },
        Case {
            interface: "modules",
            wat: forward("modules", &describe, "describe", "i32 i32", r#"(param "n" string)"#, described),
            args: json!(["test"]),
            op: HostOp::Modules(ModulesOp::Describe { name: "test".into() }),
            reply: json!({
                "name": "test", "doc": null, "sha256": "00", "origin": "standard", "imports": ["brine:host/log@1.0.0"],
                "functions": [{
                    "name": "f", "result": "u8", "doc": "Does f.",
                    "parameters": [{"name": "x", "type": "option<u8>", "optional": true, "rest": false}],
                }],
            }),
            expected: json!([
                "test",
                null,
                "00",
                "standard",
                [["f", [["x", "option<u8>", true, false]], "u8", "Does f."]],
                ["brine:host/log@1.0.0"]
            ]),
        },
        Case {
            interface: "modules",
            wat: forward("modules", &describe, "describe", "i32 i32", r#"(param "n" string)"#, described),
            args: json!(["none"]),
            op: HostOp::Modules(ModulesOp::Describe { name: "none".into() }),
            reply: json!(null),
            expected: json!(null),
        },
        Case {
            interface: "modules",
            wat: forward(
                "modules",
                refresh,
                "refresh-facts",
                "i32 i32",
                r#"(param "g" bool) (param "p" bool)"#,
                "(tuple (result (error string)))",
            ),
            args: json!([true, false]),
            op: HostOp::Modules(ModulesOp::RefreshFacts { grains: true, pillar: false }),
            reply: json!(true),
            expected: json!([{"ok": null}]),
        },
        Case {
            interface: "modules",
            wat: forward(
                "modules",
                sync,
                "sync",
                "i32 i32 i32",
                r#"(param "e" (option (list string)))"#,
                "(tuple (result (list string) (error string)))",
            ),
            args: json!([["base", "dev"]]),
            op: HostOp::Modules(ModulesOp::Sync { saltenv: Some(vec!["base".into(), "dev".into()]) }),
            reply: json!(["modules.test"]),
            expected: json!([{"ok": ["modules.test"]}]),
        },
    ]
}

#[tokio::test]
async fn what_guests_ask_and_get() {
    let mut executor = Executor::start().await;
    for case in cases() {
        let outcome = ask(&mut executor, &case, Ok(pack(&case.reply))).await;
        assert_eq!(returned(&outcome), case.expected, "{:?}", case.op);
    }
}

#[tokio::test]
async fn a_failed_sync_is_the_guests_to_handle_and_a_denied_one_is_not() {
    let mut executor = Executor::start().await;
    let sync = cases().pop().unwrap();
    let outcome = ask(&mut executor, &sync, Err(HostError::Failed("bad.wasm was refused".into()))).await;
    assert_eq!(returned(&outcome), json!([{"err": "bad.wasm was refused"}]));
    let outcome = ask(&mut executor, &sync, Err(HostError::Denied("not you".into()))).await;
    assert_failed(&outcome, FailKind::Host, "test.f was stopped: modules.sync was refused: not you");
}

#[tokio::test]
async fn what_is_asked_with_is_bounded() {
    let mut executor = Executor::start().await;
    let get = cases().remove(0);
    let module = executor.load(&get.wat).await;
    let mut run = executor.run(module, "f");
    run.args = pack(&json!(["x".repeat(100_000)]));
    run.imports_granted = vec!["brine:host/grains".into()];
    let (outcome, _) = executor.finish(run).await;
    let line = "test.f was stopped: grains.get failed: 100000 bytes are no key or name";
    assert_failed(&outcome, FailKind::Host, line);
}

#[tokio::test]
async fn answers_of_another_shape_end_the_guest() {
    let mut executor = Executor::start().await;
    for case in cases() {
        for reply in [vec![0xc1], vec![], vec![0xc0, 0xc0], pack(&json!(5)), pack(&json!({"name": 1}))] {
            let anything = matches!(case.op, HostOp::Grains(_) | HostOp::Config(_) | HostOp::Jobs(_));
            let whole = reply.len() > 2 || reply == [5];
            match ask(&mut executor, &case, Ok(reply)).await {
                Outcome::Failed { kind: FailKind::Host, message, .. } => {
                    assert!(message.contains("the minion's answer"), "{message}");
                }
                Outcome::Returned { .. } if anything && whole => {}
                other => panic!("{:?}: {other:?}", case.op),
            }
        }
    }
}

#[tokio::test]
async fn the_job_is_what_the_minion_said() {
    // The record `context` has the same layout in memory as this tuple.
    let wat = r#"(component
        (import "brine:host/job@1.0.0" (instance $job
            (type $context' (record (field "jid" string) (field "function" string) (field "user" string)
                (field "minion-id" string) (field "test" bool)))
            (export "context" (type $context (eq $context')))
            (export "current" (func (result $context)))))
        (core module $memory
            (memory (export "memory") 1)
            (global $top (mut i32) (i32.const 1024))
            (func (export "realloc") (param i32 i32 i32 i32) (result i32)
                (global.get $top)
                (global.set $top (i32.add (global.get $top) (local.get 3)))))
        (core instance $memory (instantiate $memory))
        (core func $current (canon lower (func $job "current")
            (memory (core memory $memory "memory")) (realloc (core func $memory "realloc"))))
        (core module $m
            (import "job" "current" (func $current (param i32)))
            (func (export "f") (result i32) (call $current (i32.const 0)) i32.const 0))
        (core instance $i (instantiate $m (with "job" (instance (export "current" (func $current))))))
        (func (export "f") (result (tuple string string string string bool))
            (canon lift (core func $i "f") (memory (core memory $memory "memory")))))"#;
    let mut executor = Executor::start().await;
    let module = executor.load(wat).await;
    let mut run = executor.run(module, "f");
    run.context.test = true;
    let expected = json!(["20261120120000000000", "test.f", "root", "minion", true]);
    assert_eq!(returned(&executor.finish(run).await.0), expected);
}

/// A module whose calls would all fail is refused when it is loaded.
#[tokio::test]
async fn a_module_that_cannot_be_linked_with_its_grants_is_not_loaded() {
    let mut executor = Executor::start().await;
    let asks = r#"(component (import "brine:host/grains@1.0.0" (instance (export "f" (func)))))"#;
    let (grains, none): (&[&str], &[&str]) = (&["brine:host/grains"], &[]);
    for (granted, expect) in [
        (none, "module 'test' was not granted brine:host/grains, which it imports"),
        (grains, "module 'test' imports what this minion has in another form: "),
    ] {
        let error = executor.load_granted(&compile(asks), Some(granted)).await.unwrap_err();
        assert!(error.starts_with(expect), "{error}");
    }
    // Nothing of it stays, and others can be loaded.
    executor.load_granted(&compile("(component)"), Some(none)).await.unwrap();
}
