//! The second wall: what the executor and the compiler take from themselves before they touch anything foreign, so that a
//! guest that escapes its engine is in a process that can do next to nothing.
//!
//! The minion gives the process its own user and an empty environment; [`raise`] does the rest, from within, for good:
//!
//! 1. it dies with its parent, before others when memory is short, and cannot be looked into (`limits.rs`)
//! 2. no new privileges, no capabilities, resource limits (`limits.rs`)
//! 3. landlock: no file but in the directories of the grant, no TCP port but theirs, no signal and no abstract socket beyond
//!    itself (`files.rs`)
//! 4. seccomp: the system calls that its work needs, their arguments checked where that is possible (`seccomp/`)
//!
//! Landlock holds for the thread that asks for it and those it makes later, so all this comes before any other thread.
//! What this kernel does not have is not an error here but said in [`Walls`]; the minion's owner decides whether that is enough.

mod files;
mod inherited;
mod limits;
mod report;
mod seccomp;
mod spec;

pub use inherited::close_inherited;
pub use report::{Cgroup, Walls};
pub use spec::{BadOption, Grant, Kind, Spec};

/// Why the walls could not be raised. The process must not go on.
#[derive(Debug, thiserror::Error)]
pub enum WallError {
    /// Landlock would not hold for the other threads.
    #[error("there are {0} threads already; the walls come first")]
    Threads(usize),
    /// What every kernel has.
    #[error("cannot {what}: {why}")]
    Limit {
        /// What was tried.
        what: &'static str,
        /// The system's words.
        why: std::io::Error,
    },
}

/// Raises the walls around this process, for good. To be called on the main thread before there is another.
///
/// # Errors
/// [`WallError`]. What the kernel lacks is none: see [`Walls::lacking`].
pub fn raise(spec: &Spec) -> Result<Walls, WallError> {
    if let Ok(threads) = std::fs::read_dir("/proc/self/task") {
        match threads.count() {
            0 | 1 => {}
            more => return Err(WallError::Threads(more)),
        }
    }
    let mut walls = Walls { uid: rustix::process::geteuid().as_raw(), ..Walls::default() };
    // While they can be opened.
    let directories = files::open(spec, &mut walls);
    limits::die_with_the_parent()?;
    limits::be_first_to_go();
    limits::lower(spec, &mut walls)?;
    limits::no_privileges(spec, &mut walls)?;
    files::restrict(spec, directories, &mut walls);
    limits::hide(&mut walls)?;
    // Last: it forbids all of the above.
    seccomp::restrict(spec, &mut walls);
    Ok(walls)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Landlock would hold for this thread only.
    #[test]
    fn the_walls_come_before_threads() {
        // The harness's own main thread is one more.
        assert!(matches!(raise(&Spec::executor()), Err(WallError::Threads(2..))));
    }
}
