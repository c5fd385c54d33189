//! A master with one minion, of either kind, as they run in production.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use brine_tests::salt::{Kind, Master, Minion};

use crate::drive::Drive;

/// The minion's id.
pub(crate) const ID: &str = "bench";
/// A cache of 5,000 files asks the host more often than a module does by default.
const MINION: &str = "grains: {role: bench}\nsandbox:\n  limits: {wall: 600s, cpu: 600s, host_calls: 100000}\n";

/// What is measured.
pub(crate) struct Side {
    pub(crate) minion: Minion,
    pub(crate) master: Master,
    /// How long the minion took from its start to its start event, when it was here for the first time.
    pub(crate) first_start: Duration,
}

impl Side {
    pub(crate) fn start(kind: Kind) -> Self {
        let mut master = Master::prepare(kind, "timeout: 60\ngather_job_timeout: 30");
        master.log_level = "warning";
        master.up();
        let mut minion =
            Minion::prepare(kind, ID, master.ret_port, &format!("publish_port: {}\n{MINION}", master.publish_port));
        minion.log_level = "warning";
        let began = Instant::now();
        master.accept(&mut minion);
        let first_start = began.elapsed();
        let side = Self { minion, master, first_start };
        side.salt_ping();
        side
    }

    /// `salt '*' test.ping`, and how long it took.
    pub(crate) fn salt_ping(&self) -> Duration {
        let output = self.master.salt(&["*", "test.ping"]).exits(0);
        assert_eq!(output.stdout, format!("{ID}:\n    True\n"), "{output:?}");
        output.elapsed
    }

    /// Something that publishes jobs and waits for their returns.
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
