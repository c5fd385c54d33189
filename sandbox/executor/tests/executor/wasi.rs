//! The WASI interfaces of a guest and their results.

use crate::common::{Executor, STREAMS, assert_failed, returned};
use brine_sandbox_wire::{FailKind, Limits, LogLevel};
use serde_json::{Value, json};

#[tokio::test]
async fn clocks_and_randomness() {
    let wat = r#"(component
        (import "wasi:clocks/monotonic-clock@0.2.0" (instance $clock (export "now" (func (result u64)))))
        (import "wasi:random/random@0.2.6" (instance $random (export "get-random-u64" (func (result u64)))))
        (core func $now (canon lower (func $clock "now")))
        (core func $u64 (canon lower (func $random "get-random-u64")))
        (core module $m
            (import "host" "now" (func $now (result i64)))
            (import "host" "u64" (func $u64 (result i64)))
            (func (export "later") (result i32) (i64.ge_u (call $now) (i64.const 0)))
            (func (export "random") (result i64) call $u64))
        (core instance $i (instantiate $m (with "host" (instance
            (export "now" (func $now)) (export "u64" (func $u64))))))
        (func (export "later") (result bool) (canon lift (core func $i "later")))
        (func (export "random") (result u64) (canon lift (core func $i "random"))))"#;
    let mut executor = Executor::start().await;
    let module = executor.load(wat).await;
    assert_eq!(returned(&executor.call(module, "later", &json!([]), &json!({})).await), json!(true));
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.push(returned(&executor.call(module, "random", &json!([]), &json!({})).await));
    }
    assert!(seen[0] != seen[1] && seen[1] != seen[2], "{seen:?}");
}

#[tokio::test]
async fn the_environment_is_empty() {
    let wat = r#"(component
        (import "wasi:cli/environment@0.2.0" (instance $env
            (export "get-environment" (func (result (list (tuple string string)))))
            (export "get-arguments" (func (result (list string))))))
        (core module $memory
            (memory (export "memory") 1)
            (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024)))
        (core instance $memory (instantiate $memory))
        (core func $env (canon lower (func $env "get-environment")
            (memory (core memory $memory "memory")) (realloc (core func $memory "realloc"))))
        (core func $args (canon lower (func $env "get-arguments")
            (memory (core memory $memory "memory")) (realloc (core func $memory "realloc"))))
        (core module $m
            (import "host" "env" (func $env (param i32)))
            (import "host" "args" (func $args (param i32)))
            (func (export "env") (result i32) (call $env (i32.const 0)) i32.const 0)
            (func (export "args") (result i32) (call $args (i32.const 0)) i32.const 0))
        (core instance $i (instantiate $m (with "host" (instance
            (export "env" (func $env)) (export "args" (func $args))))))
        (func (export "env") (result (list (tuple string string)))
            (canon lift (core func $i "env") (memory (core memory $memory "memory"))))
        (func (export "args") (result (list string))
            (canon lift (core func $i "args") (memory (core memory $memory "memory")))))"#;
    let mut executor = Executor::start().await;
    let module = executor.load(wat).await;
    assert_eq!(returned(&executor.call(module, "env", &json!([]), &json!({})).await), json!({}));
    assert_eq!(returned(&executor.call(module, "args", &json!([]), &json!({})).await), json!([]));
}

#[tokio::test]
async fn exit_is_no_return() {
    let wat = r#"(component
        (import "wasi:cli/exit@0.2.0" (instance $exit (export "exit" (func (param "status" (result))))))
        (core func $exit (canon lower (func $exit "exit")))
        (core module $m
            (import "host" "exit" (func $exit (param i32)))
            (func (export "f") (param i32) (call $exit (local.get 0))))
        (core instance $i (instantiate $m (with "host" (instance (export "exit" (func $exit))))))
        (func (export "f") (param "status" u8) (canon lift (core func $i "f"))))"#;
    let mut executor = Executor::start().await;
    let module = executor.load(wat).await;
    for status in [0, 1] {
        let outcome = executor.call(module, "f", &json!([status]), &json!({})).await;
        let line = format!("test.f exited with status {status} and returned nothing");
        assert_failed(&outcome, FailKind::Trap, &line);
    }
    executor.still_works().await;
}

/// Writes `text` to this stream this many times.
fn printer(stream: &str, text: &str, times: u32) -> String {
    let length = text.len();
    let text: String = text.bytes().map(|byte| format!("\\{byte:02x}")).collect();
    format!(
        r#"(component
            {STREAMS}
            (alias export $streams "output-stream" (type $stream))
            (import "wasi:cli/{stream}@0.2.0" (instance $cli
                (alias outer 1 $stream (type $stream'))
                (export "output-stream" (type $s (eq $stream')))
                (export "get-{stream}" (func (result (own $s))))))
            (core module $memory (memory (export "memory") 1) (data (memory 0) (i32.const 64) "{text}"))
            (core instance $memory (instantiate $memory))
            (core func $get (canon lower (func $cli "get-{stream}")))
            (core func $write (canon lower (func $streams "[method]output-stream.blocking-write-and-flush")
                (memory (core memory $memory "memory"))))
            (core module $m
                (import "host" "get" (func $get (result i32)))
                (import "host" "write" (func $write (param i32 i32 i32 i32)))
                (func (export "f") (local $s i32) (local $n i32)
                    (local.set $s (call $get))
                    (loop
                        (call $write (local.get $s) (i32.const 64) (i32.const {length}) (i32.const 0))
                        (local.set $n (i32.add (local.get $n) (i32.const 1)))
                        (br_if 0 (i32.lt_u (local.get $n) (i32.const {times}))))))
            (core instance $i (instantiate $m (with "host" (instance
                (export "get" (func $get)) (export "write" (func $write))))))
            (func (export "f") (canon lift (core func $i "f"))))"#
    )
}

#[tokio::test]
async fn output_goes_to_the_log() {
    let mut executor = Executor::start().await;
    for (stream, level) in [("stdout", LogLevel::Info), ("stderr", LogLevel::Warning)] {
        let (outcome, _) = executor.f(&printer(stream, "one\ntw", 2), Limits::default()).await;
        assert_eq!(returned(&outcome), Value::Null);
        let lines: Vec<_> =
            std::mem::take(&mut executor.log).into_iter().map(|(_, level, line)| (level, line)).collect();
        assert_eq!(lines, [(level, "one".into()), (level, "twone".into()), (level, "tw".into())]);
    }
}

#[tokio::test]
async fn a_flood_of_output_is_bounded() {
    let mut executor = Executor::start().await;
    let (outcome, usage) = executor.f(&printer("stdout", &"x".repeat(4_000), 1_000), Limits::default()).await;
    assert_eq!(returned(&outcome), Value::Null);
    assert_eq!(executor.log.len(), 1, "{usage:?}");
    let (outcome, usage) = executor.f(&printer("stdout", &"x\n".repeat(2_000), 100), Limits::default()).await;
    assert_eq!(returned(&outcome), Value::Null);
    assert!(usage.log_dropped > 190_000, "{usage:?}");
}
