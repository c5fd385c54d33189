//! Crowds of jobs that sleep, hang, compute, hold memory or call others: a short job beside them does not wait for
//! them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use brine_kit::wait::{until, within};
use brine_kit::wat::{number, wasm};
use brine_kit_sandbox::job;
use brine_sandbox::{JobContext, Sandbox};
use futures_util::future::join_all;
use rmpv::Value;
use serde_json::json;

use crate::components::{ASKS, NAPS, calls};
use crate::support::{Home, call, failure};

const PINGS: usize = 40;
/// On an idle machine 99 of 100 short jobs take less than 250 ms. This allows for a busy one; the crowds last much
/// longer.
const QUICK: Duration = Duration::from_secs(3);
/// The time of most short jobs.
const USUAL: Duration = Duration::from_millis(500);

/// Returns the configuration of a minion with two cores and little memory.
fn home(sandbox: &serde_json::Value) -> Home {
    let mut home = Home::new().policy(sandbox);
    (home.config.settings.max_running, home.config.settings.max_waiting, home.config.settings.max_queued) =
        (16, 256, 1_000);
    home.config.settings.total_memory = 1 << 30;
    home
}

fn granted() -> serde_json::Value {
    json!({ "modules": { "*": { "jobs": true } } })
}

/// Installs a module `ping` whose function has been called before.
async fn ready(sandbox: &Sandbox) {
    sandbox.install("ping", &wasm(number(1)), None, "base").await.unwrap();
    assert_eq!(call(sandbox, "ping.number").await.value, Value::from(1));
}

/// A crowd of jobs, until it is killed.
struct Crowd(Vec<tokio::task::JoinHandle<brine_sandbox::JobOutcome>>);

fn crowd(sandbox: &Arc<Sandbox>, count: usize, fun: impl Fn(usize) -> (String, Vec<Value>)) -> Crowd {
    let start = |n| {
        let (sandbox, (fun, args)) = (Arc::clone(sandbox), fun(n));
        let context = JobContext { function: fun.clone(), ..job("crowd", "") };
        tokio::spawn(async move { sandbox.run(context, &fun, args, vec![]).await })
    };
    Crowd((0..count).map(start).collect())
}

impl Crowd {
    /// Runs short jobs beside the crowd.
    async fn beside(self, what: &str, sandbox: &Sandbox) {
        until("the crowd", || sandbox.instances() >= self.0.len().min(1_000)).await;
        let mut took = Vec::new();
        for _ in 0..PINGS {
            let began = Instant::now();
            assert_eq!(call(sandbox, "ping.number").await.value, Value::from(1), "beside {what}");
            took.push(began.elapsed());
        }
        took.sort();
        println!("beside {what}: p50 {:?}, p99 {:?}", took[PINGS / 2], took[PINGS - 1]);
        assert!(took[PINGS / 2] < USUAL && took[PINGS - 1] < QUICK, "beside {what}: {took:?}");
        let over = self.0.iter().filter(|job| job.is_finished()).count();
        assert!(over <= self.0.len() / 2, "{over} of the crowd had ended");
        sandbox.kill("crowd");
        within(join_all(self.0)).await;
        until("the end of what it called", || sandbox.instances() == 0).await;
    }
}

fn fun(name: &str) -> (String, Vec<Value>) {
    (name.to_owned(), vec![])
}

/// Forty jobs hang in requests, with sixteen turns. All have begun, and other jobs are not affected.
#[tokio::test(flavor = "multi_thread")]
async fn jobs_that_wait_in_the_host_hold_no_turn() {
    let home = home(&granted());
    let (sandbox, mut grip) = home.start().await;
    ready(&sandbox).await;
    sandbox.install("mine", &wasm(ASKS), None, "base").await.unwrap();
    let hanging = crowd(&sandbox, 40, |_| fun("mine.ask"));
    for _ in 0..40 {
        within(grip.arrived.recv()).await.unwrap();
    }
    hanging.beside("jobs that hang", &sandbox).await;
    // More jobs than may even wait: the surplus is refused with a clear message, and a short job still runs.
    let many = crowd(&sandbox, 2_000, |_| fun("mine.ask"));
    until("refusals", || many.0.iter().any(tokio::task::JoinHandle::is_finished)).await;
    many.beside("more jobs than may wait", &sandbox).await;
    sandbox.shutdown().await;
}

/// Sleeping jobs hold no turn, and all of them sleep at the same time.
#[tokio::test(flavor = "multi_thread")]
async fn jobs_that_sleep_hold_no_turn() {
    let home = home(&granted());
    let (sandbox, _grip) = home.start().await;
    ready(&sandbox).await;
    sandbox.install("naps", &wasm(NAPS), None, "base").await.unwrap();
    let nap = |seconds: u64| ("naps.nap".to_owned(), vec![Value::from(seconds * 1_000_000_000)]);
    crowd(&sandbox, 40, |_| nap(25)).beside("jobs that sleep", &sandbox).await;
    // Other jobs of the same module get turns too. The first of them was never called before.
    let naps = crowd(&sandbox, 40, |_| nap(25));
    until("the crowd", || sandbox.instances() == 40).await;
    let began = Instant::now();
    assert_eq!(call(&sandbox, "naps.number").await.value, Value::from(5));
    assert!(began.elapsed() < QUICK, "{:?}", began.elapsed());
    naps.beside("jobs that sleep", &sandbox).await;
    // Forty-five naps with sixteen turns take as long as one nap, not as three.
    let began = Instant::now();
    let naps = crowd(&sandbox, 45, |_| nap(3));
    for outcome in within(join_all(naps.0)).await {
        assert!(outcome.unwrap().success);
    }
    assert!(began.elapsed() < Duration::from_secs(9), "{:?}", began.elapsed());
    sandbox.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_that_compute_do_not_hold_up_short_ones() {
    let home = home(&granted());
    let (sandbox, _grip) = home.start().await;
    ready(&sandbox).await;
    sandbox.install("mine", &wasm(ASKS), None, "base").await.unwrap();
    crowd(&sandbox, 40, |_| fun("mine.spin")).beside("jobs that compute", &sandbox).await;
    // The same for a function that was never called before.
    let spinning = crowd(&sandbox, 40, |_| fun("mine.spin"));
    until("the crowd", || sandbox.instances() == 40).await;
    sandbox.install("late", &wasm(number(2)), None, "base").await.unwrap();
    let began = Instant::now();
    assert_eq!(call(&sandbox, "late.number").await.value, Value::from(2));
    assert!(began.elapsed() < QUICK, "{:?}", began.elapsed());
    spinning.beside("jobs that compute", &sandbox).await;
    sandbox.shutdown().await;
}

/// Sixty jobs of 60 MiB each with one GiB: the sum never exceeds the total, and a small job finds room.
#[tokio::test(flavor = "multi_thread")]
async fn jobs_that_hold_memory_leave_room_for_small_ones() {
    let home = home(&granted());
    let (sandbox, mut grip) = home.start().await;
    ready(&sandbox).await;
    let holds = ASKS.replace(r#"(memory (export "memory") 1)"#, r#"(memory (export "memory") 960)"#);
    sandbox.install("mine", &wasm(&holds), None, "base").await.unwrap();
    let holding = crowd(&sandbox, 60, |_| fun("mine.ask"));
    // Fourteen jobs of 64 MiB; the rest is reserved for small ones.
    for _ in 0..14 {
        within(grip.arrived.recv()).await.unwrap();
    }
    holding.beside("jobs that hold memory", &sandbox).await;
    // All of them stayed within the total.
    let mut arrived = 14;
    while grip.arrived.try_recv().is_ok() {
        arrived += 1;
    }
    assert!(arrived <= 16, "{arrived} of 60 MiB at once");
    sandbox.shutdown().await;
}

/// A crowd of many modules and functions, none of which was called before.
#[tokio::test(flavor = "multi_thread")]
async fn crowds_of_many_modules_do_not_hold_up_short_jobs() {
    let home = home(&granted());
    let (sandbox, _grip) = home.start().await;
    ready(&sandbox).await;
    for n in 0..12 {
        let other = ASKS.replace("i32.const 7", &format!("i32.const {n}"));
        sandbox.install(&format!("m{n}"), &wasm(&other), None, "base").await.unwrap();
    }
    let functions = ["ask", "spin"];
    let many = crowd(&sandbox, 120, |n| fun(&format!("m{}.{}", n % 12, functions[n % 2])));
    many.beside("jobs of many modules", &sandbox).await;
    sandbox.shutdown().await;
}

/// A crowd of jobs that make nested calls, which compute.
#[tokio::test(flavor = "multi_thread")]
async fn crowds_of_children_do_not_hold_up_short_jobs() {
    let mut home = home(&granted());
    home.config.settings.total_memory = 12 << 30;
    let (sandbox, _broker) = home.start_nesting().await;
    ready(&sandbox).await;
    sandbox.install("mine", &wasm(calls()), None, "base").await.unwrap();
    sandbox.install("other", &wasm(ASKS), None, "base").await.unwrap();
    let calling = crowd(&sandbox, 40, |_| ("mine.call0".into(), vec![Value::from("mine.call1|other.spin")]));
    // At least the children of the jobs that have a turn.
    until("their children", || sandbox.instances() >= 40 + 2 * 10).await;
    calling.beside("jobs that call others", &sandbox).await;
    sandbox.shutdown().await;
}

/// A job that does not get the requested memory within its time names that limit in its error, and no other job is
/// affected.
#[tokio::test(flavor = "multi_thread")]
async fn a_function_that_was_small_waits_for_the_memory_that_it_needs() {
    let mut home = home(&json!({ "modules": { "*": { "jobs": true }, "grows": { "limits": { "wall": "2s" } } } }));
    home.config.settings.total_memory = 160 << 20;
    let (sandbox, mut grip) = home.start().await;
    ready(&sandbox).await;
    // A function that is small with one argument and large with another.
    let grows = r#"(component
        (core module $m
            (memory 1)
            (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0))))
        (core instance $i (instantiate $m))
        (func (export "grow") (param "pages" u32) (result s32) (canon lift (core func $i "grow"))))"#;
    sandbox.install("grows", &wasm(grows), None, "base").await.unwrap();
    let holds = ASKS.replace(r#"(memory (export "memory") 1)"#, r#"(memory (export "memory") 960)"#);
    sandbox.install("mine", &wasm(&holds), None, "base").await.unwrap();
    let grow = |pages: u32| sandbox.run(job("1", "grows.grow"), "grows.grow", vec![Value::from(pages)], vec![]);
    assert_eq!(within(grow(1)).await.value, Value::from(1));
    let holding = crowd(&sandbox, 2, |_| fun("mine.ask"));
    for _ in 0..2 {
        within(grip.arrived.recv()).await.unwrap();
    }
    let outcome = within(grow(900)).await;
    assert!(failure(&outcome).contains("wall clock limit of 2 s"), "{outcome:?}");
    assert_eq!(within(grow(2)).await.value, Value::from(1));
    // With free memory the call gets it.
    let large = grow(900);
    let (outcome, _) = tokio::join!(within(large), async { sandbox.kill("crowd") });
    assert_eq!(outcome.value, Value::from(1));
    within(join_all(holding.0)).await;
    sandbox.shutdown().await;
}
