//! The pid file: contains the daemon's pid and is locked while the daemon runs. The lock ends with the process, so a
//! stale file does not prevent a start, even if another process has the pid by now.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use brine_protocol::exit;
use brine_protocol::trusted_path::{self, LastLink};
use rustix::fs::{FlockOperation, OFlags};

use crate::ProcessError;

/// The locked pid file; removed on drop.
#[derive(Debug)]
pub struct PidFile {
    path: PathBuf,
    locked: File,
}

impl PidFile {
    /// Writes and locks the file. Returns none if this user may not write in its folder, which does not prevent the
    /// start.
    ///
    /// # Errors
    /// When another process holds the lock, or the file has the pid of a running daemon of Python Salt.
    pub fn take(program: &str, path: &Path) -> Result<Option<Self>, ProcessError> {
        let open = || -> io::Result<File> {
            let user = rustix::process::geteuid().as_raw();
            trusted_path::open_file(path, OFlags::RDWR | OFlags::CREATE, 0o644, user, LastLink::Refused)
        };
        let mut file = match open() {
            Ok(file) => file,
            Err(e) => {
                tracing::warn!("no pid file: {} cannot be written: {e}; set pidfile to one that can", path.display());
                return Ok(None);
            }
        };
        let locked = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
        let mut pid = String::new();
        let _ = Read::by_ref(&mut file).take(16).read_to_string(&mut pid);
        let pid = pid.trim();
        // Python's daemons do not lock the file.
        if !locked || runs(pid, program) {
            let why = format!(
                "{program} is already running (pid {pid}, pid file {}). Stop it first, or give this one a configuration of its own",
                path.display()
            );
            return Err(ProcessError::new(exit::GENERIC, why));
        }
        let write = |file: &mut File| -> io::Result<()> {
            use std::io::Seek;
            file.set_len(0)?;
            file.rewind()?;
            write!(file, "{}", std::process::id())
        };
        if let Err(e) = write(&mut file) {
            tracing::warn!("the pid file {} cannot be written: {e}", path.display());
        }
        Ok(Some(Self { path: path.to_owned(), locked: file }))
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // A daemon that is not root cannot remove its file from a folder such as /run. It empties the file instead.
        if std::fs::remove_file(&self.path).is_err() {
            let _ = self.locked.set_len(0);
        }
    }
}

/// Whether the process with this pid is another process of this program.
fn runs(pid: &str, program: &str) -> bool {
    let Ok(number) = pid.parse::<u32>() else { return false };
    number != std::process::id()
        && std::fs::read(format!("/proc/{number}/cmdline"))
            .is_ok_and(|line| line.split(|byte| *byte == 0).any(|word| word.ends_with(program.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_daemon_a_pid_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run/salt-master.pid");
        let first = PidFile::take("salt-master", &path).unwrap().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), std::process::id().to_string());
        let error = PidFile::take("salt-master", &path).unwrap_err().to_string();
        assert!(error.contains(&format!("pid {}", std::process::id())), "{error}");
        drop(first);
        assert!(!path.exists());
        // Stale files: a pid without a process, and a pid that another program has now.
        for stale in ["4194304000", "1\n", "", "rubbish"] {
            std::fs::write(&path, stale).unwrap();
            let file = PidFile::take("salt-master", &path).unwrap().unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), std::process::id().to_string(), "{stale:?}");
            drop(file);
        }
    }

    #[test]
    fn one_that_does_not_lock_is_seen_by_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pid");
        // The parent of this test under its own name: a process that lives and holds no lock.
        let parent = rustix::process::getppid().unwrap().as_raw_nonzero().to_string();
        let line = std::fs::read(format!("/proc/{parent}/cmdline")).unwrap();
        let name = String::from_utf8_lossy(line.split(|byte| *byte == 0).next().unwrap()).into_owned();
        let name = name.rsplit('/').next().unwrap();
        std::fs::write(&path, &parent).unwrap();
        let error = PidFile::take(name, &path).unwrap_err().to_string();
        assert!(error.contains(&format!("pid {parent}")), "{error}");
        assert!(PidFile::take("salt-master", &path).unwrap().is_some());
    }

    #[test]
    fn a_link_is_not_written_through() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("other"), "kept").unwrap();
        std::os::unix::fs::symlink("other", dir.path().join("pid")).unwrap();
        assert!(PidFile::take("salt-master", &dir.path().join("pid")).unwrap().is_none());
        assert_eq!(std::fs::read_to_string(dir.path().join("other")).unwrap(), "kept");
    }
}
