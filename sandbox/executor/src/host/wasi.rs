//! The WASI interfaces of every guest: clocks, randomness, an empty environment, no input, output to the log. They are
//! linked one by one, so that no other interface is included. Files and sockets need a grant, see [`super::filesystem`]
//! and [`super::sockets`].

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use brine_sandbox_wire::LogLevel;
use bytes::Bytes;
use tokio::io::AsyncWrite;
use wasmtime::component::{HasData, Linker, ResourceTable};
use wasmtime_wasi::cli::{IsTerminal, StdoutStream, WasiCli, WasiCliView};
use wasmtime_wasi::clocks::{WasiClocks, WasiClocksView};
use wasmtime_wasi::p2::bindings::{cli, clocks, io as wasi_io, random};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};
use wasmtime_wasi::random::{WasiRandom, WasiRandomView};

use crate::guest::{Guest, Line};

/// Upper bound on the random bytes of one call. Keys and seeds are far smaller.
pub const MAX_RANDOM: u64 = 64 << 10;

/// Upper bound on the bytes kept of an unfinished line of output. The log shortens lines further.
const MAX_PENDING: usize = 2_048;

/// Upper bound on the bytes of one write. Guests repeat a write that was incomplete.
const MAX_WRITE: usize = 64 << 10;

/// WASI packages that are linked completely.
pub const PACKAGES: [&str; 4] = ["wasi:io/", "wasi:clocks/", "wasi:random/", "wasi:cli/"];

struct Io;

impl HasData for Io {
    type Data<'a> = &'a mut ResourceTable;
}

/// Adds the interfaces to a linker.
///
/// # Errors
/// When the linker has one of them already.
pub fn link(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    wasi_io::error::add_to_linker::<Guest, Io>(linker, |guest| &mut guest.table)?;
    wasi_io::poll::add_to_linker::<Guest, Io>(linker, |guest| &mut guest.table)?;
    wasi_io::streams::add_to_linker::<Guest, Io>(linker, |guest| &mut guest.table)?;
    clocks::wall_clock::add_to_linker::<Guest, WasiClocks>(linker, Guest::clocks)?;
    clocks::monotonic_clock::add_to_linker::<Guest, WasiClocks>(linker, Guest::clocks)?;
    random::random::add_to_linker::<Guest, WasiRandom>(linker, Guest::random)?;
    random::insecure::add_to_linker::<Guest, WasiRandom>(linker, Guest::random)?;
    random::insecure_seed::add_to_linker::<Guest, WasiRandom>(linker, Guest::random)?;
    cli::environment::add_to_linker::<Guest, WasiCli>(linker, Guest::cli)?;
    cli::exit::add_to_linker::<Guest, WasiCli>(linker, Guest::cli)?;
    cli::stdin::add_to_linker::<Guest, WasiCli>(linker, Guest::cli)?;
    cli::stdout::add_to_linker::<Guest, WasiCli>(linker, Guest::cli)?;
    cli::stderr::add_to_linker::<Guest, WasiCli>(linker, Guest::cli)?;
    cli::terminal_input::add_to_linker::<Guest, WasiCli>(linker, Guest::cli)?;
    cli::terminal_output::add_to_linker::<Guest, WasiCli>(linker, Guest::cli)?;
    cli::terminal_stdin::add_to_linker::<Guest, WasiCli>(linker, Guest::cli)?;
    cli::terminal_stdout::add_to_linker::<Guest, WasiCli>(linker, Guest::cli)?;
    cli::terminal_stderr::add_to_linker::<Guest, WasiCli>(linker, Guest::cli)?;
    Ok(())
}

/// Standard output or standard error; its lines go to the log.
#[derive(Clone)]
pub struct Stdio {
    line: Arc<Line>,
    level: LogLevel,
    pending: Arc<Mutex<Vec<u8>>>,
}

impl Stdio {
    /// A stream that logs its lines at this level.
    #[must_use]
    pub fn new(line: Arc<Line>, level: LogLevel) -> Self {
        Self { line, level, pending: Arc::default() }
    }

    fn take(&self, bytes: &[u8]) {
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

    /// Logs a last line without a line end.
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
