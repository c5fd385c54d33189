//! Files and folders with exact modes: other users can at no moment read what the master writes.

use std::fs::{DirBuilder, File, Metadata};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

pub(crate) use brine_daemon::folders::make_dir;
pub(crate) use brine_protocol::files::{write_atomic, write_durable};

/// Reads a regular file that the master owns, of at most `max` bytes, without following symlinks. Returns `None` if it
/// is missing.
pub(crate) fn read_regular(path: &Path, max: u64) -> io::Result<Option<(Vec<u8>, Metadata)>> {
    opened(brine_files::open_own(path), max)
}

/// Reads like [`read_regular`], but a file that another user may own because the master gave it away.
pub(crate) fn read_given_away(path: &Path, max: u64) -> io::Result<Option<(Vec<u8>, Metadata)>> {
    opened(brine_files::open_regular(path), max)
}

fn opened(file: io::Result<File>, max: u64) -> io::Result<Option<(Vec<u8>, Metadata)>> {
    let file = match file {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e),
    };
    let metadata = file.metadata()?;
    Ok(Some((brine_files::read(&file, max)?, metadata)))
}

/// Makes a folder and its missing parents with mode 0700.
pub(crate) fn make_private_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Makes an empty file of mode 0600 unless the file exists.
pub(crate) fn touch_private(path: &Path) -> io::Result<()> {
    brine_files::append_own(path, 0o600).map(drop)
}

/// Returns the folders in a folder, without following symlinks. The result is empty if the folder is missing.
pub(crate) fn subdirectories(path: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(path) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(e),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.push(entry.path());
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn modes_are_exact() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        write_durable(&path, b"x", 0o400).unwrap();
        write_atomic(&path, b"y", 0o400).unwrap();
        let (content, metadata) = read_regular(&path, 10).unwrap().unwrap();
        assert_eq!((content.as_slice(), metadata.permissions().mode() & 0o7777), (b"y".as_slice(), 0o400));
    }

    #[test]
    fn only_small_regular_files_are_read() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("big"), [0; 11]).unwrap();
        std::os::unix::fs::symlink("big", dir.path().join("link")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            dir.path().join("fifo"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .unwrap();
        assert!(read_regular(&dir.path().join("none"), 10).unwrap().is_none());
        for (name, why) in [("big", "11 bytes"), ("link", "symlink"), ("fifo", "regular")] {
            let error = read_regular(&dir.path().join(name), 10).unwrap_err().to_string();
            assert!(error.contains(why), "{name}: {error}");
        }
    }
}
