//! A thousand jobs at once: each returns or is refused, and none leaves anything behind.

use std::time::{Duration, Instant};

use brine_kit::process::resident;
use brine_kit::wait::within;
use brine_kit::wat::{number, wasm};
use brine_kit_sandbox::job;
use brine_sandbox::{JobOutcome, Sandbox};
use futures_util::future::join_all;
use rmpv::Value;

use crate::components::ASKS;
use crate::support::{Home, failure};

const JOBS: usize = 1_000;
/// Memory that the allocator may keep.
const KEPT: u64 = 16 << 20;

async fn at_once(sandbox: &Sandbox, fun: &'static str) -> Vec<JobOutcome> {
    let jids: Vec<String> = (0..JOBS).map(|n| n.to_string()).collect();
    let jobs = jids.iter().map(|jid| sandbox.run(job(jid, fun), fun, vec![], vec![]));
    within(join_all(jobs)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_jobs_are_answered_or_refused() {
    let mut home = Home::new();
    (home.config.settings.max_running, home.config.settings.max_queued) = (16, 700);
    let (sandbox, _grip) = home.start().await;
    sandbox.install("mine", &wasm(number(1)), None, "base").await.unwrap();
    let pid = sandbox.executor_pid().unwrap();
    let idle = resident(pid);
    for _ in 0..3 {
        let began = Instant::now();
        let outcomes = at_once(&sandbox, "mine.number").await;
        let answered = outcomes.iter().filter(|outcome| outcome.value == Value::from(1)).count();
        let refused = outcomes.iter().filter(|outcome| {
            let said = outcome.value.as_str().unwrap_or_default();
            !outcome.success
                && said.starts_with("The minion is busy: ")
                && said.ends_with(" wait. Try again, or raise sandbox:max_queued.")
        });
        let refused = refused.count();
        println!(
            "{answered} answered, {refused} refused in {:?}; executor {idle} → {}",
            began.elapsed(),
            resident(pid)
        );
        assert_eq!((outcomes.len(), answered + refused), (JOBS, JOBS));
        assert!(answered >= 714, "{answered}");
        assert_eq!(sandbox.instances(), 0);
    }
    let after = resident(pid);
    assert!(after < idle + KEPT, "{idle} → {after}");
    assert_eq!(sandbox.executor_pid(), Some(pid));
    sandbox.shutdown().await;
}

/// All jobs hang, some in the executor and most in the queue. One kill ends them all.
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_jobs_that_hang_are_ended_together() {
    let mut home = Home::new().grant("mine", "jobs");
    (home.config.settings.max_running, home.config.settings.max_queued) = (100, JOBS);
    home.config.settings.total_memory = 64 << 30;
    let (sandbox, mut grip) = home.start().await;
    sandbox.install("mine", &wasm(ASKS), None, "base").await.unwrap();
    let pid = sandbox.executor_pid().unwrap();
    let idle = resident(pid);
    let jobs = (0..JOBS).map(|_| sandbox.run(job("1", "mine.ask"), "mine.ask", vec![], vec![]));
    let kill = async {
        // An eighth of the turns is left for other modules.
        for _ in 0..88 {
            grip.arrived.recv().await.unwrap();
        }
        let began = Instant::now();
        assert_eq!(sandbox.kill("1"), JOBS);
        began
    };
    let (outcomes, began) = within(async { tokio::join!(join_all(jobs), kill) }).await;
    let took = began.elapsed();
    println!("ended within {took:?}; executor {idle} → {}", resident(pid));
    assert!(outcomes.iter().all(|outcome| failure(outcome).ends_with("it was killed")));
    assert_eq!(sandbox.instances(), 0);
    assert!(resident(pid) < idle + KEPT);
    assert!(took < Duration::from_secs(10), "{took:?}");
    sandbox.shutdown().await;
}

/// Measures warm calls, one after the other:
/// `cargo test -p brine-sandbox --release --test sandbox -- --ignored --exact load::warm --nocapture`
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures"]
async fn warm() {
    const CALLS: usize = 10_000;
    let home = Home::new();
    let (sandbox, _grip) = home.start().await;
    sandbox.install("mine", &wasm(number(1)), None, "base").await.unwrap();
    let mut times = Vec::with_capacity(CALLS);
    for n in 0..CALLS + 1_000 {
        let context = job("20261120000000000001", "mine.number");
        let began = Instant::now();
        let outcome = sandbox.run(context, "mine.number", vec![], vec![]).await;
        if n >= 1_000 {
            times.push(began.elapsed());
        }
        assert!(outcome.success, "{outcome:?}");
    }
    times.sort();
    println!("p50 {:?}, p90 {:?}, p99 {:?}", times[CALLS / 2], times[CALLS * 9 / 10], times[CALLS * 99 / 100]);
    sandbox.shutdown().await;
}
