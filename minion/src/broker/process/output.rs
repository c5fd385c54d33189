//! The output of a program. The first bytes are kept; the rest is read and counted, so that the program does not block
//! on a full pipe.

use std::io;

use rustix::pipe::{PipeFlags, pipe_with};
use std::os::fd::OwnedFd;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;

/// Bytes of one read: the default capacity of a pipe.
const CHUNK: usize = 64 * 1024;
/// Upper bound on the bytes read after the end of the program from a pipe that another process keeps open: the largest
/// capacity of a pipe on Linux.
const MAX_LEFT: usize = 1024 * 1024;

/// One output stream.
pub(super) struct Output {
    pipe: Receiver,
    keep: usize,
    pub(super) kept: Vec<u8>,
    pub(super) dropped: u64,
}

impl Output {
    /// Makes a pipe and returns the minion's end and the program's end.
    pub(super) fn new(keep: usize) -> io::Result<(Self, OwnedFd)> {
        let (ours, theirs) = pipe_with(PipeFlags::CLOEXEC)?;
        let pipe = Receiver::from_owned_fd(ours)?;
        Ok((Self { pipe, keep, kept: Vec::new(), dropped: 0 }, theirs))
    }

    /// Reads until all writers have closed the pipe.
    pub(super) async fn read(&mut self) {
        let mut chunk = vec![0; CHUNK];
        loop {
            match self.pipe.read(&mut chunk).await {
                Ok(0) | Err(_) => return,
                Ok(read) => self.take(&chunk[..read]),
            }
        }
    }

    /// Reads what the pipe holds now.
    pub(super) fn read_left(&mut self) {
        let mut chunk = vec![0; CHUNK];
        let mut left = MAX_LEFT;
        while let Ok(read @ 1..) = self.pipe.try_read(&mut chunk) {
            self.take(&chunk[..read]);
            left = left.saturating_sub(read);
            if left == 0 {
                return;
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        let room = self.keep.saturating_sub(self.kept.len()).min(bytes.len());
        self.kept.extend_from_slice(&bytes[..room]);
        self.dropped += (bytes.len() - room) as u64;
    }
}
