//! Executors start with the first job that needs them, reach what its function was granted, and end when idle.

use std::sync::Arc;
use std::time::{Duration, Instant};

use brine_kit::files::script;
use brine_kit::process::{exists, kill};
use brine_kit::wait::{until, within};
use brine_kit::wat::{number, wasm};
use brine_sandbox::{PolicyOp, Sandbox};
use rmpv::Value;
use serde_json::json;

use crate::components::reaches;
use crate::support::{Home, call, failure, spawn};

/// The bound on executors with direct grants.
const MAX_UP: usize = 16;

/// Installs modules `m0`, `m1` … Each may reach a directory of its own and may ask the broker.
async fn reaching(count: usize, idle: Duration) -> (Home, Arc<Sandbox>, crate::support::Grip) {
    let mut home = Home::new();
    home.config.settings.executor_idle = idle;
    (home.config.settings.max_running, home.config.settings.max_queued) = (64, 64);
    let entries: serde_json::Map<_, _> = (0..count)
        .map(|n| {
            let folder = home.config.standard_dir.join(n.to_string());
            std::fs::create_dir(&folder).unwrap();
            (format!("m{n}"), json!({ "jobs": true, "filesystem": { folder.to_str().unwrap(): "ro" } }))
        })
        .collect();
    let home = home.policy(&json!({ "modules": entries }));
    let (sandbox, grip) = home.start().await;
    for n in 0..count {
        // The modules have different content.
        let component = reaches().replace("i32.const 7", &format!("i32.const {n}"));
        sandbox.install(&format!("m{n}"), &wasm(&component), None, "base").await.unwrap();
    }
    (home, sandbox, grip)
}

fn leak(name: String) -> &'static str {
    Box::leak(name.into_boxed_str())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_executor_comes_with_the_first_job_and_goes_when_none_needs_it() {
    let idle = Duration::from_secs(1);
    let (_home, sandbox, mut grip) = reaching(2, idle).await;
    let plain = sandbox.executor_pid().unwrap();
    // The install loaded the module in the permanent executor only.
    assert_eq!(sandbox.executor_pids(), [plain]);
    sandbox.install("mine", &wasm(number(1)), None, "base").await.unwrap();
    assert_eq!(call(&sandbox, "mine.number").await.value, Value::from(1));
    assert_eq!(sandbox.executor_pids(), [plain]);

    assert_eq!(call(&sandbox, "m1.number").await.value, Value::from(1));
    let pids = sandbox.executor_pids();
    assert_eq!((pids.len(), pids[0]), (2, plain));
    // The executor stays while a job runs in it, and also serves the next job.
    let running = spawn(&sandbox, "1", "m1.ask");
    within(grip.arrived.recv()).await.unwrap();
    let began = Instant::now();
    while began.elapsed() < 2 * idle {
        assert_eq!(call(&sandbox, "mine.number").await.value, Value::from(1));
    }
    assert_eq!(sandbox.executor_pids(), pids);
    grip.gate.send(true).unwrap();
    assert_eq!(within(running).await.unwrap().value, Value::from(true));
    until("its end", || sandbox.executor_pids() == [plain]).await;
    until("its process's end", || !exists(pids[1])).await;
    // It starts again for the next job.
    assert_eq!(call(&sandbox, "m1.number").await.value, Value::from(1));
    assert_eq!(sandbox.executor_pids().len(), 2);
    sandbox.shutdown().await;
    assert_eq!(sandbox.executor_pids(), Vec::<u32>::new());
    assert_eq!(failure(&call(&sandbox, "m0.number").await), "The minion is stopping.");
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_with_other_grants_run_in_other_executors() {
    let home = Home::new();
    let folder = home.config.standard_dir.to_str().unwrap().to_owned();
    let home = home.policy(&json!({ "modules": {
        "mine": { "jobs": true },
        "mine.number": { "filesystem": { folder: "ro" } },
    } }));
    let (sandbox, mut grip) = home.start().await;
    sandbox.install("mine", &wasm(reaches()), None, "base").await.unwrap();
    let asking = spawn(&sandbox, "1", "mine.ask");
    within(grip.arrived.recv()).await.unwrap();
    assert_eq!(sandbox.executor_pids().len(), 1);
    assert_eq!(call(&sandbox, "mine.number").await.value, Value::from(7));
    let pids = sandbox.executor_pids();
    assert_eq!(pids.len(), 2);
    // The death of one executor does not affect the other.
    kill(pids[1]);
    until("another", || sandbox.executor_pids() != pids).await;
    grip.gate.send(true).unwrap();
    assert_eq!(within(asking).await.unwrap().value, Value::from(true));
    assert_eq!(call(&sandbox, "mine.number").await.value, Value::from(7));
    sandbox.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_executor_makes_room_and_one_at_work_does_not() {
    let (_home, sandbox, mut grip) = reaching(MAX_UP + 1, Duration::from_secs(3_600)).await;
    let mut running = Vec::new();
    for n in 0..MAX_UP {
        running.push(spawn(&sandbox, leak(n.to_string()), leak(format!("m{n}.ask"))));
        within(grip.arrived.recv()).await.unwrap();
    }
    assert_eq!(sandbox.executor_pids().len(), MAX_UP + 1);
    let last = leak(format!("m{MAX_UP}.number"));
    assert_eq!(
        failure(&call(&sandbox, last).await),
        "The minion is busy: 16 executors for modules with grants of their own are at work. Try again."
    );
    // Existing executors continue to serve.
    assert_eq!(call(&sandbox, "m3.number").await.value, Value::from(3));
    sandbox.kill("0");
    assert!(failure(&within(running.remove(0)).await.unwrap()).ends_with("it was killed"));
    let before = sandbox.executor_pids();
    assert_eq!(call(&sandbox, last).await.value, Value::from(MAX_UP));
    let after = sandbox.executor_pids();
    assert_eq!(after.len(), MAX_UP + 1);
    assert_eq!(before.iter().filter(|pid| !after.contains(pid)).count(), 1);
    grip.gate.send(true).unwrap();
    for job in running {
        assert_eq!(within(job).await.unwrap().value, Value::from(true));
    }
    within(sandbox.shutdown()).await;
}

/// Deaths of one executor do not affect the others, and do not make them refuse jobs.
#[tokio::test(flavor = "multi_thread")]
async fn deaths_of_one_are_nobody_elses() {
    let (_home, sandbox, _grip) = reaching(2, Duration::from_secs(60)).await;
    let plain = sandbox.executor_pid().unwrap();
    for _ in 0..4 {
        assert_eq!(call(&sandbox, "m1.number").await.value, Value::from(1));
        let pid = sandbox.executor_pids().into_iter().find(|pid| *pid != plain);
        pid.into_iter().for_each(kill);
        until("its end", || pid.is_none_or(|pid| !sandbox.executor_pids().contains(&pid))).await;
    }
    assert_eq!(call(&sandbox, "m0.number").await.value, Value::from(0));
    assert_eq!(sandbox.executor_pid(), Some(plain));
    sandbox.shutdown().await;
}

/// A directory that does not exist, is a FIFO or is a link does not affect the others. Each becomes available once it
/// is a directory.
#[tokio::test(flavor = "multi_thread")]
async fn directories_that_cannot_be_had_are_left_out_until_they_can() {
    let home = Home::new();
    let root = home.config.standard_dir.parent().unwrap().canonicalize().unwrap();
    let path = |name: &str| root.join(name).to_str().unwrap().to_owned();
    std::fs::create_dir(path("there")).unwrap();
    let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::from_raw_mode(0o600));
    rustix::fs::mknodat(rustix::fs::CWD, path("fifo"), kind, mode, 0).unwrap();
    std::os::unix::fs::symlink("there", path("link")).unwrap();
    let names = ["there", "missing", "fifo", "link"];
    let granted: serde_json::Map<_, _> = names.iter().map(|name| (path(name), json!("ro"))).collect();
    let home = home.policy(&json!({ "modules": { "mine": { "jobs": true, "filesystem": granted } } }));
    let (sandbox, _grip) = home.start().await;
    sandbox.install("mine", &wasm(reaches()), None, "base").await.unwrap();
    let plain = sandbox.executor_pid().unwrap();
    // Returns the process that serves the module now.
    let served = async || {
        let before = sandbox.executor_pids();
        assert_eq!(call(&sandbox, "mine.number").await.value, Value::from(7));
        let after = sandbox.executor_pids();
        let new: Vec<u32> = after.into_iter().filter(|pid| *pid != plain && !before.contains(pid)).collect();
        new.first().copied()
    };
    let first = served().await;
    assert!(first.is_some());
    for _ in 0..7 {
        assert_eq!(served().await, None, "nothing died, nothing changed");
    }
    let check = sandbox.report(PolicyOp::Check).await.unwrap().to_string();
    for why in [
        format!("the granted directory {} is not there: it is left out", path("missing")),
        format!("the granted directory {} is neither a directory nor a regular file: it is left out", path("fifo")),
        format!("the granted directory {} is {} by its real name", path("link"), path("there")),
        format!("there is no directory {}; it is left out until there is", path("missing")),
        format!("{} is neither a directory nor a regular file; it is left out as long as that is so", path("fifo")),
    ] {
        assert!(check.contains(&why), "{why}: {check}");
    }
    assert!(!check.contains(&format!("the granted directory {} ", path("there"))), "{check}");
    // A new directory is available to the next job.
    std::fs::create_dir(path("missing")).unwrap();
    assert!(served().await.is_some());
    std::fs::remove_file(path("link")).unwrap();
    std::fs::create_dir(path("link")).unwrap();
    assert!(served().await.is_some());
    // So is a directory that replaces another. The walls of the earlier process do not include it.
    std::fs::rename(path("there"), path("old")).unwrap();
    std::fs::create_dir(path("there")).unwrap();
    assert!(served().await.is_some());
    std::fs::remove_dir(path("there")).unwrap();
    assert!(served().await.is_some());
    assert_eq!(served().await, None);
    sandbox.shutdown().await;
}

/// Callers of an executor that does not start get the reason within a bound.
#[tokio::test(flavor = "multi_thread")]
async fn an_executor_that_does_not_start_is_told() {
    let (mut home, sandbox, _grip) = reaching(1, Duration::from_secs(60)).await;
    sandbox.shutdown().await;
    // A program that starts once, as the permanent executor.
    let folder = tempfile::tempdir().unwrap();
    let once = folder.path().join("brine-executor");
    let mark = folder.path().join("mark");
    let text = format!(
        "#!/bin/sh\nif [ -e {mark} ]; then exit 3; fi\n: > {mark}\nexec {real} \"$@\"\n",
        mark = mark.display(),
        real = home.config.executor.display()
    );
    script(&once, &text);
    home.config.executor = once;
    // Another user could not write the mark.
    home.config.settings.user = Some("root".into());
    home.restarts.deaths = 2;
    let (sandbox, _grip) = home.start().await;
    let text = failure(&call(&sandbox, "m0.number").await).to_owned();
    assert!(
        text.starts_with(
            "The sandbox is not available: its executor died 2 times within 30 s, the last time it did not start: "
        ),
        "{text}"
    );
    sandbox.install("mine", &wasm(number(1)), None, "base").await.unwrap();
    assert_eq!(call(&sandbox, "mine.number").await.value, Value::from(1));
    sandbox.shutdown().await;
}
