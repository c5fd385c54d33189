//! A master with one minion, of either kind, as in production.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use brine_kit::process::proc;
use brine_kit::wait::Deadline;
use brine_tests::salt::{Kind, Master, Minion};

use crate::drive::Drive;
use crate::usage;

/// The minion's id.
pub(crate) const ID: &str = "bench";
const COMMON: &str = "grains: {role: bench}\n";
/// Caching 5,000 files needs more calls to the host than the default limit.
const MINION: &str = "sandbox:\n  limits: {wall: 600s, cpu: 600s, host_calls: 100000}\n";

/// Waits until the modules of a minion are compiled, which a Brine minion does beside its first jobs and for which they would be
/// measured too.
pub(crate) fn compiled(minion: &Minion) {
    let quiet = Duration::from_secs(1);
    let mut since = Instant::now();
    Duration::from_secs(600).wait_for("all modules", || {
        std::thread::sleep(quiet / 10);
        let is_compiler = |pid| proc(pid, "comm").is_some_and(|name| name.trim() == "brine-compiler");
        if usage::tree(minion.running().pid()).into_iter().any(is_compiler) {
            since = Instant::now();
        }
        (since.elapsed() >= quiet).then_some(())
    });
}

/// The measured master and minion.
pub(crate) struct Side {
    pub(crate) minion: Minion,
    pub(crate) master: Master,
    /// Time from the minion's first start to its start event.
    pub(crate) first_start: Duration,
}

impl Side {
    pub(crate) fn start(kind: Kind) -> Self {
        Self::start_with(kind, MINION)
    }

    /// Starts them with this configuration of the minion.
    pub(crate) fn start_with(kind: Kind, config: &str) -> Self {
        let mut master = Master::prepare(kind, "timeout: 60\ngather_job_timeout: 30");
        master.log_level = "warning";
        master.up();
        let mut minion = Minion::prepare(
            kind,
            ID,
            master.ret_port,
            &format!("publish_port: {}\n{COMMON}{config}", master.publish_port),
        );
        minion.log_level = "warning";
        let began = Instant::now();
        master.accept(&mut minion);
        let first_start = began.elapsed();
        let side = Self { minion, master, first_start };
        side.salt_ping();
        compiled(&side.minion);
        side
    }

    /// Runs `salt '*' test.ping` and returns the time.
    pub(crate) fn salt_ping(&self) -> Duration {
        let output = self.master.salt(&["*", "test.ping"]).exits(0);
        assert_eq!(output.stdout, format!("{ID}:\n    True\n"), "{output:?}");
        output.elapsed
    }

    /// Connects a client that publishes jobs and waits for their returns.
    pub(crate) fn drive(&self) -> Drive {
        Drive::connect(&PathBuf::from(self.master.conf()).join("master"))
    }

    pub(crate) fn minion_pid(&self) -> u32 {
        self.minion.running().pid()
    }

    pub(crate) fn master_pid(&self) -> u32 {
        self.master.daemon.as_ref().expect("it runs").pid()
    }
}
