//! The profile that SIGUSR2 writes to a file.
//!
//! There is no sampling of stacks: it needs a signal handler that walks the stack of any interrupted code, which is not
//! safe in a daemon that runs as root. The profile has what can be counted without sampling: the CPU time of each
//! thread, the load of the runtime's workers, the delay of timers, and the number and duration of the daemon's
//! operations.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;

/// The duration of a profile.
pub const WINDOW: Duration = Duration::from_secs(10);
/// Upper bound on the files kept; the oldest is removed.
const FILES_MAX: usize = 10;
/// The interval between two measurements of timer delays.
const TICK: Duration = Duration::from_millis(10);

/// The number of runs of an operation and their duration.
#[derive(Debug, Clone, Copy, Default)]
struct Spent {
    count: u64,
    total: Duration,
    /// The longest run since the last profile began.
    longest: Duration,
}

/// Counts the operations of a daemon by fixed names.
#[derive(Debug, Default)]
pub struct Timings(Mutex<BTreeMap<&'static str, Spent>>);

impl Timings {
    /// Records one run of an operation.
    pub fn record(&self, what: &'static str, took: Duration) {
        let mut all = self.lock();
        let spent = all.entry(what).or_default();
        spent.count += 1;
        spent.total += took;
        spent.longest = spent.longest.max(took);
    }

    /// Measures an operation until the result is dropped.
    pub fn during(&self, what: &'static str) -> During<'_> {
        During { timings: self, what, began: Instant::now() }
    }

    fn begin(&self) -> BTreeMap<&'static str, Spent> {
        let mut all = self.lock();
        for spent in all.values_mut() {
            spent.longest = Duration::ZERO;
        }
        all.clone()
    }

    fn since(&self, before: &BTreeMap<&'static str, Spent>) -> Vec<(&'static str, Spent)> {
        let all = self.lock();
        let mut done: Vec<(&'static str, Spent)> = all
            .iter()
            .map(|(what, now)| {
                let before = before.get(what).copied().unwrap_or_default();
                let total = now.total.saturating_sub(before.total);
                (*what, Spent { count: now.count - before.count, total, longest: now.longest })
            })
            .filter(|(_, spent)| spent.count > 0)
            .collect();
        done.sort_by_key(|(_, spent)| std::cmp::Reverse(spent.total));
        done
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, Spent>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running operation.
#[derive(Debug)]
pub struct During<'a> {
    timings: &'a Timings,
    what: &'static str,
    began: Instant,
}

impl Drop for During<'_> {
    fn drop(&mut self) {
        self.timings.record(self.what, self.began.elapsed());
    }
}

/// Measures for `window` and writes the profile to a new file in the folder, which only the owner can read. Returns the
/// file's path.
///
/// # Errors
/// When the file cannot be written.
pub async fn write(program: &str, dir: &Path, window: Duration, timings: &Timings) -> io::Result<PathBuf> {
    let start = jiff::Zoned::now();
    let began = Instant::now();
    let (threads, workers, done) = (threads(), workers(), timings.begin());
    let mut late = lateness(window).await;
    let took = began.elapsed();
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{program} {}, process {}: {:.1} s from {}",
        env!("CARGO_PKG_VERSION"),
        std::process::id(),
        took.as_secs_f64(),
        start.strftime("%Y-%m-%d %H:%M:%S")
    );
    let _ = writeln!(text, "open files: {}, memory: {}", crate::limits::open_files(), resident());
    say_threads(&mut text, &threads);
    say_workers(&mut text, &workers, took);
    late.sort();
    let at = |hundredth: usize| late.get(late.len() * hundredth / 100).or(late.last()).copied().unwrap_or_default();
    let _ = writeln!(
        text,
        "\ntimers rang late by (ms): median {:.2}, 99th {:.2}, worst {:.2}, of {}",
        ms(at(50)),
        ms(at(99)),
        ms(at(100)),
        late.len()
    );
    let _ =
        writeln!(text, "\n{:<40} {:>9} {:>12} {:>10} {:>10}", "what was done", "times", "ms in all", "mean", "longest");
    for (what, spent) in timings.since(&done) {
        let mean = ms(spent.total) / f64::from(u32::try_from(spent.count).unwrap_or(u32::MAX));
        let (count, total, longest) = (spent.count, ms(spent.total), ms(spent.longest));
        let _ = writeln!(text, "{what:<40} {count:>9} {total:>12.2} {mean:>10.3} {longest:>10.3}");
    }
    let name = format!("profile-{}-{}.txt", start.strftime("%Y%m%d-%H%M%S"), std::process::id());
    let dir = dir.to_owned();
    let kept = tokio::task::spawn_blocking(move || keep(&dir, &name, &text)).await;
    kept.map_err(io::Error::other)?
}

fn keep(dir: &Path, name: &str, text: &str) -> io::Result<PathBuf> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let mut old: Vec<PathBuf> = std::fs::read_dir(dir)?
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("profile-"))
        .map(|entry| entry.path())
        .collect();
    // The names begin with the time, so sorting by name sorts by age.
    old.sort();
    for path in old.iter().take(old.len().saturating_sub(FILES_MAX - 1)) {
        std::fs::remove_file(path)?;
    }
    let path = dir.join(name);
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    file.write_all(text.as_bytes())?;
    Ok(path)
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}

/// Each thread by its id: its name, nanoseconds on a processor, and nanoseconds waiting for one.
fn threads() -> BTreeMap<u32, (String, u64, u64)> {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let look = |entry: std::fs::DirEntry| {
        let read = |file: &str| std::fs::read_to_string(entry.path().join(file)).unwrap_or_default();
        let schedstat = read("schedstat");
        let mut numbers = schedstat.split_whitespace().map(|number| number.parse().unwrap_or_default());
        let id = entry.file_name().to_string_lossy().parse().ok()?;
        Some((id, (read("comm").trim().to_owned(), numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))))
    };
    tasks.filter_map(look).collect()
}

fn say_threads(text: &mut String, before: &BTreeMap<u32, (String, u64, u64)>) {
    let _ = writeln!(text, "\n{:<10} {:<20} {:>16} {:>16}", "thread", "name", "ms on a core", "ms wait for one");
    for (id, (name, run, wait)) in threads() {
        let (ran, waited) = before.get(&id).map_or((0, 0), |(_, run, wait)| (*run, *wait));
        let since = |now: u64, before: u64| ms(Duration::from_nanos(now.saturating_sub(before)));
        let _ = writeln!(text, "{id:<10} {name:<20} {:>16.2} {:>16.2}", since(run, ran), since(wait, waited));
    }
}

/// The time for which each worker of the runtime was busy.
fn workers() -> Vec<Duration> {
    let metrics = Handle::current().metrics();
    (0..metrics.num_workers()).map(|worker| metrics.worker_total_busy_duration(worker)).collect()
}

fn say_workers(text: &mut String, before: &[Duration], took: Duration) {
    let metrics = Handle::current().metrics();
    let (alive, queued) = (metrics.num_alive_tasks(), metrics.global_queue_depth());
    let _ = writeln!(text, "\nruntime: {alive} tasks, {queued} wait for a worker");
    for (worker, (now, before)) in workers().into_iter().zip(before).enumerate() {
        let busy = now.saturating_sub(*before).as_secs_f64() / took.as_secs_f64().max(f64::EPSILON);
        let _ = writeln!(text, "worker {worker}: busy {:.1} %", busy * 100.0);
    }
}

/// Measures the delay of timers, which is the time that a task waits for its turn.
async fn lateness(window: Duration) -> Vec<Duration> {
    let end = Instant::now() + window;
    let mut late = Vec::new();
    while Instant::now() < end {
        let due = Instant::now() + TICK;
        tokio::time::sleep_until(due.into()).await;
        late.push(due.elapsed());
    }
    late
}

/// The resident memory, as the kernel prints it.
fn resident() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.map_or_else(|| "unknown".to_owned(), |size| size.trim().to_owned())
}

/// One log line about the tasks and queues of the runtime.
pub fn runtime_line() -> String {
    let metrics = Handle::current().metrics();
    format!(
        "{} tasks, {} wait for one of {} workers; {} open files, {} of memory",
        metrics.num_alive_tasks(),
        metrics.global_queue_depth(),
        metrics.num_workers(),
        crate::limits::open_files(),
        resident()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn what_was_done_in_the_window_is_counted_and_no_more() {
        let dir = tempfile::tempdir().unwrap();
        let timings = std::sync::Arc::new(Timings::default());
        timings.record("_return", Duration::from_secs(5));
        timings.record("before", Duration::from_secs(5));
        let during = std::sync::Arc::clone(&timings);
        let folder = dir.path().join("profiles");
        let write = write("salt-master", &folder, Duration::from_millis(50), &timings);
        let (path, ()) = tokio::join!(write, async move {
            during.record("_return", Duration::from_millis(2));
            during.record("_return", Duration::from_millis(4));
        });
        let text = std::fs::read_to_string(path.unwrap()).unwrap();
        let line = text.lines().find(|line| line.starts_with("_return")).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words, ["_return", "2", "6.00", "3.000", "4.000"], "{text}");
        assert!(!text.contains("before"), "{text}");
        assert!(text.contains("worker 0: busy") && text.contains("timers rang late"), "{text}");
    }

    #[test]
    fn old_ones_go() {
        let dir = tempfile::tempdir().unwrap();
        for n in 0..FILES_MAX + 3 {
            keep(dir.path(), &format!("profile-{n:03}.txt"), "x").unwrap();
        }
        let mut names: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        assert_eq!((names.len(), names[0].to_str()), (FILES_MAX, Some("profile-003.txt")));
    }
}
