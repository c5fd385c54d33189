//! How a program ends.

use std::process::ExitCode;

use brine_protocol::exit;

use crate::print::stderr;

/// A program's exit code, or why it cannot go on.
pub type Outcome = Result<i32, Failure>;

/// A program that cannot go on: what it says on stderr, and its exit code.
#[derive(Debug)]
pub struct Failure {
    /// The message, or none if everything has been said.
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

/// Makes an outcome the exit code of `main`; a failure's message goes to stderr.
pub fn finish(outcome: Outcome) -> ExitCode {
    let code = outcome.unwrap_or_else(Failure::report);
    ExitCode::from(u8::try_from(code).unwrap_or(u8::try_from(exit::GENERIC).unwrap_or(1)))
}
