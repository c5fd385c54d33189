//! Privileges, resource limits, and the protection of the process from others and of others from the process.

use std::io;

use rustix::process::{DumpableBehavior, Resource, Rlimit, Signal};
use rustix::thread::{CapabilitySet, CapabilitySets};

use crate::{Spec, WallError, Walls};

fn limit(what: &'static str) -> impl Fn(rustix::io::Errno) -> WallError {
    move |error| WallError::Limit { what, why: io::Error::from(error) }
}

/// Has the kernel kill this process when the minion dies. The socket closes then too, but an escaped guest could ignore
/// that.
pub(crate) fn die_with_the_parent() -> Result<(), WallError> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(limit("have it die with its parent"))
}

/// When memory is short, the kernel kills this process before the minion. A failure here opens no hole, so it is
/// ignored.
pub(crate) fn be_first_to_go() {
    let _ = std::fs::write("/proc/self/oom_score_adj", "500");
}

/// Lowers the resource limits.
pub(crate) fn lower(spec: &Spec, walls: &mut Walls) -> Result<(), WallError> {
    let limits = [
        ("core", Resource::Core, Some(0)),
        ("fsize", Resource::Fsize, spec.file_size),
        ("nofile", Resource::Nofile, Some(spec.open_files)),
        ("nproc", Resource::Nproc, spec.processes),
        ("data", Resource::Data, spec.memory),
        ("memlock", Resource::Memlock, Some(0)),
        ("msgqueue", Resource::Msgqueue, Some(0)),
    ];
    for (name, resource, bound) in limits {
        let Some(bound) = bound else { continue };
        // An inherited limit may be lower; it cannot be raised and stays.
        let bound = rustix::process::getrlimit(resource).maximum.map_or(bound, |maximum| maximum.min(bound));
        rustix::process::setrlimit(resource, Rlimit { current: Some(bound), maximum: Some(bound) })
            .map_err(limit("lower a resource limit"))?;
        walls.limits.insert(name.to_owned(), bound);
    }
    Ok(())
}

/// Drops all capabilities for good.
pub(crate) fn no_privileges(spec: &Spec, walls: &mut Walls) -> Result<(), WallError> {
    rustix::thread::set_no_new_privs(true).map_err(limit("renounce new privileges"))?;
    walls.no_new_privs = true;
    // Root with granted directories keeps the capability to read and write there as root. Without directories, root has
    // no capabilities.
    let mut kept = CapabilitySet::empty();
    if walls.uid == 0 && !spec.directories.is_empty() {
        kept |= CapabilitySet::DAC_READ_SEARCH;
        if spec.writes() {
            kept |= CapabilitySet::DAC_OVERRIDE;
        }
    }
    let has = rustix::thread::capabilities(None).map_err(limit("read its capabilities"))?;
    let keeps = CapabilitySets {
        effective: has.effective & kept,
        permitted: has.permitted & kept,
        inheritable: CapabilitySet::empty(),
    };
    rustix::thread::set_capabilities(None, keeps).map_err(limit("drop its capabilities"))
}

/// Prevents processes of the same user from tracing this one, reading its memory or following its `/proc` links. The
/// kernel writes no core dump of it.
pub(crate) fn hide(walls: &mut Walls) -> Result<(), WallError> {
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(limit("hide its memory"))?;
    walls.hidden = true;
    Ok(())
}
