//! Executors that die or hang, also repeatedly.

use std::time::{Duration, Instant};

use brine_kit::files::{script, set_mode};
use brine_kit::process::{kill, signal};
use brine_kit::wait::{until, within};
use brine_kit::wat::{number, wasm};
use brine_sandbox::Sandbox;
use rmpv::Value;
use rustix::process::Signal;

use crate::components::ASKS;
use crate::support::{Home, call, failure, spawn};

async fn another_executor(sandbox: &Sandbox, than: u32) -> u32 {
    until("another executor", || sandbox.executor_pid().is_some_and(|pid| pid != than)).await;
    sandbox.executor_pid().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_executor_fails_its_running_jobs_only() {
    let mut home = Home::new().grant("mine", "jobs");
    home.config.settings.max_running = 2;
    let (sandbox, mut grip) = home.start().await;
    sandbox.install("mine", &wasm(ASKS), None, "base").await.unwrap();
    let running = [spawn(&sandbox, "1", "mine.ask"), spawn(&sandbox, "2", "mine.ask")];
    for _ in &running {
        within(grip.arrived.recv()).await.unwrap();
    }
    // This job waits for a turn, so it is not in the executor.
    let queued = spawn(&sandbox, "3", "mine.number");
    let pid = sandbox.executor_pid().unwrap();
    kill(pid);
    for job in running {
        let outcome = within(job).await.unwrap();
        assert_eq!(
            failure(&outcome),
            "mine.ask did not finish: the executor it ran in was killed by signal 9. The job may have been cut off anywhere."
        );
        assert!(outcome.sha256.is_some());
    }
    assert_eq!(within(queued).await.unwrap().value, Value::from(7));
    assert_eq!(call(&sandbox, "mine.number").await.value, Value::from(7));
    assert_ne!(another_executor(&sandbox, pid).await, pid);
    sandbox.shutdown().await;
}

/// The executor dies while idle. The next job does not notice.
#[tokio::test(flavor = "multi_thread")]
async fn an_idle_executor_that_dies_is_started_again() {
    let home = Home::new();
    let (sandbox, _grip) = home.start().await;
    sandbox.install("mine", &wasm(number(1)), None, "base").await.unwrap();
    let pid = sandbox.executor_pid().unwrap();
    kill(pid);
    another_executor(&sandbox, pid).await;
    assert_eq!(call(&sandbox, "mine.number").await.value, Value::from(1));
    sandbox.shutdown().await;
}

/// Repeated kills of an idle executor from outside fail no job: no module ran, so none is to blame, and jobs wait for
/// the next executor.
#[tokio::test(flavor = "multi_thread")]
async fn deaths_that_no_module_is_to_blame_for_refuse_no_job() {
    let home = Home::new();
    let (sandbox, _grip) = home.start().await;
    sandbox.install("mine", &wasm(number(1)), None, "base").await.unwrap();
    for _ in 0..6 {
        let pid = sandbox.executor_pid();
        pid.into_iter().for_each(kill);
        until("its end", || sandbox.executor_pid() != pid).await;
        let began = Instant::now();
        assert_eq!(call(&sandbox, "mine.number").await.value, Value::from(1));
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    }
    sandbox.shutdown().await;
}

/// An executor that cannot start is not retried without pause.
#[tokio::test(flavor = "multi_thread")]
async fn a_crash_loop_is_bounded_and_over_after_a_pause() {
    let mut home = Home::new();
    home.restarts.deaths = 3;
    home.restarts.pause = Duration::from_secs(3);
    let folder = tempfile::tempdir().unwrap();
    let (program, mark) = (folder.path().join("brine-executor"), folder.path().join("broken"));
    let real = home.config.executor.display();
    let text = format!("#!/bin/sh\nif [ -e {} ]; then exit 3; fi\nexec {real} \"$@\"\n", mark.display());
    script(&program, &text);
    set_mode(folder.path(), 0o755);
    home.config.executor = program;
    let (sandbox, _grip) = home.start().await;
    sandbox.install("mine", &wasm(number(1)), None, "base").await.unwrap();
    let pid = sandbox.executor_pid().unwrap();
    std::fs::write(&mark, "").unwrap();
    kill(pid);
    until("the pause", || sandbox.executor_pid().is_none()).await;
    // Jobs are refused at once. Only a job that comes just before the pause may have waited.
    let text = failure(&call(&sandbox, "mine.number").await).to_owned();
    let expect =
        "The sandbox is not available: its executor died 3 times within 30 s, the last time it did not start: ";
    assert!(text.starts_with(expect), "{text}");
    std::fs::remove_file(&mark).unwrap();
    another_executor(&sandbox, pid).await;
    assert_eq!(call(&sandbox, "mine.number").await.value, Value::from(1));
    sandbox.shutdown().await;
}

/// Returns the pid of the executor in which suspects run.
async fn ward(sandbox: &Sandbox) -> u32 {
    let ward = || sandbox.executor_pids().into_iter().find(|pid| Some(*pid) != sandbox.executor_pid());
    until("a ward", || ward().is_some()).await;
    ward().unwrap()
}

/// A module that ends its executor in each call: after the first death it runs apart from the others, and it is refused
/// for longer each time.
#[tokio::test(flavor = "multi_thread")]
async fn a_module_that_kills_its_executor_hurts_only_itself() {
    let home = Home::new().grant("*", "jobs");
    let (sandbox, mut grip) = home.start().await;
    sandbox.install("deadly", &wasm(ASKS), None, "base").await.unwrap();
    sandbox.install("good", &wasm(number(1)), None, "base").await.unwrap();
    let deadly = spawn(&sandbox, "1", "deadly.ask");
    within(grip.arrived.recv()).await.unwrap();
    let first = sandbox.executor_pid().unwrap();
    kill(first);
    assert!(failure(&within(deadly).await.unwrap()).contains("did not finish"));
    let clean = another_executor(&sandbox, first).await;
    let deadly = spawn(&sandbox, "2", "deadly.ask");
    within(grip.arrived.recv()).await.unwrap();
    // Other modules work meanwhile.
    assert_eq!(call(&sandbox, "good.number").await.value, Value::from(1));
    kill(ward(&sandbox).await);
    assert!(failure(&within(deadly).await.unwrap()).contains("did not finish"));
    let text = failure(&call(&sandbox, "deadly.number").await).to_owned();
    assert_eq!(
        text,
        "Module deadly is not run for 1 s: 2 times the executor it ran in died, and no other module ran there."
    );
    assert_eq!(call(&sandbox, "good.number").await.value, Value::from(1));
    assert_eq!(sandbox.executor_pid(), Some(clean));
    // After a pause the module is tried again.
    within(async {
        while !call(&sandbox, "deadly.number").await.success {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    // Another content of the module is not to blame.
    let other = ASKS.replace("i32.const 7", "i32.const 8");
    sandbox.install("deadly", &wasm(&other), None, "base").await.unwrap();
    let outcome = within(spawn(&sandbox, "3", "deadly.number")).await.unwrap();
    assert_eq!(outcome.value, Value::from(8));
    assert_eq!(sandbox.executor_pid(), Some(clean));
    sandbox.shutdown().await;
}

/// A module that ran beside the guilty one continues at once, apart from both the guilty one and the trusted ones.
#[tokio::test(flavor = "multi_thread")]
async fn an_innocent_module_goes_on_at_once() {
    let home = Home::new().grant("*", "jobs");
    let (sandbox, mut grip) = home.start().await;
    for name in ["deadly", "innocent"] {
        sandbox.install(name, &wasm(ASKS), None, "base").await.unwrap();
    }
    let both = [spawn(&sandbox, "1", "deadly.ask"), spawn(&sandbox, "2", "innocent.ask")];
    for _ in &both {
        within(grip.arrived.recv()).await.unwrap();
    }
    let first = sandbox.executor_pid().unwrap();
    kill(first);
    for job in both {
        assert!(failure(&within(job).await.unwrap()).contains("did not finish"));
    }
    let clean = another_executor(&sandbox, first).await;
    let deadly = spawn(&sandbox, "3", "deadly.ask");
    within(grip.arrived.recv()).await.unwrap();
    let of_deadly = ward(&sandbox).await;
    let innocent = spawn(&sandbox, "4", "innocent.ask");
    within(grip.arrived.recv()).await.unwrap();
    assert_eq!(sandbox.executor_pids().len(), 3);
    kill(of_deadly);
    assert!(failure(&within(deadly).await.unwrap()).contains("did not finish"));
    grip.gate.send(true).unwrap();
    assert_eq!(within(innocent).await.unwrap().value, Value::from(true));
    assert_eq!(call(&sandbox, "innocent.number").await.value, Value::from(7));
    assert_eq!(sandbox.executor_pid(), Some(clean));
    sandbox.shutdown().await;
}

/// Calls that the executor had not begun run in the next one. Calls that it had begun are not repeated.
#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_executor_loses_no_job_that_had_not_begun() {
    let home = Home::new().grant("mine", "jobs");
    let (sandbox, mut grip) = home.start().await;
    sandbox.install("mine", &wasm(ASKS), None, "base").await.unwrap();
    sandbox.install("other", &wasm(number(1)), None, "base").await.unwrap();
    assert_eq!(call(&sandbox, "other.number").await.value, Value::from(1));
    // The executor is idle when it is stopped, or at work.
    for at_work in [false, true] {
        let begun = at_work.then(|| spawn(&sandbox, "1", "mine.ask"));
        if at_work {
            within(grip.arrived.recv()).await.unwrap();
        }
        let pid = sandbox.executor_pid().unwrap();
        signal(pid, Signal::STOP);
        let began = Instant::now();
        let jobs = (0..3).map(|_| call(&sandbox, "other.number"));
        for outcome in futures_util::future::join_all(jobs).await {
            assert_eq!(outcome.value, Value::from(1));
        }
        println!("after {:?}", began.elapsed());
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
        if let Some(begun) = begun {
            assert_eq!(
                failure(&within(begun).await.unwrap()),
                "mine.ask did not finish: the executor it ran in was stopped and was ended. The job may have been cut off \
                 anywhere."
            );
            assert!(grip.arrived.try_recv().is_err(), "it was run twice");
        }
        assert_ne!(another_executor(&sandbox, pid).await, pid);
    }
    sandbox.shutdown().await;
}
