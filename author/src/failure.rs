//! How a command ends when it did not do what it was asked for: what failed, on what, why, and what to do.

use std::fmt;
use std::path::Path;

/// Something did not hold: no signature, another key, a job that failed.
pub(crate) const FAILED: u8 = 1;
/// EX_USAGE: the command line asks for what makes no sense.
pub(crate) const USAGE: u8 = 64;
/// EX_DATAERR: an input is not what it should be.
pub(crate) const BAD_INPUT: u8 = 65;
/// EX_NOINPUT: a file cannot be read.
pub(crate) const NO_INPUT: u8 = 66;
/// EX_UNAVAILABLE: a part of the package is not here.
pub(crate) const UNAVAILABLE: u8 = 69;
/// What a shell says of a program that Ctrl-C ended.
pub(crate) const INTERRUPTED: u8 = 130;
/// EX_CANTCREAT: a result cannot be written.
pub(crate) const NO_OUTPUT: u8 = 73;

/// A message for the person at the terminal, and the exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    /// See the constants.
    pub(crate) code: u8,
    message: String,
}

impl Failure {
    pub(crate) fn new(code: u8, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// Something did not hold.
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
