//! The end of a program: its exit code, or a failure.

use std::process::ExitCode;

use brine_protocol::exit;

use crate::print::stderr;

/// A program's exit code, or its failure.
pub type Outcome = Result<i32, Failure>;

/// The failure of a program: its message on stderr, and its exit code.
#[derive(Debug)]
pub struct Failure {
    /// The message; none if everything is already printed.
    pub message: Option<String>,
    /// Salt's exit code.
    pub code: i32,
}

impl Failure {
    /// With a message.
    pub fn new(code: i32, message: impl Into<String>) -> Self {
        Self { message: Some(message.into()), code }
    }

    /// Prints the message on stderr and returns the exit code.
    pub fn report(self) -> i32 {
        if let Some(message) = self.message {
            stderr(&message);
        }
        self.code
    }
}

/// Converts an outcome to the exit code of `main`; prints a failure's message to stderr.
pub fn finish(outcome: Outcome) -> ExitCode {
    let code = outcome.unwrap_or_else(Failure::report);
    ExitCode::from(u8::try_from(code).unwrap_or(u8::try_from(exit::GENERIC).unwrap_or(1)))
}
