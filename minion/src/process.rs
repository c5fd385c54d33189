//! The process itself: user names, the user to run as, the pid file, going to the background.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// `/etc/passwd` and `/etc/group` of a large site.
const MAX_ACCOUNTS_BYTES: u64 = 16 * 1024 * 1024;

/// Why the process could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// The user to run as does not exist.
    #[error("the user {user} of the setting `user` does not exist")]
    NoUser {
        /// The name.
        user: String,
    },
    /// Only root may become another user.
    #[error("cannot run as user {user}: {source}; start as root, or set `user` to the one who starts the minion")]
    Become {
        /// The name.
        user: String,
        /// What the system said.
        source: io::Error,
    },
    /// The pid file.
    #[error("cannot write the pid file {path}: {source}")]
    PidFile {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another minion runs.
    #[error("a minion runs already with pid {pid} (pid file {path}); stop it first, or set another `pidfile`")]
    Running {
        /// Its pid.
        pid: u32,
        /// The pid file.
        path: PathBuf,
    },
    /// The background process.
    #[error("cannot go to the background: {0}")]
    Daemonize(io::Error),
}

impl ProcessError {
    /// Salt's exit code.
    pub fn exit_code(&self) -> i32 {
        match self {
            Self::NoUser { .. } => brine_protocol::exit::NO_USER,
            Self::Become { .. } => brine_protocol::exit::NO_PERMISSION,
            _ => brine_protocol::exit::GENERIC,
        }
    }
}

/// Makes a folder that only its owner enters, or makes one so that was there: what lies in it is taken for this program's
/// own words.
pub(crate) fn private_dir(dir: &Path) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o700))
}

/// The name of a user, from `/etc/passwd`.
pub(crate) fn user_name(uid: u32) -> Option<String> {
    account("/etc/passwd", |fields| {
        fields.get(2)?.parse().ok().filter(|n: &u32| *n == uid).map(|_| fields[0].to_owned())
    })
}

/// Who runs this, as Salt says it of who calls functions at a terminal: `sudo_NAME` for root by sudo.
pub(crate) fn own_name() -> String {
    let uid = rustix::process::getuid().as_raw();
    match (std::env::var("SUDO_USER"), user_name(uid)) {
        (Ok(who), _) if uid == 0 && !who.is_empty() && who != "root" => format!("sudo_{who}"),
        (_, Some(name)) => name,
        _ => uid.to_string(),
    }
}

/// The name of a group, from `/etc/group`.
pub(crate) fn group_name(gid: u32) -> Option<String> {
    account("/etc/group", |fields| {
        fields.get(2)?.parse().ok().filter(|n: &u32| *n == gid).map(|_| fields[0].to_owned())
    })
}

fn account<T>(file: &str, mut pick: impl FnMut(&[&str]) -> Option<T>) -> Option<T> {
    let text = crate::grains::read_text(file, MAX_ACCOUNTS_BYTES)?;
    text.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        if fields.len() < 3 { None } else { pick(&fields) }
    })
}

/// Becomes `user`, with its groups. Must be called before any thread is started, since Linux changes only the calling
/// one and later ones take after it.
pub fn become_user(user: &str) -> Result<(), ProcessError> {
    use rustix::process::{Gid, Uid};
    let now = rustix::process::geteuid().as_raw();
    if user.is_empty() || user_name(now).as_deref() == Some(user) || (user == "root" && now == 0) {
        return Ok(());
    }
    let found = account("/etc/passwd", |f| {
        let (name, uid, gid) = (f.first()?, f.get(2)?, f.get(3)?);
        (*name == user).then(|| Some((uid.parse::<u32>().ok()?, gid.parse::<u32>().ok()?)))?
    });
    let Some((uid, gid)) = found else { return Err(ProcessError::NoUser { user: user.to_owned() }) };
    let mut groups = vec![Gid::from_raw(gid)];
    let _: Option<()> = account("/etc/group", |f| {
        let member = f.get(3).is_some_and(|members| members.split(',').any(|m| m.trim() == user));
        if let (true, Ok(id)) = (member, f[2].parse::<u32>()) {
            groups.push(Gid::from_raw(id));
        }
        None
    });
    let fail = |source: rustix::io::Errno| ProcessError::Become { user: user.to_owned(), source: source.into() };
    let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
    rustix::thread::set_thread_groups(&groups).map_err(fail)?;
    rustix::thread::set_thread_res_gid(gid, gid, gid).map_err(fail)?;
    rustix::thread::set_thread_res_uid(uid, uid, uid).map_err(fail)
}

/// The pid file; removed when this is dropped.
#[derive(Debug)]
pub struct PidFile(PathBuf);

impl PidFile {
    /// Writes the file, unless a minion with the pid in it is alive.
    pub fn write(path: &Path) -> Result<Self, ProcessError> {
        let fail = |source| ProcessError::PidFile { path: path.to_owned(), source };
        if let Some(pid) = read_pid(path)
            && pid != std::process::id()
            && is_minion(pid)
        {
            return Err(ProcessError::Running { pid, path: path.to_owned() });
        }
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir).map_err(fail)?;
        }
        std::fs::write(path, format!("{}\n", std::process::id())).map_err(fail)?;
        Ok(Self(path.to_owned()))
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        if read_pid(&self.0) == Some(std::process::id()) {
            let _ = std::fs::remove_file(&self.0);
        }
    }
}

fn read_pid(path: &Path) -> Option<u32> {
    let mut text = String::new();
    std::fs::File::open(path).ok()?.take(32).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

/// Whether that process is alive and looks like a minion, so that a reused pid does not keep one from starting.
fn is_minion(pid: u32) -> bool {
    std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.windows(11).any(|w| w == b"salt-minion"))
}

/// The environment variable by which the background process knows that it is one.
const BACKGROUND: &str = "BRINE_MINION_BACKGROUND";

/// What going to the background led to.
#[derive(Debug, PartialEq, Eq)]
pub enum Background {
    /// This is the process that was started; it is to end.
    Parent,
    /// This is the process in the background.
    Child,
}

/// Goes to the background: starts this program again with the same arguments, detached from the terminal.
pub fn daemonize() -> Result<Background, ProcessError> {
    use std::process::Stdio;
    if std::env::var_os(BACKGROUND).is_some() {
        let _ = rustix::process::setsid(); // fails only where it leads a session already
        return Ok(Background::Child);
    }
    let program = std::env::current_exe().map_err(ProcessError::Daemonize)?;
    #[allow(
        clippy::disallowed_methods,
        reason = "the daemon starts itself, with its own arguments, before anything else runs"
    )]
    let mut command = std::process::Command::new(program);
    command.args(std::env::args_os().skip(1)).env(BACKGROUND, "1");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map_err(ProcessError::Daemonize)?;
    Ok(Background::Parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_found_by_number() {
        assert_eq!(user_name(0).as_deref(), Some("root"));
        assert_eq!(group_name(0).as_deref(), Some("root"));
        assert_eq!(user_name(u32::MAX - 7), None);
    }

    #[test]
    fn an_unknown_user_is_refused_by_name() {
        let error = become_user("no-such-user-here").unwrap_err();
        assert_eq!(error.exit_code(), 67);
        assert!(error.to_string().contains("no-such-user-here"));
    }

    #[test]
    fn the_pid_file_goes_with_its_owner_and_a_stale_one_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run/minion.pid");
        let file = PidFile::write(&path).unwrap();
        assert_eq!(read_pid(&path), Some(std::process::id()));
        drop(file);
        assert!(!path.exists());
        std::fs::write(&path, "1\n").unwrap(); // alive, but no minion
        drop(PidFile::write(&path).unwrap());
    }
}
