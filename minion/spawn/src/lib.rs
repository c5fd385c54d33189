//! Starts one program exactly as described.
//!
//! The standard library's `Command` cannot do that. It drops privileges before the caller's code runs, so that supplementary groups and
//! the umask cannot be set afterwards; it looks programs up in a `PATH`; and its `execvp` gives a file of an unknown format to
//! `/bin/sh`. So this crate uses `Command` only to fork, to set up descriptors, to report failures and to reap. All steps after the fork
//! are here, in the minion's one crate of unsafe code:
//!
//! - `supervisor.rs`: the process in between, which ends all processes of the program; `tree.rs` finds them
//! - `child.rs`: the steps from fork to exec; `vfork.rs`: the fork
//! - `probe.rs`: what keeps a program from changing anything
//!
//! The program starts in a session and a process group of its own, both with its pid as number; without a terminal; with the three given
//! descriptors and no other; with no signal ignored or blocked. All processes that it starts end with it, and all of them end with the
//! caller: no process below the supervisor can leave it.

mod child;
mod probe;
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

pub use probe::Probe;
use supervisor::{RECORD, Supervisor};

/// The kernel refuses to execute a file that is open for writing. Starting such a file is tried this often, with these
/// pauses.
const BUSY_TRIES: u32 = 40;
const BUSY_PAUSE: Duration = Duration::from_millis(5);

/// A program and how to start it. It contains secrets, so it has no `Debug`.
pub struct Program {
    /// The absolute path.
    pub path: PathBuf,
    /// What the program sees as its first argument: its name as it was asked for. Some print it.
    pub name: OsString,
    /// The other arguments.
    pub args: Vec<OsString>,
    /// The whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// The working directory.
    pub directory: Directory,
    /// The identity of the program; none for the caller's.
    pub identity: Option<Identity>,
    /// The umask; none for the caller's.
    pub umask: Option<u32>,
    /// The limit on the bytes of a file that the program writes (RLIMIT_FSIZE); none for the caller's.
    pub file_size: Option<u64>,
    /// Whether processes with a session of their own may go on after the program has ended with 0.
    pub detach: bool,
    /// What keeps the program from changing anything; none for a program that may.
    pub probe: Option<Probe>,
    /// An empty control group for this program alone.
    pub group: Option<Arc<ControlGroup>>,
    /// The standard input; none for an empty one.
    pub stdin: Option<OwnedFd>,
    /// Its standard output.
    pub stdout: OwnedFd,
    /// Its standard error.
    pub stderr: OwnedFd,
}

/// A control group of version 2.
#[derive(Debug)]
pub struct ControlGroup {
    /// The group's folder.
    pub folder: OwnedFd,
    /// `cgroup.kill`, open for writing.
    pub kill: OwnedFd,
}

impl ControlGroup {
    /// Whether programs can be started in the group. Kernels before Linux 5.7 cannot. Some kernels end each program at once that starts
    /// in a group that was killed before, so no group is used again.
    pub fn works(&self) -> bool {
        vfork::works(self.folder.as_raw_fd())
    }

    /// Ends all processes of the group at once.
    pub fn kill(&self) {
        let _ = rustix::io::write(&self.kill, b"1");
    }
}

/// The identity of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The user's uid.
    pub uid: u32,
    /// The group's gid.
    pub gid: u32,
    /// All supplementary groups.
    pub groups: Vec<u32>,
}

/// The working directory of a program. It is entered as the program's user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Directory {
    /// This directory, if it is still the one that the caller checked.
    Exactly {
        /// The absolute path.
        path: PathBuf,
        /// The device and the inode.
        is: (u64, u64),
    },
    /// This directory, or `/` if it cannot be entered.
    OrRoot(PathBuf),
}

/// The step that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Making a process.
    Fork,
    /// Starting the supervisor.
    Supervisor,
    /// Making a session.
    Session,
    /// Hiding the caller's descriptors.
    Descriptors,
    /// Setting the supplementary groups.
    Groups,
    /// Setting the group.
    Group,
    /// Setting the user.
    User,
    /// Setting the limit on files.
    FileSize,
    /// Entering the directory.
    Directory,
    /// Asking for a signal at the supervisor's end.
    Parent,
    /// Executing the program.
    Exec,
    /// Making the namespaces of a probe.
    Namespaces,
    /// Making the file systems of a probe read-only, and taking its rights.
    Confine,
}

/// Why a program did not start.
#[derive(Debug, thiserror::Error)]
#[error("{step:?}: {source}")]
pub struct SpawnError {
    /// The step that failed.
    pub step: Step,
    /// The system's error.
    pub source: io::Error,
}

/// A running program with its supervisor.
#[derive(Debug)]
pub struct Running {
    supervisor: Child,
    control: Control,
    pid: u32,
}

/// Ends a program, from any thread.
#[derive(Debug, Clone)]
pub struct Control {
    link: Arc<UnixStream>,
    /// A handle to the supervisor, because its pid may be reused. None before Linux 5.3.
    supervisor: Option<Arc<OwnedFd>>,
    group: Option<Arc<ControlGroup>>,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// The program's own status.
    pub status: ExitStatus,
    /// The processes that it had started.
    pub left: Left,
}

/// The remaining processes of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// None, and there was none when the program ended.
    Nothing,
    /// None any more: some were ended.
    Swept,
    /// Some cannot be ended, for now or by this user. The supervisor keeps trying.
    Stuck,
    /// Some have a session of their own and may go on.
    Detached,
}

impl Control {
    /// Sends SIGTERM to the program's group. A stopped process continues to receive it.
    pub fn terminate(&self) {
        let _ = (&*self.link).write(&[supervisor::TERMINATE]);
    }

    /// Ends the program and all processes that it started, without waiting. Must not be called after [`Running::finish`].
    pub fn end(&self) {
        let _ = self.link.shutdown(Shutdown::Write);
        if let Some(supervisor) = &self.supervisor {
            // A program of the same user may have stopped the supervisor, which then has to continue.
            let _ = pidfd_send_signal(&**supervisor, Signal::CONT);
        }
        if let Some(group) = &self.group {
            group.kill();
        }
    }
}

impl Running {
    /// The program's pid.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// A handle that ends the program.
    pub fn control(&self) -> Control {
        self.control.clone()
    }

    /// Waits until the program and the processes that it started have ended.
    ///
    /// # Errors
    /// When the supervisor was killed; all processes are ended then too.
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

    /// Waits until only detached processes are left.
    ///
    /// # Errors
    /// When the supervisor cannot be waited for.
    pub fn finish(mut self) -> io::Result<()> {
        self.supervisor.wait().map(drop)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The drop has no effect after a successful wait. Otherwise the supervisor is not killed, because it still has
        // to end processes.
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

/// Starts a program and returns when it runs. `control` is called before the program is started, and again for each further try, so that
/// the caller can end whatever starts from then on.
///
/// When the result is dropped, or the caller's process ends, the program and all processes that it started are ended.
///
/// # Errors
/// When the program does not start; the error names the step.
#[expect(clippy::needless_pass_by_value, reason = "its ends of the pipes go with it: who reads waits for the last")]
pub fn start(program: Program, mut control: impl FnMut(Control)) -> Result<Running, SpawnError> {
    let at_fork = |source| SpawnError { step: Step::Fork, source };
    let directory = match &program.directory {
        Directory::Exactly { path, is } => child::Directory { path: c_string(path.as_os_str())?, is: Some(*is) },
        Directory::OrRoot(path) => child::Directory { path: c_string(path.as_os_str())?, is: None },
    };
    let path = c_string(program.path.as_os_str())?;
    let mut args = vec![c_string(&program.name)?];
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
    let probe = program.probe.clone();
    let told = child::Child::new(path, args, env, directory, identity, program.umask, program.file_size, probe);
    let told = Arc::new(told);
    let mut tries = 0;
    loop {
        match attempt(&program, &told, &mut control) {
            // The file is open for writing: most likely a child of this process has it between fork and exec, for a moment.
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
    supervisor.hook(Arc::clone(told), &mut command);
    let supervisor = command.spawn().map_err(at_fork)?;
    // Only the supervisor keeps the other end, so that its end is noticed.
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

    /// A program and the file that reads its output.
    fn program(path: &str, args: &[&str]) -> (Program, File) {
        let (ours, theirs) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let stderr = theirs.try_clone().unwrap();
        let program = Program {
            path: path.into(),
            name: path.into(),
            args: args.iter().map(Into::into).collect(),
            env: vec![("A".into(), "1".into())],
            directory: Directory::OrRoot("/".into()),
            identity: None,
            umask: None,
            file_size: None,
            detach: false,
            probe: None,
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
        let (mut named, output) = program("/bin/sh", &["-c", "echo $0"]);
        named.name = "name".into();
        assert_eq!(says((named, output)), "name\n");
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
        // The program is neither looked up in a path nor given to a shell.
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
