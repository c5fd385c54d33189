//! A killed job ends within 50 ms, whatever it is doing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use brine_kit::files::script;
use brine_kit::wait::{until, within};
use brine_kit::wat::{number, wasm};
use brine_kit_sandbox::job;
use brine_sandbox::{JobOutcome, Sandbox};
use rmpv::Value;
use serde_json::json;
use tokio::task::JoinHandle;

use crate::components::{ASKS, calls, loops, reaches};
use crate::support::{Home, call, failure, files, spawn};

/// The promised time for `saltutil.kill_job`.
const PROMISED: Duration = Duration::from_millis(50);
/// One try of these must keep the promise, because the machine may be busy.
const TRIES: usize = 5;

/// Returns the time from the kill to the job's end.
async fn killed(sandbox: &Sandbox, jid: &str, job: JoinHandle<JobOutcome>) -> (Duration, String) {
    let began = Instant::now();
    assert_eq!(sandbox.kill(jid), 1);
    let outcome = within(job).await.unwrap();
    (began.elapsed(), failure(&outcome).to_owned())
}

fn judge(what: &str, mut times: Vec<Duration>) {
    times.sort();
    println!("{what}: {times:?}");
    assert!(times[0] <= PROMISED, "{what}: {times:?}");
}

/// Kills a job that computes while all turns are taken, and a job that waits for a turn.
#[tokio::test(flavor = "multi_thread")]
async fn computing_and_queued() {
    let mut home = Home::new().grant("mine", "jobs");
    home.config.settings.max_running = 4;
    let (sandbox, _grip) = home.start().await;
    sandbox.install("mine", &wasm(ASKS), None, "base").await.unwrap();
    let others: Vec<_> = (0..3).map(|_| spawn(&sandbox, "others", "mine.spin")).collect();
    let (mut computing, mut queued) = (Vec::new(), Vec::new());
    for _ in 0..TRIES {
        let running = spawn(&sandbox, "1", "mine.spin");
        until("it runs", || sandbox.instances() == 4).await;
        let waiting = spawn(&sandbox, "2", "mine.number");
        until("it waits", || sandbox.instances() == 5).await;
        let (time, text) = killed(&sandbox, "2", waiting).await;
        assert_eq!(text, "mine.number was stopped before it began: it was killed");
        queued.push(time);
        let (time, text) = killed(&sandbox, "1", running).await;
        assert!(text.starts_with("mine.spin was stopped"), "{text}");
        computing.push(time);
    }
    judge("computing", computing);
    judge("queued", queued);
    assert_eq!(sandbox.kill("others"), 3);
    for other in others {
        within(other).await.unwrap();
    }
    assert_eq!(call(&sandbox, "mine.number").await.value, Value::from(7));
    sandbox.shutdown().await;
}

/// Kills a job during a slow operation of the host, such as a program or a request to a slow server. The operation ends
/// too.
#[tokio::test(flavor = "multi_thread")]
async fn within_a_host_call() {
    let home = Home::new().grant("mine", "jobs");
    let (sandbox, mut grip) = home.start().await;
    sandbox.install("mine", &wasm(ASKS), None, "base").await.unwrap();
    let mut times = Vec::new();
    for _ in 0..TRIES {
        let running = spawn(&sandbox, "1", "mine.ask");
        within(grip.arrived.recv()).await.unwrap();
        let began = Instant::now();
        let (_, text) = killed(&sandbox, "1", running).await;
        within(grip.dropped.recv()).await.unwrap();
        times.push(began.elapsed());
        assert_eq!(text, "mine.ask was stopped: it was killed");
    }
    judge("in a host call", times);
    sandbox.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calling_another_function() {
    let home = Home::new().grant("*", "jobs");
    let (sandbox, _broker) = home.start_nesting().await;
    sandbox.install("mine", &wasm(calls()), None, "base").await.unwrap();
    sandbox.install("other", &wasm(ASKS), None, "base").await.unwrap();
    let mut times = Vec::new();
    for _ in 0..TRIES {
        let running = {
            let (sandbox, args) = (Arc::clone(&sandbox), vec![Value::from("mine.call1|other.spin")]);
            tokio::spawn(async move { sandbox.run(job("1", "mine.call0"), "mine.call0", args, vec![]).await })
        };
        until("it calls", || sandbox.instances() == 3).await;
        let began = Instant::now();
        let (_, text) = killed(&sandbox, "1", running).await;
        until("the end of all of it", || sandbox.instances() == 0).await;
        times.push(began.elapsed());
        assert_eq!(text, "mine.call0 was stopped: it was killed");
    }
    judge("calling", times);
    sandbox.shutdown().await;
}

/// Kills a job whose executor starts slowly.
#[tokio::test(flavor = "multi_thread")]
async fn waiting_for_an_executor() {
    let mut home = Home::new();
    let (folder, real) = (home.config.standard_dir.clone(), home.config.executor.clone());
    // The second executor never sends `Ready`.
    let (program, mark) = (folder.join("executor"), folder.join("mark"));
    let text = format!(
        "#!/bin/sh\nif [ -e {mark} ]; then exec sleep 1000; fi\n: > {mark}\nexec {real} \"$@\"\n",
        mark = mark.display(),
        real = real.display()
    );
    script(&program, &text);
    home.config.executor = program;
    // Another user could not write the mark.
    home.config.settings.user = Some("root".into());
    let home = home.policy(&json!({ "modules": {
        "mine": { "jobs": true, "filesystem": { folder.to_str().unwrap(): "ro" } },
    } }));
    let (sandbox, _grip) = home.start().await;
    sandbox.install("mine", &wasm(reaches()), None, "base").await.unwrap();
    let mut times = Vec::new();
    for _ in 0..TRIES {
        let waiting = spawn(&sandbox, "1", "mine.number");
        until("it waits", || sandbox.instances() == 1).await;
        let (time, text) = killed(&sandbox, "1", waiting).await;
        assert_eq!(text, "mine.number was stopped before it began: it was killed");
        times.push(time);
    }
    judge("waiting for an executor", times);
    within(sandbox.shutdown()).await;
}

/// Kills a job whose module lost its code and is being compiled again for a long time.
#[tokio::test(flavor = "multi_thread")]
async fn while_its_module_is_compiled() {
    let home = Home::new();
    let (sandbox, _grip) = home.start().await;
    sandbox.install("slow", &wasm(loops(3_000)), None, "base").await.unwrap();
    sandbox.install("mine", &wasm(number(1)), None, "base").await.unwrap();
    sandbox.shutdown().await;
    let (sandbox, _grip) = home.start().await;
    // The code is lost while the executor is down.
    let pid = sandbox.executor_pid().unwrap();
    files(&home.config.cache_dir, "json").iter().for_each(|file| std::fs::remove_file(file).unwrap());
    brine_kit::process::kill(pid);
    until("another", || sandbox.executor_pid().is_some_and(|other| other != pid)).await;
    let mut times = Vec::new();
    for _ in 0..TRIES {
        let waiting = spawn(&sandbox, "1", "slow.number");
        until("it waits", || sandbox.instances() == 1 || waiting.is_finished()).await;
        if waiting.is_finished() {
            break;
        }
        let (time, text) = killed(&sandbox, "1", waiting).await;
        assert_eq!(text, "slow.number was stopped before it began: it was killed");
        times.push(time);
    }
    judge("compiled again", times);
    assert_eq!(call(&sandbox, "mine.number").await.value, Value::from(1));
    sandbox.shutdown().await;
}
