//! One executor process: started with one end of a socket pair as its standard input and nothing else.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use brine_sandbox_walls::Walls;
use brine_sandbox_wire::{Connection, DirectGrants, FromExecutor, Receiver, Sender, ToExecutor, VERSION};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, ChildStderr, Command};

/// From start to `Ready`. It takes milliseconds; a machine that swaps takes longer.
const READY: Duration = Duration::from_secs(10);
/// Bytes of one line on the executor's standard error, and lines in one life: engine warnings and a panic fit.
const MAX_LINE: u64 = 2_048;
const MAX_LINES: usize = 200;

/// The executor's program and how it is started.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    /// Calls that it may have to run at the same time; who waits, waits in the minion.
    pub(crate) max_running: usize,
}

/// A running executor that has said that it is ready.
pub(crate) struct Process {
    pub(crate) child: Child,
    pub(crate) pid: u32,
    pub(crate) sender: Sender<ToExecutor>,
    pub(crate) receiver: Receiver<FromExecutor>,
    /// The walls around it.
    pub(crate) walls: Walls,
}

/// Starts the program and waits until it is ready. An error is one line. Its second wall (own user, landlock, seccomp) is
/// built here and by itself before `Ready`, from the direct grants of its modules.
#[expect(clippy::disallowed_methods, reason = "one of the sandbox's own two programs")]
pub(crate) async fn start(program: &Program, _direct: &DirectGrants) -> Result<Process, String> {
    let Program { path, max_running } = program;
    let (connection, theirs) = Connection::pair().map_err(|error| format!("no socket pair: {error}"))?;
    let mut child = Command::new(path)
        .args(["--max-running", &max_running.to_string()])
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(theirs))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        // Keys pressed for the minion are not for it: the minion ends it when its jobs are done.
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("{} cannot be started: {error}", path.display()))?;
    let pid = child.id().ok_or("it ended at once")?;
    if let Some(stderr) = child.stderr.take() {
        // Ends with the process.
        tokio::spawn(log_lines(pid, stderr));
    }
    let (sender, mut receiver) = connection.minion();
    let first = tokio::time::timeout(READY, receiver.recv()).await;
    match first.map(|received| received.map(|received| received.message)) {
        Ok(Ok(FromExecutor::Ready { version: VERSION, walls, .. })) => {
            Ok(Process { child, pid, sender, receiver, walls: walls.bounded() })
        }
        Ok(Ok(FromExecutor::Ready { version, .. })) => {
            Err(format!("{} speaks version {version} of the protocol, not {VERSION}", path.display()))
        }
        Ok(Ok(other)) => Err(format!("{} began with {other:?}", path.display())),
        Ok(Err(error)) => {
            let status = end(&mut child).await;
            Err(format!("{} {} before it was ready ({error})", path.display(), how(status)))
        }
        Err(_) => Err(format!("{} was not ready within {} s", path.display(), READY.as_secs())),
    }
}

/// How a process that is over, or should be, ended. Kills it if it does not end by itself.
pub(crate) async fn end(child: &mut Child) -> Option<ExitStatus> {
    const GRACE: Duration = Duration::from_millis(500);
    if let Ok(Ok(status)) = tokio::time::timeout(GRACE, child.wait()).await {
        return Some(status);
    }
    let _ = child.start_kill();
    child.wait().await.ok()
}

/// In words.
pub(crate) fn how(status: Option<ExitStatus>) -> String {
    match status.map(|status| (status.code(), status.signal())) {
        Some((Some(code), _)) => format!("ended with code {code}"),
        Some((None, Some(signal))) => format!("was killed by signal {signal}"),
        _ => "ended".into(),
    }
}

/// What an executor writes is an escaped guest's to choose: bounded lines, a bounded number, and nothing a terminal obeys.
async fn log_lines(pid: u32, stderr: ChildStderr) {
    let mut stderr = BufReader::new(stderr);
    for _ in 0..MAX_LINES {
        let mut line = Vec::new();
        match (&mut stderr).take(MAX_LINE).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {
                let text = crate::broker::printable(String::from_utf8_lossy(&line).trim_end());
                tracing::warn!(executor = pid, "{text}");
            }
        }
    }
    tracing::warn!(executor = pid, "it has written {MAX_LINES} lines; no more are logged");
    let _: io::Result<u64> = tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await;
}
