//! Limits on time and on results, also in a busy executor.

use std::time::{Duration, Instant};

use crate::common::{Executor, assert_failed, bare, component, pack, returned};
use brine_sandbox_wire::{FailKind, FromExecutor, Limits, Outcome, ToExecutor};
use serde_json::{Value, json};

const SPIN: &str = r#"(func (export "f") (loop br 0))"#;

/// The factor by which a call may exceed a limit, in hundredths.
const LATE: u64 = 120;

#[tokio::test]
async fn a_loop_ends_at_its_cpu_limit() {
    let mut executor = Executor::start().await;
    for core in [SPIN, r#"(func $start (loop br 0)) (start $start) (func (export "f"))"#] {
        let limits = Limits { cpu_ms: 300, ..Limits::default() };
        let (outcome, usage) = executor.f(&bare(core), limits).await;
        assert_failed(&outcome, FailKind::Cpu, "test.f was stopped: its CPU limit of 300 ms is used up");
        assert!((300_000..300_000 * LATE / 100).contains(&usage.cpu_us), "{usage:?}");
    }
    executor.still_works().await;
}

/// Sleeps for this many milliseconds.
fn sleeper(ms: u64) -> String {
    format!(
        r#"(component
            (import "wasi:io/poll@0.2.0" (instance $poll
                (export "pollable" (type $pollable (sub resource)))
                (export "[method]pollable.block" (func (param "self" (borrow $pollable))))))
            (alias export $poll "pollable" (type $pollable))
            (import "wasi:clocks/monotonic-clock@0.2.0" (instance $clock
                (alias outer 1 $pollable (type $p'))
                (export "pollable" (type $p (eq $p')))
                (export "subscribe-duration" (func (param "when" u64) (result (own $p))))))
            (core func $subscribe (canon lower (func $clock "subscribe-duration")))
            (core func $block (canon lower (func $poll "[method]pollable.block")))
            (core module $m
                (import "host" "subscribe" (func $subscribe (param i64) (result i32)))
                (import "host" "block" (func $block (param i32)))
                (func (export "f") (call $block (call $subscribe (i64.const {ms}000000)))))
            (core instance $i (instantiate $m (with "host" (instance
                (export "subscribe" (func $subscribe)) (export "block" (func $block))))))
            (func (export "f") (canon lift (core func $i "f"))))"#
    )
}

#[tokio::test]
async fn waiting_costs_no_cpu() {
    let mut executor = Executor::start().await;
    let (outcome, usage) = executor.f(&sleeper(300), Limits { cpu_ms: 100, ..Limits::default() }).await;
    assert_eq!(returned(&outcome), Value::Null);
    assert!(usage.wall_us >= 300_000 && usage.cpu_us < 100_000, "{usage:?}");
}

#[tokio::test]
async fn handles_are_bounded() {
    let wat = r#"(component
        (import "wasi:io/poll@0.2.0" (instance $poll (export "pollable" (type (sub resource)))))
        (alias export $poll "pollable" (type $pollable))
        (import "wasi:clocks/monotonic-clock@0.2.0" (instance $clock
            (alias outer 1 $pollable (type $p'))
            (export "pollable" (type $p (eq $p')))
            (export "subscribe-duration" (func (param "when" u64) (result (own $p))))))
        (core func $subscribe (canon lower (func $clock "subscribe-duration")))
        (core module $m
            (import "host" "subscribe" (func $subscribe (param i64) (result i32)))
            (func (export "f") (loop (drop (call $subscribe (i64.const 1))) (br 0))))
        (core instance $i (instantiate $m (with "host" (instance (export "subscribe" (func $subscribe))))))
        (func (export "f") (canon lift (core func $i "f"))))"#;
    let own = r#"(component
        (type $r (resource (rep i32)))
        (core func $new (canon resource.new $r))
        (core module $m
            (import "host" "new" (func $new (param i32) (result i32)))
            (func (export "f") (loop (drop (call $new (i32.const 1))) (br 0))))
        (core instance $i (instantiate $m (with "host" (instance (export "new" (func $new))))))
        (func (export "f") (canon lift (core func $i "f"))))"#;
    let mut executor = Executor::start().await;
    let (outcome, _) = executor.f(wat, Limits::default()).await;
    assert_failed(&outcome, FailKind::Host, "test.f was stopped: its limit of 256 open handles is used up");
    let (outcome, _) = executor.f(own, Limits::default()).await;
    assert_failed(&outcome, FailKind::Host, "test.f was stopped: its limit of 1000 handles is used up");
    executor.still_works().await;
}

/// Starts this many loops with these limits.
async fn spin(executor: &mut Executor, count: usize, limits: &Limits) -> Vec<u64> {
    let module = executor.load(&bare(SPIN)).await;
    let mut calls = Vec::new();
    for _ in 0..count {
        let mut run = executor.run(module, "f");
        run.limits = limits.clone();
        calls.push(run.call);
        executor.send(ToExecutor::Run(Box::new(run))).await;
    }
    calls
}

#[tokio::test]
async fn many_busy_guests_keep_their_limits() {
    let mut executor = Executor::start().await;
    spin(&mut executor, 48, &Limits { wall_ms: 1_000, ..Limits::default() }).await;
    let mut late = Vec::new();
    for _ in 0..48 {
        let FromExecutor::Done { outcome, usage, .. } = executor.next().await else { panic!("an end") };
        assert_failed(&outcome, FailKind::Wall, "test.f was stopped: its wall clock limit of 1 s is used up");
        late.push(usage.wall_us);
    }
    // Other programs run on this machine too, so not each call is checked.
    assert!(late.iter().any(|us| *us < 1_000_000 * LATE / 100), "{late:?}");
}

#[tokio::test]
async fn a_kill_is_quick_on_a_busy_executor() {
    let mut executor = Executor::with(&["--guest-threads", "2"]).await;
    let mut times = Vec::new();
    for _ in 0..5 {
        let calls = spin(&mut executor, 9, &Limits::default()).await;
        executor.still_works().await;
        for call in calls {
            let began = Instant::now();
            executor.send(ToExecutor::Kill { call, reason: "killed".into() }).await;
            assert_failed(&executor.done(call).await.0, FailKind::Killed, "test.f was stopped: killed");
            times.push(began.elapsed());
        }
    }
    // Other programs run on this machine too, so not each call is checked.
    times.sort();
    assert!(times[times.len() / 4] < Duration::from_millis(50), "{times:?}");
}

#[tokio::test]
async fn lines_of_log_are_bounded() {
    let wat = r#"(component
        (import "brine:host/log@1.0.0" (instance $log
            (type $level' (enum "trace" "debug" "info" "warning" "error"))
            (export "level" (type $level (eq $level')))
            (export "write" (func (param "level" $level) (param "message" string)))))
        (core module $memory (memory (export "memory") 1) (data (memory 0) (i32.const 0) "x\nx"))
        (core instance $memory (instantiate $memory))
        (core func $write (canon lower (func $log "write") (memory (core memory $memory "memory"))))
        (core module $m
            (import "log" "write" (func $write (param i32 i32 i32)))
            (func (export "f") (local i32)
                (loop (call $write (i32.const 3) (i32.const 0) (i32.const 3))
                    (local.set 0 (i32.add (local.get 0) (i32.const 1)))
                    (br_if 0 (i32.lt_u (local.get 0) (i32.const 10))))))
        (core instance $i (instantiate $m (with "log" (instance (export "write" (func $write))))))
        (func (export "f") (canon lift (core func $i "f"))))"#;
    let mut executor = Executor::start().await;
    let (outcome, usage) = executor.f(wat, Limits { log_lines: 5, ..Limits::default() }).await;
    assert_eq!(returned(&outcome), Value::Null);
    assert_eq!((executor.log.len(), usage.log_dropped), (6, 15));
    assert_eq!(executor.log[5].2, "its log limit is used up, 15 more lines were dropped");
}

/// A component whose `f` returns this many bytes as `result`, for any parameters.
fn large(params: &str, lowered: &str, result: &str, ok: &str) -> String {
    component(
        "",
        &format!("{params} (result {result})"),
        &format!(
            r#"(func (export "f") {lowered} (result i32)
                (drop (memory.grow (i32.const 32)))
                (memory.fill (i32.const 1048576) (i32.const 0x61) (i32.const 1000000))
                {ok}
                (i32.const 64))"#
        ),
    )
}

#[tokio::test]
async fn a_megabyte_of_bytes_or_text_is_returned_however_it_is_asked_for() {
    let mut executor = Executor::start().await;
    let plain = "(i32.store (i32.const 64) (i32.const 1048576)) (i32.store (i32.const 68) (i32.const 1000000))";
    let in_result = "(i32.store (i32.const 64) (i32.const 0)) (i32.store (i32.const 68) (i32.const 1048576)) (i32.store (i32.const 72) (i32.const 1000000))";
    for (params, lowered, args) in [
        ("", "", json!([])),
        (r#"(param "a" string)"#, "(param i32 i32)", json!(["x"])),
        (r#"(param "a" u32)"#, "(param i32)", json!([1])),
        (r#"(param "a" u64)"#, "(param i64)", json!([1])),
        (r#"(param "a" string) (param "b" string)"#, "(param i32 i32 i32 i32)", json!(["x", "y"])),
        (r#"(param "a" string) (param "b" (option string))"#, "(param i32 i32 i32 i32 i32)", json!(["x"])),
        (r#"(param "a" string) (param "b" (option string))"#, "(param i32 i32 i32 i32 i32)", json!(["x", "y"])),
        (r#"(param "a" string) (param "b" u64) (param "c" u64)"#, "(param i32 i32 i64 i64)", json!(["x", 1, 2])),
        (
            r#"(param "a" (option bool)) (param "b" (option (list string))) (param "c" (list u8)) (param "d" f32)"#,
            "(param i32 i32 i32 i32 i32 i32 i32 f32)",
            json!([true, null, "x", 1]),
        ),
    ] {
        for (result, ok) in [
            ("(list u8)", plain),
            ("string", plain),
            ("(result (list u8) (error string))", in_result),
            ("(result string (error string))", in_result),
        ] {
            let module = executor.load(&large(params, lowered, result, ok)).await;
            let mut run = executor.run(module, "f");
            run.args = pack(&args);
            let (outcome, _) = executor.finish(run).await;
            let Outcome::Returned { value, .. } = outcome else { panic!("{params} {result}: {outcome:?}") };
            assert_eq!((value.len(), value.last()), (1_000_005, Some(&0x61)), "{params} {result}");
        }
    }
}

#[tokio::test]
async fn an_error_of_a_function_that_returns_bytes() {
    let mut executor = Executor::start().await;
    let error = "(i32.store (i32.const 64) (i32.const 1)) (i32.store (i32.const 68) (i32.const 1048576)) (i32.store (i32.const 72) (i32.const 3))";
    for result in ["(list u8)", "string", "bool"] {
        let result = format!("(result {result} (error string))");
        let (outcome, _) = executor.f(&large("", "", &result, error), Limits::default()).await;
        assert_failed(&outcome, FailKind::Function, "aaa");
    }
}

/// Dynamic values are bounded before they are made.
#[tokio::test]
async fn bytes_as_dynamic_values_are_bounded() {
    let mut executor = Executor::start().await;
    let plain = "(i32.store (i32.const 64) (i32.const 1048576)) (i32.store (i32.const 68) (i32.const 1000000))";
    let module = executor.load(&large(r#"(param "a" (tuple u8 u8))"#, "(param i32 i32)", "(list u8)", plain)).await;
    let mut run = executor.run(module, "f");
    run.args = pack(&json!([[1, 2]]));
    let line = "test.f was stopped: it hands over more than its limit of 16 MiB at once";
    assert_failed(&executor.finish(run).await.0, FailKind::Output, line);
}

/// The bytes that `f` returns if it is called with static types.
async fn passed(executor: &mut Executor, params: &str, core: &str, args: &Value) -> Vec<u8> {
    let module = executor.load(&component("", &format!("{params} (result (list u8))"), core)).await;
    let mut run = executor.run(module, "f");
    run.args = pack(args);
    let (outcome, _) = executor.finish(run).await;
    let Outcome::Returned { value, .. } = outcome else { panic!("{params}: {outcome:?}") };
    assert_eq!((value[0], usize::from(value[1])), (0xc4, value.len() - 2));
    value[2..].to_vec()
}

#[tokio::test]
async fn parameters_arrive_as_the_canonical_abi_has_them() {
    let mut executor = Executor::start().await;
    // Scalars and options, each stored as it arrived.
    let params = r#"(param "a" (option bool)) (param "b" u8) (param "c" char) (param "d" s64) (param "e" (option f64))
        (param "f" (option u16)) (param "g" f32) (param "h" s8)"#;
    let core = r#"(func (export "f") (param i32 i32 i32 i32 i64 i32 f64 i32 i32 f32 i32) (result i32)
        (i32.store (i32.const 64) (local.get 0)) (i32.store (i32.const 68) (local.get 1))
        (i32.store (i32.const 72) (local.get 2)) (i32.store (i32.const 76) (local.get 3))
        (i64.store (i32.const 80) (local.get 4)) (i32.store (i32.const 88) (local.get 5))
        (f64.store (i32.const 92) (local.get 6)) (i32.store (i32.const 100) (local.get 7))
        (i32.store (i32.const 104) (local.get 8)) (f32.store (i32.const 108) (local.get 9))
        (i32.store (i32.const 112) (local.get 10))
        (i32.store (i32.const 0) (i32.const 64)) (i32.store (i32.const 4) (i32.const 52)) (i32.const 0))"#;
    let args = json!([true, 200, "€", -5, 1.5, null, 0.25, -1]);
    let words: [&[u8]; 11] = [
        &1u32.to_le_bytes(),
        &1u32.to_le_bytes(),
        &200u32.to_le_bytes(),
        &u32::from('€').to_le_bytes(),
        &(-5i64).to_le_bytes(),
        &1u32.to_le_bytes(),
        &1.5f64.to_le_bytes(),
        &0u32.to_le_bytes(),
        &0u32.to_le_bytes(),
        &0.25f32.to_le_bytes(),
        &(-1i32).to_le_bytes(),
    ];
    assert_eq!(passed(&mut executor, params, core, &args).await, words.concat());
    // Text, bytes, lists: the memory behind their pointers.
    let given = |n: usize| {
        format!(
            r#"(func (export "f") (param i32 i32 i32 i32 i32 i32 i32) (result i32)
                (i32.store (i32.const 0) (local.get {n})) (i32.store (i32.const 4) (local.get {})) (i32.const 0))"#,
            n + 1
        )
    };
    let params = r#"(param "a" string) (param "b" (option string)) (param "c" (list u8))"#;
    let args = json!(["one", "two", "three"]);
    for (index, text) in [(0, "one"), (3, "two"), (5, "three")] {
        assert_eq!(passed(&mut executor, params, &given(index), &args).await, text.as_bytes());
    }
    assert_eq!(passed(&mut executor, params, &given(5), &json!(["", null, [1, 2, 3]])).await, [1, 2, 3]);
    let params = r#"(param "a" (list string)) (param "b" string) (param "c" (option u8)) (param "d" bool)"#;
    let core = r#"(func (export "f") (param i32 i32 i32 i32 i32 i32 i32) (result i32)
        (i64.store (i32.const 0) (i64.load offset=8 (local.get 0))) (i32.const 0))"#;
    assert_eq!(passed(&mut executor, params, core, &json!([["one", "two"], "x", null, true])).await, b"two");
    // More parameters than registers: one pointer to all of them as a record.
    let params: String = (0..9).map(|n| format!(r#"(param "p{n}" string) (param "q{n}" u8)"#)).collect();
    let args: Vec<Value> = (0..9).flat_map(|n| [json!(format!("text {n}")), json!(n)]).collect();
    let core = r#"(func (export "f") (param i32) (result i32)
        (i64.store (i32.const 0) (i64.load offset=96 (local.get 0)))
        (if (i32.ne (i32.load8_u offset=104 (local.get 0)) (i32.const 8)) (then unreachable))
        (i32.const 0))"#;
    assert_eq!(passed(&mut executor, &params, core, &json!(args)).await, b"text 8");
}

#[tokio::test]
async fn what_does_not_fit_says_so_with_static_types_too() {
    let mut executor = Executor::start().await;
    let params = r#"(param "a" u8) (param "b" (option (list string))) (param "c" (option bool))"#;
    let core = r#"(func (export "f") (param i32 i32 i32 i32 i32 i32) (result i32) (i32.const 64))"#;
    let module = executor.load(&component("", &format!("{params} (result (list u8))"), core)).await;
    let usage = "Usage: test.f(a: u8, b: option<list<string>>, c: option<bool>) -> list<u8>";
    for (args, why) in [
        (json!([300]), "'a' must be a u8 (0 to 255), got 300"),
        (json!([null]), "'a' must be a u8, got None"),
        (json!([1, ["x", 5]]), "'b[1]' must be a string, got 5"),
        (json!([1, null, "x"]), "'c' must be a bool (True or False), got 'x'"),
        (json!([]), "'a' is missing"),
    ] {
        let outcome = executor.call(module, "f", &args, &json!({})).await;
        let line = format!("Passed invalid arguments to test.f: {why}. {usage}");
        assert_failed(&outcome, FailKind::Arguments, &line);
    }
}

/// What runs is told while it runs, also of a guest that computes.
#[tokio::test]
async fn what_calls_use_is_told_while_they_run() {
    let mut executor = Executor::start().await;
    executor.send(ToExecutor::Measure { n: 1 }).await;
    assert!(matches!(executor.next().await, FromExecutor::Measured { n: 1, calls } if calls.is_empty()));
    let wat = bare(r#"(memory 32) (func (export "f") (loop br 0))"#);
    let module = executor.load(&wat).await;
    let run = executor.run(module, "f");
    let call = run.call;
    executor.send(ToExecutor::Run(Box::new(run))).await;
    let (mut before, mut n) = (0, 1);
    // Twice more than before.
    for _ in 0..2 {
        let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
        loop {
            n += 1;
            executor.send(ToExecutor::Measure { n }).await;
            let FromExecutor::Measured { n: answered, calls } = executor.next().await else { panic!() };
            assert_eq!(answered, n);
            let [used] = calls[..] else { panic!("{calls:?}") };
            assert_eq!(used.call, call);
            if used.cpu_us > before && used.memory >= 32 << 16 {
                before = used.cpu_us;
                break;
            }
            assert!(std::time::Instant::now() < until, "{used:?}");
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    }
    executor.send(ToExecutor::Kill { call, reason: "enough".into() }).await;
    assert!(matches!(executor.next().await, FromExecutor::Done { .. }));
    // A call that has ended is gone a moment later.
    loop {
        executor.send(ToExecutor::Measure { n }).await;
        match executor.next().await {
            FromExecutor::Measured { calls, .. } if calls.is_empty() => break,
            FromExecutor::Measured { .. } => tokio::task::yield_now().await,
            other => panic!("{other:?}"),
        }
    }
}
