//! Modules that are refused as often as they can ask: good jobs beside them take as long as beside a module that is refused nothing, what
//! is kept has a bound, and what is not kept is counted.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use brine_kit::process::size;
use brine_protocol::config::yaml;
use brine_protocol::value::ValueExt as _;
use brine_sandbox::{
    Broker, Caller, HostOp, JobContext, PillarOp, ProcessOp, ProcessRun, Settings, Sha256Hex, Subject, check_and_tell,
};

use crate::asks::NOTHING;
use crate::rig::{Rig, hostile, job, text};

/// Calls of the storm at once, and its time.
const AT_ONCE: usize = 4;
const TIME: Duration = Duration::from_secs(5);
/// More than the list has in its two files (`docs/sandbox.md`).
const LIST_MAX: u64 = 8 << 20;

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
    rig.run("sandbox.refusals", Vec::new()).await;
    let size = on_disk(&rig.dir);
    assert!(size > 0 && size <= LIST_MAX, "{size} bytes");
    rig.end().await;
}

/// The bytes of the list.
fn on_disk(dir: &Path) -> u64 {
    let files = std::fs::read_dir(dir.join("cache")).unwrap().flatten();
    let list = files.filter(|file| file.file_name().to_string_lossy().starts_with("refusals"));
    list.filter_map(|file| file.metadata().ok()).map(|of| of.len()).sum()
}

/// Modules of the flood, and the masters whose jobs they run.
const MODULES: [&str; 6] = ["loud1", "loud2", "loud3", "loud4", "loud5", "loud6"];
const MASTERS: [Option<&str>; 3] = [None, Some("aa:01"), Some("aa:02")];
/// Threads of the flood; refusals in each step of one, and its time: 24,000 refusals a second, of which a busy machine makes fewer.
const THREADS: u64 = 2;
const EACH_STEP: u64 = 120;
const STEP: Duration = Duration::from_millis(10);
/// The least number a second.
const RATE: f64 = 10_000.0;
/// What the minion may take of memory for it: the list is read as a whole (`LIST_MAX`) when it is summed up.
const FLOOD_MEMORY: u64 = 64 << 20;

/// The calls that ask, with what a job has of the owner's policy: what each may do, and the lines that would grant more.
fn askers() -> Vec<Caller> {
    let modules: Vec<String> =
        MODULES.iter().map(|name| format!("{name}: {{pillar: [own], process: [/usr/bin/own]}}")).collect();
    let settings = yaml::load(&format!("modules: {{{}}}", modules.join(", "))).unwrap();
    let policy = Settings::read(&settings).unwrap().policy;
    let asked = ["brine:host/pillar", "brine:host/process"].map(str::to_owned);
    let asker = |module: &str, master: Option<&str>| {
        let name = module.parse().unwrap();
        let sha256 = Sha256Hex::from([7; 32]);
        let subject = Subject { name: &name, standard: false, sha256, signers: &[] };
        let granted = policy.decide(&subject, &asked, &["run"]).unwrap().of("run", None).unwrap();
        let job = JobContext { master: master.map(str::to_owned), ..job(&format!("{module}.run")) };
        let grants = Arc::clone(&granted.grants);
        Caller::new(Arc::new(job), name, sha256, grants, TIME).with_remedy(granted.remedy())
    };
    MODULES.iter().flat_map(|module| MASTERS.map(|master| asker(module, master))).collect()
}

/// Asks again and again until it is over, and returns how often that was.
fn flood(thread: u64, broker: &dyn Broker, askers: &[Caller], over: &AtomicBool) -> u64 {
    let (began, mut asked) = (Instant::now(), 0_u64);
    while !over.load(Ordering::Relaxed) {
        for _ in 0..EACH_STEP {
            // The same of all, and what nobody has asked before: a short name, a long one, a program with its line.
            let nth = usize::try_from(thread + asked * THREADS).unwrap();
            let get = |key: String| HostOp::Pillar(PillarOp::Get { key, delimiter: None });
            let op = match asked % 4 {
                0 => get("same".to_owned()),
                1 => get(format!("key{nth}")),
                2 => get(format!("{nth}{}", "k".repeat(200))),
                _ => HostOp::Process(ProcessOp::Run(Box::new(ProcessRun {
                    argv: vec![format!("/usr/bin/p{nth}")],
                    ..ProcessRun::default()
                }))),
            };
            let refused = check_and_tell(broker, &askers[nth / 4 % askers.len()], op);
            assert!(refused.is_err(), "{refused:?}");
            asked += 1;
        }
        let steps = u32::try_from(asked / EACH_STEP).unwrap();
        std::thread::sleep((STEP * steps).saturating_sub(began.elapsed()));
    }
    asked
}

/// They come from many calls at once: no wasm in a test makes so many.
#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_refusals_a_second_are_counted_and_delay_no_job() {
    let settings = "  learn: true
";
    let mut rig = Rig::start(settings).await;
    let p99 = |took: &[Duration]| took[took.len() * 99 / 100];
    let counts = async |rig: &Rig| {
        let check = rig.run("sandbox.check", Vec::new()).await;
        let of = check.value.get("refusals").unwrap_or_else(|| panic!("{check:?}")).clone();
        let number = |key: &str| of.get_u64(key).unwrap_or_else(|| panic!("{of}"));
        (number("different"), number("times"), number("left_out"))
    };
    let holds = |(a_second, quiet, loud): (f64, Duration, Duration)| {
        a_second >= RATE && loud <= (quiet * 2).max(quiet + Duration::from_millis(20))
    };
    let (mut asked, mut beside, mut most_on_disk, mut most_memory) = (0, Vec::new(), 0, 0);
    let memory = || size(std::process::id(), "VmRSS").unwrap_or(0);
    let idle = memory();
    // The machine's other work comes and goes, so the best of some rounds counts.
    for _ in 0..3 {
        let mut took = Vec::new();
        let mut pings = async |time: Duration| {
            let (began, mut all) = (Instant::now(), Vec::new());
            while began.elapsed() < time {
                let started = Instant::now();
                let outcome = rig.run("test.ping", Vec::new()).await;
                all.push(started.elapsed());
                assert!(outcome.success, "{outcome:?}");
                most_on_disk = on_disk(&rig.dir).max(most_on_disk);
                most_memory = memory().max(most_memory);
            }
            all.sort();
            took.push(all);
        };
        pings(TIME / 2).await;
        let over = Arc::new(AtomicBool::new(false));
        let (began, runtime) = (Instant::now(), tokio::runtime::Handle::current());
        let flooding = (0..THREADS).map(|thread| {
            let (broker, end, runtime) = (rig.broker(), Arc::clone(&over), runtime.clone());
            std::thread::spawn(move || {
                let _inside = runtime.enter();
                flood(thread, &*broker, &askers(), &end)
            })
        });
        let flooding: Vec<_> = flooding.collect();
        pings(TIME).await;
        over.store(true, Ordering::Relaxed);
        let join = || flooding.into_iter().map(|thread| thread.join().unwrap()).sum::<u64>();
        let of_round = tokio::task::block_in_place(join);
        let a_second = of_round as f64 / began.elapsed().as_secs_f64();
        asked += of_round;
        let (quiet, loud) = (p99(&took[0]), p99(&took[1]));
        println!("a good job's p99 is {quiet:?}; beside {a_second:.0} refusals/s {loud:?} ({} jobs)", took[1].len());
        beside.push((a_second, quiet, loud));
        if holds(beside[beside.len() - 1]) {
            break;
        }
    }
    assert!(holds(beside[beside.len() - 1]), "{beside:?}");

    let before = counts(&rig).await;
    println!("{before:?}, at most {most_on_disk} bytes on the disk and {} of memory", most_memory.saturating_sub(idle));
    let (different, times, left_out) = before;
    assert_eq!(times, asked, "each is counted once");
    assert!(different > 64 && left_out > 0 && left_out < asked, "{before:?}");
    assert!(most_on_disk > 0 && most_on_disk <= LIST_MAX, "{most_on_disk} bytes");
    assert!(most_memory <= idle + FLOOD_MEMORY, "{idle} before, {most_memory} at most");
    // What the same line asks for stays one entry: the same key of each module and master.
    let listed = rig.run("sandbox.refusals", Vec::new()).await.value;
    let listed = listed.list().unwrap();
    assert_eq!(
        listed.iter().filter_map(|one| one.get_u64("times")).sum::<u64>(),
        asked,
        "the list says how many it has not"
    );
    let learned = rig.run("sandbox.suggest", Vec::new()).await.value;
    let lines = learned.list().unwrap();
    assert!(!lines.is_empty() && lines.len() <= 200, "{} lines", lines.len());

    // The next start knows the same, and goes on from there.
    rig.restart(settings).await;
    assert_eq!(counts(&rig).await, before);
    let asks = HostOp::Pillar(PillarOp::Get { key: "same".to_owned(), delimiter: None });
    assert!(check_and_tell(&*rig.broker(), &askers()[0], asks).is_err());
    assert_eq!(counts(&rig).await.1, asked + 1);
    rig.end().await;
}
