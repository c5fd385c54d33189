//! The folder of recordings: one file for each, mode 0600, the oldest removed where there is no room.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::SystemTime;

use brine_recording::SUFFIX;

use crate::kernel::cache::own_folder;

/// Upper bound on the recordings in the folder.
const MAX_FILES: usize = 1_000;
/// Upper bound on the characters of a file's name before its number.
const MAX_NAME: usize = 120;
/// Upper bound on the recordings of one job and function, which differ in their number.
const MAX_NUMBER: usize = 10_000;

#[derive(Debug)]
pub(super) struct Folder {
    dir: PathBuf,
    /// Bytes of all recordings together.
    total: u64,
}

impl Folder {
    pub(super) fn new(dir: PathBuf, total: u64) -> Self {
        Self { dir, total }
    }

    /// Writes a recording. The error is one line.
    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, String> {
        let failed = |error: io::Error| format!("{} cannot be written: {error}", self.dir.display());
        let size = bytes.len() as u64;
        if size > self.total {
            return Err(format!("it has {size} bytes, and all together may have {}", self.total));
        }
        own_folder(&self.dir, 0o077).map_err(failed)?;
        self.make_room(size).map_err(failed)?;
        let mut file = tempfile::Builder::new().prefix(".tmp").tempfile_in(&self.dir).map_err(failed)?;
        file.write_all(bytes).map_err(failed)?;
        let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '_' };
        let name: String = name.trim_start_matches('.').chars().map(plain).take(MAX_NAME).collect();
        for number in 1..=MAX_NUMBER {
            let path = self.dir.join(format!("{name}-{number}{SUFFIX}"));
            match file.persist_noclobber(&path) {
                Ok(_) => return Ok(path),
                Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => file = error.file,
                Err(error) => return Err(failed(error.error)),
            }
        }
        Err(format!("there are {MAX_NUMBER} of this job and function"))
    }

    /// Removes the oldest recordings until there is room, and what an interrupted write left.
    fn make_room(&self, size: u64) -> io::Result<()> {
        let mut files: Vec<(SystemTime, PathBuf, u64)> = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            let path = entry?.path();
            let Ok(meta) = fs::symlink_metadata(&path) else { continue };
            match path.file_name().and_then(|name| name.to_str()) {
                Some(name) if meta.is_file() && name.ends_with(SUFFIX) => {
                    files.push((meta.modified().unwrap_or(SystemTime::UNIX_EPOCH), path, meta.len()));
                }
                Some(name) if meta.is_file() && name.starts_with(".tmp") => fs::remove_file(&path)?,
                _ => {}
            }
        }
        files.sort();
        let mut used = files.iter().fold(0_u64, |used, (_, _, length)| used.saturating_add(*length));
        let mut count = files.len();
        for (_, path, length) in files {
            if used.saturating_add(size) <= self.total && count < MAX_FILES {
                break;
            }
            fs::remove_file(path)?;
            (used, count) = (used.saturating_sub(length), count - 1);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_oldest_make_room() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::new(dir.path().join("recordings"), 100);
        let write = |name: &str, size: usize| folder.write(name, &vec![0; size]);
        let one = write("20261126-test.ping", 40).unwrap();
        assert_eq!(one.file_name().unwrap(), "20261126-test.ping-1.recording");
        assert_eq!(fs::metadata(&one).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(one.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
        // The times of files are coarse.
        let age = |path: &PathBuf, seconds| {
            let time = SystemTime::now() - std::time::Duration::from_secs(seconds);
            fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
        };
        age(&one, 30);
        let two = write("20261126-test.ping", 40).unwrap();
        assert_eq!(two.file_name().unwrap(), "20261126-test.ping-2.recording");
        age(&two, 20);
        let three = write("../../etc/x\n", 40).unwrap();
        assert_eq!(three, dir.path().join("recordings/_.._etc_x_-1.recording"));
        assert!(!one.exists() && two.exists() && three.exists());
        assert_eq!(write("x", 101).unwrap_err(), "it has 101 bytes, and all together may have 100");
        assert!(two.exists() && three.exists());
        assert!(write("x", 100).is_ok() && !two.exists() && !three.exists());
    }

    #[test]
    fn a_folder_that_others_can_read_has_no_recordings() {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let error = Folder::new(dir.path().to_owned(), 100).write("x", &[0]).unwrap_err();
        assert!(error.contains("its mode is 755"), "{error}");
    }
}
