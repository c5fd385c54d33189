//! Small files that are made and removed by the thousand, reused under changing names.
//!
//! Making and removing files dominates the cost of a short job: before ext4 reuses an inode, it examines every inode
//! freed within the last seconds, and a minion with many jobs a second spent most of its time there. A removed file is
//! therefore renamed into a folder of spare files, and renamed back when a new file is needed.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Upper bound on spare files: the jobs at once of a busy minion. Further files are made and removed as usual.
const MAX_SPARE: usize = 128;
/// One block of every file system in use. Larger files are neither kept nor made from spare ones: after a power failure, such a file
/// could have half of its old and half of its new content. One block is always all old or all new.
const MAX_SPARE_BYTES: usize = 4096;

/// Makes a folder private to its owner, because the minion trusts what lies in it.
pub(crate) fn private_dir(dir: &Path) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o700))
}

/// The spare files for one folder, in a folder of their own.
#[derive(Debug)]
pub(crate) struct SpareFiles {
    dir: PathBuf,
    /// This process.
    pid: u32,
    spare: Mutex<Spare>,
}

#[derive(Debug, Default)]
struct Spare {
    files: Vec<PathBuf>,
    next: u64,
}

impl SpareFiles {
    /// Opens `DIR.spare`, the spare files for `DIR`. Their names have the process's id, because a minion and `salt-call` may use the
    /// folder at once. Removes the files of processes that have ended.
    ///
    /// # Errors
    /// When the folder cannot be made, made private or read.
    pub(crate) fn open(dir: &Path) -> io::Result<Self> {
        let mut name = dir.file_name().unwrap_or_default().to_owned();
        name.push(".spare");
        let dir = dir.with_file_name(name);
        private_dir(&dir)?;
        let this = std::process::id();
        for entry in fs::read_dir(&dir)? {
            let entry = entry?;
            let pid = entry.file_name().to_str().and_then(|name| name.split_once('-')?.0.parse::<u32>().ok());
            // In a container, this process may have the same pid as an ended one.
            if pid.is_some_and(|pid| pid == this || !Path::new("/proc").join(pid.to_string()).exists()) {
                let _ = fs::remove_file(entry.path());
            }
        }
        Ok(Self { dir, pid: this, spare: Mutex::default() })
    }

    /// The path of the [`Slots`](crate::slots::Slots) for records of the folder that have no files yet.
    pub(crate) fn slots(&self) -> PathBuf {
        self.dir.join("slots")
    }

    /// Makes a file with this content and mode 0600; the name must be new. The file appears whole, but is not synced: after a power
    /// failure it may have an earlier content.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn create(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        let put = |draft: PathBuf| {
            let written = write(&draft, content).and_then(|()| fs::rename(&draft, path));
            written.inspect_err(|_| drop(fs::remove_file(&draft)))
        };
        let spare = if content.len() <= MAX_SPARE_BYTES { self.spare().files.pop() } else { None };
        match spare.map(put) {
            Some(Ok(())) => Ok(()),
            // The spare file was taken away or replaced.
            Some(Err(_)) | None => put(self.name()),
        }
    }

    /// Removes a file of `size` bytes.
    ///
    /// # Errors
    /// When the file cannot be renamed or removed.
    pub(crate) fn remove(&self, path: &Path, size: usize) -> io::Result<()> {
        let full = self.spare().files.len() >= MAX_SPARE;
        if full || size > MAX_SPARE_BYTES {
            return fs::remove_file(path);
        }
        let spare = self.name();
        fs::rename(path, &spare)?;
        self.spare().files.push(spare);
        Ok(())
    }

    /// A name for one more spare file.
    fn name(&self) -> PathBuf {
        let mut spare = self.spare();
        spare.next += 1;
        self.dir.join(format!("{}-{}", self.pid, spare.next))
    }

    fn spare(&self) -> std::sync::MutexGuard<'_, Spare> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = brine_files::create_own(path, 0o600)?;
    file.write_all(content)?;
    let length = content.len() as u64;
    if file.metadata()?.len() == length { Ok(()) } else { file.set_len(length) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removed_file_is_the_next_one_and_says_nothing_of_before() {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        let dir = tempfile::tempdir().unwrap();
        let files = SpareFiles::open(&dir.path().join("files")).unwrap();
        let path = |name: &str| dir.path().join(name);
        files.create(&path("one"), b"a long content").unwrap();
        let inode = fs::metadata(path("one")).unwrap().ino();
        files.remove(&path("one"), 14).unwrap();
        assert!(!path("one").exists());
        files.create(&path("two"), b"short").unwrap();
        let two = fs::metadata(path("two")).unwrap();
        assert_eq!((two.ino(), two.permissions().mode() & 0o777), (inode, 0o600));
        assert_eq!(fs::read(path("two")).unwrap(), b"short");
        assert_eq!(files.remove(&path("one"), 14).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_file_of_several_blocks_is_never_made_of_another() {
        use std::os::unix::fs::MetadataExt;
        let dir = tempfile::tempdir().unwrap();
        let files = SpareFiles::open(&dir.path().join("files")).unwrap();
        let (small, large) = (dir.path().join("small"), dir.path().join("large"));
        files.create(&small, b"x").unwrap();
        let inode = fs::metadata(&small).unwrap().ino();
        files.remove(&small, 1).unwrap();
        files.create(&large, &[7; MAX_SPARE_BYTES + 1]).unwrap();
        assert_ne!(fs::metadata(&large).unwrap().ino(), inode);
        files.remove(&large, MAX_SPARE_BYTES + 1).unwrap();
        files.create(&small, &[7; MAX_SPARE_BYTES]).unwrap();
        assert_eq!(fs::metadata(&small).unwrap().ino(), inode);
    }

    #[test]
    fn spare_files_are_few_and_small_and_go_with_the_process() {
        let dir = tempfile::tempdir().unwrap();
        let spare = dir.path().join("files.spare");
        let files = SpareFiles::open(&dir.path().join("files")).unwrap();
        let path = |n: usize| dir.path().join(n.to_string());
        let count = || fs::read_dir(&spare).unwrap().count();
        for n in 0..MAX_SPARE + 9 {
            files.create(&path(n), b"x").unwrap();
        }
        for n in 0..MAX_SPARE + 9 {
            files.remove(&path(n), 1).unwrap();
        }
        assert_eq!(count(), MAX_SPARE);
        files.create(&path(0), &[7; 9]).unwrap();
        files.remove(&path(0), MAX_SPARE_BYTES + 1).unwrap();
        assert_eq!(count(), MAX_SPARE - 1);
        fs::write(spare.join("1-1"), "of a process that is there").unwrap();
        SpareFiles::open(&dir.path().join("files")).unwrap();
        assert_eq!(count(), 1);
    }
}
