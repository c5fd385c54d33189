//! The limits that the compiler puts on itself. Those of the kernel for files and system calls come with the executor's.

use std::io;

use clap::Args;
use rustix::process::{Resource, Rlimit, nice, setrlimit};

/// What compiling may use.
#[derive(Debug, Clone, Args)]
pub(crate) struct Limits {
    /// Bytes of address space
    #[arg(long, default_value_t = 1 << 30)]
    pub(crate) memory: u64,
    /// Seconds of CPU
    #[arg(long, default_value_t = 20)]
    pub(crate) cpu: u64,
    /// Bytes of a result
    #[arg(long, default_value_t = 128 << 20)]
    pub(crate) file: u64,
    /// Bytes of the component
    #[arg(long, default_value_t = 32 << 20)]
    pub(crate) module: u64,
    /// How far it steps back behind other processes
    #[arg(long, default_value_t = 10)]
    pub(crate) nice: i32,
}

/// Puts the limits on this process, for good.
pub(crate) fn enter(limits: &Limits) -> io::Result<()> {
    let hard = |bound: u64| Rlimit { current: Some(bound), maximum: Some(bound) };
    setrlimit(Resource::As, hard(limits.memory))?;
    // The soft limit's signal says what happened; the hard one's would be any SIGKILL.
    setrlimit(Resource::Cpu, Rlimit { current: Some(limits.cpu), maximum: Some(limits.cpu + 1) })?;
    setrlimit(Resource::Fsize, hard(limits.file))?;
    setrlimit(Resource::Core, hard(0))?;
    rustix::thread::set_no_new_privs(true)?;
    nice(limits.nice)?;
    Ok(())
}
