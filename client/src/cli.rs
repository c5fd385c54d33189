//! The operators' commands. Each module here is one command: its table of options, from which parsing and `--help` come,
//! and what it does. What commands share: [`options`], [`target`], [`usage`] for wrong calls,
//! [`print`] for output.

mod complete;
pub mod options;
pub mod print;
pub mod salt;
pub mod salt_cp;
pub mod salt_key;
pub mod salt_run;
pub mod target;
pub mod usage;

use std::process::ExitCode;

use brine_protocol::exit;

use crate::ClientError;

/// How a command ends; made into the exit code by the binary's `main`.
pub type Outcome = Result<i32, Failure>;

/// A command that cannot go on: what it says on stderr, and its exit code.
#[derive(Debug)]
pub struct Failure {
    /// One line, or none if everything has been said.
    pub message: Option<String>,
    /// Salt's exit code.
    pub code: i32,
}

impl Failure {
    /// With a message.
    pub fn new(code: i32, message: impl Into<String>) -> Self {
        Self { message: Some(message.into()), code }
    }
}

/// Ends a command: its message on stderr, its code.
pub fn finish(outcome: Outcome) -> ExitCode {
    let code = outcome.unwrap_or_else(|failure| {
        if let Some(message) = failure.message {
            print::stderr(&message);
        }
        failure.code
    });
    ExitCode::from(u8::try_from(code).unwrap_or(u8::try_from(exit::GENERIC).unwrap_or(1)))
}

/// Runs a command's future. One thread is enough: it waits for one socket or two.
fn block_on<T>(future: impl Future<Output = T>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(exit::SOFTWARE, format!("cannot start: {error}")))?;
    let out = runtime.block_on(future);
    // what still runs (a socket closing) is not worth waiting for
    runtime.shutdown_background();
    Ok(out)
}

/// Tells on stderr what helps beyond an error's own words, in the form of Salt's log lines.
fn hint(error: &ClientError) {
    if let Some(hint) = error.hint() {
        print::stderr(&format!("[ERROR   ] {hint}"));
    }
}
