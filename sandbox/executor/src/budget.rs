//! Bounds what a call may put on the host's disks: bytes written and files made, counted before each operation.
//!
//! The budget counts the bytes of each write, and the growth of a file beyond them: a gap left by a write far behind
//! the end, or by setting the size, takes no space at first but becomes part of every copy. Deleting or overwriting
//! gives nothing back. Every new name counts: of a file, a directory, a symbolic link or a hard link.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use brine_sandbox_wire::Limits;
use bytes::Bytes;
use rustix::io::Errno;
use wasmtime_wasi::p2::{DynOutputStream, OutputStream, Pollable, StreamError, StreamResult};

use crate::failure::HostFailure;

/// The rest of both limits, shared by all open files of a call.
#[derive(Debug, Default)]
pub struct Budget {
    module: Arc<str>,
    limits: (u64, u64),
    bytes: AtomicU64,
    files: AtomicU64,
}

impl Budget {
    /// A full budget.
    #[must_use]
    pub fn new(module: &Arc<str>, limits: &Limits) -> Self {
        let limits = (limits.written, limits.new_files);
        Self { module: Arc::clone(module), limits, bytes: AtomicU64::new(limits.0), files: AtomicU64::new(limits.1) }
    }

    /// The bytes and files that are left.
    #[must_use]
    pub fn left(&self) -> (u64, u64) {
        (self.bytes.load(Ordering::Relaxed), self.files.load(Ordering::Relaxed))
    }

    /// The bytes and files that were used.
    #[must_use]
    pub fn used(&self) -> (u64, u64) {
        let (bytes, files) = self.left();
        (self.limits.0.saturating_sub(bytes), self.limits.1.saturating_sub(files))
    }

    /// Deducts the use of a called function from this call's budget.
    pub fn spend(&self, bytes: u64, files: u64) {
        for (left, used) in [(&self.bytes, bytes), (&self.files, files)] {
            let _ = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| Some(left.saturating_sub(used)));
        }
    }

    /// Counts a write of `length` bytes at an offset, or at the end of the file if there is none. Returns the counted
    /// bytes.
    ///
    /// # Errors
    /// When the limit is used up.
    pub fn write(&self, file: &File, at: Option<u64>, length: usize) -> Result<u64, HostFailure> {
        let skipped = at.map_or(0, |at| if length > 0 { at.saturating_sub(size(file)) } else { 0 });
        self.take_bytes(skipped.saturating_add(u64::try_from(length).unwrap_or(u64::MAX)))
    }

    /// Counts a change of the file's size. Returns the counted bytes.
    ///
    /// # Errors
    /// When the limit is used up.
    pub fn set_size(&self, file: &File, to: u64) -> Result<u64, HostFailure> {
        self.take_bytes(to.saturating_sub(size(file)))
    }

    /// Counts a new name.
    ///
    /// # Errors
    /// When the limit is used up.
    pub fn new_file(&self) -> Result<(), HostFailure> {
        let failure = || HostFailure::TooManyFiles { limit: self.limits.1, module: Arc::clone(&self.module) };
        take(&self.files, 1).ok_or_else(failure)
    }

    fn take_bytes(&self, bytes: u64) -> Result<u64, HostFailure> {
        let failure = || HostFailure::TooMuchWritten { limit: self.limits.0, module: Arc::clone(&self.module) };
        take(&self.bytes, bytes).ok_or_else(failure).map(|()| bytes)
    }

    /// Counts what the minion wrote and made for this call.
    ///
    /// # Errors
    /// When a limit is used up.
    pub fn take(&self, bytes: u64, files: u64) -> Result<(), HostFailure> {
        self.take_bytes(bytes)?;
        let failure = || HostFailure::TooManyFiles { limit: self.limits.1, module: Arc::clone(&self.module) };
        take(&self.files, files).ok_or_else(failure)
    }

    /// Gives back bytes that were counted and then not written.
    pub fn give_back(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Gives back a name that was counted and then not made.
    pub fn not_made(&self) {
        self.files.fetch_add(1, Ordering::Relaxed);
    }
}

fn take(left: &AtomicU64, wanted: u64) -> Option<()> {
    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(wanted)).ok().map(drop)
}

fn size(file: &File) -> u64 {
    // If `fstat` fails, the size counts as 0, so that the whole write is counted.
    rustix::fs::fstat(file).map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0))
}

/// Opens a file that may have to be made. It counts as new only if no file existed.
///
/// # Errors
/// The outer error is the kernel's; the inner one says that the limit is used up.
pub fn opened<T>(
    budget: &Budget,
    create: bool,
    exclusive: bool,
    mut open: impl FnMut(bool) -> Result<T, Errno>,
) -> Result<Result<T, HostFailure>, Errno> {
    if !create {
        return open(false).map(Ok);
    }
    if !exclusive {
        match open(false) {
            Err(Errno::NOENT) => {}
            other => return other.map(Ok),
        }
    }
    if let Err(failure) = budget.new_file() {
        return Ok(Err(failure));
    }
    open(true).map(Ok).inspect_err(|_| budget.not_made())
}

/// Bytes that are appended at once. The kernel puts one write behind another, so that a line of this size is not torn by what another call
/// appends; wasmtime-wasi's own 64 KiB are smaller than many a return.
const APPENDED: usize = 16 << 20;

/// An output stream into a file that counts the bytes it writes.
pub struct Counted {
    inner: DynOutputStream,
    file: Arc<File>,
    /// The offset of the next write; none for the end of the file.
    at: Option<u64>,
    budget: Arc<Budget>,
}

impl Counted {
    /// Counts the writes of `inner`.
    #[must_use]
    pub fn new(inner: DynOutputStream, file: Arc<File>, at: Option<u64>, budget: Arc<Budget>) -> Self {
        Self { inner, file, at, budget }
    }

    fn count(&mut self, length: usize) -> StreamResult<()> {
        self.budget.write(&self.file, self.at, length).map_err(|failure| StreamError::Trap(failure.into()))?;
        self.at = self.at.map(|at| at.saturating_add(u64::try_from(length).unwrap_or(u64::MAX)));
        Ok(())
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Counted {
    async fn ready(&mut self) {
        self.inner.ready().await;
    }
}

#[wasmtime_wasi::async_trait]
impl OutputStream for Counted {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.count(bytes.len())?;
        self.inner.write(bytes)
    }

    async fn blocking_write_and_flush(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.count(bytes.len())?;
        self.inner.blocking_write_and_flush(bytes).await
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.inner.flush()
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        let room = self.inner.check_write()?;
        Ok(if self.at.is_none() && room > 0 { room.max(APPENDED) } else { room })
    }

    /// The host's memory, not the guest's: of these there are no more than what the inner stream takes at once.
    fn write_zeroes(&mut self, length: usize) -> StreamResult<()> {
        if length > self.inner.check_write()? {
            return Err(StreamError::trap("more zeroes than a stream takes at once"));
        }
        self.write(Bytes::from(vec![0; length]))
    }

    async fn cancel(&mut self) {
        self.inner.cancel().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(written: u64, new_files: u64) -> Budget {
        Budget::new(&"m".into(), &Limits { written, new_files, ..Limits::default() })
    }

    #[test]
    fn what_is_skipped_counts_as_what_is_written() {
        let file = tempfile::tempfile().unwrap();
        let budget = budget(100, 0);
        assert_eq!(budget.write(&file, Some(0), 10).unwrap(), 10);
        assert_eq!(budget.write(&file, None, 10).unwrap(), 10);
        // The file is still empty, so ten bytes at offset 10 count as twenty.
        assert_eq!(budget.write(&file, Some(10), 10).unwrap(), 20);
        assert_eq!(budget.write(&file, Some(1 << 40), 0).unwrap(), 0);
        assert!(budget.write(&file, Some(1 << 40), 1).is_err());
        assert!(budget.write(&file, Some(u64::MAX), 10).is_err());
        file.set_len(50).unwrap();
        assert_eq!(budget.set_size(&file, 20).unwrap(), 0);
        assert_eq!(budget.set_size(&file, 110).unwrap(), 60);
        assert_eq!((budget.left(), budget.used()), ((0, 0), (100, 0)));
        assert!(budget.write(&file, Some(0), 1).is_err());
        budget.give_back(1);
        assert!(budget.write(&file, Some(0), 1).is_ok());
    }

    #[test]
    fn a_file_is_new_where_there_was_none() {
        let budget = budget(0, 2);
        let there = |there: bool| move |create: bool| if create || there { Ok(create) } else { Err(Errno::NOENT) };
        assert!(!opened(&budget, false, false, there(true)).unwrap().unwrap());
        assert!(opened(&budget, false, false, there(false)).is_err());
        assert!(!opened(&budget, true, false, there(true)).unwrap().unwrap());
        assert!(opened(&budget, true, true, |_| Err::<(), _>(Errno::EXIST)).is_err());
        assert_eq!(budget.left().1, 2);
        assert!(opened(&budget, true, false, there(false)).unwrap().unwrap());
        assert!(opened(&budget, true, true, there(true)).unwrap().unwrap());
        assert!(opened(&budget, true, false, there(false)).unwrap().is_err());
        assert!(!opened(&budget, true, false, there(true)).unwrap().unwrap());
        budget.spend(5, 5);
        assert_eq!(budget.left(), (0, 0));
    }
}
