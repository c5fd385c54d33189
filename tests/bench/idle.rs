//! What a minion costs that has jobs of the schedule and beacons, and nothing to do: beside one without, at the same time.

use std::time::Duration;

use brine_tests::salt::{Kind, Master, Minion};

use crate::rows::{Figures, Key};
use crate::side::compiled;
use crate::table::Figure;
use crate::usage;

/// Jobs of the schedule, half of them with an interval and half with a cron expression, none of which is due soon.
const JOBS: usize = 100;
/// Beacons that need no grants, look each second and have nothing to tell.
const BEACONS: &str = "beacons:
  load: [{averages: {1m: [0.0, 10000.0], 5m: [0.0, 10000.0], 15m: [0.0, 10000.0]}}]
  memusage: [{percent: 100%}]
  memory2: [{beacon_module: memusage}, {percent: 99.9%}]
  swapusage: [{percent: 100%}]
  swap2: [{beacon_module: swapusage}, {percent: 99.9%}]
  diskusage: [{/: 100%}]
  disk2: [{beacon_module: diskusage}, {/proc: 99.9%}]
  ps: [{processes: {no-such-process: running}}]
  ps2: [{beacon_module: ps}, {processes: {no-such-process2: running}}]
  network_info: [{interfaces: {no-such-interface: {type: equal, bytes_sent: 1}}}]
";
/// Time from the start until both have nothing left to do.
const QUIET: Duration = Duration::from_secs(20);

/// Measures one side over this time: how much more CPU time and memory the minion takes that has all of that.
pub(crate) fn measure(kind: Kind, time: Duration, figures: &mut Figures) {
    let mut master = Master::prepare(kind, "");
    master.log_level = "warning";
    master.up();
    let mut config = format!("publish_port: {}\nschedule:\n", master.publish_port);
    for n in 0..JOBS / 2 {
        config += &format!("  hourly{n}: {{function: test.ping, hours: 1, run_on_start: False}}\n");
        config += &format!("  daily{n}: {{function: test.ping, cron: '{n} 1 * * *'}}\n");
    }
    let start = |id: &str, config: &str| {
        let mut minion = Minion::prepare(kind, id, master.ret_port, config);
        minion.log_level = "warning";
        master.accept(&mut minion);
        minion
    };
    let without = start("without", &format!("publish_port: {}\n", master.publish_port));
    let with = start("with", &format!("{config}{BEACONS}"));
    [&with, &without].into_iter().for_each(compiled);
    std::thread::sleep(QUIET);
    let used = || [&with, &without].map(|minion| usage::cpu(minion.running().pid()));
    let before = used();
    std::thread::sleep(time);
    let after = used();
    let [with_used, without_used] = [0, 1].map(|at| after[at].saturating_sub(before[at]).as_secs_f64());
    let percent = 100.0 * (with_used - without_used) / time.as_secs_f64();
    let [with_pss, without_pss] = [&with, &without].map(|minion| usage::pss(minion.running().pid()));
    figures.insert(Key::IdleCpu, Figure::one(percent));
    figures.insert(Key::IdleMemory, Figure::one(with_pss - without_pss));
}
