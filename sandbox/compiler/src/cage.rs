//! The limits that the compiler sets on itself, and the second wall that it shares with the executor.

use brine_sandbox_walls::{Spec, WallError, Walls};
use clap::Args;
use rustix::process::{Resource, Rlimit, nice, setrlimit};

/// What compiling may use.
#[derive(Debug, Clone, Args)]
pub(crate) struct Limits {
    /// Bytes of address space
    #[arg(long, default_value_t = 1 << 30)]
    pub(crate) memory: u64,
    /// Seconds of CPU
    #[arg(long, default_value_t = 60)]
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

/// Sets the limits on this process, irrevocably.
pub(crate) fn enter(limits: &Limits) -> Result<Walls, WallError> {
    let failed = |what| move |error| WallError::Limit { what, why: std::io::Error::from(error) };
    let limit = |resource, current, maximum| {
        setrlimit(resource, Rlimit { current: Some(current), maximum: Some(maximum) }).map_err(failed("limit itself"))
    };
    limit(Resource::As, limits.memory, limits.memory)?;
    // The signal of the soft limit identifies the cause; the hard limit's would be a plain SIGKILL.
    limit(Resource::Cpu, limits.cpu, limits.cpu + 1)?;
    nice(limits.nice).map_err(failed("step back behind others"))?;
    brine_sandbox_walls::raise(&Spec::compiler(limits.file))
}
