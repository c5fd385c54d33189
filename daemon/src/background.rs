//! Starts a daemon in the background. Forking a process with threads is not safe, so nothing here forks: the program
//! starts itself again in a session of its own before it has a runtime, and the foreground process waits until the
//! background process is ready or has failed.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use brine_protocol::exit;

use crate::ProcessError;

/// The text by which the background process reports that it is ready.
const READY: &str = "ready";

/// Starts this program in the background with these arguments (without its name) and `--background`, and waits until it
/// is ready or has failed. Returns the exit code of this process.
///
/// # Errors
/// When the program cannot be started.
pub fn start(args: &[OsString]) -> Result<i32, ProcessError> {
    let failed = |e: io::Error| ProcessError::new(exit::GENERIC, format!("cannot start in the background: {e}"));
    let program = std::env::current_exe().map_err(failed)?;
    #[expect(clippy::disallowed_methods, reason = "the program is this one; see the head of this file")]
    let mut command = Command::new(program);
    command.arg("--background").args(args).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::new(stdout).read_line(&mut line).map_err(failed)?;
    }
    if line.trim() == READY {
        return Ok(exit::OK);
    }
    // The background process has reported its error on stderr, which it shares with this process until it is ready.
    Ok(child.wait().map_err(failed)?.code().unwrap_or(exit::GENERIC))
}

/// Leaves the terminal's session. The background process calls this first.
pub fn leave_terminal() {
    // This fails only for the leader of a process group, which already has a session of its own.
    let _ = rustix::process::setsid();
}

/// Reports to the foreground process that the daemon is ready, and releases the terminal.
pub fn detach() {
    let mut stdout = io::stdout();
    let _ = writeln!(stdout, "{READY}").and_then(|()| stdout.flush());
    match std::fs::OpenOptions::new().read(true).write(true).open("/dev/null") {
        Ok(null) => {
            let _ = rustix::stdio::dup2_stdin(&null);
            let _ = rustix::stdio::dup2_stdout(&null);
            let _ = rustix::stdio::dup2_stderr(&null);
        }
        Err(e) => tracing::warn!("cannot let go of the terminal: {e}"),
    }
}
