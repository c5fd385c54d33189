//! `make bench`: what a job costs, with the programs as they ship. Prints one table.
//!
//! Wall times on a shared machine are noisy: the median and the minimum of many runs are printed, beside the goal.

mod executor;

use std::time::Duration;

use brine_tests::salt::{Master, Minion};

/// Runs of the `salt` command; each is a process of its own.
const COLD_RUNS: usize = 50;

fn main() {
    let master = Master::start("");
    let minion = master.minion("bench");
    assert_eq!(master.salt(&["*", "test.ping"]).exits(0).stdout, "bench:\n    True\n");

    println!("{:<58} {:>10} {:>10} {:>10}", "", "median", "minimum", "goal");
    let cold = sorted((0..COLD_RUNS).map(|_| master.salt(&["*", "test.ping"]).exits(0).elapsed).collect());
    row("`salt '*' test.ping` cold, one minion (ms)", ms(cold[COLD_RUNS / 2]), ms(cold[0]), "60");

    let warm = executor::warm_ping();
    row("warm test.ping through the executor (µs)", us(warm[warm.len() / 2]), us(warm[0]), "100");
    for (kind, times, peak) in executor::large_returns() {
        let what = format!("a return of 1 MB, {kind}, through the executor (ms)");
        row(&what, ms(times[times.len() / 2]), ms(times[0]), "30");
        row("  the executor's memory at its highest (MiB)", mib(peak), mib(peak), "64");
    }
    if let Some(folder) = std::env::var_os("BRINE_LANGUAGES") {
        languages(std::path::Path::new(&folder));
    }
    let used = used_by_jobs(&master);
    row("the same as the returns of jobs say, one at a time (µs)", used[used.len() / 2], used[0], "-");

    let idle = pss_kib(minion.running().pid()) + pss_kib(minion.executor());
    row("minion and executor idle, PSS (MiB)", mib(idle), mib(idle), "25");
    let idle = pss_kib(master.daemon.as_ref().expect("it runs").pid());
    row("master idle, PSS (MiB)", mib(idle), mib(idle), "-");
    drop::<Minion>(minion);
}

/// examples/disk_report in each language, one call that asks the host twice.
fn languages(folder: &std::path::Path) {
    for cost in executor::languages(folder) {
        let goal = match cost.language {
            "rust" | "c" => "60",
            "js" => "1000",
            _ => "1500",
        };
        let (jobs, load, compile) = (&cost.jobs, us(cost.load), ms(cost.compile));
        row(&format!("disk_report in {}, warm (µs)", cost.language), us(jobs[jobs.len() / 2]), us(jobs[0]), goal);
        row("  its load (µs)", load, load, "-");
        row("  its compile (ms)", compile, compile, "-");
        row("  the compiler's memory (MiB)", mib(cost.compile_peak), mib(cost.compile_peak), "-");
        row("  its size and that of its code (KiB)", mib(cost.size), mib(cost.code), "-");
    }
}

/// What the returns themselves say: wall time of the instance, µs.
fn used_by_jobs(master: &Master) -> Vec<f64> {
    let events = master.events();
    let mut all = Vec::new();
    for _ in 0..COLD_RUNS {
        let jid = master.start_job(&["*", "test.ping"]);
        let event = events.wait_return(&jid, "bench");
        all.push(event["usage"]["wall_us"].as_f64().expect("usage in the return"));
    }
    all.sort_by(f64::total_cmp);
    all
}

fn row(what: &str, median: f64, minimum: f64, goal: &str) {
    println!("{what:<58} {median:>10.1} {minimum:>10.1} {goal:>10}");
}

fn sorted(mut all: Vec<Duration>) -> Vec<Duration> {
    all.sort();
    all
}

fn us(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

#[allow(clippy::cast_precision_loss, reason = "a size for people")]
fn mib(kib: u64) -> f64 {
    kib as f64 / 1024.0
}

/// Proportional set size of a process, KiB.
fn pss_kib(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).expect("our own process");
    let line = text.lines().find(|line| line.starts_with("Pss:")).expect("the kernel tells");
    line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number of KiB")
}
