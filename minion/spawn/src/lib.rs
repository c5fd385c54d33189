//! Starts one program as told and in no other way.
//!
//! The standard library's `Command` cannot: it drops privileges before anything else of the caller's may run, so that
//! supplementary groups and the umask cannot be set after it; it looks programs up in a `PATH`; and its `execvp` hands a file
//! that the kernel does not know to `/bin/sh`. So it is used for what it does well (fork, the descriptors, the report of what
//! failed, reaping), and all between fork and exec is [`child::Child`] here, the minion's one file of unsafe code.
//!
//! The program starts in a session and a process group of its own, which have its pid as number; without a terminal; with
//! the three descriptors it was given and no other; with no signal ignored or blocked; and it is killed when the thread that
//! started it ends.

mod child;

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

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
    /// Its standard input; none: nothing to read.
    pub stdin: Option<OwnedFd>,
    /// Its standard output.
    pub stdout: OwnedFd,
    /// Its standard error.
    pub stderr: OwnedFd,
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
    /// The directory.
    Directory,
    /// Being told of the caller's end.
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

/// Starts a program; returns when it runs, or with the reason why it does not.
///
/// The calling thread has to live as long as the program: the kernel kills the program when it ends. Who drops the result has
/// to have waited for it.
pub fn start(program: Program) -> Result<Child, SpawnError> {
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
    #[expect(clippy::disallowed_methods, reason = "what the broker starts programs with")]
    let mut command = std::process::Command::new(&program.path);
    command.stdin(program.stdin.map_or_else(Stdio::null, Stdio::from));
    command.stdout(Stdio::from(program.stdout)).stderr(Stdio::from(program.stderr));
    let told = child::Child::new(path, args, env, directory, program.identity, program.umask);
    told.hook(&mut command);
    let mut tries = 0;
    loop {
        match command.spawn().map_err(child::decode) {
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
    use std::os::unix::process::ExitStatusExt;

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
            stdin: None,
            stdout: theirs,
            stderr,
        };
        (program, ours.into())
    }

    fn says(asked: (Program, File)) -> String {
        let (program, mut output) = asked;
        let mut child = start(program).unwrap();
        let mut text = String::new();
        output.read_to_string(&mut text).unwrap();
        assert!(child.wait().unwrap().success());
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
            let error = start(asked).unwrap_err();
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

    /// The program does not outlive who would end it.
    #[test]
    fn it_ends_with_its_thread() {
        let (asked, _output) = program("/bin/sleep", &["1000"]);
        let mut child = std::thread::spawn(|| start(asked).unwrap()).join().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(9));
    }
}
