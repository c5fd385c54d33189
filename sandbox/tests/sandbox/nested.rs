//! Nested calls: in separate instances, with their own grants, within their caller's time, and with a bound on depth.

use std::sync::Arc;
use std::time::{Duration, Instant};

use brine_kit::wait::{until, within};
use brine_kit::wat::{number, wasm};
use brine_kit_sandbox::job;
use brine_sandbox::{JobOutcome, Sandbox};
use rmpv::Value;
use serde_json::json;

use crate::components::{ASKS, calls, reaches};
use crate::support::{Home, Nesting, failure};

/// Installs `mine`, which makes nested calls, and `other`, which has `number` and `spin`.
async fn sandbox(home: &Home) -> (Arc<Sandbox>, Arc<Nesting>) {
    let (sandbox, broker) = home.start_nesting().await;
    sandbox.install("mine", &wasm(calls()), None, "base").await.unwrap();
    sandbox.install("other", &wasm(ASKS), None, "base").await.unwrap();
    (sandbox, broker)
}

fn home() -> Home {
    Home::new().grant("*", "jobs")
}

async fn call(sandbox: &Sandbox, fun: &str, what: &str) -> JobOutcome {
    within(sandbox.run(job("1", fun), fun, vec![Value::from(what)], vec![])).await
}

fn outcomes(broker: &Nesting) -> Vec<JobOutcome> {
    std::mem::take(&mut *broker.outcomes.lock().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_function_calls_another_and_what_that_uses_counts() {
    // With a single turn, nested calls do not wait for another one.
    let mut home = home();
    (home.config.settings.max_running, home.config.settings.max_queued) = (1, 0);
    let (sandbox, broker) = sandbox(&home).await;
    let alone = call(&sandbox, "mine.call0", "none.such").await;
    assert_eq!(alone.value, Value::from(false));
    let text = failure(&outcomes(&broker)[0]).to_owned();
    assert!(text.starts_with("'none.such' is not available."), "{text}");

    let outcome = call(&sandbox, "mine.call0", "mine.call1|other.number").await;
    assert_eq!(outcome.value, Value::from(true));
    let inner = outcomes(&broker);
    assert_eq!((&inner[0].value, &inner[1].value), (&Value::from(7), &Value::from(true)));
    assert_eq!(inner[0].sha256, Some(sandbox.describe("other").unwrap().sha256));
    let (own, number, call1, all) =
        (alone.usage.unwrap(), inner[0].usage.unwrap(), inner[1].usage.unwrap(), outcome.usage.unwrap());
    // The broker was called twice: by the job's function and by its nested call.
    assert_eq!((own.host_calls, number.host_calls, call1.host_calls, all.host_calls), (1, 0, 1, 2));
    assert!(call1.cpu_us >= number.cpu_us && all.cpu_us >= call1.cpu_us);
    assert_eq!(call1.memory_peak, own.memory_peak + number.memory_peak);
    assert_eq!(all.memory_peak, own.memory_peak + call1.memory_peak);
    assert!(all.wall_us >= call1.wall_us && call1.wall_us >= number.wall_us);
    sandbox.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cycles_and_depth_are_refused() {
    let home = home();
    let (sandbox, broker) = sandbox(&home).await;
    assert_eq!(call(&sandbox, "mine.call0", "mine.call1|mine.call0|x").await.value, Value::from(true));
    assert_eq!(
        failure(&outcomes(&broker)[0]),
        "'mine.call0' is already being called: mine.call0 → mine.call1 → mine.call0"
    );
    // The names are short, because the function to call is passed as a job id, whose length is bounded.
    sandbox.install("m", &wasm(calls().replace("i32.const 1024", "i32.const 2048")), None, "base").await.unwrap();
    sandbox.install("n", &wasm(number(9)), None, "base").await.unwrap();
    let deep = |last: usize| (1..=last).map(|n| format!("m.call{n}|")).collect::<String>() + "n.number";
    assert_eq!(call(&sandbox, "m.call0", &deep(6)).await.value, Value::from(true));
    assert_eq!(outcomes(&broker)[0].value, Value::from(9));
    call(&sandbox, "m.call0", &deep(7)).await;
    assert_eq!(
        failure(&outcomes(&broker)[0]),
        "'n.number' is not called: calls go 8 functions deep at most: m.call0 → m.call1 → m.call2 → m.call3 → m.call4 → \
         m.call5 → m.call6 → m.call7 → n.number"
    );
    sandbox.shutdown().await;
}

/// A nested call has the grants of its own module, and so its own executor.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_called_has_its_own_grants() {
    let home = Home::new();
    let folder = home.config.standard_dir.to_str().unwrap().to_owned();
    let home = home.policy(&json!({ "modules": {
        "mine": { "jobs": true },
        "reaching": { "jobs": true, "filesystem": { folder: "ro" } },
    } }));
    let (sandbox, broker) = home.start_nesting().await;
    sandbox.install("mine", &wasm(calls()), None, "base").await.unwrap();
    sandbox.install("reaching", &wasm(reaches()), None, "base").await.unwrap();
    assert_eq!(call(&sandbox, "mine.call0", "reaching.number").await.value, Value::from(true));
    assert_eq!(outcomes(&broker)[0].value, Value::from(7));
    assert_eq!(sandbox.executor_pids().len(), 2);
    sandbox.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_called_has_what_is_left_of_the_callers_time() {
    let mut home = home();
    home.config.settings.limits.wall_ms = 700;
    // The longer limit of the called module does not apply.
    let home = home.policy(&json!({ "modules": { "*": { "jobs": true }, "other": { "limits": { "wall": "50s" } } } }));
    let (sandbox, _broker) = sandbox(&home).await;
    let began = Instant::now();
    let outcome = call(&sandbox, "mine.call0", "other.spin").await;
    // Both calls end at the same moment. If the nested one ends first, its caller may still have time to report the
    // failure.
    if !outcome.success {
        assert!(failure(&outcome).contains("wall clock limit of 700 ms"), "{outcome:?}");
    } else {
        assert_eq!(outcome.value, Value::from(false));
    }
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    sandbox.shutdown().await;
}

/// Nested calls have a budget of CPU time together, apart from their caller's own.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_called_has_a_budget_of_cpu_time() {
    let home = home().policy(&json!({ "modules": {
        "*": { "jobs": true },
        "mine.call0": { "limits": { "calls_cpu": "100ms" } },
        "other.spin": { "limits": { "cpu": "150ms" } },
    } }));
    let (sandbox, broker) = sandbox(&home).await;
    let twice = calls().replace(
        "(call $kill (local.get 0) (local.get 1)))",
        "(drop (call $kill (local.get 0) (local.get 1))) (call $kill (local.get 0) (local.get 1)))",
    );
    sandbox.install("mine", &wasm(&twice), None, "base").await.unwrap();
    for what in ["other.spin", "mine.call1|other.spin"] {
        let outcome = call(&sandbox, "mine.call0", what).await;
        assert!(outcome.success, "{outcome:?}");
        let inner = outcomes(&broker);
        let refused = inner.last().unwrap();
        assert_eq!(
            failure(refused),
            format!(
                "'{}' is not called: the functions that mine.call0 called have used up its limit of their CPU time \
                 (sandbox:limits:calls_cpu)",
                what.split('|').next().unwrap()
            )
        );
        // The budget belongs to one call: `mine.call1` has its own and calls twice.
        let spun = if what.contains('|') { 2 } else { 1 };
        assert_eq!(inner.len(), spun + usize::from(what.contains('|')) + 1, "{inner:?}");
        assert!(inner[..spun].iter().all(|outcome| failure(outcome).contains("150 ms")), "{inner:?}");
    }
    sandbox.shutdown().await;
}

/// A nested call ends with its job: by the job's id, or when the requester goes away.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_called_ends_with_the_job() {
    let home = home();
    let (sandbox, _broker) = sandbox(&home).await;
    for abort in [false, true] {
        let running = {
            let sandbox = Arc::clone(&sandbox);
            let args = vec![Value::from("mine.call1|other.spin")];
            tokio::spawn(async move { sandbox.run(job("5", "mine.call0"), "mine.call0", args, vec![]).await })
        };
        until_instances(&sandbox, 3).await;
        if abort {
            running.abort();
        } else {
            assert_eq!(sandbox.kill("5"), 1);
            let text = failure(&within(running).await.unwrap()).to_owned();
            assert_eq!(text, "mine.call0 was stopped: it was killed");
        }
        until_instances(&sandbox, 0).await;
        // The executor stays usable.
        let outcome = within(sandbox.run(job("6", "other.number"), "other.number", vec![], vec![])).await;
        assert_eq!(outcome.value, Value::from(7));
    }
    sandbox.shutdown().await;
}

async fn until_instances(sandbox: &Sandbox, count: usize) {
    until(&format!("{count} instances"), || sandbox.instances() == count).await;
}

/// Jobs that make nested calls while all turns are taken do not wait for each other.
#[tokio::test(flavor = "multi_thread")]
async fn jobs_that_call_do_not_wait_for_each_other() {
    let mut home = home();
    (home.config.settings.max_running, home.config.settings.max_queued) = (2, 100);
    let (sandbox, _broker) = sandbox(&home).await;
    let jobs = (0..40).map(|_| call(&sandbox, "mine.call0", "mine.call1|mine.call2|other.number"));
    let outcomes = within(futures_util::future::join_all(jobs)).await;
    assert!(outcomes.iter().all(|outcome| outcome.success), "{outcomes:?}");
    sandbox.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_within_calls_are_bounded() {
    let mut home = home();
    home.config.settings.max_running = 1;
    home.config.settings.limits.memory = 64 << 20;
    home.config.settings.total_memory = 128 << 20;
    let (sandbox, broker) = home.start_nesting().await;
    // The module uses more than a small lease, so that its call begins with all of its limit.
    let large = calls().replace(r#"(memory (export "memory") 1)"#, r#"(memory (export "memory") 100)"#);
    sandbox.install("mine", &wasm(&large), None, "base").await.unwrap();
    sandbox.install("number", &wasm(number(1)), None, "base").await.unwrap();
    call(&sandbox, "mine.call0", "number.number").await;
    assert_eq!(outcomes(&broker)[0].value, Value::from(1));
    call(&sandbox, "mine.call0", "mine.call1|number.number").await;
    assert_eq!(
        failure(&outcomes(&broker)[0]),
        "The minion is busy: of the 128 MiB of memory for all jobs too little is free. Try again, or raise \
         sandbox:total_memory."
    );
    sandbox.shutdown().await;
}
