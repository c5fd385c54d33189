//! Resource usage of processes, from /proc.

use std::collections::HashSet;
use std::time::Duration;

use brine_kit::process::{proc, size};
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

/// Returns a daemon and all its living descendants.
pub(crate) fn tree(root: u32) -> Vec<u32> {
    let all: Vec<Stat> = std::fs::read_dir("/proc")
        .expect("/proc is mounted")
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(Stat::read)
        .collect();
    // Daemons of tests have their own process group. A process that left the group is still a descendant.
    let mut found: HashSet<u32> = all.iter().filter(|stat| stat.group == root).map(|stat| stat.pid).collect();
    found.insert(root);
    loop {
        let before = found.len();
        found.extend(all.iter().filter(|stat| found.contains(&stat.parent)).map(|stat| stat.pid).collect::<Vec<_>>());
        if found.len() == before {
            break;
        }
    }
    all.iter().map(|stat| stat.pid).filter(|pid| found.contains(pid)).collect()
}

/// Clock ticks for each second (USER_HZ of proc_pid_stat(5)), the same on all of our machines.
const TICKS: u64 = 100;

/// Returns the CPU time of a daemon, its descendants, and the processes that they waited for. That of living processes is
/// exact: a tick would be the receipts of a hundred jobs.
pub(crate) fn cpu(root: u32) -> Duration {
    let of = |stat: Stat| own_cpu(stat.pid) + Duration::from_millis(stat.waited_ticks * 1000 / TICKS);
    tree(root).into_iter().filter_map(Stat::read).map(of).sum()
}

/// Returns the CPU time of one process, with the threads that it had.
fn own_cpu(pid: u32) -> Duration {
    let pid = Pid::from_raw(pid.cast_signed());
    clock_getcpuclockid(pid).and_then(clock_gettime).map(Duration::from).unwrap_or_default()
}

/// Returns the proportional set size of a daemon and its descendants in MiB: shared memory counts once.
pub(crate) fn pss(root: u32) -> f64 {
    mib(tree(root).into_iter().map(pss_kib).sum())
}

/// Returns the resident set size of one process in MiB.
pub(crate) fn rss(pid: u32) -> f64 {
    mib(size(pid, "VmRSS").unwrap_or(0) >> 10)
}

#[allow(clippy::cast_precision_loss, reason = "a size for people")]
pub(crate) fn mib(kib: u64) -> f64 {
    kib as f64 / 1024.0
}

fn pss_kib(pid: u32) -> u64 {
    let text = proc(pid, "smaps_rollup").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("Pss:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}

struct Stat {
    pid: u32,
    parent: u32,
    group: u32,
    /// User and system time of the children that it waited for, in ticks.
    waited_ticks: u64,
}

impl Stat {
    fn read(pid: u32) -> Option<Self> {
        let text = proc(pid, "stat")?;
        // The name before it may contain blanks and brackets.
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
        let waited_ticks = (13..15).filter_map(number).sum();
        let id = |at: usize| number(at).and_then(|n| u32::try_from(n).ok());
        Some(Self { pid, parent: id(1)?, group: id(2)?, waited_ticks })
    }
}
