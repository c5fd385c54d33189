//! Pillars of many minions, and the rendering of templates.

mod chain;
mod tree;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use brine_kit::process::run;
use brine_kit::programs::program_folder;
use brine_swarm::{Plan, Swarm, keys};
use brine_tests::salt::{Kind, Master, python};

use crate::rows::{Figures, Key};
use crate::table::Figure;
use crate::usage;

/// How long many pillars may take in all.
const DEADLINE: Duration = Duration::from_secs(600);
const KEY_BITS: u32 = 2048;
/// Renderings before the clock starts: caches are warm in production.
const WARM_UP: usize = 3;

/// Measures one side. So many minions ask for their pillars at once.
pub(crate) fn measure(kind: Kind, minions: usize, renders: usize, figures: &mut Figures) {
    pillars(kind, minions, figures);
    let folder = tempfile::tempdir().expect("a temporary folder");
    chain::write_all(folder.path());
    let times = match kind {
        Kind::Brine => chain::render(folder.path(), WARM_UP, renders),
        Kind::Python => {
            let script = concat!(env!("CARGO_MANIFEST_DIR"), "/bench/python/render.py");
            let args =
                [script, folder.path().to_str().expect("a path of text"), &WARM_UP.to_string(), &renders.to_string()];
            serde_json::from_str(run(&python(), &args).exits(0).stdout.trim()).expect("a list of times")
        }
    };
    figures.insert(Key::Render, Figure::of(times));
}

fn pillars(kind: Kind, count: usize, figures: &mut Figures) {
    // As many compilations at a time as there are processors.
    let workers = std::thread::available_parallelism().map_or(2, usize::from);
    let roots = "auto_accept: True\npillar_roots: {base: [../srv/pillar]}";
    let config = match kind {
        Kind::Brine => roots.to_owned(),
        Kind::Python => format!("{roots}\nworker_threads: {workers}"),
    };
    let mut master = Master::prepare(kind, &config);
    // A stock master reads relative roots from its own place.
    tree::write_all(&master.path("srv/pillar"));
    let path = master.path("conf/master");
    let text = std::fs::read_to_string(&path).expect("our own file");
    let root = master.path("srv/pillar").display().to_string();
    std::fs::write(&path, text.replace("../srv/pillar", &root)).expect("our own file");
    master.log_level = "warning";
    master.up();
    let folder = program_folder().join("../swarm-keys");
    std::fs::create_dir_all(&folder).expect("the folder of builds");
    let keys = keys::prepare(&folder, KEY_BITS, count, |_| ()).expect("keys");
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let swarm = runtime.block_on(async {
        let plan = Plan { port: master.ret_port, timeout: DEADLINE, ..Plan::default() };
        let swarm = Swarm::start(plan, &keys).expect("ids");
        let all = u64::try_from(count).unwrap_or(u64::MAX);
        let ready = swarm.wait(DEADLINE, |now| now.authenticated == all && now.connected == all).await;
        assert!(ready.is_some(), "{}", swarm.report());
        swarm
    });
    // The master may not have read all subscriptions yet.
    settle(&runtime, &master, &swarm, count);
    let pid = master.daemon.as_ref().expect("it runs").pid();
    let idle = usage::pss(pid);
    let before = swarm.counts();
    let is_over = AtomicBool::new(false);
    let (took, peak) = std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut peak = idle;
            while !is_over.load(Ordering::Relaxed) {
                peak = peak.max(usage::pss(pid));
                std::thread::sleep(Duration::from_millis(200));
            }
            peak
        });
        let began = Instant::now();
        master.start_job(&["*", "saltutil.refresh_pillar"]);
        let all = before.pillars + u64::try_from(count).unwrap_or(u64::MAX);
        let done = runtime.block_on(swarm.wait(DEADLINE, |now| now.pillars >= all));
        let took = began.elapsed();
        is_over.store(true, Ordering::Relaxed);
        assert!(done.is_some(), "{}", swarm.report());
        (took, watch.join().expect("no panic"))
    });
    let report = swarm.report();
    assert!(report.errors.is_empty(), "{report}");
    #[allow(clippy::cast_precision_loss, reason = "a count for people")]
    let rate = count as f64 / took.as_secs_f64();
    let of = |value| Figure { runs: count, ..Figure::one(value) };
    figures.insert(Key::Pillars, of(rate));
    figures.insert(Key::PillarsP99, of(report.pillar.p99.as_secs_f64() * 1000.0));
    figures.insert(Key::PillarsMemory, of(peak - idle));
}

/// Publishes a job that nobody answers for until all have received it.
fn settle(runtime: &tokio::runtime::Runtime, master: &Master, swarm: &Swarm, count: usize) {
    let all = u64::try_from(count).unwrap_or(u64::MAX);
    for _ in 0..10 {
        let before = swarm.counts().publications;
        master.start_job(&["swarm-00001", "test.ping"]);
        if runtime.block_on(swarm.wait(Duration::from_secs(10), |now| now.publications >= before + all)).is_some() {
            return;
        }
    }
    panic!("not all are subscribed: {}", swarm.report());
}

/// Writes a file below `root`.
fn write(root: &Path, name: &str, text: &str) {
    let path: PathBuf = root.join(name);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("our own folder");
    std::fs::write(path, text).expect("our own folder");
}
