//! The steps of the program's process between fork and exec.
//!
//! The code here does not allocate, lock or panic: the child is a copy of one thread of many, and a lock that another thread held at the
//! fork stays held for ever.
#![allow(unsafe_code, reason = "code between fork and exec is unsafe by nature")]

use std::ffi::{CString, c_char, c_int, c_long, c_uint};
use std::io;

use rustix::io::Errno;
use rustix::process::{Gid, Resource, Rlimit, Signal, Uid};

use crate::{Identity, Probe, SpawnError, Step};

/// The steps by number, as a supervisor reports them.
const STEPS: [Step; 13] = [
    Step::Fork,
    Step::Supervisor,
    Step::Session,
    Step::Descriptors,
    Step::Groups,
    Step::Group,
    Step::User,
    Step::FileSize,
    Step::Directory,
    Step::Parent,
    Step::Exec,
    Step::Namespaces,
    Step::Confine,
];
/// The number of Linux's signals.
pub(crate) const SIGNALS: c_int = 64;
/// `CLOSE_RANGE_CLOEXEC` of linux/close_range.h
const CLOSE_RANGE_CLOEXEC: c_uint = 4;
/// Without close_range (before Linux 5.11), descriptors above this are not hidden from the program. The minion opens its own descriptors
/// close-on-exec, so this concerns only those that it was started with.
pub(crate) const MAX_DESCRIPTOR: c_int = 65_536;

pub(crate) struct Directory {
    pub(crate) path: CString,
    /// The device and the inode that the directory must have; none if `/` will do as well.
    pub(crate) is: Option<(u64, u64)>,
}

/// The data of the child, made before the fork.
pub(crate) struct Child {
    path: CString,
    argv: Strings,
    env: Strings,
    directory: Directory,
    identity: Option<(Uid, Gid, Vec<Gid>)>,
    umask: Option<u32>,
    file_size: Option<u64>,
    pub(crate) probe: Option<Probe>,
}

/// Texts in the form that `execve` needs.
struct Strings {
    pointers: Vec<*const c_char>,
    _texts: Vec<CString>,
}

// SAFETY: the pointers lead into the heap memory of `_texts`, which moves with them and is never changed.
unsafe impl Send for Strings {}
// SAFETY: as above; the texts are only read.
unsafe impl Sync for Strings {}

impl Strings {
    fn new(texts: Vec<CString>) -> Self {
        let pointers = texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect();
        Self { pointers, _texts: texts }
    }
}

impl Child {
    #[expect(clippy::too_many_arguments, reason = "one for each part of a program")]
    pub(crate) fn new(
        path: CString,
        argv: Vec<CString>,
        env: Vec<CString>,
        directory: Directory,
        identity: Option<Identity>,
        umask: Option<u32>,
        file_size: Option<u64>,
        probe: Option<Probe>,
    ) -> Self {
        let identity = identity.map(|identity| {
            let groups = identity.groups.into_iter().map(Gid::from_raw).collect();
            (Uid::from_raw(identity.uid), Gid::from_raw(identity.gid), groups)
        });
        let (argv, env) = (Strings::new(argv), Strings::new(env));
        Self { path, argv, env, directory, identity, umask, file_size, probe }
    }

    /// Becomes the program, or returns the step that failed. `supervisor` is the parent's pid.
    pub(crate) fn run(&self, supervisor: c_int) -> (Step, Errno) {
        match self.prepare(supervisor) {
            Err(failed) => failed,
            Ok(()) => {
                // SAFETY: all three are texts that end with NUL, and the lists end with a null pointer.
                unsafe {
                    libc::execve(self.path.as_ptr(), self.argv.pointers.as_ptr(), self.env.pointers.as_ptr());
                }
                (Step::Exec, last_error())
            }
        }
    }

    fn prepare(&self, supervisor: c_int) -> Result<(), (Step, Errno)> {
        use rustix::{process, thread};
        let at = |step: Step| move |errno: Errno| (step, errno);
        // With a group of its own, the program can be ended with its processes. Without a terminal, reading one cannot stop it.
        process::setsid().map_err(at(Step::Session))?;
        hide_descriptors().map_err(at(Step::Descriptors))?;
        if let Some(probe) = &self.probe {
            probe.freeze_mounts().map_err(at(Step::Confine))?;
            probe.drop_capabilities().map_err(at(Step::Confine))?;
        }
        if let Some((uid, gid, groups)) = &self.identity {
            thread::set_thread_groups(groups).map_err(at(Step::Groups))?;
            thread::set_thread_res_gid(*gid, *gid, *gid).map_err(at(Step::Group))?;
            thread::set_thread_res_uid(*uid, *uid, *uid).map_err(at(Step::User))?;
        }
        if let Some(bytes) = self.file_size {
            let limit = Rlimit { current: Some(bytes), maximum: Some(bytes) };
            process::setrlimit(Resource::Fsize, limit).map_err(at(Step::FileSize))?;
        }
        if let Some(mask) = self.umask {
            process::umask(rustix::fs::Mode::from_raw_mode(mask & 0o777));
        }
        self.enter_directory().map_err(at(Step::Directory))?;
        // Changing the user clears this setting, so it comes after that.
        process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(at(Step::Parent))?;
        if let Some(probe) = &self.probe {
            // Its parent is in another namespace of processes, where it has no number here.
            return probe.restrict().map_err(at(Step::Confine));
        }
        let parent = process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
        // The supervisor may have ended before this setting was made.
        if parent == supervisor { Ok(()) } else { Err((Step::Parent, Errno::SRCH)) }
    }

    /// Enters the directory as the program's user, so that the user's permissions decide.
    fn enter_directory(&self) -> Result<(), Errno> {
        let entered = rustix::process::chdir(self.directory.path.as_c_str());
        match self.directory.is {
            None => entered.or_else(|_| rustix::process::chdir(c"/")),
            Some(is) => {
                entered?;
                let here = rustix::fs::stat(c".")?;
                if (here.st_dev, here.st_ino) == is { Ok(()) } else { Err(Errno::STALE) }
            }
        }
    }
}

/// Marks all descriptors but 0, 1 and 2 to be closed when the program starts.
fn hide_descriptors() -> Result<(), Errno> {
    // SAFETY: changes a flag of this process's descriptors, no memory.
    let done: c_long = unsafe { libc::syscall(libc::SYS_close_range, 3, c_uint::MAX, CLOSE_RANGE_CLOEXEC) };
    if done == 0 {
        return Ok(());
    }
    match last_error() {
        // The system call or its flag is missing.
        Errno::NOSYS | Errno::INVAL | Errno::PERM => {
            for descriptor in 3..MAX_DESCRIPTOR {
                // SAFETY: as above.
                unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) };
            }
            Ok(())
        }
        other => Err(other),
    }
}

pub(crate) fn last_error() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// The number of a step.
pub(crate) fn step_number(step: Step) -> i32 {
    STEPS.iter().position(|known| *known == step).unwrap_or_default() as i32
}

/// Decodes a failure that a supervisor reported.
pub(crate) fn failure(step: i32, errno: i32) -> SpawnError {
    let step = usize::try_from(step).ok().and_then(|step| STEPS.get(step));
    SpawnError { step: step.copied().unwrap_or(Step::Fork), source: io::Error::from_raw_os_error(errno) }
}
