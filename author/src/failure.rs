//! The failure of a command: the operation, the file, the reason and the remedy.

use std::fmt;
use std::path::Path;

/// A check or a job failed: no signature, another key, an error of the function.
pub(crate) const FAILED: u8 = 1;
/// EX_USAGE: the command line is invalid.
pub(crate) const USAGE: u8 = 64;
/// EX_DATAERR: an input is invalid.
pub(crate) const BAD_INPUT: u8 = 65;
/// EX_NOINPUT: a file cannot be read.
pub(crate) const NO_INPUT: u8 = 66;
/// EX_UNAVAILABLE: a part of the package is missing.
pub(crate) const UNAVAILABLE: u8 = 69;
/// The exit code that a shell reports for a program ended by Ctrl-C.
pub(crate) const INTERRUPTED: u8 = 130;
/// EX_CANTCREAT: a result cannot be written.
pub(crate) const NO_OUTPUT: u8 = 73;

/// A message for the person at the terminal, and the exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    /// One of the constants above.
    pub(crate) code: u8,
    message: String,
}

impl Failure {
    pub(crate) fn new(code: u8, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// Returns the failure of a check or a job.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(FAILED, message)
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(USAGE, message)
    }

    pub(crate) fn input(message: impl Into<String>) -> Self {
        Self::new(BAD_INPUT, message)
    }

    pub(crate) fn unreadable(path: &Path, why: impl fmt::Display) -> Self {
        Self::new(NO_INPUT, format!("{} cannot be read: {why}", path.display()))
    }

    pub(crate) fn unwritable(path: &Path, why: impl fmt::Display) -> Self {
        Self::new(NO_OUTPUT, format!("{} cannot be written: {why}", path.display()))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
