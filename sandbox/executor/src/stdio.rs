//! Standard output and standard error of a guest, whose lines go to the log.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use brine_sandbox_wire::LogLevel;
use bytes::Bytes;
use tokio::io::AsyncWrite;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

use crate::line::Line;

/// Upper bound on the bytes of an unfinished line. The log's bound is smaller.
const MAX_PENDING: usize = 2_048;

/// Upper bound on the bytes of one write. Guests continue with another write.
const MAX_WRITE: usize = 64 << 10;

/// Standard output or standard error, whose lines go to the log.
#[derive(Clone)]
pub struct Stdio {
    line: Arc<Line>,
    level: LogLevel,
    pending: Arc<Mutex<Vec<u8>>>,
}

impl Stdio {
    /// Makes a stream whose lines have this level.
    #[must_use]
    pub fn new(line: Arc<Line>, level: LogLevel) -> Self {
        Self { line, level, pending: Arc::default() }
    }

    /// Logs the whole lines of these bytes and those before.
    pub fn take(&self, bytes: &[u8]) {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, ends) = part.strip_suffix(b"\n").map_or((part, false), |text| (text, true));
            let room = MAX_PENDING - pending.len();
            pending.extend_from_slice(&text[..text.len().min(room)]);
            if ends {
                self.line.log(self.level, &String::from_utf8_lossy(&pending));
                pending.clear();
            }
        }
    }

    /// Logs an unfinished last line.
    pub fn finish(&self) {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        if !pending.is_empty() {
            self.line.log(self.level, &String::from_utf8_lossy(&pending));
            pending.clear();
        }
    }
}

impl IsTerminal for Stdio {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Stdio {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Stdio {
    async fn ready(&mut self) {}
}

impl OutputStream for Stdio {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.take(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(MAX_WRITE)
    }
}

impl AsyncWrite for Stdio {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.take(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
