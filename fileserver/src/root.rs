//! A folder of `file_roots`, and the only way to open files in it.

use std::fs::{File, Metadata};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use brine_protocol::ids::SafePath;
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// An open file with its metadata, from the same descriptor.
pub struct Found {
    pub(crate) path: SafePath,
    /// The file.
    pub file: File,
    /// As it was when the file was opened.
    pub metadata: Metadata,
}

/// A root folder. It may appear and disappear while the master runs.
#[derive(Debug)]
pub struct Root {
    path: PathBuf,
    follow: bool,
}

impl Root {
    /// A folder. Symbolic links in it are followed if `follow` is set, but never out of it.
    pub const fn new(path: PathBuf, follow: bool) -> Self {
        Self { path, follow }
    }

    /// Returns the folder's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the root itself. It may be a symlink, because it belongs to the operator.
    pub fn open(&self) -> Option<OwnedFd> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        rustix::fs::open(&self.path, flags, Mode::empty()).ok()
    }

    /// Opens a regular file below the root.
    pub fn open_file(&self, path: &SafePath) -> Option<Found> {
        let root = self.open()?;
        // NONBLOCK, because a FIFO under the root must not block a thread.
        let fd =
            self.open_beneath(root.as_fd(), path.as_str(), OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY).ok()?;
        let file = File::from(fd);
        let metadata = file.metadata().ok()?;
        metadata.is_file().then(|| Found { path: path.clone(), file, metadata })
    }

    /// Opens a path that the kernel resolves only below `root`.
    ///
    /// # Errors
    /// As `openat2`.
    pub fn open_beneath(&self, root: BorrowedFd<'_>, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let mut resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        if !self.follow {
            resolve |= ResolveFlags::NO_SYMLINKS;
        }
        // EAGAIN: the kernel could not resolve the path because of a concurrent rename. Its documentation advises to
        // try again.
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
