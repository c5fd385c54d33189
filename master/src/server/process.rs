//! The process itself: its user, its place in the background, its limits, its signals.
//!
//! Forking a process that has threads is not safe, so nothing here forks: going to the background and changing the user both start
//! this program anew, before the runtime exists, with what it needs to know as flags.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use brine_protocol::exit;
use rustix::process::{Resource, Rlimit};
use tokio::signal::unix::{SignalKind, signal};

use crate::config::MasterOpts;

/// What the child in the background says when it answers.
const READY: &str = "ready";

/// The process cannot become what it was asked to be.
#[derive(Debug, thiserror::Error)]
#[error("{why}")]
pub struct ProcessError {
    why: String,
    code: i32,
}

impl ProcessError {
    /// The process's exit code.
    pub const fn exit_code(&self) -> i32 {
        self.code
    }
}

/// Starts this program in the background with the same flags and `child_flag`, and waits until it answers or fails. Answers this process's
/// exit code.
///
/// # Errors
/// When the program cannot be started.
pub fn to_background(child_flag: &str) -> Result<i32, ProcessError> {
    let failed =
        |e: io::Error| ProcessError { why: format!("cannot start in the background: {e}"), code: exit::GENERIC };
    let program = std::env::current_exe().map_err(failed)?;
    #[expect(clippy::disallowed_methods, reason = "the program is this one; see the head of this file")]
    let mut command = Command::new(program);
    command.args(std::env::args_os().skip(1)).arg(child_flag).stdin(Stdio::null()).stdout(Stdio::piped());
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

/// In the child of [`to_background`], first thing: leaves the terminal's session.
pub fn leave_terminal() {
    // Fails only for a leader of a process group, which is in a session of its own already.
    let _ = rustix::process::setsid();
}

/// In the child of [`to_background`], once it answers: tells the parent, and lets go of its terminal.
pub fn detach() {
    let mut stdout = io::stdout();
    let _ = writeln!(stdout, "{READY}").and_then(|()| stdout.flush());
    let open = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null");
    match open {
        Ok(null) => {
            let _ = rustix::stdio::dup2_stdin(&null);
            let _ = rustix::stdio::dup2_stdout(&null);
            let _ = rustix::stdio::dup2_stderr(&null);
        }
        Err(e) => tracing::warn!("cannot let go of the terminal: {e}"),
    }
}

/// Tells systemd that the master answers, if it waits to hear so (`Type=notify`).
pub fn notify_service_manager() {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::net::{SocketAddr, UnixDatagram};
    let Some(path) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let address = match path.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
        _ => SocketAddr::from_pathname(&path),
    };
    let sent = address.and_then(|address| UnixDatagram::unbound()?.send_to_addr(b"READY=1", &address));
    if let Err(e) = sent {
        tracing::warn!("systemd was not told that salt-master is ready: {e}");
    }
}

/// The name of the user this process runs as; its number if it has none.
pub fn current_user() -> String {
    let uid = rustix::process::geteuid().as_raw();
    users().into_iter().find(|user| user.uid == uid).map_or_else(|| uid.to_string(), |user| user.name)
}

/// Becomes the configured user: gives it the master's folders and starts this program anew as it. Returns if it is that user already, or
/// cannot become it and was not told to explicitly.
///
/// # Errors
/// When there is no such user, or only root could change to it.
pub fn become_user(opts: &MasterOpts, explicit: bool) -> Result<(), ProcessError> {
    let wanted = &opts.user;
    let current = current_user();
    if *wanted == current {
        return Ok(());
    }
    let Some(user) = users().into_iter().find(|user| user.name == *wanted) else {
        return Err(ProcessError { why: format!("there is no user {wanted} to run as (user)"), code: exit::NO_USER });
    };
    if !rustix::process::geteuid().is_root() {
        if explicit {
            let why = format!(
                "salt-master cannot run as {wanted} (user): only root can change to another user, this is {current}"
            );
            return Err(ProcessError { why, code: exit::NO_PERMISSION });
        }
        return Ok(());
    }
    let failed = |e: io::Error| ProcessError { why: format!("cannot run as {wanted}: {e}"), code: exit::GENERIC };
    super::dirs::prepare(opts).map_err(|e| ProcessError { why: e.to_string(), code: exit::GENERIC })?;
    for dir in [&opts.pki_dir, &opts.cachedir, &opts.sock_dir] {
        give(dir, &user).map_err(failed)?;
    }
    let program = std::env::current_exe().map_err(failed)?;
    #[expect(clippy::disallowed_methods, reason = "the program is this one; see the head of this file")]
    let mut command = Command::new(program);
    command.args(std::env::args_os().skip(1)).uid(user.uid).gid(user.gid);
    command.env("HOME", &user.home).env("USER", &user.name).env("LOGNAME", &user.name);
    Err(failed(command.exec()))
}

struct User {
    name: String,
    uid: u32,
    gid: u32,
    home: String,
}

fn users() -> Vec<User> {
    let text = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let parse = |line: &str| {
        let mut fields = line.split(':');
        Some(User {
            name: fields.next()?.to_owned(),
            uid: fields.nth(1)?.parse().ok()?,
            gid: fields.next()?.parse().ok()?,
            home: fields.nth(1)?.to_owned(),
        })
    };
    text.lines().filter_map(parse).collect()
}

/// Gives a folder and what is in it to a user, never through a symlink.
fn give(path: &std::path::Path, user: &User) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, Gid, Uid};
    let (uid, gid) = (Some(Uid::from_raw(user.uid)), Some(Gid::from_raw(user.gid)));
    rustix::fs::chownat(CWD, path, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?;
    if std::fs::symlink_metadata(path)?.is_dir() {
        for entry in std::fs::read_dir(path)? {
            give(&entry?.path(), user)?;
        }
    }
    Ok(())
}

/// Two descriptors a minion: what the system allows is used.
pub(super) fn raise_file_limit() {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    if limit.current < limit.maximum || limit.maximum.is_none() && limit.current.is_some() {
        let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
        if let Err(e) = rustix::process::setrlimit(Resource::Nofile, raised) {
            tracing::warn!("the limit on open files stays at {:?}: {e}", limit.current);
        }
    }
}

/// Listens for SIGTERM and SIGINT from now on: what it answers resolves at the first. A second one ends the process at once. To be called
/// inside the runtime, before anyone is told that the master answers.
///
/// # Errors
/// When signals cannot be received.
pub fn told_to_stop() -> io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tokio::spawn(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            std::process::exit(exit::GENERIC);
        });
    })
}
