//! Starts the sandbox's two programs: as their user, from a thread that lives as long as the minion.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};

use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::kernel::user::User;

/// A program of the sandbox and how to start it. It gets nothing but its arguments and one end of a socket pair.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<String>,
    /// None: the minion's own user.
    pub(crate) user: Option<User>,
    /// Standard input. None: empty.
    pub(crate) socket: Option<OwnedFd>,
    /// Whether to capture standard output.
    pub(crate) stdout: bool,
}

/// Starts the program. The error is one line.
pub(crate) async fn spawn(start: Start) -> Result<Child, String> {
    let (sender, answer) = oneshot::channel();
    let runtime = Handle::current();
    let job = Box::new(move || {
        let _within = runtime.enter();
        let _ = sender.send(start.now());
    });
    parent()?.send(job).map_err(|_| "the thread that starts programs has ended".to_owned())?;
    answer.await.map_err(|_| "the thread that starts programs has ended".to_owned())?
}

type Job = Box<dyn FnOnce() + Send>;

/// Returns the channel to the thread that starts programs. The kernel kills the programs when that thread ends, and the
/// runtime may end its own threads at any time.
fn parent() -> Result<&'static Sender<Job>, String> {
    static PARENT: OnceLock<Sender<Job>> = OnceLock::new();
    if let Some(parent) = PARENT.get() {
        return Ok(parent);
    }
    let (sender, jobs) = channel::<Job>();
    let run = move || {
        while let Ok(job) = jobs.recv() {
            job();
        }
    };
    let thread = std::thread::Builder::new().name("sandbox-parent".into()).spawn(run);
    thread.map_err(|error| format!("no thread to start programs: {error}"))?;
    // If two callers come at once, the second thread ends with its channel before it has started anything.
    Ok(PARENT.get_or_init(|| sender))
}

impl Start {
    fn now(&self) -> Result<Child, String> {
        let failed = |error: &io::Error| format!("{} cannot be started: {error}", self.program.display());
        match self.command(&self.program).and_then(|mut command| command.spawn()) {
            // The program's user cannot reach its path (a checkout in a home directory, for example). The path of the
            // open file works.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && self.user.is_some() => {
                let file = File::open(&self.program).map_err(|error| failed(&error))?;
                let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
                let child = self.command(&path).and_then(|mut command| command.spawn());
                child.map_err(|error| match (error.kind(), &self.user) {
                    (io::ErrorKind::PermissionDenied, Some(user)) => format!(
                        "{} cannot be run by the sandbox's user {}: chmod a+rx it, or set another `sandbox: user:`",
                        self.program.display(),
                        user.uid
                    ),
                    _ => failed(&error),
                })
            }
            other => other.map_err(|error| failed(&error)),
        }
    }

    #[expect(clippy::disallowed_methods, reason = "the sandbox's own two programs")]
    fn command(&self, path: &Path) -> io::Result<Command> {
        let mut command = Command::new(path);
        let stdin = match &self.socket {
            Some(socket) => Stdio::from(socket.try_clone()?),
            None => Stdio::null(),
        };
        command
            .arg0(&self.program)
            .args(&self.args)
            .env_clear()
            .current_dir("/")
            .stdin(stdin)
            .stdout(if self.stdout { Stdio::piped() } else { Stdio::null() })
            .stderr(Stdio::piped())
            // Its own process group, so that Ctrl-C in the minion's terminal does not reach it: the minion ends it.
            .process_group(0)
            .kill_on_drop(true);
        if let Some(User { uid, gid, .. }) = self.user {
            // Setting the uid also drops all supplementary groups.
            command.gid(gid).uid(uid);
        }
        Ok(command)
    }
}
