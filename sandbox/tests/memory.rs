//! Memory used by jobs returns to the host, in both processes. This is a separate program, because other tests use
//! memory too.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, missing_docs, dead_code, unused_macros)]

#[path = "sandbox/components.rs"]
mod components;
#[path = "sandbox/support.rs"]
mod support;

use std::time::{Duration, Instant};

use brine_kit::process::resident;
use brine_kit::wait::{until, within};
use brine_kit::wat::{number, wasm};
use brine_kit_sandbox::job;
use futures_util::future::join_all;

use crate::support::{Home, call};

const JOBS: usize = 1_000;
/// Additional memory that an idle process may have compared to before its first job.
const KEPT: u64 = 16 << 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_is_as_before_after_a_thousand_large_jobs() {
    let mut home = Home::new();
    (home.config.settings.max_running, home.config.settings.max_queued) = (16, JOBS);
    let (sandbox, _grip) = home.start().await;
    sandbox.install("mine", &wasm(number(1)), None, "base").await.unwrap();
    assert!(call(&sandbox, "mine.number").await.success);
    let (own, executor) = (std::process::id(), sandbox.executor_pid().unwrap());
    let idle = (resident(own), resident(executor));
    let show = |when: &str| {
        println!("{when}: minion {} KiB, executor {} KiB", resident(own) >> 10, resident(executor) >> 10);
    };
    show("idle");
    for bytes in [0, 100 << 10, 100 << 10] {
        let argument = "x".repeat(bytes);
        let args = || if bytes == 0 { vec![] } else { vec![argument.as_str().into()] };
        let began = Instant::now();
        let jobs = (0..JOBS).map(|_| sandbox.run(job("1", "mine.number"), "mine.number", args(), vec![]));
        let outcomes = within(join_all(jobs)).await;
        println!("{JOBS} jobs with {bytes} bytes of arguments in {:?}", began.elapsed());
        assert!(outcomes.iter().all(|outcome| outcome.success == (bytes == 0)));
        drop(outcomes);
        show("at their end");
    }
    let began = Instant::now();
    until("their memory is given back", || resident(own) < idle.0 + KEPT && resident(executor) < idle.1 + KEPT).await;
    show("quiet");
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    sandbox.shutdown().await;
}
