//! The folder of recordings: one file for each, mode 0600, the oldest removed where there is no room.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::SystemTime;

use brine_recording::SUFFIX;

use crate::kernel::cache::own_folder;

/// Upper bound on the recordings in the folder.
const MAX_FILES: usize = 1_000;
/// Looking at every file costs more than a recording. So a look leaves this part of the room free, and half as many recordings are written
/// before the next look: another program that writes here may take the other half.
const SPARE_PART: usize = 20;
/// Upper bound on the characters of a file's name before its number.
const MAX_NAME: usize = 120;
/// Upper bound on the recordings of one job and function, which differ in their number.
const MAX_NUMBER: usize = 10_000;

#[derive(Debug)]
pub(super) struct Folder {
    dir: PathBuf,
    /// Bytes of all recordings together.
    total: u64,
    /// The recordings and bytes for which there is room without another look at the files.
    spare: (usize, u64),
}

impl Folder {
    pub(super) fn new(dir: PathBuf, total: u64) -> Self {
        Self { dir, total, spare: (0, 0) }
    }

    /// Writes a recording. The error is one line.
    pub(super) fn write(&mut self, name: &str, bytes: &[u8]) -> Result<PathBuf, String> {
        let dir = self.dir.clone();
        let failed = |error: io::Error| format!("{} cannot be written: {error}", dir.display());
        let size = bytes.len() as u64;
        if size > self.total {
            return Err(format!("it has {size} bytes, and all together may have {}", self.total));
        }
        own_folder(&dir, 0o077).map_err(failed)?;
        self.make_room(size).map_err(failed)?;
        let mut file = tempfile::Builder::new().prefix(".tmp").tempfile_in(&dir).map_err(failed)?;
        file.write_all(bytes).map_err(failed)?;
        let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '_' };
        let name: String = name.trim_start_matches('.').chars().map(plain).take(MAX_NAME).collect();
        for number in 1..=MAX_NUMBER {
            let path = dir.join(format!("{name}-{number}{SUFFIX}"));
            match file.persist_noclobber(&path) {
                Ok(_) => return Ok(path),
                Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => file = error.file,
                Err(error) => return Err(failed(error.error)),
            }
        }
        Err(format!("there are {MAX_NUMBER} of this job and function"))
    }

    /// Takes room for one recording.
    fn make_room(&mut self, size: u64) -> io::Result<()> {
        if let (Some(files), Some(bytes)) = (self.spare.0.checked_sub(1), self.spare.1.checked_sub(size)) {
            self.spare = (files, bytes);
            return Ok(());
        }
        self.spare = (0, 0);
        let (files, bytes) = self.remove_oldest(size)?;
        self.spare = (files.min(MAX_FILES / SPARE_PART) / 2, bytes.min(self.total / SPARE_PART as u64) / 2);
        Ok(())
    }

    /// Removes the oldest recordings until there is room for one more and for the spare ones, and what an interrupted write left. Returns
    /// the recordings and bytes for which there is room beside the one.
    fn remove_oldest(&self, size: u64) -> io::Result<(usize, u64)> {
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
        let (most, bytes) = (MAX_FILES - MAX_FILES / SPARE_PART, self.total - self.total / SPARE_PART as u64);
        for (_, path, length) in files {
            if used.saturating_add(size) <= bytes && count < most {
                break;
            }
            fs::remove_file(path)?;
            (used, count) = (used.saturating_sub(length), count - 1);
        }
        Ok((MAX_FILES.saturating_sub(count + 1), self.total.saturating_sub(used.saturating_add(size))))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_oldest_make_room() {
        let dir = tempfile::tempdir().unwrap();
        let mut folder = Folder::new(dir.path().join("recordings"), 100);
        let mut write = |name: &str, size: usize| folder.write(name, &vec![0; size]);
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
        let all = write("x", 100).unwrap();
        assert!(all.exists() && !two.exists() && !three.exists());
        assert!(write("y", 5).is_ok() && !all.exists(), "none is spare");
    }

    #[test]
    fn two_programs_stay_within_the_bounds() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("recordings");
        let mut folders = [0, 1].map(|_| Folder::new(dir.clone(), 1 << 20));
        for n in 0..MAX_FILES + 200 {
            folders[n % 3 % 2].write(&format!("{n}"), b"x").unwrap();
            let count = fs::read_dir(&dir).unwrap().count();
            assert!(count <= MAX_FILES, "{count}");
        }
        assert!(fs::read_dir(&dir).unwrap().count() >= MAX_FILES - 2 * MAX_FILES / SPARE_PART);
    }

    #[test]
    fn a_folder_that_others_can_read_has_no_recordings() {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let error = Folder::new(dir.path().to_owned(), 100).write("x", &[0]).unwrap_err();
        assert!(error.contains("its mode is 755"), "{error}");
    }
}
