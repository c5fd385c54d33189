//! Opens paths below an open directory. The kernel resolves a path in one step with `openat2`, so that neither `..` nor
//! a symbolic link nor a concurrent rename leads out of the directory. All functions here may block, so they run on
//! threads for blocking work.
//!
//! System calls beside the usual: `openat2`, `statx`, `fstatfs`, `readlinkat`, `getdents64`, `utimensat`, and `clone`
//! for the threads.

use std::fs::File;

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// Upper bound on retries when a concurrent rename disturbs the resolution of a path.
pub const TRIES: usize = 32;

/// Opens a path below a directory.
///
/// # Errors
///
/// The kernel's error; `EXDEV` if the path leads out of the directory.
pub fn open_below(dir: &File, root: bool, path: &str, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    // Below `/` no path leads out, and an absolute link starts at `/`, as on the host. The magic links of /proc to a
    // process's open files would bypass every check.
    let resolve = if root { ResolveFlags::IN_ROOT } else { ResolveFlags::BENEATH } | ResolveFlags::NO_MAGICLINKS;
    let flags = flags | OFlags::CLOEXEC;
    // A mode without `O_CREAT` is an error.
    let mode = if flags.contains(OFlags::CREATE) { mode } else { Mode::empty() };
    for _ in 0..TRIES {
        match rustix::fs::openat2(dir, path, flags, mode, resolve) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            other => return other,
        }
    }
    Err(Errno::BUSY)
}

/// Opens a path for its metadata only.
///
/// # Errors
///
/// The kernel's error.
pub fn look_below(dir: &File, root: bool, path: &str, follow: bool) -> Result<OwnedFd, Errno> {
    let flags = if follow { OFlags::PATH } else { OFlags::PATH | OFlags::NOFOLLOW };
    open_below(dir, root, path, flags, Mode::empty())
}

/// Opens a regular file or a directory, and nothing else: opening a FIFO waits for the other end, opening a device may
/// rewind a tape or arm a watchdog, and the files of `/proc` are processes, this one included.
///
/// # Errors
///
/// The kernel's error; `EPERM` for other kinds of files.
pub fn open_file(dir: &File, root: bool, path: &str, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    match look_below(dir, root, path, !flags.contains(OFlags::NOFOLLOW)) {
        Ok(fd) => permitted(fd.as_fd(), true)?,
        Err(Errno::NOENT) if flags.contains(OFlags::CREATE) => {}
        Err(error) => return Err(error),
    }
    // The path may lead to another file by now, so this does not block, and the result is checked again.
    let fd = open_below(dir, root, path, flags | OFlags::NONBLOCK | OFlags::NOCTTY, mode)?;
    permitted(fd.as_fd(), false)?;
    Ok(fd)
}

fn permitted(fd: impl AsFd, links: bool) -> Result<(), Errno> {
    match FileType::from_raw_mode(rustix::fs::fstat(&fd)?.st_mode) {
        FileType::Directory => Ok(()),
        // A link that is not followed: opening it returns the better error.
        FileType::Symlink if links => Ok(()),
        FileType::RegularFile if rustix::fs::fstatfs(&fd)?.f_type != rustix::fs::PROC_SUPER_MAGIC => Ok(()),
        _ => Err(Errno::PERM),
    }
}
