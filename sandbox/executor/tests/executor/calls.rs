//! Calls to an executor process over its socket: successful calls, and the messages of failed ones.

use std::time::{Duration, Instant};

use crate::common::{Executor, assert_failed, bare, component, logger, pings, returned};
use brine_sandbox_wire::{
    ByteBuf, FailKind, FromExecutor, GrainsOp, HostError, HostOp, Limits, LogLevel, Outcome, ToExecutor,
};
use serde_json::{Value, json};

fn limits() -> Limits {
    Limits::default()
}

#[tokio::test]
async fn ping() {
    let mut executor = Executor::start().await;
    let module = executor.load(&pings()).await;
    for _ in 0..3 {
        let run = executor.run(module, "ping");
        let (outcome, usage) = executor.finish(run).await;
        assert_eq!(returned(&outcome), json!(true));
        assert!(usage.wall_us > 0 && usage.cpu_us > 0, "{usage:?}");
        assert_eq!((usage.bytes_in, usage.bytes_out, usage.host_calls, usage.log_dropped), (2, 1, 0, 0));
    }
    executor.send(ToExecutor::Ping { n: 7 }).await;
    assert!(matches!(executor.next().await, FromExecutor::Pong { n: 7 }));
}

#[tokio::test]
async fn the_process_ends_with_its_connection() {
    let Executor { mut child, sender, receiver, .. } = Executor::start().await;
    drop((sender, receiver));
    let end = tokio::task::spawn_blocking(move || child.wait().unwrap());
    assert_eq!(brine_kit::wait::within(end).await.unwrap().code(), Some(0));
}

#[tokio::test]
async fn a_loop_ends_at_its_wall_clock_limit() {
    let mut executor = Executor::start().await;
    let wat = bare(r#"(func (export "f") (loop br 0))"#);
    let (outcome, usage) = executor.f(&wat, Limits { wall_ms: 200, ..limits() }).await;
    assert_failed(&outcome, FailKind::Wall, "test.f was stopped: its wall clock limit of 200 ms is used up");
    assert!(usage.wall_us >= 200_000 && usage.cpu_us > 1_000 && usage.cpu_us <= usage.wall_us, "{usage:?}");
    executor.still_works().await;
}

#[tokio::test]
async fn a_loop_in_the_start_function_ends_too() {
    let mut executor = Executor::start().await;
    let wat = bare(r#"(func $start (loop br 0)) (start $start) (func (export "f"))"#);
    let (outcome, _) = executor.f(&wat, Limits { wall_ms: 200, ..limits() }).await;
    assert_failed(&outcome, FailKind::Wall, "test.f was stopped: its wall clock limit of 200 ms is used up");
    executor.still_works().await;
}

#[tokio::test]
async fn a_loop_in_realloc_ends_too() {
    let mut executor = Executor::start().await;
    let wat = r#"(component
        (core module $m
            (memory (export "memory") 1)
            (func (export "realloc") (param i32 i32 i32 i32) (result i32) (loop br 0) unreachable)
            (func (export "f") (param i32 i32)))
        (core instance $i (instantiate $m))
        (func (export "f") (param "s" string)
            (canon lift (core func $i "f") (memory (core memory $i "memory")) (realloc (core func $i "realloc")))))"#;
    let module = executor.load(wat).await;
    let mut run = executor.run(module, "f");
    run.args = crate::common::pack(&json!(["text"]));
    run.limits.wall_ms = 200;
    let (outcome, _) = executor.finish(run).await;
    assert_failed(&outcome, FailKind::Wall, "test.f was stopped: its wall clock limit of 200 ms is used up");
}

#[tokio::test]
async fn busy_guests_do_not_delay_others() {
    let mut executor = Executor::start().await;
    let spin = executor.load(&bare(r#"(func (export "f") (loop br 0))"#)).await;
    let mut calls = Vec::new();
    for _ in 0..8 {
        let run = executor.run(spin, "f");
        calls.push(run.call);
        executor.send(ToExecutor::Run(Box::new(run))).await;
    }
    executor.still_works().await;
    executor.send(ToExecutor::Ping { n: 1 }).await;
    assert!(matches!(executor.next().await, FromExecutor::Pong { n: 1 }));
    for call in calls {
        executor.send(ToExecutor::Kill { call, reason: "enough".into() }).await;
        assert_failed(&executor.done(call).await.0, FailKind::Killed, "test.f was stopped: enough");
    }
}

#[tokio::test]
async fn more_calls_than_may_run_take_turns_and_can_be_killed_before() {
    let mut executor = Executor::with(&["--max-running", "1", "--guest-threads", "1"]).await;
    let spin = executor.load(&bare(r#"(func (export "f") (loop br 0))"#)).await;
    let (mut first, second) = (executor.run(spin, "f"), executor.run(spin, "f"));
    first.limits.wall_ms = 1_000;
    let (first_call, second_call) = (first.call, second.call);
    executor.send(ToExecutor::Run(Box::new(first))).await;
    executor.send(ToExecutor::Run(Box::new(second))).await;
    executor.send(ToExecutor::Kill { call: second_call, reason: "killed".into() }).await;
    let (outcome, _) = executor.done(second_call).await;
    assert_failed(&outcome, FailKind::Killed, "test.f was stopped: killed");
    let (outcome, _) = executor.done(first_call).await;
    assert!(matches!(outcome, Outcome::Failed { kind: FailKind::Wall, .. }), "{outcome:?}");
}

#[tokio::test]
async fn a_kill_takes_effect_at_once() {
    let mut executor = Executor::start().await;
    let spin = executor.load(&bare(r#"(func (export "f") (loop br 0))"#)).await;
    let mut best = Duration::MAX;
    for _ in 0..10 {
        let run = executor.run(spin, "f");
        let call = run.call;
        executor.send(ToExecutor::Run(Box::new(run))).await;
        // The call runs after another one that was sent later.
        executor.still_works().await;
        let began = Instant::now();
        executor.send(ToExecutor::Kill { call, reason: "killed by saltutil.kill_job\n".into() }).await;
        let (outcome, _) = executor.done(call).await;
        best = best.min(began.elapsed());
        assert_failed(&outcome, FailKind::Killed, "test.f was stopped: killed by saltutil.kill_job");
        // A second kill has no effect.
        executor.send(ToExecutor::Kill { call, reason: "again".into() }).await;
    }
    // On a busy machine, a single try may take longer.
    assert!(best < Duration::from_millis(50), "{best:?}");
    executor.still_works().await;
}

#[tokio::test]
async fn memory_is_bounded() {
    let mut executor = Executor::start().await;
    let text = "test.f was stopped: its memory limit of 64 MiB is used up";
    let grow = bare(
        r#"(memory 1)
           (func (export "f")
               (loop (br_if 0 (i32.ne (memory.grow (i32.const 16)) (i32.const -1))))
               unreachable)"#,
    );
    let (outcome, usage) = executor.f(&grow, limits()).await;
    assert_failed(&outcome, FailKind::Memory, text);
    assert!((60 << 20..=64 << 20).contains(&usage.memory_peak), "{usage:?}");
    let (outcome, _) = executor.f(&bare(r#"(memory 65536) (func (export "f"))"#), limits()).await;
    assert_failed(&outcome, FailKind::Memory, text);
    // The sum counts: each of these alone would fit.
    let two = r#"(component
        (core module $m (memory 600))
        (core module $n (func (export "f")))
        (core instance (instantiate $m))
        (core instance (instantiate $m))
        (core instance $i (instantiate $n))
        (func (export "f") (canon lift (core func $i "f"))))"#;
    assert_failed(&executor.f(two, limits()).await.0, FailKind::Memory, text);
    // Tables also count.
    let table = bare(
        r#"(table 1 funcref)
           (func (export "f")
               (loop (br_if 0 (i32.ne (table.grow (ref.null func) (i32.const 100000)) (i32.const -1))))
               unreachable)"#,
    );
    assert_failed(&executor.f(&table, limits()).await.0, FailKind::Memory, text);
    // A guest that handles the refusal returns.
    let polite = bare(r#"(memory 1) (func (export "f") (drop (memory.grow (i32.const 5000))))"#);
    assert_eq!(returned(&executor.f(&polite, limits()).await.0), Value::Null);
    executor.still_works().await;
}

#[tokio::test]
async fn instances_are_bounded() {
    let mut executor = Executor::start().await;
    let many: String = (0..100).map(|_| "(core instance (instantiate $m))").collect();
    let wat = format!(
        r#"(component
            (core module $m (func (export "f")))
            {many}
            (core instance $i (instantiate $m))
            (func (export "f") (canon lift (core func $i "f"))))"#
    );
    let (outcome, _) = executor.f(&wat, limits()).await;
    let text = "test.f cannot go on: resource limit exceeded: instance count too high at 65";
    assert_failed(&outcome, FailKind::Trap, text);
}

#[tokio::test]
async fn the_return_is_bounded() {
    let mut executor = Executor::start().await;
    let text = component(
        "",
        "(result string)",
        r#"(func (export "f") (result i32)
               (drop (memory.grow (i32.const 90)))
               (i32.store (i32.const 0) (i32.const 16))
               (i32.store (i32.const 4) (i32.const 5000000))
               i32.const 0)"#,
    );
    let (outcome, _) = executor.f(&text, limits()).await;
    let line = "test.f was stopped: its return is larger than its output limit of 4 MiB";
    assert_failed(&outcome, FailKind::Output, line);
    let (outcome, _) = executor.f(&text, Limits { output: 5 << 20, ..limits() }).await;
    assert_eq!(returned(&outcome).as_str().map(str::len), Some(5_000_000));
    // Lists of dynamic values are bounded before they are built.
    let list = text.replace("(result string)", "(result (list bool))");
    let (outcome, _) = executor.f(&list, limits()).await;
    let line = "test.f was stopped: it hands over more than its limit of 16 MiB at once";
    assert_failed(&outcome, FailKind::Output, line);
    executor.still_works().await;
}

#[tokio::test]
async fn items_of_the_return_are_bounded() {
    let mut executor = Executor::start().await;
    // `data` of 1,000,000 nils: small, but a tree of them is large.
    let wat = component(
        r#"(type $d' (record (field "msgpack" (list u8)))) (export $d "data" (type $d'))"#,
        "(result $d)",
        r#"(func (export "f") (result i32)
               (drop (memory.grow (i32.const 20)))
               (memory.fill (i32.const 16) (i32.const 0xc0) (i32.const 1000100))
               (i32.store8 (i32.const 16) (i32.const 0xdd))
               (i32.store (i32.const 17) (i32.const 0x40420f00))
               (i32.store (i32.const 0) (i32.const 16))
               (i32.store (i32.const 4) (i32.const 1000005))
               i32.const 0)"#,
    );
    let (outcome, _) = executor.f(&wat, limits()).await;
    let line =
        "test.f returned no Salt value: a `data` record is not one MessagePack value: there are more than 500000 items";
    assert_failed(&outcome, FailKind::Trap, line);
}

#[tokio::test]
async fn traps_say_what_happened() {
    let mut executor = Executor::start().await;
    let cases = [
        ("unreachable", "it gave up (`unreachable` was executed)"),
        ("(drop (i32.div_u (i32.const 1) (i32.const 0)))", "integer divide by zero"),
        ("(drop (i32.load (i32.const -1)))", "out of bounds memory access (its own stack may be used up)"),
        ("call $f", "stack overflow"),
    ];
    for (body, reason) in cases {
        let wat = bare(&format!(r#"(memory 1) (func $f (export "f") {body})"#));
        let (outcome, _) = executor.f(&wat, limits()).await;
        assert_failed(&outcome, FailKind::Trap, &format!("test.f trapped: {reason}"));
    }
    executor.still_works().await;
}

#[tokio::test]
async fn what_a_hostile_guest_claims_about_its_return_is_checked() {
    let mut executor = Executor::start().await;
    for (result, pointer, length) in [("string", -8i32, 100), ("string", 16, -1), ("(list u8)", 65_000, 5_000)] {
        let wat = component(
            "",
            &format!("(result {result})"),
            &format!(
                r#"(func (export "f") (result i32)
                       (i32.store (i32.const 0) (i32.const {pointer}))
                       (i32.store (i32.const 4) (i32.const {length}))
                       i32.const 0)"#
            ),
        );
        let (outcome, _) = executor.f(&wat, limits()).await;
        assert!(matches!(&outcome, Outcome::Failed { kind: FailKind::Trap | FailKind::Output, .. }), "{outcome:?}");
    }
    executor.still_works().await;
}

#[tokio::test]
async fn log_lines_arrive_cut_and_without_control_characters() {
    let mut executor = Executor::start().await;
    let text = format!("one\r\n\u{1b}[31mred\tand\u{202e}so\n{}", "x".repeat(3_000));
    let (outcome, usage) = executor.f(&logger(&text, r#"(func (export "f") call $say)"#), limits()).await;
    assert_eq!(returned(&outcome), Value::Null);
    let lines: Vec<_> = std::mem::take(&mut executor.log).into_iter().map(|(_, level, line)| (level, line)).collect();
    let expected = [
        (LogLevel::Warning, "one".to_owned()),
        (LogLevel::Warning, "\\x1b[31mred\\tand\\u202eso".to_owned()),
        (LogLevel::Warning, "x".repeat(1_024) + "…"),
    ];
    assert_eq!(lines, expected);
    assert_eq!(usage.log_dropped, 0);
}

#[tokio::test]
async fn a_flood_of_log_lines_is_cut_off_and_counted() {
    let mut executor = Executor::start().await;
    let body = r#"(func (export "f") (local i32)
        (loop call $say
            (local.set 0 (i32.add (local.get 0) (i32.const 1)))
            (br_if 0 (i32.lt_u (local.get 0) (i32.const 10000)))))"#;
    let (outcome, usage) = executor.f(&logger("flood", body), limits()).await;
    assert_eq!(returned(&outcome), Value::Null);
    assert_eq!(executor.log.len() as u64 - 1 + usage.log_dropped, 10_000);
    assert!((1_000..3_000).contains(&executor.log.len()), "{}", executor.log.len());
    let last = &executor.log.last().unwrap().2;
    assert_eq!(*last, format!("its log limit is used up, {} more lines were dropped", usage.log_dropped));
}

#[tokio::test]
async fn a_trap_shows_the_last_log_line() {
    let mut executor = Executor::start().await;
    let wat = logger("panicked at src/lib.rs:7:5: no such thing\n", r#"(func (export "f") call $say unreachable)"#);
    let (outcome, _) = executor.f(&wat, limits()).await;
    let text = "test.f trapped: it gave up (`unreachable` was executed); its last log line: \
                panicked at src/lib.rs:7:5: no such thing";
    assert_failed(&outcome, FailKind::Trap, text);
}

#[tokio::test]
async fn a_huge_log_message_ends_the_guest() {
    let mut executor = Executor::start().await;
    let body = r#"(func (export "f") (loop (call $write (i32.const 0) (i32.const 0) (i32.const 6000000)) br 0))"#;
    let (outcome, _) = executor.f(&logger("", body), Limits { host_bytes: 1 << 20, output: 1 << 20, ..limits() }).await;
    let text = "test.f was stopped: it hands over more than its limit of 1 MiB at once";
    assert_failed(&outcome, FailKind::Output, text);
}

#[tokio::test]
async fn unknown_functions_and_modules() {
    let mut executor = Executor::start().await;
    let module = executor.load(&pings()).await;
    let outcome = executor.call(module, "pingg", &json!([]), &json!({})).await;
    assert_failed(&outcome, FailKind::Unknown, "'test.pingg' is not available. test has: ping");
    executor.send(ToExecutor::Unload { module }).await;
    let outcome = executor.call(module, "ping", &json!([]), &json!({})).await;
    assert_failed(&outcome, FailKind::Unknown, &format!("no module {module} is loaded"));
}

/// Imports one function of an interface and never calls it.
fn importing(interface: &str) -> String {
    format!(
        r#"(component
            (import "{interface}" (instance (export "anything" (func))))
            (core module $m (func (export "f")))
            (core instance $i (instantiate $m))
            (func (export "f") (canon lift (core func $i "f"))))"#
    )
}

#[tokio::test]
async fn imports_that_are_not_granted_are_refused_by_name() {
    let mut executor = Executor::start().await;
    let cases = [
        ("brine:host/jobs@1.0.0", "module 'test' was not granted brine:host/jobs, which it imports"),
        ("brine:host/grains@1.0.0", "module 'test' was not granted brine:host/grains, which it imports"),
        ("wasi:filesystem/types@0.2.0", "module 'test' was not granted wasi:filesystem/types, which it imports"),
        ("wasi:sockets/tcp@0.2.0", "module 'test' was not granted wasi:sockets/tcp, which it imports"),
        (
            "wasi:http/outgoing-handler@0.2.0",
            "module 'test' was not granted wasi:http/outgoing-handler, which it imports",
        ),
        ("other:thing/there", "module 'test' imports other:thing/there, which this minion does not have"),
    ];
    for (interface, text) in cases {
        let (outcome, _) = executor.f(&importing(interface), limits()).await;
        assert_failed(&outcome, FailKind::Refused, text);
    }
    // An interface with only types needs no grant.
    let types = r#"(component
        (import "wasi:sockets/network@0.2.0" (instance (type $f' (enum "ipv4" "ipv6")) (export "family" (type (eq $f')))))
        (core module $m (func (export "f")))
        (core instance $i (instantiate $m))
        (func (export "f") (canon lift (core func $i "f"))))"#;
    assert_eq!(returned(&executor.f(types, limits()).await.0), Value::Null);
    // A grant of one call does not apply to the next.
    let module = executor.load(GRAINS).await;
    let mut run = executor.run(module, "f");
    run.imports_granted = vec!["brine:host/grains".into()];
    let call = run.call;
    executor.send(ToExecutor::Run(Box::new(run))).await;
    let FromExecutor::HostCall { request, .. } = executor.next().await else { panic!("no host call") };
    executor.send(ToExecutor::HostReply { call, request, result: Ok(ByteBuf::from(vec![0x80])) }).await;
    assert_eq!(returned(&executor.done(call).await.0), json!({}));
    let outcome = executor.call(module, "f", &json!([]), &json!({})).await;
    assert_failed(&outcome, FailKind::Refused, cases[1].1);
}

/// `f: func() -> data` is `grains.items`.
const GRAINS: &str = r#"(component
    (import "brine:host/types@1.0.0" (instance $types
        (type $d' (record (field "msgpack" (list u8)))) (export "data" (type (eq $d')))))
    (alias export $types "data" (type $data))
    (import "brine:host/grains@1.0.0" (instance $grains
        (alias outer 1 $data (type $d'))
        (export "data" (type $d (eq $d')))
        (export "items" (func (result $d)))))
    (core module $memory
        (memory (export "memory") 1)
        (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024)))
    (core instance $memory (instantiate $memory))
    (core func $items (canon lower (func $grains "items")
        (memory (core memory $memory "memory")) (realloc (core func $memory "realloc"))))
    (core module $m
        (import "grains" "items" (func $items (param i32)))
        (func (export "f") (result i32) (call $items (i32.const 0)) i32.const 0))
    (core instance $i (instantiate $m (with "grains" (instance (export "items" (func $items))))))
    (export $exported "data" (type $data))
    (func (export "f") (result $exported) (canon lift (core func $i "f") (memory (core memory $memory "memory")))))"#;

#[tokio::test]
async fn host_calls_are_asked_of_the_minion() {
    let mut executor = Executor::start().await;
    let module = executor.load(GRAINS).await;
    let denied = "test.f was stopped: grains.items was refused: not for you";
    let failed = "test.f was stopped: grains.items failed: no grains today";
    let malformed = "test.f was stopped: grains.items failed: the minion's answer is malformed: the value is cut short";
    let cases = [
        (Ok(crate::common::pack(&json!({"os": "Debian"}))), Ok(json!({"os": "Debian"}))),
        (Err(HostError::Denied("not for you".into())), Err(denied)),
        (
            Err(HostError::Failed("no grains\x07 today".into())),
            Err("test.f was stopped: grains.items failed: no grains\\x07 today"),
        ),
        (Err(HostError::Failed("no grains today".into())), Err(failed)),
        (Ok(vec![0x92, 0xc0]), Err(malformed)),
    ];
    for (reply, expected) in cases {
        let mut run = executor.run(module, "f");
        run.imports_granted = vec!["brine:host/grains@1.0.0".into()];
        let call = run.call;
        executor.send(ToExecutor::Run(Box::new(run))).await;
        let FromExecutor::HostCall { call: asking, request, op } = executor.next().await else {
            panic!("no host call")
        };
        assert_eq!((asking, &op), (call, &HostOp::Grains(GrainsOp::Items)));
        // Replies to requests that were never made have no effect.
        let wrong = |call, request| ToExecutor::HostReply { call, request, result: Ok(ByteBuf::from(vec![0xc0])) };
        executor.send(wrong(call, request + 1)).await;
        executor.send(wrong(call + 1, request)).await;
        executor.send(ToExecutor::HostReply { call, request, result: reply.map(ByteBuf::from) }).await;
        let (outcome, usage) = executor.done(call).await;
        assert_eq!(usage.host_calls, 1);
        match expected {
            Ok(value) => assert_eq!(returned(&outcome), value),
            Err(text) => assert_failed(&outcome, FailKind::Host, text),
        }
    }
    let mut run = executor.run(module, "f");
    (run.imports_granted, run.limits.host_calls) = (vec!["brine:host/grains".into()], 0);
    let (outcome, _) = executor.finish(run).await;
    assert_failed(&outcome, FailKind::Host, "test.f was stopped: its limit of 0 calls to the host is used up");
}

#[tokio::test]
async fn a_guest_that_waits_for_the_minion_can_be_killed_and_times_out() {
    let mut executor = Executor::start().await;
    let module = executor.load(GRAINS).await;
    for killed in [true, false] {
        let mut run = executor.run(module, "f");
        run.imports_granted = vec!["brine:host/grains".into()];
        run.limits.wall_ms = if killed { 60_000 } else { 100 };
        let call = run.call;
        executor.send(ToExecutor::Run(Box::new(run))).await;
        assert!(matches!(executor.next().await, FromExecutor::HostCall { .. }));
        let began = Instant::now();
        if killed {
            executor.send(ToExecutor::Kill { call, reason: "killed".into() }).await;
        }
        let (outcome, _) = executor.done(call).await;
        match killed {
            true => {
                assert_failed(&outcome, FailKind::Killed, "test.f was stopped: killed");
                assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
            }
            false => {
                let text = "test.f was stopped: its wall clock limit of 100 ms is used up";
                assert_failed(&outcome, FailKind::Wall, text);
            }
        }
    }
}
