//! What the executors on this host use.

use sysinfo::{ProcessRefreshKind, ProcessesToUpdate, System};

/// What executors use together.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Load {
    /// Processes.
    pub(crate) executors: usize,
    /// Bytes in memory.
    pub(crate) memory: u64,
    /// Percent of one core, since the look before.
    pub(crate) cpu: f32,
}

/// Looks at processes. Where the system does not tell of them, there are none. What they use of the processor is known from the second look on.
#[derive(Debug)]
pub(crate) struct Executors(Option<System>);

impl Default for Executors {
    fn default() -> Self {
        Self(System::new().ok())
    }
}

impl Executors {
    /// Of all executors on this host.
    pub(crate) fn look(&mut self) -> Load {
        let what = ProcessRefreshKind::nothing().with_cpu().with_memory().without_tasks();
        let Some(system) = &mut self.0 else { return Load::default() };
        system.refresh_processes_specifics(ProcessesToUpdate::All, true, what);
        let all = system.processes().values().filter(|process| process.name() == "brine-executor");
        all.fold(Load::default(), |sum, process| Load {
            executors: sum.executors + 1,
            memory: sum.memory + process.memory(),
            cpu: sum.cpu + process.cpu_usage(),
        })
    }
}
