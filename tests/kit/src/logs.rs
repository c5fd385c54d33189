//! What the process logs.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use tracing_subscriber::filter::LevelFilter;

/// Everything that this process has logged since [`Log::capture`].
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Captures the log down to this level, from now on and of all tests in this process.
    pub fn capture(level: impl Into<LevelFilter>) -> Self {
        let log = Self::default();
        let writer = log.clone();
        tracing_subscriber::fmt()
            .with_max_level(level)
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .try_init()
            .expect("nothing else captures the log");
        log
    }

    /// Returns the log so far.
    pub fn text(&self) -> String {
        String::from_utf8(self.0.lock().expect("no writer panics").clone()).expect("a log is text")
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no writer panics").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
