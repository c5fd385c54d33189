//! Runs of states: compiling a large suite, files that are in order, states that do nothing, and the memory for it.

mod tree;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use brine_client::Job;
use brine_protocol::value::Value;
use brine_tests::salt::{Kind, Master, Minion};
use serde_json::Value as Json;

use crate::drive::Drive;
use crate::rows::{Figures, Key};
use crate::side::ID;
use crate::table::Figure;
use crate::usage;

/// Runs before the clock starts: modules are compiled, and files are put in order.
const WARM_UP: usize = 2;
/// Time between two looks at the memory.
const LOOK: Duration = Duration::from_millis(20);

/// Measures one side, each run so many times.
pub(crate) fn measure(kind: Kind, runs: usize, figures: &mut Figures) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let files = folder.path().canonicalize().expect("it is there");
    let mut master = Master::prepare(kind, "timeout: 600\ngather_job_timeout: 60");
    master.log_level = "warning";
    master.up();
    for (path, text) in tree::files(&files) {
        master.serve(&path, text.as_bytes());
    }
    let granted = format!(
        "publish_port: {}\nsandbox:\n  modules:\n    file.states: {{changes: {{\"{}\": rw}}}}\n",
        master.publish_port,
        files.display()
    );
    let mut minion = Minion::prepare(kind, ID, master.ret_port, &granted);
    minion.log_level = "warning";
    master.accept(&mut minion);
    check(&master);
    let drive = Drive::connect(&std::path::PathBuf::from(master.conf()).join("master"));
    let suite = Job::new(ID, "state.show_low_sls", vec![Value::from("suite")]);
    let managed = Job::new(ID, "state.apply", vec![Value::from("managed")]);
    let nops = Job::new(ID, "state.apply", vec![Value::from("nops")]);
    let timed = |job: &Job, each: usize| {
        drive.jobs(job, WARM_UP, 1);
        let one = |_| drive.jobs(job, 1, 1).elapsed.as_secs_f64() * 1000.0 / count(each);
        Figure::of((0..runs).map(one).collect())
    };
    figures.insert(Key::StatesCompile, timed(&suite, 1));
    figures.insert(Key::StatesManaged, timed(&managed, 1));
    figures.insert(Key::StatesNop, timed(&nops, tree::NOPS));
    let pid = minion.running().pid();
    let peak = [&suite, &managed, &nops].map(|job| peak(pid, || drive.jobs(job, WARM_UP, 1)));
    figures.insert(Key::StatesPeak, Figure::one(peak.into_iter().fold(0.0, f64::max)));
}

/// Checks that what is measured does what it is to do. Afterwards all files are in order.
fn check(master: &Master) {
    let low = master.json(ID, &["state.show_low_sls", "suite"]);
    assert_eq!(low.as_array().map(Vec::len), Some(tree::CHUNKS), "{low}");
    for (sls, states, changed) in
        [("managed", tree::MANAGED, tree::MANAGED), ("managed", tree::MANAGED, 0), ("nops", tree::NOPS, 0)]
    {
        let run = master.json(ID, &["state.apply", sls]);
        let results: Vec<&Json> = run.as_object().unwrap_or_else(|| panic!("{run}")).values().collect();
        let good = results.iter().filter(|result| result["result"] == Json::Bool(true)).count();
        let changes = |result: &&&Json| result["changes"].as_object().is_some_and(|changes| !changes.is_empty());
        assert_eq!((good, results.iter().filter(changes).count()), (states, changed), "{sls}: {run}");
    }
}

/// Returns the largest PSS of a minion and all of its processes while `work` is done, in MiB.
fn peak<T>(pid: u32, work: impl FnOnce() -> T) -> f64 {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut peak = usage::pss(pid);
            while !is_over.load(Ordering::Relaxed) {
                peak = peak.max(usage::pss(pid));
                std::thread::sleep(LOOK);
            }
            peak
        });
        drop(work());
        is_over.store(true, Ordering::Relaxed);
        watch.join().expect("no panic")
    })
}

#[allow(clippy::cast_precision_loss, reason = "a count for people")]
const fn count(states: usize) -> f64 {
    states as f64
}
