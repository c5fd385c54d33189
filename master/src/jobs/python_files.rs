//! The two job cache files that Python's LocalClient reads on the master's host (§7.2, §9.2).
//!
//! LocalClient reads `cachedir/jobs/…/.load.p` before it waits for returns, and gives up on a job without the file.
//! Returns are not written there: they are in the job store, and reach clients as events.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use brine_protocol::ids::{Jid, MinionId};
use brine_protocol::msgpack;
use brine_protocol::value::{Value, list};

use crate::files;
use brine_fileserver::HashType;

/// Bound on the entries that one clean-up removes. The next one continues.
const CLEAN_MAX: usize = 50_000;

/// Writer of `cachedir/jobs`.
#[derive(Debug, Clone)]
pub struct PythonJobFiles {
    root: PathBuf,
    hash: HashType,
    on: bool,
}

impl PythonJobFiles {
    /// Makes a writer for the folder, usually `cachedir/jobs`. `hash` is `hash_type`, by which Python finds a job in
    /// the folder; `on` is `python_job_files`.
    pub const fn new(root: PathBuf, hash: HashType, on: bool) -> Self {
        Self { root, hash, on }
    }

    /// Returns whether files are written.
    pub const fn on(&self) -> bool {
        self.on
    }

    /// Writes the published load (already without secrets) and the expected minions.
    ///
    /// # Errors
    /// If a file or folder cannot be written.
    pub fn write(&self, jid: &Jid, load: &Value, minions: &[MinionId]) -> io::Result<()> {
        if !self.on {
            return Ok(());
        }
        let dir = self.dir(jid);
        files::make_private_dir(&dir)?;
        let minions = list(minions.iter().map(|id| Value::from(id.as_str())));
        files::write_atomic(&dir.join(".minions.p"), &msgpack::encode_disk(&minions), 0o600)?;
        // Written last, because its presence means that the job is complete.
        files::write_atomic(&dir.join(".load.p"), &msgpack::encode_disk(load), 0o600)
    }

    /// Removes jobs older than `keep`. Returns their number.
    ///
    /// # Errors
    /// If a folder cannot be listed.
    pub fn clean(&self, keep: Duration) -> io::Result<usize> {
        let Some(before) = SystemTime::now().checked_sub(keep) else { return Ok(0) };
        let mut removed = 0;
        for outer in files::subdirectories(&self.root)? {
            for dir in files::subdirectories(&outer)? {
                let changed = std::fs::metadata(dir.join(".load.p")).or_else(|_| std::fs::metadata(&dir));
                let old = changed.and_then(|m| m.modified()).is_ok_and(|at| at < before);
                if old && std::fs::remove_dir_all(&dir).is_ok() {
                    removed += 1;
                }
                if removed >= CLEAN_MAX {
                    return Ok(removed);
                }
            }
        }
        Ok(removed)
    }

    fn dir(&self, jid: &Jid) -> PathBuf {
        let hash = self.hash.digest(jid.as_str().as_bytes());
        let (first, rest) = hash.split_at(2);
        self.root.join(first).join(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_lie_where_python_looks() {
        let dir = tempfile::tempdir().unwrap();
        let files = PythonJobFiles::new(dir.path().join("jobs"), HashType::Sha256, true);
        let jid = Jid::try_from("20261120134740245008").unwrap();
        let load = brine_protocol::value::map([("fun", "test.ping")]);
        files.write(&jid, &load, &[MinionId::try_from("a").unwrap()]).unwrap();
        let hash = HashType::Sha256.digest(b"20261120134740245008");
        let at = dir.path().join("jobs").join(&hash[..2]).join(&hash[2..]);
        assert_eq!(std::fs::read(at.join(".load.p")).unwrap(), b"\x81\xa3fun\xa9test.ping");
        assert_eq!(files.clean(Duration::from_secs(3600)).unwrap(), 0);
        assert_eq!(files.clean(Duration::ZERO).unwrap(), 1);
        assert!(!at.exists());
    }

    #[test]
    fn nothing_is_written_where_it_is_not_wanted() {
        let dir = tempfile::tempdir().unwrap();
        let files = PythonJobFiles::new(dir.path().join("jobs"), HashType::Sha256, false);
        let load = brine_protocol::value::map([("fun", "test.ping")]);
        files.write(&Jid::now(), &load, &[]).unwrap();
        assert!(!dir.path().join("jobs").exists());
    }
}
