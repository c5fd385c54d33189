//! Runs one program from start to end.
//!
//! Each program has a thread that starts it and waits for it. The job's future only reads and writes. When the future
//! is dropped, the program's supervisor gets the order to end everything, and the thread, which cannot be dropped,
//! waits until that is done.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use brine_egress::Share;
use brine_protocol::value::{Value, map};
use brine_sandbox::{HostError, Names};
use brine_spawn::{Directory, Left, Program, Running, SpawnError, Step};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::geteuid;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe::Sender;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};
use tracing::{debug, warn};

use super::account::{self, Account};
use super::cgroup::{Folder, Groups};
use super::group::Group;
use super::output::Output;
use super::program;
use super::request::Request;

/// Time between SIGTERM and SIGKILL after the timeout: long enough to clean up, and short beside any timeout.
const GRACE: Duration = Duration::from_millis(1_000);
/// Time to wait for the rest of the output after the program's end. All writers have ended, except detached processes.
const LINGER: Duration = Duration::from_millis(200);
/// Stack of the thread, which looks up users and waits.
const STACK: usize = 512 * 1024;

/// The program's ends of the pipes.
struct Ends {
    stdin: Option<OwnedFd>,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

/// Ends the program on drop, when the job is over.
struct Leash(Arc<Group>);

impl Drop for Leash {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Runs a program and returns the result of [`brine_sandbox::ProcessOp::Run`]. `place` is held until no process of the
/// program is left.
pub(super) async fn run(mut request: Request, place: Share, groups: Arc<Groups>) -> Result<Value, HostError> {
    let no_pipe = |e: io::Error| HostError::Failed(format!("the program cannot be started: no pipe for it: {e}"));
    let (mut stdout, out) = Output::new(request.keep).map_err(no_pipe)?;
    let (mut stderr, err) = match request.merge_stderr {
        true => (None, out.try_clone().map_err(no_pipe)?),
        false => Output::new(request.keep).map(|(output, end)| (Some(output), end)).map_err(no_pipe)?,
    };
    let (input, stdin) = match request.stdin.take() {
        None => (None, None),
        Some(bytes) => {
            let (theirs, ours) = pipe_with(PipeFlags::CLOEXEC).map_err(|e| no_pipe(e.into()))?;
            (Some((Sender::from_owned_fd(ours).map_err(no_pipe)?, bytes)), Some(theirs))
        }
    };
    let mut alarm = request.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let group = Arc::new(Group::default());
    let leash = Leash(Arc::clone(&group));
    let (tell_start, mut started) = oneshot::channel();
    let (tell_end, mut end) = oneshot::channel();
    let thread = std::thread::Builder::new().name("program".to_owned()).stack_size(STACK);
    let ends = Ends { stdin, stdout: out, stderr: err };
    let attended = thread.spawn(move || attend(&request, ends, &group, &groups, tell_start, tell_end, place));
    attended.map_err(|e| HostError::Failed(format!("the program cannot be started: no thread for it: {e}")))?;

    let pid = tokio::select! {
        started = &mut started => match started.map_err(|_| lost())? {
            Ok(pid) => pid,
            Err(NotStarted::Failed(why)) => return Err(HostError::Failed(why)),
            Err(NotStarted::Unable(why)) => return Ok(Value::from(why)),
        },
        () = sleep_until_some(alarm) => {
            return Err(HostError::Failed("the program could not be started before its timeout was over".to_owned()));
        }
    };
    let mut timed_out = false;
    let ended = {
        let all = async {
            tokio::join!(feed(input), stdout.read(), async {
                if let Some(stderr) = &mut stderr {
                    stderr.read().await;
                }
            })
        };
        tokio::pin!(all);
        let mut done = false;
        let ended = loop {
            tokio::select! {
                status = &mut end => break status.map_err(|_| lost())?,
                _ = &mut all, if !done => done = true,
                () = sleep_until_some(alarm) => {
                    if timed_out {
                        leash.0.end();
                        alarm = None;
                    } else {
                        timed_out = true;
                        leash.0.terminate();
                        alarm = Some(Instant::now() + GRACE);
                    }
                }
            }
        };
        if !done {
            let _ = tokio::time::timeout(LINGER, &mut all).await;
        }
        ended
    };
    for output in [Some(&mut stdout), stderr.as_mut()].into_iter().flatten() {
        output.read_left();
    }
    let ended = ended.map_err(|e| HostError::Failed(format!("how the program ended cannot be told: {e}")))?;
    debug!(pid, code = ended.code, signal = ended.signal, "the program ended");
    Ok(result(pid, &ended, timed_out, stdout, stderr))
}

/// Why a program did not start.
enum NotStarted {
    Failed(String),
    /// A probe that this host cannot keep from changing something.
    Unable(String),
}

impl From<String> for NotStarted {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}

/// Makes the operation's result.
fn result(pid: u32, ended: &Ended, timed_out: bool, stdout: Output, stderr: Option<Output>) -> Value {
    let (kept, dropped) = stderr.map_or((Vec::new(), 0), |stderr| (stderr.kept, stderr.dropped));
    map([
        ("pid", Value::from(pid)),
        ("code", ended.code.map_or(Value::Nil, Value::from)),
        ("signal", ended.signal.map_or(Value::Nil, Value::from)),
        ("stdout", Value::Binary(stdout.kept)),
        ("stderr", Value::Binary(kept)),
        ("stdout_dropped", Value::from(stdout.dropped)),
        ("stderr_dropped", Value::from(dropped)),
        ("timed_out", Value::from(timed_out)),
    ])
}

fn lost() -> HostError {
    HostError::Failed("the minion failed".to_owned())
}

async fn sleep_until_some(when: Option<Instant>) {
    match when {
        Some(when) => sleep_until(when).await,
        None => std::future::pending().await,
    }
}

/// Writes the program's input until the program stops reading.
async fn feed(input: Option<(Sender, Vec<u8>)>) {
    if let Some((mut pipe, bytes)) = input {
        // A program may close its input early, so an error is ignored.
        let _ = pipe.write_all(&bytes).await;
    }
}

/// How a program ended; exactly one field is set.
#[derive(Debug)]
struct Ended {
    code: Option<i32>,
    signal: Option<i32>,
}

/// The body of the thread: starts the program, waits for it and reports both.
fn attend(
    request: &Request,
    ends: Ends,
    group: &Group,
    groups: &Groups,
    tell_start: oneshot::Sender<Result<u32, NotStarted>>,
    tell_end: oneshot::Sender<io::Result<Ended>>,
    place: Share,
) {
    let own_group = || groups.take(request.detach);
    let (mut running, folder) = match prepare(request, ends)
        .map_err(Into::into)
        .and_then(|program| start(program, request, group, own_group))
    {
        Ok(Some(running)) => running,
        Ok(None) => return,
        Err(why) => {
            // The place is free before the error arrives, because the caller may try again at once.
            drop(place);
            let _ = tell_start.send(Err(why));
            return;
        }
    };
    let pid = running.pid();
    let _ = tell_start.send(Ok(pid));
    let ended = running.wait();
    let left = ended.as_ref().map_or(Left::Stuck, |ended| ended.left);
    let ended = ended.map(|ended| Ended { code: ended.status.code(), signal: ended.status.signal() });
    if left == Left::Stuck {
        warn!(pid, "what a program started cannot be ended yet; it is tried again, and its place is taken so long");
        let _ = tell_end.send(ended);
        finish(running, group, groups, folder, left);
        drop(place);
    } else {
        group.over();
        drop(place);
        let _ = tell_end.send(ended);
        finish(running, group, groups, folder, left);
    }
}

/// Waits for the end of the supervisor, which ends when only detached processes are left.
fn finish(running: Running, group: &Group, groups: &Groups, folder: Option<Folder>, left: Left) {
    if let Err(e) = running.finish() {
        warn!("a program could not be waited for: {e}");
    }
    group.over();
    if let Some(folder) = folder {
        groups.give_back(folder, left);
    }
}

type Started = (Running, Option<Folder>);

fn start(
    mut program: Program,
    request: &Request,
    group: &Group,
    own_group: impl FnOnce() -> Option<Folder>,
) -> Result<Option<Started>, NotStarted> {
    if !group.wanted() {
        return Ok(None);
    }
    let folder = own_group();
    program.group = folder.as_ref().map(|folder| Arc::clone(&folder.group));
    let path = program.path.clone();
    let running = brine_spawn::start(program, |control| group.started(control));
    let running = running.map_err(|error| explain(&error, &path, request)).inspect_err(|_| group.over())?;
    Ok(Some((running, folder)))
}

/// Checks everything that can fail, so that the error says what is wrong.
fn prepare(request: &Request, ends: Ends) -> Result<Program, String> {
    let account = account::find(request.user.as_deref(), request.group.as_deref(), &request.groups)?;
    // The program's user may own the file only if the program runs as that user.
    let trusted = [0, geteuid().as_raw(), account.uid];
    let granted = if request.program.contains('/') { Names::default() } else { Names::Any };
    let path = program::resolve(&granted, &request.program, &trusted)?;
    Ok(Program {
        path,
        name: request.program.clone().into(),
        args: request.args.clone(),
        env: environment(request, &account),
        directory: directory(request, &account)?,
        identity: account.identity,
        umask: request.umask,
        file_size: request.file_size,
        detach: request.detach,
        probe: request.probe.clone(),
        group: None,
        stdin: ends.stdin,
        stdout: ends.stdout,
        stderr: ends.stderr,
    })
}

/// Builds the environment: the variables that every program expects, then the requested ones.
fn environment(request: &Request, account: &Account) -> Vec<(OsString, OsString)> {
    let mut env: Vec<(OsString, OsString)> = Vec::new();
    if !request.clean_env {
        env.extend([
            ("PATH".into(), program::path_variable().into()),
            ("HOME".into(), account.home.clone().into()),
            ("USER".into(), account.name.clone().into()),
            ("LOGNAME".into(), account.name.clone().into()),
            ("SHELL".into(), account.shell.clone().into()),
            // English messages in UTF-8, so that no byte of a file name is lost.
            ("LANG".into(), "C.UTF-8".into()),
        ]);
    }
    for (name, value) in &request.env {
        let (name, value) = (OsString::from(name), OsString::from(value));
        match env.iter_mut().find(|(known, _)| *known == name) {
            Some(known) => known.1 = value,
            None => env.push((name, value)),
        }
    }
    env
}

/// The working directory. As in Salt, the default is the home of the program's user, or `/` if that user cannot enter
/// it. If the grant names directories, the default is `/`.
fn directory(request: &Request, account: &Account) -> Result<Directory, String> {
    let Some(asked) = &request.cwd else {
        let anywhere = request.cwd_within.is_none();
        return Ok(Directory::OrRoot(if anywhere { account.home.clone() } else { PathBuf::from("/") }));
    };
    let path = Path::new(asked);
    // `O_PATH` needs no permission to read the folder. Without `O_DIRECTORY`, the error can say that the path is a
    // file.
    let flags = rustix::fs::OFlags::PATH.bits() as i32;
    let opened = File::options().read(true).custom_flags(flags).open(path);
    let opened = opened.map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => format!("the directory {asked:?} does not exist"),
        io::ErrorKind::NotADirectory => format!("{asked:?} is not a directory"),
        _ => format!("the directory {asked:?} cannot be entered: {e}"),
    })?;
    let meta = opened.metadata().map_err(|e| format!("the directory {asked:?} cannot be looked at: {e}"))?;
    if !meta.is_dir() {
        return Err(format!("{asked:?} is not a directory"));
    }
    if let Some(granted) = &request.cwd_within {
        let real = std::fs::read_link(format!("/proc/self/fd/{}", opened.as_raw_fd()))
            .map_err(|e| format!("the directory {asked:?} cannot be looked at: {e}"))?;
        let within =
            |directory: &String| std::fs::canonicalize(directory).is_ok_and(|granted| real.starts_with(granted));
        if real != Path::new("/") && !granted.iter().any(within) {
            return Err(format!("the directory {asked:?} leads out of those that were granted, to {}", real.display()));
        }
    }
    Ok(Directory::Exactly { path: path.to_owned(), is: (meta.dev(), meta.ino()) })
}

/// Explains the system's error in an operator's terms.
fn explain(error: &SpawnError, path: &Path, request: &Request) -> NotStarted {
    if matches!(error.step, Step::Namespaces | Step::Confine) {
        let why = &error.source;
        let root = if geteuid().is_root() { "" } else { ", which this minion, not being root, may not make" };
        let what = if error.step == Step::Namespaces { "namespaces" } else { "read-only mounts" };
        return NotStarted::Unable(format!("a probe needs {what} of its own{root}: {why}"));
    }
    NotStarted::Failed(explain_others(error, path, request))
}

fn explain_others(error: &SpawnError, path: &Path, request: &Request) -> String {
    let user = request.user.as_deref().unwrap_or("the minion's own");
    let (path, why) = (path.display(), &error.source);
    match error.step {
        Step::Exec if why.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error()) => {
            format!("{path} is neither a program of this machine nor a script that begins with #!")
        }
        Step::Exec if why.kind() == io::ErrorKind::NotFound => {
            format!("{path} needs an interpreter or a loader that this host does not have")
        }
        Step::Exec => format!("{path} cannot be run as the user {user}: {why}"),
        Step::Directory => {
            let cwd = request.cwd.as_deref().unwrap_or("/");
            format!("the directory {cwd:?} cannot be entered as the user {user}: {why}")
        }
        Step::Groups | Step::Group | Step::User => format!("the minion cannot run programs as the user {user}: {why}"),
        _ => {
            format!("{path} cannot be started: {why}")
        }
    }
}
