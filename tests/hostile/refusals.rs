//! A module that is refused as often as it can ask: good jobs beside it take as long as beside a module that is refused nothing, and
//! what is kept of it has a bound.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::asks::NOTHING;
use crate::rig::{Rig, hostile, job, text};

/// Calls of the storm at once, and its time.
const AT_ONCE: usize = 4;
const TIME: Duration = Duration::from_secs(5);
/// More than the list has in its two files (`docs/sandbox.md`).
const LIST_MAX: u64 = 9 << 20;

/// Calls this function as often as possible, and returns how often a second, with the times of the good jobs beside it, sorted.
async fn storm(rig: &Rig, fun: &'static str, wanted: bool) -> (u64, Vec<Duration>) {
    let (over, calls) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..AT_ONCE {
        let (sandbox, over, calls) = (Arc::clone(rig.sandbox()), Arc::clone(&over), Arc::clone(&calls));
        tasks.spawn(async move {
            while !over.load(Ordering::Relaxed) {
                // Something else each time, which costs the list most.
                let nth = calls.fetch_add(1, Ordering::Relaxed);
                let args = vec![if wanted { text(&format!("key{nth}")) } else { text("id") }];
                let outcome = sandbox.run(job(fun), fun, args, Vec::new()).await;
                assert_eq!(outcome.success, !wanted, "{outcome:?}");
            }
        });
    }
    let (began, mut took) = (Instant::now(), Vec::new());
    while began.elapsed() < TIME {
        let started = Instant::now();
        let outcome = rig.run("test.ping", Vec::new()).await;
        took.push(started.elapsed());
        assert!(outcome.success, "{outcome:?}");
    }
    over.store(true, Ordering::Relaxed);
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
    took.sort();
    (calls.load(Ordering::Relaxed) / TIME.as_secs(), took)
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_as_fast_as_they_come_do_not_delay_other_jobs() {
    let rig = Rig::start(&format!("  learn: true\n  modules:\n    hostile: {NOTHING}\n")).await;
    rig.install("hostile", &hostile()).await;
    let p99 = |took: &[Duration]| took[took.len() * 99 / 100];
    // The machine's other work comes and goes, so the best of some rounds counts.
    let mut beside = Vec::new();
    for _ in 0..3 {
        let (allowed, quiet) = storm(&rig, "hostile.config", false).await;
        let (refused, loud) = storm(&rig, "hostile.pillar", true).await;
        println!(
            "{allowed} calls/s that are allowed: a good job's p99 is {:?}; {refused} refusals/s: {:?}",
            p99(&quiet),
            p99(&loud)
        );
        assert!(refused > 0 && loud.len() > 10);
        beside.push((p99(&quiet), p99(&loud)));
        if p99(&loud) <= (p99(&quiet) * 2).max(p99(&quiet) + Duration::from_millis(20)) {
            break;
        }
    }
    let (quiet, loud) = beside[beside.len() - 1];
    assert!(loud <= (quiet * 2).max(quiet + Duration::from_millis(20)), "{beside:?}");
    // What is not written yet is when the minion ends.
    let cache = rig.dir.join("cache");
    rig.run("sandbox.refusals", Vec::new()).await;
    let size: u64 = std::fs::read_dir(&cache)
        .unwrap()
        .flatten()
        .filter(|file| file.file_name().to_string_lossy().starts_with("refusals"))
        .map(|file| file.metadata().unwrap().len())
        .sum();
    assert!(size > 0 && size <= LIST_MAX, "{size} bytes");
    rig.end().await;
}
