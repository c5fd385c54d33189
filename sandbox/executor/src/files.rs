//! A call's access to files: its granted directories, its budget for writes, its open files.

use std::any::Any;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::{Arc, LazyLock, Weak};

use brine_sandbox_wire::Limits;
use wasmtime_wasi::filesystem::WasiFilesystemCtx;

use crate::budget::Budget;
use crate::directories::Directories;
use crate::failure::HostFailure;
use crate::planned::WouldWrite;

/// Upper bound on the files and sockets that one guest may have open, in addition to its few granted directories.
const MAX_OPEN: usize = 100;

/// One part in so many of the process's open files is reserved, because modules arrive as open files.
const RESERVED: u64 = 8;

/// A call's access to files.
#[derive(Default)]
pub struct Files {
    /// The granted directories, opened if the module imports the file system.
    pub directories: Directories,
    /// In plan mode, the directories that are writable otherwise.
    pub would_write: Option<Arc<WouldWrite>>,
    /// Whether the guest asks by `brine:host/metadata` about a path that it cannot find. Then its library needs no `/` to refuse it.
    pub asks: bool,
    /// The bytes that it may still write and the files that it may still create.
    pub budget: Arc<Budget>,
    /// The files that the guest has opened. A stream keeps its file open after the descriptor is dropped, so files are
    /// counted and not descriptors.
    open: Vec<Weak<dyn Any + Send + Sync>>,
    /// The paths of opened directories below the granted ones.
    paths: Vec<(Weak<File>, String)>,
    pub(crate) ctx: WasiFilesystemCtx,
}

impl Files {
    /// Makes the access of a call of this module.
    #[must_use]
    pub fn new(module: &Arc<str>, limits: &Limits) -> Self {
        Self { budget: Arc::new(Budget::new(module, limits)), ..Self::default() }
    }

    /// Checks that the guest may open one more file in addition to `sockets` open sockets.
    ///
    /// # Errors
    ///
    /// The guest's limit or the process's limit is reached.
    pub fn room(&mut self, sockets: usize) -> Result<(), HostFailure> {
        if self.open.len() + sockets >= MAX_OPEN {
            self.open.retain(|open| open.strong_count() > 0);
        }
        if self.open.len() + sockets >= MAX_OPEN {
            return Err(HostFailure::TooManyOpen(MAX_OPEN));
        }
        // A new descriptor gets the lowest free number, which shows how many are in use.
        static CEILING: LazyLock<u64> = LazyLock::new(|| {
            let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
            limit - limit / RESERVED
        });
        let next = rustix::io::fcntl_dupfd_cloexec(io::stdin(), 0).map(|fd| u64::try_from(fd.as_raw_fd()));
        match next {
            Ok(Ok(next)) if next < *CEILING => Ok(()),
            _ => Err(HostFailure::NoFilesLeft),
        }
    }

    /// Counts an opened file.
    pub(crate) fn add<T: Send + Sync + 'static>(&mut self, file: &Arc<T>) {
        let weak = Arc::downgrade(file);
        self.open.push(weak);
    }

    /// Remembers the path of an opened directory.
    pub(crate) fn remember(&mut self, dir: &Arc<File>, path: String) {
        self.paths.retain(|(open, _)| open.strong_count() > 0);
        self.paths.push((Arc::downgrade(dir), path));
    }

    /// Returns the path of a granted directory or of one that was opened below it, as far as it is known.
    pub(crate) fn path_of(&self, dir: &Arc<File>) -> Option<String> {
        let known = self.directories.path_of(dir).map(str::to_owned);
        let opened = || self.paths.iter().find(|(open, _)| std::ptr::eq(open.as_ptr(), Arc::as_ptr(dir)));
        known.or_else(|| opened().map(|(_, path)| path.clone()))
    }
}
