//! Small files that come and go by the thousand: a name in a folder each, and below it always the same few files.
//!
//! A file system pays more for making and removing a file than for all that is done with it in between: ext4 looks at every inode
//! that was freed within the last seconds before it gives out the next one, so that a minion with many jobs a second spent most of
//! its time there. A file that is removed here is renamed into a folder of spare ones, and renamed back when one is made.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Spare files. As many as there are jobs at once on a busy minion; more are made and removed as usual.
const MAX_SPARE: usize = 128;
/// One block of every file system that is in use. A larger file is neither kept nor made of a spare one: a power failure could leave it
/// half of what it was before and half of what it is now, and what is in one block is all of one time.
const MAX_SPARE_BYTES: usize = 4096;

/// Makes a folder that only its owner enters, or makes one so that was there: what lies in it is taken for this program's
/// own words.
pub(crate) fn private_dir(dir: &Path) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o700))
}

/// The spare files, in a folder of their own beside those that they are for.
#[derive(Debug)]
pub(crate) struct SpareFiles {
    dir: PathBuf,
    spare: Mutex<Spare>,
}

#[derive(Debug, Default)]
struct Spare {
    files: Vec<PathBuf>,
    next: u64,
}

impl SpareFiles {
    /// For files in `dir`: the spare ones are in `DIR.spare`, which is this program's alone, and have the process's id in their names,
    /// for a minion and `salt-call` both may be here. What ended processes left there goes.
    pub(crate) fn open(dir: &Path) -> io::Result<Self> {
        let mut name = dir.file_name().unwrap_or_default().to_owned();
        name.push(".spare");
        let dir = dir.with_file_name(name);
        private_dir(&dir)?;
        for entry in fs::read_dir(&dir)? {
            let entry = entry?;
            let pid = entry.file_name().to_str().and_then(|name| name.split_once('-')?.0.parse::<u32>().ok());
            // The own id can be found here in a container, where it is the same at every start.
            if pid.is_some_and(|pid| pid == std::process::id() || !Path::new("/proc").join(pid.to_string()).exists()) {
                let _ = fs::remove_file(entry.path());
            }
        }
        Ok(Self { dir, spare: Mutex::default() })
    }

    /// Makes a file with this content, 0600, on the same file system. There is none of that name before. It is whole when it is
    /// there, but is not synced: what is found after a power failure may be an earlier content of the same file.
    pub(crate) fn create(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        let put = |draft: PathBuf| {
            let written = write(&draft, content).and_then(|()| fs::rename(&draft, path));
            written.inspect_err(|_| drop(fs::remove_file(&draft)))
        };
        let spare = if content.len() <= MAX_SPARE_BYTES { self.spare().files.pop() } else { None };
        match spare.map(put) {
            Some(Ok(())) => Ok(()),
            // Somebody put something else there, or took it away.
            Some(Err(_)) | None => put(self.name()),
        }
    }

    /// Removes a file of `size` bytes.
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

    /// A name that no spare file has.
    fn name(&self) -> PathBuf {
        let mut spare = self.spare();
        spare.next += 1;
        self.dir.join(format!("{}-{}", std::process::id(), spare.next))
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
