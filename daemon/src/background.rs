//! Going to the background. Forking a process that has threads is not safe, so nothing here forks: the daemon starts itself anew, before
//! there is a runtime, in a session of its own, and the process in front waits until that one answers or fails.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use brine_protocol::exit;

use crate::ProcessError;

/// What the process in the background says when it answers.
const READY: &str = "ready";

/// Starts this program in the background with these arguments (without its name) and `--background`, and waits until it answers or
/// fails. Answers this process's exit code.
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
    // It has said why on stderr, which it shares with this process until it is ready.
    Ok(child.wait().map_err(failed)?.code().unwrap_or(exit::GENERIC))
}

/// In the background, first thing: leaves the terminal's session.
pub fn leave_terminal() {
    // Fails only for a leader of a process group, which is in a session of its own already.
    let _ = rustix::process::setsid();
}

/// In the background, once it answers: tells the process in front, and lets go of its terminal.
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
