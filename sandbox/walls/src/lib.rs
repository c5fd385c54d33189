//! The second wall. The executor and the compiler give up privileges before they touch foreign data, so that a guest
//! that escapes its engine is in a process that can do almost nothing.
//!
//! The minion gives the process its own user and an empty environment. [`raise`] does the rest from within,
//! irrevocably:
//!
//! 1. the process dies with its parent, is the first to be killed when memory is short, and cannot be inspected
//!    (`limits.rs`)
//! 2. no new privileges, no capabilities, resource limits (`limits.rs`)
//! 3. landlock: files only in granted directories, TCP only to granted ports, no signals and no abstract sockets to
//!    other processes (`files.rs`)
//! 4. seccomp: only the system calls that the process needs, with checked arguments where possible (`seccomp/`)
//!
//! Landlock restricts the calling thread and the threads that it starts later, so the walls come before any other
//! thread. A feature that this kernel lacks is not an error but is reported in [`Walls`]; the minion's owner decides
//! whether the rest is enough.

mod files;
mod inherited;
mod limits;
mod report;
mod seccomp;
mod spec;

pub use inherited::close_inherited;
pub use report::{Cgroup, Walls};
pub use spec::{BadOption, KeptDirectory, Spec, WalledProgram};

/// Why the walls could not be raised. The process must not continue.
#[derive(Debug, thiserror::Error)]
pub enum WallError {
    /// There are other threads already, which landlock would not restrict.
    #[error("there are {0} threads already; the walls come first")]
    Threads(usize),
    /// A limit that every kernel supports could not be set.
    #[error("cannot {what}: {why}")]
    Limit {
        /// The attempted operation.
        what: &'static str,
        /// The system's error.
        why: std::io::Error,
    },
}

/// Raises the walls around this process, irrevocably. Must be called on the main thread before another thread starts.
///
/// # Errors
/// When a wall that every kernel has cannot be raised. Features that this kernel lacks are in [`Walls::lacking`].
pub fn raise(spec: &Spec) -> Result<Walls, WallError> {
    if let Ok(threads) = std::fs::read_dir("/proc/self/task") {
        match threads.count() {
            0 | 1 => {}
            more => return Err(WallError::Threads(more)),
        }
    }
    let mut walls = Walls { uid: rustix::process::geteuid().as_raw(), ..Walls::default() };
    // The directories are opened while that is still allowed.
    let directories = files::open(spec, &mut walls);
    limits::die_with_the_parent()?;
    limits::be_first_to_go();
    limits::lower(spec, &mut walls)?;
    limits::no_privileges(spec, &mut walls)?;
    files::restrict(spec, directories, &mut walls);
    limits::hide(&mut walls)?;
    // The filter comes last, because it forbids all of the above.
    seccomp::restrict(spec, &mut walls);
    Ok(walls)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Landlock would restrict only the calling thread.
    #[test]
    fn the_walls_come_before_threads() {
        // The test harness's main thread is one more.
        assert!(matches!(raise(&Spec::executor()), Err(WallError::Threads(2..))));
    }
}
