//! Limits of a job and a module: time, arguments, turns, and their share of the memory.

use std::time::{Duration, Instant};

use brine_kit::wait::{until, within};
use brine_kit::wat::{number, wasm};
use brine_kit_sandbox::job;
use brine_sandbox::JobContext;
use rmpv::Value;
use serde_json::json;

use crate::components::ASKS;
use crate::support::{Home, call, failure, spawn};

#[tokio::test(flavor = "multi_thread")]
async fn a_job_brings_a_time_of_its_own() {
    let home = Home::new().grant("mine", "jobs");
    let (sandbox, _grip) = home.start().await;
    sandbox.install("mine", &wasm(ASKS), None, "base").await.unwrap();
    let began = Instant::now();
    let context = JobContext { timeout_ms: Some(300), ..job("1", "mine.spin") };
    let outcome = within(sandbox.run(context, "mine.spin", vec![], vec![])).await;
    assert!(failure(&outcome).contains("wall clock limit of 300 ms"), "{outcome:?}");
    assert!(began.elapsed() < Duration::from_secs(20));
    // The job's own limit can only lower the owner's limit.
    let home = home.policy(&json!({ "modules": { "mine": { "jobs": true, "limits": { "wall": "200ms" } } } }));
    sandbox.shutdown().await;
    let (sandbox, _grip) = home.start().await;
    let context = JobContext { timeout_ms: Some(3_600_000), ..job("1", "mine.spin") };
    let outcome = within(sandbox.run(context, "mine.spin", vec![], vec![])).await;
    assert!(failure(&outcome).contains("wall clock limit of 200 ms"), "{outcome:?}");
    sandbox.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_function_has_limits_of_its_own() {
    let home = Home::new().policy(&json!({ "modules": {
        "mine": { "jobs": true, "limits": { "wall": "50s" } },
        "mine.spin": { "limits": { "wall": "200ms" } },
        "mine.number": { "limits": { "memory": 65536 } },
    } }));
    let (sandbox, mut grip) = home.start().await;
    sandbox.install("mine", &wasm(ASKS), None, "base").await.unwrap();
    let outcome = call(&sandbox, "mine.spin").await;
    assert!(failure(&outcome).contains("wall clock limit of 200 ms"), "{outcome:?}");
    // The limit is one page of memory.
    assert_eq!(call(&sandbox, "mine.number").await.value, Value::from(7));
    let asking = spawn(&sandbox, "1", "mine.ask");
    within(grip.arrived.recv()).await.unwrap();
    grip.gate.send(true).unwrap();
    assert!(within(asking).await.unwrap().success);
    sandbox.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_are_bounded() {
    let mut home = Home::new();
    home.config.settings.limits.host_bytes = 100_000;
    let (sandbox, _grip) = home.start().await;
    sandbox.install("mine", &wasm(number(1)), None, "base").await.unwrap();
    let run = |bytes: usize, name: &'static str| {
        let (args, kwargs) = (vec![Value::from("x".repeat(bytes))], vec![(name.to_owned(), Value::Nil)]);
        sandbox.run(job("1", "mine.number"), "mine.number", args, kwargs)
    };
    let outcome = within(run(100_000, "a")).await;
    assert_eq!(
        failure(&outcome),
        "The arguments have 100010 bytes; the limit of a job is 100000 (sandbox:limits:host_bytes)."
    );
    // Arguments within the limit reach the function.
    let outcome = within(run(99_000, "a")).await;
    assert!(failure(&outcome).starts_with("Passed invalid arguments to mine.number: "), "{outcome:?}");
    sandbox.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_module_has_turns_of_its_own() {
    let home = Home::new().policy(&json!({ "modules": {
        "mine": { "jobs": true, "max_running": 1, "max_queued": 1 },
        "other": { "jobs": true },
    } }));
    let (sandbox, mut grip) = home.start().await;
    sandbox.install("mine", &wasm(ASKS), None, "base").await.unwrap();
    sandbox.install("other", &wasm(ASKS), None, "base").await.unwrap();
    let running = spawn(&sandbox, "1", "mine.ask");
    within(grip.arrived.recv()).await.unwrap();
    let waiting = spawn(&sandbox, "2", "mine.number");
    until("it waits", || sandbox.instances() == 2).await;
    assert_eq!(
        failure(&call(&sandbox, "mine.number").await),
        "The minion is busy: 1 jobs of module mine run and 1 wait. Try again, or raise sandbox:modules:mine:max_queued."
    );
    // Other modules are not affected.
    assert_eq!(call(&sandbox, "other.number").await.value, Value::from(7));
    assert!(!waiting.is_finished());
    grip.gate.send(true).unwrap();
    assert_eq!(within(running).await.unwrap().value, Value::from(true));
    assert_eq!(within(waiting).await.unwrap().value, Value::from(7));
    assert_eq!(call(&sandbox, "mine.number").await.value, Value::from(7));
    sandbox.shutdown().await;
}

/// The sum of all leases is bounded, whatever the number of turns.
#[tokio::test(flavor = "multi_thread")]
async fn jobs_wait_for_memory() {
    let mut home = Home::new().policy(&json!({ "modules": {
        "mine": { "jobs": true },
        "small": { "limits": { "memory": "1MiB" } },
    } }));
    home.config.settings.total_memory = 100 << 20;
    let home = home.standard("sys", &number(3));
    let (sandbox, mut grip) = home.start().await;
    let large = ASKS.replace(r#"(memory (export "memory") 1)"#, r#"(memory (export "memory") 100)"#);
    sandbox.install("mine", &wasm(&large), None, "base").await.unwrap();
    sandbox.install("small", &wasm(number(1)), None, "base").await.unwrap();
    let running = spawn(&sandbox, "1", "mine.ask");
    within(grip.arrived.recv()).await.unwrap();
    assert_eq!(call(&sandbox, "small.number").await.value, Value::from(1));
    // Twice 64 MiB is too much.
    let waiting = spawn(&sandbox, "2", "mine.number");
    until("it waits", || sandbox.instances() == 2).await;
    // Jobs that list others do not wait.
    assert_eq!(call(&sandbox, "sys.number").await.value, Value::from(3));
    assert!(!waiting.is_finished());
    sandbox.kill("1");
    assert!(failure(&within(running).await.unwrap()).ends_with("it was killed"));
    assert_eq!(within(waiting).await.unwrap().value, Value::from(7));
    sandbox.shutdown().await;
}
