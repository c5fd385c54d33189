//! Measures what the receipt of a job costs, and its recording: a minion as it is installed, one that makes no receipts and one that
//! records each call take turns, so that other work on the machine meets all of them.

use brine_tests::salt::Kind;

use crate::drive::Drive;
use crate::rows::{Figures, Key};
use crate::side::Side;
use crate::table::Figure;
use crate::usage;

/// Turns of each minion: many short ones, because a machine's speed changes within seconds.
const TURNS: usize = 31;
/// Jobs of a turn.
const JOBS: usize = 300;
const IN_FLIGHT: usize = 100;

/// A minion with its own master, and the client that publishes jobs there.
struct Measured {
    side: Side,
    drive: Drive,
}

impl Measured {
    fn start(config: &str) -> Self {
        let side = Side::start_with(Kind::Brine, config);
        let drive = side.drive();
        Self { side, drive }
    }

    /// Returns the CPU time of minion and executor for each of so many jobs, in microseconds.
    fn turn(&self, jobs: usize) -> f64 {
        let before = usage::cpu(self.side.minion_pid());
        self.drive.pings(jobs, IN_FLIGHT);
        usage::cpu(self.side.minion_pid()).saturating_sub(before).as_secs_f64() * 1e6 / count(jobs)
    }
}

/// Measures a turn of each minion beside those of the others, and returns the medians of what is between them.
pub(crate) fn measure(figures: &mut Figures) {
    let usual = Measured::start("");
    let without = Measured::start("receipts: False");
    let recording = Measured::start("sandbox: {modules: {test: {record: 'on'}}}");
    let all = [&usual, &without, &recording];
    // Warm, as in the measurement of jobs.
    for one in all {
        one.turn(JOBS);
    }
    let turns: Vec<[f64; 3]> = (0..TURNS).map(|_| all.map(|one| one.turn(JOBS))).collect();
    let median = |of: fn(&[f64; 3]) -> f64| Figure { runs: JOBS * TURNS, ..Figure::of(turns.iter().map(of).collect()) };
    figures.insert(Key::CpuNoReceipt, median(|[_, without, _]| without / 1000.0));
    figures.insert(Key::Receipt, median(|[usual, without, _]| usual - without));
    figures.insert(Key::Recording, median(|[usual, _, recording]| recording - usual));
}

#[allow(clippy::cast_precision_loss, reason = "a count for people")]
const fn count(jobs: usize) -> f64 {
    jobs as f64
}
