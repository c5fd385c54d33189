//! Executors die, hang, and do so again and again.

use std::time::Duration;

use brine_sandbox::Sandbox;
use rmpv::Value;
use rustix::process::{Pid, Signal, kill_process};

use crate::components::{ASKS, number};
use crate::support::{Home, call, failure, spawn, until, wasm, within};

pub(crate) fn kill(pid: u32) {
    signal(pid, Signal::KILL);
}

fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), signal).unwrap();
}

async fn another_executor(sandbox: &Sandbox, than: u32) -> u32 {
    until("another executor", || sandbox.executor_pid().is_some_and(|pid| pid != than)).await;
    sandbox.executor_pid().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_executor_fails_its_running_jobs_only() {
    let mut home = Home::new().grant("mine", "jobs");
    home.config.max_running = 2;
    let (sandbox, mut grip) = home.start().await;
    sandbox.install("mine", &wasm(ASKS), None, "base").await.unwrap();
    let running = [spawn(&sandbox, "1", "mine.ask"), spawn(&sandbox, "2", "mine.ask")];
    for _ in &running {
        within("a running job's call", grip.arrived.recv()).await.unwrap();
    }
    // It waits for a turn, so it is not in the executor.
    let queued = spawn(&sandbox, "3", "mine.number");
    let pid = sandbox.executor_pid().unwrap();
    kill(pid);
    for job in running {
        let outcome = within("a running job's end", job).await.unwrap();
        assert_eq!(
            failure(&outcome),
            "mine.ask did not finish: the executor it ran in was killed by signal 9. The job may have been cut off anywhere."
        );
        assert!(outcome.sha256.is_some());
    }
    assert_eq!(within("the queued job", queued).await.unwrap().value, Value::from(7));
    assert_eq!(call(&sandbox, "mine.number").await.value, Value::from(7));
    assert_ne!(another_executor(&sandbox, pid).await, pid);
    sandbox.shutdown().await;
}

/// It dies while nobody waits; the next job must not notice.
#[tokio::test(flavor = "multi_thread")]
async fn an_idle_executor_that_dies_is_started_again() {
    let home = Home::new();
    let (sandbox, _grip) = home.start().await;
    sandbox.install("mine", &wasm(&number(1)), None, "base").await.unwrap();
    let pid = sandbox.executor_pid().unwrap();
    kill(pid);
    another_executor(&sandbox, pid).await;
    assert_eq!(call(&sandbox, "mine.number").await.value, Value::from(1));
    sandbox.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_loop_is_bounded_and_over_after_a_pause() {
    let mut home = Home::new();
    home.restarts.deaths = 3;
    home.restarts.pause = Duration::from_secs(3);
    let (sandbox, _grip) = home.start().await;
    sandbox.install("mine", &wasm(&number(1)), None, "base").await.unwrap();
    let mut pid = sandbox.executor_pid().unwrap();
    for _ in 0..2 {
        kill(pid);
        pid = another_executor(&sandbox, pid).await;
    }
    kill(pid);
    until("the pause", || sandbox.executor_pid().is_none()).await;
    // Refused at once, not after a wait; the one that comes in the moment before the pause may wait for it.
    let text = failure(&call(&sandbox, "mine.number").await).to_owned();
    let expect = "The sandbox is not available: its executor died 3 times within 30 s, the last time it was killed by signal 9; \
                  it is started again in ";
    assert!(text.starts_with(expect), "{text}");
    another_executor(&sandbox, pid).await;
    assert_eq!(call(&sandbox, "mine.number").await.value, Value::from(1));
    sandbox.shutdown().await;
}

/// An executor that does not move any more: jobs end all the same, and it is replaced.
#[tokio::test(flavor = "multi_thread")]
async fn a_hanging_executor_does_not_hold_jobs() {
    let mut home = Home::new();
    home.config.limits.wall_ms = 200;
    let (sandbox, _grip) = home.start().await;
    sandbox.install("mine", &wasm(&number(1)), None, "base").await.unwrap();
    let pid = sandbox.executor_pid().unwrap();
    signal(pid, Signal::STOP);
    let text = failure(&call(&sandbox, "mine.number").await).to_owned();
    assert_eq!(text, "mine.number was stopped: it did not end within its wall clock limit of 0.2 s");
    another_executor(&sandbox, pid).await;
    assert_eq!(call(&sandbox, "mine.number").await.value, Value::from(1));
    sandbox.shutdown().await;
}
