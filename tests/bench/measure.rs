//! The measurements of one side, in the order with the least mutual disturbance.

use std::time::{Duration, Instant};

use brine_client::Job;
use brine_kit::process::run;
use brine_kit::wait::wait_for;
use brine_protocol::value::Value;
use brine_tests::salt::{Kind, python};

use crate::api;
use crate::drive::Drive;
use crate::events;
use crate::idle;
use crate::job_options;
use crate::reactor;
use crate::rows::{Figures, Key};
use crate::side::{ID, Side};
use crate::states;
use crate::table::Figure;
use crate::usage;
use crate::values;

/// Repetitions of each measurement.
#[derive(Debug, Clone)]
pub(crate) struct Runs {
    pub(crate) cold: usize,
    pub(crate) client: usize,
    pub(crate) python_client: usize,
    /// Jobs with 1, 10 and 100 in flight.
    pub(crate) rate: [usize; 3],
    /// Jobs before memory is measured again. 0: only those run by then.
    pub(crate) after: usize,
    pub(crate) starts: usize,
    pub(crate) files: usize,
    pub(crate) events: usize,
    /// Jobs over which memory must not grow.
    pub(crate) drift: usize,
    /// Time for each kind of call of salt-api.
    pub(crate) api: Duration,
    /// Minions that ask for their pillars at once.
    pub(crate) pillars: usize,
    /// Renderings of a chain of maps.
    pub(crate) renders: usize,
    /// Runs of states of each kind.
    pub(crate) states: usize,
    /// Events with a reaction, and events without while CPU time is taken.
    pub(crate) reactions: usize,
    pub(crate) unmatched: usize,
    /// Time for which idle minions are looked at.
    pub(crate) idle: Duration,
}

impl Runs {
    /// Returns the repetitions for Brine.
    pub(crate) const fn brine(quick: bool, drift: usize) -> Self {
        if quick {
            let rate = [300, 1_000, 2_000];
            Self {
                cold: 20,
                client: 200,
                python_client: 10,
                rate,
                after: 3_000,
                starts: 3,
                files: 1,
                events: 20_000,
                drift,
                api: Duration::from_secs(3),
                pillars: 1_000,
                renders: 200,
                states: 20,
                reactions: 200,
                unmatched: 25_000,
                idle: Duration::from_secs(30),
            }
        } else {
            let rate = [1_000, 3_000, 6_000];
            Self {
                cold: 50,
                client: 1_000,
                python_client: 50,
                rate,
                after: 10_000,
                starts: 10,
                files: 3,
                events: 100_000,
                drift,
                api: Duration::from_secs(10),
                pillars: 2_000,
                renders: 200,
                states: 50,
                reactions: 1_000,
                unmatched: 50_000,
                idle: Duration::from_secs(180),
            }
        }
    }

    /// Returns the repetitions for Python, most of which takes a hundred times as long.
    pub(crate) const fn python(quick: bool) -> Self {
        if quick {
            let rate = [8, 20, 50];
            Self {
                cold: 4,
                client: 0,
                python_client: 10,
                rate,
                after: 0,
                starts: 1,
                files: 1,
                events: 5_000,
                drift: 0,
                api: Duration::from_secs(10),
                pillars: 100,
                renders: 30,
                states: 3,
                reactions: 10,
                unmatched: 100,
                idle: Duration::from_secs(30),
            }
        } else {
            let rate = [30, 100, 200];
            Self {
                cold: 20,
                client: 0,
                python_client: 50,
                rate,
                after: 0,
                starts: 3,
                files: 1,
                events: 100_000,
                drift: 0,
                api: Duration::from_secs(30),
                pillars: 100,
                renders: 30,
                states: 10,
                reactions: 30,
                unmatched: 300,
                idle: Duration::from_secs(180),
            }
        }
    }
}

/// Time for a process to become idle after its start or work, before its memory is measured: modules are compiled after the
/// start event, and Brine's daemons look every 30 s whether there is memory to give back.
const QUIET: Duration = Duration::from_secs(45);
/// Simultaneous jobs while memory is measured, and the time for which each sleeps.
const AT_ONCE: usize = 50;
const SLEEP_S: i64 = 8;
/// Sizes of files on the file server.
const LARGE: usize = 100_000_000;
const SMALL_FILES: usize = 5_000;
const SMALL: usize = 1_000;
/// Jobs before drift is measured, for all one-time allocations.
const DRIFT_WARM_UP: usize = 10_000;

/// Names of the parts of the measurement for `--only`.
pub(crate) const PARTS: [&str; 13] = [
    "cold", "client", "jobs", "memory", "events", "files", "starts", "api", "values", "states", "reactor", "receipts",
    "idle",
];

/// Measures these parts of one side, and the drift of memory if `runs.drift` is not 0.
pub(crate) fn all(kind: Kind, runs: &Runs, parts: &[String]) -> Figures {
    let began = Instant::now();
    let mut side = Side::start(kind);
    let mut figures = Figures::new();
    let mut part = |name: &str, measure: &mut dyn FnMut(&mut Figures)| {
        if parts.iter().any(|part| part == name) {
            eprintln!("bench: {kind:?}: {name}, after {} s", began.elapsed().as_secs());
            measure(&mut figures);
        }
    };
    let first_start = side.first_start;
    part("starts", &mut |figures| {
        figures.insert(Key::FirstStart, Figure::one(first_start.as_secs_f64()));
    });
    part("memory", &mut |figures| {
        std::thread::sleep(QUIET);
        figures.insert(Key::MinionIdle, Figure::one(usage::pss(side.minion_pid())));
        figures.insert(Key::MasterIdle, Figure::one(usage::pss(side.master_pid())));
    });
    part("cold", &mut |figures| {
        let times: Vec<Duration> = (0..runs.cold).map(|_| side.salt_ping()).collect();
        figures.insert(Key::Cold, Figure::ms(&times));
    });
    let drive = side.drive();
    part("client", &mut |figures| {
        let python = python_client(&side, runs.python_client);
        figures.insert(Key::PythonClient, python);
        let own = if runs.client == 0 {
            python
        } else {
            drive.cmd(runs.client / 10);
            Figure::ms(&drive.cmd(runs.client))
        };
        figures.insert(Key::Client, own);
    });
    part("jobs", &mut |figures| jobs(&side, &drive, runs, figures));
    part("memory", &mut |figures| {
        drive.pings(runs.after, 100);
        std::thread::sleep(QUIET);
        figures.insert(Key::MinionAfter, Figure::one(usage::pss(side.minion_pid())));
        figures.insert(Key::MasterAfter, Figure::one(usage::pss(side.master_pid())));
        let (minion, master) = busy(&side, &drive);
        figures.insert(Key::MinionBusy, Figure::one(minion));
        figures.insert(Key::MasterBusy, Figure::one(master));
    });
    part("events", &mut |figures| {
        let rate = events::per_second(&side.master, runs.events);
        figures.insert(Key::Events, Figure { runs: runs.events, ..Figure::one(rate) });
    });
    part("files", &mut |figures| {
        figures.insert(Key::LargeFile, Figure::of((0..runs.files).map(|_| large_file(&side)).collect()));
        figures.insert(Key::SmallFiles, Figure::of((0..runs.files).map(|_| small_files(&side)).collect()));
    });
    if runs.drift > 0 {
        part("memory", &mut |figures| drift(&side, &drive, runs.drift, figures));
    }
    part("starts", &mut |figures| {
        let starts = (0..runs.starts).map(|_| start(&mut side).as_secs_f64()).collect();
        figures.insert(Key::Start, Figure::of(starts));
    });
    part("api", &mut |figures| api::measure(kind, runs.api, figures));
    part("values", &mut |figures| values::measure(kind, runs.pillars, runs.renders, figures));
    part("states", &mut |figures| states::measure(kind, runs.states, figures));
    part("reactor", &mut |figures| reactor::measure(kind, runs.reactions, runs.unmatched, figures));
    part("idle", &mut |figures| idle::measure(kind, runs.idle, figures));
    if kind == Kind::Brine {
        part("receipts", &mut |figures| job_options::measure(figures));
    }
    figures
}

/// Measures the rate of jobs and their cost, many at a time.
fn jobs(side: &Side, drive: &Drive, runs: &Runs, figures: &mut Figures) {
    let keys = [(Key::Rate1, Some(Key::Cpu1), 1), (Key::Rate10, None, 10), (Key::Rate100, Some(Key::Cpu100), 100)];
    for ((rate, cpu, in_flight), jobs) in keys.into_iter().zip(runs.rate) {
        drive.pings(jobs / 10, in_flight);
        let before = usage::cpu(side.minion_pid());
        let driven = drive.pings(jobs, in_flight);
        let used = usage::cpu(side.minion_pid()).saturating_sub(before);
        figures.insert(rate, Figure { runs: jobs, ..Figure::one(driven.per_second()) });
        if let Some(cpu) = cpu {
            figures.insert(cpu, Figure { runs: jobs, ..Figure::one(used.as_secs_f64() * 1000.0 / count(jobs)) });
        }
    }
}

/// Measures the memory of minion and master with many jobs at once.
fn busy(side: &Side, drive: &Drive) -> (f64, f64) {
    let sleep = Job::new(ID, "test.sleep", vec![Value::from(SLEEP_S)]);
    drive.during(&sleep, AT_ONCE, || {
        // In the middle of their sleep. Python's minion has forked all of its processes by then.
        std::thread::sleep(Duration::from_secs(SLEEP_S.unsigned_abs() / 2));
        (usage::pss(side.minion_pid()), usage::pss(side.master_pid()))
    })
}

/// Measures the growth of memory over many jobs.
fn drift(side: &Side, drive: &Drive, jobs: usize, figures: &mut Figures) {
    let (minion, executor) = (side.minion_pid(), side.minion.executor());
    drive.pings(DRIFT_WARM_UP.min(jobs), 100);
    let before = [usage::rss(minion), usage::rss(executor)];
    drive.pings(jobs, 100);
    let after = [usage::rss(minion), usage::rss(executor)];
    figures.insert(Key::DriftMinion, Figure { runs: jobs, ..Figure::one(after[0] - before[0]) });
    figures.insert(Key::DriftExecutor, Figure { runs: jobs, ..Figure::one(after[1] - before[1]) });
}

/// Measures Python's `LocalClient` with this master and minion.
fn python_client(side: &Side, runs: usize) -> Figure {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/bench/python/local_client.py");
    let conf = format!("{}/master", side.master.conf());
    let output = run(&python(), &[script, &conf, ID, &runs.to_string()]).exits(0);
    let times: Vec<f64> = serde_json::from_str(output.stdout.trim()).expect("the script prints a list of times");
    Figure::of(times)
}

/// Measures the start of a known minion, until its start event is on the master's bus.
fn start(side: &mut Side) -> Duration {
    side.minion.stop();
    let events = side.master.events();
    let began = Instant::now();
    side.minion.up();
    events.wait_tag(&format!("salt/minion/{ID}/start"));
    began.elapsed()
}

/// Returns the seconds of a job, from the start of `salt` to its end.
fn seconds(side: &Side, args: &[&str]) -> f64 {
    let mut all = vec![ID];
    all.extend(args);
    all.extend(["-t", "600", "--out=json"]);
    let output = side.master.salt(&all).exits(0);
    output.elapsed.as_secs_f64()
}

/// Fetches a file that the minion does not have yet.
fn large_file(side: &Side) -> f64 {
    forget(side);
    side.master.serve("large.bin", &noise(LARGE));
    let took = seconds(side, &["cp.cache_file", "salt://large.bin"]);
    let there = cached(side).join("large.bin");
    assert_eq!(there.metadata().map(|file| file.len()).ok(), Some(LARGE as u64), "{}", there.display());
    took
}

fn small_files(side: &Side) -> f64 {
    forget(side);
    let content = noise(SMALL * SMALL_FILES);
    for (at, content) in content.chunks(SMALL).enumerate() {
        side.master.serve(&format!("small/{}/{at}", at % 50), content);
    }
    let took = seconds(side, &["cp.cache_dir", "salt://small"]);
    let folders = std::fs::read_dir(cached(side).join("small")).expect("it was cached").flatten();
    let files: usize = folders.map(|folder| std::fs::read_dir(folder.path()).expect("a folder").count()).sum();
    assert_eq!(files, SMALL_FILES);
    took
}

fn cached(side: &Side) -> std::path::PathBuf {
    side.minion.path("cache/files/base")
}

/// Empties the minion's cache. What was there is moved and not removed: for minutes, ext4 looks at each inode that was freed before it gives
/// one out, so that the files of the next run would take longer than those of the first.
fn forget(side: &Side) {
    let cached = cached(side);
    let aside = (0..).map(|n| side.minion.path(&format!("forgotten-{n}"))).find(|aside| !aside.exists());
    let _ = std::fs::rename(&cached, aside.expect("there are fewer runs than numbers"));
    wait_for("the cache to be empty", || (!cached.exists()).then_some(()));
}

/// Returns incompressible bytes, different each time.
fn noise(len: usize) -> Vec<u8> {
    use std::hash::{BuildHasher, RandomState};
    let mut state = RandomState::new().hash_one(len) | 1;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

#[allow(clippy::cast_precision_loss, reason = "a count for people")]
const fn count(jobs: usize) -> f64 {
    jobs as f64
}
