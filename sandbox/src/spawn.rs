//! How the sandbox's two programs are started: as their user, by a thread that lives as long as the minion.

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

use crate::user::User;

/// A program of the sandbox and how it starts: with nothing but its arguments and one end of a socket pair.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<String>,
    /// None: the minion's own.
    pub(crate) user: Option<User>,
    /// Its standard input; none: nothing to read.
    pub(crate) socket: Option<OwnedFd>,
    /// Whether what it writes to standard output is wanted.
    pub(crate) stdout: bool,
}

/// Starts it. The error is one line.
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

/// The programs are killed when the thread that started them ends, which the runtime's own threads may do at any time.
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
    // Where two came at once, one thread ends with its channel before it has started anything.
    Ok(PARENT.get_or_init(|| sender))
}

impl Start {
    fn now(&self) -> Result<Child, String> {
        let failed = |error: &io::Error| format!("{} cannot be started: {error}", self.program.display());
        match self.command(&self.program).and_then(|mut command| command.spawn()) {
            // Its user cannot get to where the program lies (a checkout in somebody's home): the open file is as good.
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
            // Keys pressed for the minion are not for it: the minion ends it.
            .process_group(0)
            .kill_on_drop(true);
        if let Some(User { uid, gid, .. }) = self.user {
            // With the user the supplementary groups go, all of them.
            command.gid(gid).uid(uid);
        }
        Ok(command)
    }
}
