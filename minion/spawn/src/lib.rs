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

/// A program and how it starts.
#[derive(Debug)]
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
    command.spawn().map_err(child::decode)
}

fn c_string(text: &OsStr) -> Result<CString, SpawnError> {
    CString::new(text.as_bytes()).map_err(|_| SpawnError {
        step: Step::Exec,
        source: io::Error::new(io::ErrorKind::InvalidInput, "a text has a NUL byte in it"),
    })
}
