//! Opens what a path leads to below an open directory: the kernel resolves the path in one step, with `openat2`, so that neither `..` nor
//! a symbolic link nor a race of renames leads out. Everything here may block; it runs on threads for that.
//!
//! System calls beside the usual: `openat2`, `statx`, `fstatfs`, `readlinkat`, `getdents64`, `utimensat`, and `clone` for the threads.

use std::fs::File;

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// How often a path is tried again when something was renamed on its way meanwhile.
pub const TRIES: usize = 32;

/// Opens what a path leads to below a directory. `EXDEV`: it leads out.
///
/// # Errors
/// The kernel's.
pub fn open_below(dir: &File, root: bool, path: &str, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    // Below `/` nothing leads out, and a link that begins with `/` begins there, as on the host. The links of /proc that lead to what a
    // process has open are no links but ways around every check.
    let resolve = if root { ResolveFlags::IN_ROOT } else { ResolveFlags::BENEATH } | ResolveFlags::NO_MAGICLINKS;
    let flags = flags | OFlags::CLOEXEC;
    // A mode where nothing is made is an error.
    let mode = if flags.contains(OFlags::CREATE) { mode } else { Mode::empty() };
    for _ in 0..TRIES {
        match rustix::fs::openat2(dir, path, flags, mode, resolve) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            other => return other,
        }
    }
    Err(Errno::BUSY)
}

/// What a path leads to, without opening it: good for its metadata alone.
///
/// # Errors
/// The kernel's.
pub fn look_below(dir: &File, root: bool, path: &str, follow: bool) -> Result<OwnedFd, Errno> {
    let flags = if follow { OFlags::PATH } else { OFlags::PATH | OFlags::NOFOLLOW };
    open_below(dir, root, path, flags, Mode::empty())
}

/// Opens a file or directory for reading or writing, and nothing else: opening a FIFO waits for the other end, opening a device may
/// rewind a tape or arm a watchdog, and the files of `/proc` are processes, this one among them.
///
/// # Errors
/// The kernel's; `EPERM` for what is neither.
pub fn open_file(dir: &File, root: bool, path: &str, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    match look_below(dir, root, path, !flags.contains(OFlags::NOFOLLOW)) {
        Ok(fd) => permitted(fd.as_fd(), true)?,
        Err(Errno::NOENT) if flags.contains(OFlags::CREATE) => {}
        Err(error) => return Err(error),
    }
    // It may be another by now, so it does not wait and is looked at again.
    let fd = open_below(dir, root, path, flags | OFlags::NONBLOCK | OFlags::NOCTTY, mode)?;
    permitted(fd.as_fd(), false)?;
    Ok(fd)
}

fn permitted(fd: impl AsFd, links: bool) -> Result<(), Errno> {
    match FileType::from_raw_mode(rustix::fs::fstat(&fd)?.st_mode) {
        FileType::Directory => Ok(()),
        // Not followed: opening it says so better.
        FileType::Symlink if links => Ok(()),
        FileType::RegularFile if rustix::fs::fstatfs(&fd)?.f_type != rustix::fs::PROC_SUPER_MAGIC => Ok(()),
        _ => Err(Errno::PERM),
    }
}
