//! What a call has of files: the directories that it was granted, what it may write, what it has open.

use std::any::Any;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::{Arc, LazyLock, Weak};

use brine_sandbox_wire::Limits;
use wasmtime_wasi::filesystem::WasiFilesystemCtx;

use crate::budget::Budget;
use crate::directories::Directories;
use crate::failure::HostFailure;

/// Files and sockets that one guest may have open. The directories that it was granted come on top, and are few.
const MAX_OPEN: usize = 100;

/// What part of the files that the process may have open is not for guests: it takes in modules as open files.
const RESERVED: u64 = 8;

/// What a call has of files.
#[derive(Default)]
pub struct Files {
    /// What it was granted, opened where it imports this.
    pub directories: Directories,
    /// What it may still write and make.
    pub budget: Arc<Budget>,
    /// What it has open itself. Streams keep a file open when its descriptor is gone, so it is the files that are counted.
    open: Vec<Weak<dyn Any + Send + Sync>>,
    pub(crate) ctx: WasiFilesystemCtx,
}

impl Files {
    /// Of a module's call.
    #[must_use]
    pub fn new(module: &Arc<str>, limits: &Limits) -> Self {
        Self { budget: Arc::new(Budget::new(module, limits)), ..Self::default() }
    }

    /// Whether there is room for one more beside so many sockets.
    ///
    /// # Errors
    /// There is none.
    pub fn room(&mut self, sockets: usize) -> Result<(), HostFailure> {
        if self.open.len() + sockets >= MAX_OPEN {
            self.open.retain(|open| open.strong_count() > 0);
        }
        if self.open.len() + sockets >= MAX_OPEN {
            return Err(HostFailure::TooManyOpen(MAX_OPEN));
        }
        // The next number is the lowest that is free, so it tells how many are taken.
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

    /// Counts a file that was opened.
    pub(crate) fn add<T: Send + Sync + 'static>(&mut self, file: &Arc<T>) {
        let weak = Arc::downgrade(file);
        self.open.push(weak);
    }
}
