//! One folder of `file_roots`, and the only way into it.

use std::fs::{File, Metadata};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use brine_protocol::ids::SafePath;
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// An open file with what was found out about it, by the same descriptor.
pub(crate) struct Found {
    pub(super) path: SafePath,
    pub(crate) file: File,
    pub(super) metadata: Metadata,
}

/// A root folder. It may come and go while the master runs.
#[derive(Debug)]
pub(crate) struct Root {
    path: PathBuf,
    follow: bool,
}

impl Root {
    pub(crate) const fn new(path: PathBuf, follow: bool) -> Self {
        Self { path, follow }
    }

    /// The root itself; it is the operator's, so it may be a symlink.
    pub(crate) fn open(&self) -> Option<OwnedFd> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        rustix::fs::open(&self.path, flags, Mode::empty()).ok()
    }

    /// A regular file below the root.
    pub(crate) fn open_file(&self, path: &SafePath) -> Option<Found> {
        let root = self.open()?;
        // NONBLOCK: a FIFO under the root must not hold a thread.
        let fd =
            self.open_beneath(root.as_fd(), path.as_str(), OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY).ok()?;
        let file = File::from(fd);
        let metadata = file.metadata().ok()?;
        metadata.is_file().then(|| Found { path: path.clone(), file, metadata })
    }

    /// Opens a path that can be nowhere but below `root`.
    pub(super) fn open_beneath(&self, root: BorrowedFd<'_>, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let mut resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        if !self.follow {
            resolve |= ResolveFlags::NO_SYMLINKS;
        }
        // EAGAIN: something was renamed during the walk, so the kernel could not be sure. Trying again is its own advice.
        for _ in 0..8 {
            match rustix::fs::openat2(root, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
                Err(Errno::AGAIN) => {}
                Err(Errno::NOSYS) => {
                    static SAID: AtomicBool = AtomicBool::new(false);
                    if !SAID.swap(true, Ordering::Relaxed) {
                        tracing::error!("the file server needs openat2 (Linux 5.6 or later): no file can be served");
                    }
                    return Err(Errno::NOSYS);
                }
                Err(Errno::XDEV) => {
                    tracing::debug!("{path} leads out of {} and is not served", self.path.display());
                    return Err(Errno::XDEV);
                }
                other => return other,
            }
        }
        Err(Errno::AGAIN)
    }
}
