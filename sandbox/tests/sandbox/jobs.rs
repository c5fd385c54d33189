//! Jobs wait, are counted and are ended, and cannot exceed their time.

use std::time::{Duration, Instant};

use brine_kit::process::exists;
use brine_kit::wait::{until, within};
use brine_kit::wat::{number, wasm};
use brine_kit_sandbox::job;
use rmpv::Value;

use crate::components::ASKS;
use crate::support::{Home, call, failure, spawn};

#[tokio::test(flavor = "multi_thread")]
async fn admission_is_bounded_and_queued_jobs_can_be_ended() {
    let mut home = Home::new().grant("mine", "jobs").standard("sys", &number(3));
    (home.config.settings.max_running, home.config.settings.max_queued) = (1, 1);
    let (sandbox, mut grip) = home.start().await;
    sandbox.install("mine", &wasm(ASKS), None, "base").await.unwrap();
    let running = spawn(&sandbox, "1", "mine.ask");
    within(grip.arrived.recv()).await.unwrap();
    // A job is admitted when its future is first polled.
    let mut queued = Box::pin(sandbox.run(job("2", "mine.number"), "mine.number", vec![], vec![]));
    tokio::select! {
        biased;
        outcome = &mut queued => panic!("{outcome:?}"),
        () = std::future::ready(()) => {}
    }
    let text = failure(&call(&sandbox, "mine.number").await).to_owned();
    assert_eq!(text, "The minion is busy: 1 jobs run and 1 wait. Try again, or raise sandbox:max_queued.");
    // Jobs that list others have reserved turns.
    assert_eq!(call(&sandbox, "sys.number").await.value, Value::from(3));

    assert_eq!(sandbox.kill("2"), 1);
    let text = failure(&within(queued).await).to_owned();
    assert_eq!(text, "mine.number was stopped before it began: it was killed");
    assert_eq!(sandbox.kill("1"), 1);
    let text = failure(&within(running).await.unwrap()).to_owned();
    assert_eq!(text, "mine.ask was stopped: it was killed");
    within(grip.dropped.recv()).await.unwrap();
    assert_eq!(sandbox.kill("1"), 0);

    grip.gate.send(true).unwrap();
    assert_eq!(call(&sandbox, "mine.ask").await.value, Value::from(true));
    sandbox.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_spins_is_stopped_while_others_answer() {
    let mut home = Home::new().grant("mine", "jobs");
    home.config.settings.limits.wall_ms = 500;
    let (sandbox, _grip) = home.start().await;
    sandbox.install("mine", &wasm(ASKS), None, "base").await.unwrap();
    let spinning = spawn(&sandbox, "1", "mine.spin");
    let mut answered = 0;
    while !spinning.is_finished() {
        assert_eq!(call(&sandbox, "mine.number").await.value, Value::from(7));
        answered += 1;
    }
    let outcome = spinning.await.unwrap();
    assert!(failure(&outcome).contains("wall clock limit of 500 ms"), "{outcome:?}");
    assert!(answered > 5, "{answered}");
    sandbox.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_nobody_waits_for_ends() {
    let home = Home::new().grant("mine", "jobs");
    let (sandbox, mut grip) = home.start().await;
    sandbox.install("mine", &wasm(ASKS), None, "base").await.unwrap();
    let running = spawn(&sandbox, "1", "mine.ask");
    within(grip.arrived.recv()).await.unwrap();
    running.abort();
    within(grip.dropped.recv()).await.unwrap();
    let pid = sandbox.executor_pid();
    assert_eq!(call(&sandbox, "mine.number").await.value, Value::from(7));
    assert_eq!(sandbox.executor_pid(), pid);
    sandbox.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_ends_jobs_and_the_executor() {
    let home = Home::new().grant("mine", "jobs");
    let (sandbox, mut grip) = home.start().await;
    sandbox.install("mine", &wasm(ASKS), None, "base").await.unwrap();
    let running = spawn(&sandbox, "1", "mine.ask");
    within(grip.arrived.recv()).await.unwrap();
    let pid = sandbox.executor_pid().unwrap();
    within(sandbox.shutdown()).await;
    let text = failure(&within(running).await.unwrap()).to_owned();
    assert_eq!(text, "mine.ask was stopped: the minion is stopping");
    until("the executor's end", || !exists(pid)).await;
}

/// Detects gross mistakes only; `make bench` measures.
#[tokio::test(flavor = "multi_thread")]
async fn a_warm_call_is_quick() {
    let home = Home::new();
    let (sandbox, _grip) = home.start().await;
    sandbox.install("mine", &wasm(number(1)), None, "base").await.unwrap();
    let mut times: Vec<Duration> = Vec::new();
    for _ in 0..500 {
        let start = Instant::now();
        assert!(call(&sandbox, "mine.number").await.success);
        times.push(start.elapsed());
    }
    times.sort();
    println!("p50 {:?}, p99 {:?}", times[250], times[495]);
    assert!(times[250] < Duration::from_millis(20), "{:?}", times[250]);
    sandbox.shutdown().await;
}
