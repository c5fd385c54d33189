//! Each resource up to its limit.

use std::sync::Arc;

use brine_kit::logs::Log;

use crate::asks::NOTHING;
use crate::rig::{AT_ONCE, CPU, Rig, WALL, fails, hostile, job, returns, text};

#[tokio::test(flavor = "multi_thread")]
async fn each_to_its_end() {
    let limits = "{wall: 6s, cpu: 500ms, memory: 64MiB, output: 1MiB, log: 8KiB, log_lines: 100, host_calls: 200, host_bytes: 2MiB}";
    let rig = Rig::start(&format!("  limits: {limits}\n  modules:\n    hostile: {NOTHING}\n")).await;
    rig.install("hostile", &hostile()).await;
    let large = text(&"x".repeat(1 << 20));
    for (fun, args, budget, gets) in [
        ("spin", vec![], CPU, fails("hostile.spin was stopped: its CPU limit of 500 ms is used up")),
        ("grow", vec![], CPU, returns("… MiB")),
        (
            "flood",
            vec![(2 << 20).into()],
            AT_ONCE,
            fails("hostile.flood was stopped: its return is larger than its output limit of 1 MiB"),
        ),
        (
            "flood",
            vec![(100 << 20).into()],
            AT_ONCE,
            fails("hostile.flood was stopped: its memory limit of 64 MiB is used up"),
        ),
        // Waiting uses no CPU time, but ends at the wall-clock limit.
        (
            "nap",
            vec![1.into(), u32::MAX.into()],
            WALL,
            fails("hostile.nap was stopped: its wall clock limit of 6 s is used up"),
        ),
        (
            "nap",
            vec![3_600_000.into(), 1.into()],
            WALL,
            fails("hostile.nap was stopped: its wall clock limit of 6 s is used up"),
        ),
        (
            "wait",
            vec![1_000_000.into()],
            AT_ONCE,
            fails("hostile.wait was stopped: its limit of 256 open handles is used up"),
        ),
        (
            "shout",
            vec![(40 << 20).into(), u32::MAX.into()],
            CPU,
            fails("hostile.shout was stopped: it hands over more than its limit of 2 MiB at once"),
        ),
        (
            "flood",
            vec![(60 << 20).into()],
            AT_ONCE,
            fails("hostile.flood was stopped: it hands over more than its limit of 2 MiB at once"),
        ),
        (
            "flood",
            vec![u32::MAX.into()],
            AT_ONCE,
            fails(
                "hostile.flood trapped: it gave up (`unreachable` was executed); its last log line: …: capacity overflow",
            ),
        ),
        (
            "pester",
            vec![u32::MAX.into()],
            CPU,
            fails("hostile.pester was stopped: its limit of 200 calls to the host is used up"),
        ),
        // Lines beyond the limit are dropped and counted.
        ("log", vec![text("short"), 100_000.into()], CPU, returns("nil")),
        ("log", vec![large.clone(), 100.into()], CPU, returns("nil")),
        (
            "say",
            vec![text(&"x".repeat(3 << 20)), false.into()],
            AT_ONCE,
            fails("The arguments have 3145736 bytes; the limit of a job is 2097152 (sandbox:limits:host_bytes)."),
        ),
    ] {
        rig.attack(&format!("hostile.{fun}"), args, budget, &gets).await;
    }
    rig.attack(
        "test.sleep",
        vec![3600.into()],
        WALL,
        &fails("test.sleep was stopped: its wall clock limit of 6 s is used up"),
    )
    .await;
    rig.end().await;
}

/// Each call keeps within its own limit, and whoever may start calls starts them without end.
#[tokio::test(flavor = "multi_thread")]
async fn calls_without_end_write_little_to_the_log() {
    let log = Log::capture(tracing::Level::WARN);
    let rig = Rig::start(&format!("  modules:\n    hostile: {NOTHING}\n")).await;
    rig.install("hostile", &hostile()).await;
    for _ in 0..40 {
        let outcome = rig.run("hostile.log", vec![text(&"x".repeat(500)), 1000.into()]).await;
        assert!(outcome.success, "{outcome:?}");
    }
    let written = log.text().len();
    assert!((100 << 10..512 << 10).contains(&written), "{written} bytes in the log");
    rig.end().await;
}

/// More jobs than turns: each runs, waits or is refused at once.
#[tokio::test(flavor = "multi_thread")]
async fn jobs_at_once() {
    let settings = format!(
        "  max_running: 8\n  max_queued: 16\n  limits: {{wall: 6s, cpu: 500ms}}\n  modules:\n    hostile: {}\n",
        NOTHING.replace("process: []", "process: [], max_running: 2, max_queued: 3")
    );
    let rig = Rig::start(&settings).await;
    rig.install("hostile", &hostile()).await;
    let jobs: Vec<_> = (0..100)
        .map(|_| {
            let sandbox = Arc::clone(rig.sandbox());
            tokio::spawn(async move { sandbox.run(job("hostile.spin"), "hostile.spin", vec![], vec![]).await })
        })
        .collect();
    let ended = async {
        let mut ends = Vec::new();
        for job in jobs {
            ends.push(crate::rig::shown(&job.await.unwrap().value));
        }
        ends
    };
    let ends = rig.beside("a hundred jobs", WALL * 3, ended).await;
    let count = |start: &str| ends.iter().filter(|text| text.starts_with(start)).count();
    let stopped = count("hostile.spin was stopped: ");
    let busy = count("The minion is busy: 2 jobs of module hostile run and 3 wait.");
    assert_eq!((stopped, busy), (5, 95), "{ends:?}");
    rig.end().await;
}
