//! The pid file: says which process is the master, and is locked while that is so.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;

/// Another master holds the pid file.
#[derive(Debug, thiserror::Error)]
#[error("salt-master is already running (pid {pid}, pid file {path}). Stop it first, or give this one a configuration of its own", path = path.display())]
pub struct PidError {
    pid: String,
    path: PathBuf,
}

/// Held while the master runs; removed with it.
#[derive(Debug)]
pub(super) struct PidFile {
    path: PathBuf,
    _locked: File,
}

impl PidFile {
    /// Writes and locks the file. A folder where this user may not write is no reason not to start.
    pub(super) fn take(path: &Path) -> Result<Option<Self>, PidError> {
        let open = || -> io::Result<File> {
            if let Some(dir) = path.parent() {
                crate::files::make_dir(dir, 0o755)?;
            }
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false).mode(0o644);
            options.custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed()).open(path)
        };
        let mut file = match open() {
            Ok(file) => file,
            Err(e) => {
                tracing::warn!("no pid file: {} cannot be written: {e}", path.display());
                return Ok(None);
            }
        };
        if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            let mut pid = String::new();
            let _ = Read::by_ref(&mut file).take(16).read_to_string(&mut pid);
            return Err(PidError { pid: pid.trim().to_owned(), path: path.to_owned() });
        }
        let write = |file: &mut File| -> io::Result<()> {
            file.set_len(0)?;
            write!(file, "{}", std::process::id())
        };
        if let Err(e) = write(&mut file) {
            tracing::warn!("the pid file {} cannot be written: {e}", path.display());
        }
        Ok(Some(Self { path: path.to_owned(), _locked: file }))
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_master_a_pid_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run/salt-master.pid");
        let first = PidFile::take(&path).unwrap().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), std::process::id().to_string());
        let error = PidFile::take(&path).unwrap_err().to_string();
        assert!(error.contains(&format!("pid {}", std::process::id())), "{error}");
        drop(first);
        assert!(!path.exists());
        // left behind by a master that was killed
        std::fs::write(&path, "4194304000").unwrap();
        assert!(PidFile::take(&path).unwrap().is_some());
    }
}
