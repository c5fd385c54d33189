//! Starts one program as told and in no other way.
//!
//! The standard library's `Command` cannot: it drops privileges before anything else of the caller's may run, so that
//! supplementary groups and the umask cannot be set after it; it looks programs up in a `PATH`; and its `execvp` hands a file
//! that the kernel does not know to `/bin/sh`. So it is used for what it does well (fork, the descriptors, the report of what
//! failed, reaping), and all after the fork is here, the minion's one crate of unsafe code:
//!
//! - `supervisor.rs` the process between: it ends with the program all that the program started; `tree.rs` finds it
//! - `child.rs`      from fork to exec · `vfork.rs` the fork
//!
//! The program starts in a session and a process group of its own, which have its pid as number; without a terminal; with
//! the three descriptors it was given and no other; with no signal ignored or blocked. Whatever it starts ends with it, and
//! all of it with the caller: nothing below the supervisor can leave it.

mod child;
mod supervisor;
mod tree;
mod vfork;

use std::ffi::{CString, OsStr, OsString};
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use supervisor::{RECORD, Supervisor};

/// A file that is being written is not run; it is tried again so often, with such pauses.
const BUSY_TRIES: u32 = 40;
const BUSY_PAUSE: Duration = Duration::from_millis(5);

/// A program and how it starts. It has secrets in it, so it does not print.
pub struct Program {
    /// The file; absolute. The program sees it as its first argument.
    pub path: PathBuf,
    /// The other arguments.
    pub args: Vec<OsString>,
    /// The whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// Where it starts.
    pub directory: Directory,
    /// Who it is; none: who the caller is.
    pub identity: Option<Identity>,
    /// None: the caller's.
    pub umask: Option<u32>,
    /// Bytes that no file it writes gets larger than (RLIMIT_FSIZE). None: the caller's.
    pub file_size: Option<u64>,
    /// Whether what made itself a session of its own goes on when the program ended with 0.
    pub detach: bool,
    /// A control group of its own, with nothing in it.
    pub group: Option<Arc<ControlGroup>>,
    /// Its standard input; none: nothing to read.
    pub stdin: Option<OwnedFd>,
    /// Its standard output.
    pub stdout: OwnedFd,
    /// Its standard error.
    pub stderr: OwnedFd,
}

/// A control group of version 2.
#[derive(Debug)]
pub struct ControlGroup {
    /// Its folder.
    pub folder: OwnedFd,
    /// `cgroup.kill`, to be written.
    pub kill: OwnedFd,
}

impl ControlGroup {
    /// Whether programs can be started in it. A kernel with control groups may still lack that (before Linux 5.7), or end what is
    /// started there at once: some do in a group that was killed before, so no group is used again.
    pub fn works(&self) -> bool {
        vfork::works(self.folder.as_raw_fd())
    }

    /// Ends all that is in it, at once.
    pub fn kill(&self) {
        let _ = rustix::io::write(&self.kill, b"1");
    }
}

/// Who a program is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The user.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// Its supplementary groups: all of them.
    pub groups: Vec<u32>,
}

/// Where a program starts. It is entered as the user that the program runs as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Directory {
    /// There, and only if it still is what the caller looked at.
    Exactly {
        /// Absolute.
        path: PathBuf,
        /// The device and the inode.
        is: (u64, u64),
    },
    /// There, or in `/` where that cannot be entered.
    OrRoot(PathBuf),
}

/// What was done when it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Making a process.
    Fork,
    /// What ends all that it starts.
    Supervisor,
    /// A session of its own.
    Session,
    /// Hiding the caller's descriptors.
    Descriptors,
    /// Supplementary groups.
    Groups,
    /// The group.
    Group,
    /// The user.
    User,
    /// The limit of files.
    FileSize,
    /// The directory.
    Directory,
    /// Being told of the supervisor's end.
    Parent,
    /// The program itself.
    Exec,
}

/// Why a program did not start.
#[derive(Debug, thiserror::Error)]
#[error("{step:?}: {source}")]
pub struct SpawnError {
    /// Where.
    pub step: Step,
    /// What the system said.
    pub source: io::Error,
}

/// A program that runs, with its supervisor.
#[derive(Debug)]
pub struct Running {
    supervisor: Child,
    control: Control,
    pid: u32,
}

/// What ends a program from anywhere.
#[derive(Debug, Clone)]
pub struct Control {
    link: Arc<UnixStream>,
    /// The supervisor; a handle, since its number may be another's later. None before Linux 5.3.
    supervisor: Option<Arc<OwnedFd>>,
    group: Option<Arc<ControlGroup>>,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// The program's.
    pub status: ExitStatus,
    /// What it had started.
    pub left: Left,
}

/// What is left of all that a program started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// Nothing, nor was anything when the program ended.
    Nothing,
    /// Nothing any more: something was ended.
    Swept,
    /// Something that cannot be ended, for now or as this user. The supervisor goes on trying.
    Stuck,
    /// What made itself a session of its own, and may go on.
    Detached,
}

impl Control {
    /// Sends SIGTERM to the program's group. One that is stopped goes on, to take notice.
    pub fn terminate(&self) {
        let _ = (&*self.link).write(&[supervisor::TERMINATE]);
    }

    /// Ends the program with all that it started. Does not wait. To be called only as long as [`Running::finish`] was not.
    pub fn end(&self) {
        let _ = self.link.shutdown(Shutdown::Write);
        if let Some(supervisor) = &self.supervisor {
            // A program of the same user could have stopped it.
            let _ = pidfd_send_signal(&**supervisor, Signal::CONT);
        }
        if let Some(group) = &self.group {
            group.kill();
        }
    }
}

impl Running {
    /// The program's process number.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// What ends it.
    pub fn control(&self) -> Control {
        self.control.clone()
    }

    /// Waits until the program has ended, and what it started with it. An error says that its supervisor was killed; everything is
    /// ended then too.
    pub fn wait(&mut self) -> io::Result<Ended> {
        let Ok([supervisor::ENDED, status, left]) = read(&self.control.link) else {
            self.control.end();
            return Err(supervisor::lost());
        };
        let left = match left {
            supervisor::KILLED => return Err(supervisor::lost()),
            supervisor::STUCK => Left::Stuck,
            supervisor::SWEPT => Left::Swept,
            supervisor::DETACHED => Left::Detached,
            _ => Left::Nothing,
        };
        Ok(Ended { status: ExitStatus::from_raw(status), left })
    }

    /// Waits until nothing is left of it but what is detached.
    pub fn finish(mut self) -> io::Result<()> {
        self.supervisor.wait().map(drop)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Does nothing where it was waited for already. Not killed: it has work to do.
        if !matches!(self.supervisor.try_wait(), Ok(Some(_))) {
            self.control.end();
            let _ = self.supervisor.wait();
        }
    }
}

fn read(mut link: &UnixStream) -> io::Result<[i32; 3]> {
    let mut record = [0; RECORD];
    link.read_exact(&mut record)?;
    Ok(supervisor::decode(&record))
}

/// Starts a program; returns when it runs, or with the reason why it does not. `control` is called before the program is started,
/// and again where it has to be tried again: what is started can be ended from then on.
///
/// When the result is dropped, or the caller's process ends, the program is ended with all that it started.
#[expect(clippy::needless_pass_by_value, reason = "its ends of the pipes go with it: who reads waits for the last")]
pub fn start(program: Program, mut control: impl FnMut(Control)) -> Result<Running, SpawnError> {
    let at_fork = |source| SpawnError { step: Step::Fork, source };
    let directory = match &program.directory {
        Directory::Exactly { path, is } => child::Directory { path: c_string(path.as_os_str())?, is: Some(*is) },
        Directory::OrRoot(path) => child::Directory { path: c_string(path.as_os_str())?, is: None },
    };
    let path = c_string(program.path.as_os_str())?;
    let mut args = vec![path.clone()];
    for arg in &program.args {
        args.push(c_string(arg)?);
    }
    let mut env = Vec::with_capacity(program.env.len());
    for (name, value) in &program.env {
        if name.is_empty() || name.as_bytes().contains(&b'=') {
            return Err(at_fork(io::Error::new(io::ErrorKind::InvalidInput, "the name of a variable")));
        }
        let mut entry = name.clone();
        entry.push("=");
        entry.push(value);
        env.push(c_string(&entry)?);
    }
    let identity = program.identity.clone();
    let told = child::Child::new(path, args, env, directory, identity, program.umask, program.file_size);
    let told = Arc::new(told);
    let mut tries = 0;
    loop {
        match attempt(&program, &told, &mut control) {
            // Somebody has it open for writing: most likely a child of this very process between fork and exec, for a moment.
            Err(SpawnError { step: Step::Exec, source })
                if source.kind() == io::ErrorKind::ExecutableFileBusy && tries < BUSY_TRIES =>
            {
                tries += 1;
                std::thread::sleep(BUSY_PAUSE);
            }
            done => return done,
        }
    }
}

fn attempt(
    program: &Program,
    told: &Arc<child::Child>,
    control: &mut impl FnMut(Control),
) -> Result<Running, SpawnError> {
    let at_fork = |source| SpawnError { step: Step::Fork, source };
    let stdio = |end: &OwnedFd| end.try_clone().map(Stdio::from).map_err(at_fork);
    #[expect(clippy::disallowed_methods, reason = "what the broker starts programs with")]
    let mut command = std::process::Command::new(&program.path);
    command.stdin(program.stdin.as_ref().map_or_else(|| Ok(Stdio::null()), stdio)?);
    command.stdout(stdio(&program.stdout)?).stderr(stdio(&program.stderr)?);
    let (link, theirs) = UnixStream::pair().map_err(at_fork)?;
    let group = program.group.as_ref().map(|group| (group.folder.as_raw_fd(), group.kill.as_raw_fd()));
    let supervisor = Supervisor { link: theirs.as_raw_fd(), group, detach: program.detach };
    Arc::clone(told).hook(supervisor, &mut command);
    let supervisor = command.spawn().map_err(at_fork)?;
    // The other end is the supervisor's alone, so that its end shows.
    drop((command, theirs));
    let handle = i32::try_from(supervisor.id()).ok().and_then(Pid::from_raw);
    let handle = handle.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()).map(Arc::new);
    let own = Control { link: Arc::new(link), supervisor: handle, group: program.group.clone() };
    control(own.clone());
    let mut running = Running { supervisor, control: own, pid: 0 };
    match read(&running.control.link) {
        Ok([supervisor::STARTED, pid, _]) => {
            running.pid = pid.unsigned_abs();
            Ok(running)
        }
        Ok([supervisor::FAILED, step, errno]) => Err(child::failure(step, errno)),
        _ => Err(SpawnError { step: Step::Supervisor, source: supervisor::lost() }),
    }
}

fn c_string(text: &OsStr) -> Result<CString, SpawnError> {
    CString::new(text.as_bytes()).map_err(|_| SpawnError {
        step: Step::Exec,
        source: io::Error::new(io::ErrorKind::InvalidInput, "a text has a NUL byte in it"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pipe::{PipeFlags, pipe_with};
    use std::fs::File;
    use std::io::Read;
    use std::os::unix::fs::MetadataExt;

    /// A program, and where its output can be read.
    fn program(path: &str, args: &[&str]) -> (Program, File) {
        let (ours, theirs) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let stderr = theirs.try_clone().unwrap();
        let program = Program {
            path: path.into(),
            args: args.iter().map(Into::into).collect(),
            env: vec![("A".into(), "1".into())],
            directory: Directory::OrRoot("/".into()),
            identity: None,
            umask: None,
            file_size: None,
            detach: false,
            group: None,
            stdin: None,
            stdout: theirs,
            stderr,
        };
        (program, ours.into())
    }

    fn says(asked: (Program, File)) -> String {
        let (program, mut output) = asked;
        let mut child = start(program, drop).unwrap();
        let mut text = String::new();
        output.read_to_string(&mut text).unwrap();
        assert!(child.wait().unwrap().status.success());
        text
    }

    #[test]
    fn what_is_said_is_what_starts() {
        assert_eq!(says(program("/bin/sh", &["-c", "echo $0 \"$@\" $A", "a", "b c"])), "a b c 1\n");
        assert_eq!(says(program("/usr/bin/env", &[])), "A=1\n");
    }

    #[test]
    fn each_failure_names_its_step() {
        let at = |change: &dyn Fn(&mut Program)| {
            let (mut asked, _output) = program("/bin/true", &[]);
            change(&mut asked);
            let error = start(asked, drop).unwrap_err();
            (error.step, error.source.raw_os_error().map(|code| io::Error::from_raw_os_error(code).kind()))
        };
        let missing = Some(io::ErrorKind::NotFound);
        assert_eq!(at(&|p| p.path = "/no/such/program".into()), (Step::Exec, missing));
        // Not looked up, and not given to a shell.
        assert_eq!(at(&|p| p.path = "true".into()), (Step::Exec, missing));
        let text = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(text.path(), "echo never\n").unwrap();
        std::fs::set_permissions(text.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let script = text.into_temp_path();
        assert_eq!(at(&|p| p.path = script.to_path_buf()).0, Step::Exec);
        let exactly = |path: &str, is| Directory::Exactly { path: path.into(), is };
        assert_eq!(at(&|p| p.directory = exactly("/no/such", (0, 0))), (Step::Directory, missing));
        let etc = std::fs::metadata("/etc").unwrap();
        let elsewhere = at(&|p| p.directory = exactly("/", (etc.dev(), etc.ino())));
        assert_eq!(elsewhere, (Step::Directory, Some(io::ErrorKind::StaleNetworkFileHandle)));
        let busy = tempfile::NamedTempFile::new().unwrap();
        std::fs::set_permissions(busy.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        assert_eq!(at(&|p| p.path = busy.path().into()), (Step::Exec, Some(io::ErrorKind::ExecutableFileBusy)));
        assert_eq!(at(&|p| p.args.push("a\0b".into())).0, Step::Exec);
        for name in ["", "A=B"] {
            assert_eq!(at(&|p| p.env.push((name.into(), "x".into()))).0, Step::Fork);
        }
        if !rustix::process::geteuid().is_root() {
            let other = Identity { uid: 1, gid: 1, groups: vec![] };
            assert_eq!(
                at(&|p| p.identity = Some(other.clone())),
                (Step::Groups, Some(io::ErrorKind::PermissionDenied))
            );
        }
    }

    #[test]
    fn a_directory_that_cannot_be_entered_is_the_root() {
        let (mut asked, output) = program("/bin/pwd", &[]);
        asked.directory = Directory::OrRoot("/no/such/home".into());
        assert_eq!(says((asked, output)), "/\n");
    }
}
