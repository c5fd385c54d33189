//! Writes files atomically and with an exact mode: a reader sees the old content or the new one, and other users can at
//! no moment read what is not theirs.

use std::fs::{File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Writes a file that need not survive a crash of the host.
///
/// # Errors
/// When the file cannot be made, written or renamed.
pub fn write_atomic(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    write(path, content, mode, false)
}

/// Writes a file and syncs its content before it gets its name: after a crash there is the old file or the new one.
///
/// # Errors
/// As [`write_atomic`].
pub fn write_synced(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    write(path, content, mode, true)
}

/// As [`write_synced`], and syncs the folder: for files that cannot be made again, such as keys.
///
/// # Errors
/// As [`write_atomic`].
pub fn write_durable(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    write(path, content, mode, true)?;
    File::open(folder(path))?.sync_all()
}

fn write(path: &Path, content: &[u8], mode: u32, sync: bool) -> io::Result<()> {
    // The leading dot keeps the unfinished file out of every listing of keys. The file is made with mode 0600 and gets
    // its final mode before its final name.
    let mut file = tempfile::Builder::new().prefix(".brine-").tempfile_in(folder(path))?;
    file.write_all(content)?;
    file.as_file().set_permissions(Permissions::from_mode(mode))?;
    if sync {
        file.as_file().sync_all()?;
    }
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_exact() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        for (write, mode) in [
            (write_durable as fn(&Path, &[u8], u32) -> io::Result<()>, 0o400),
            (write_synced, 0o644),
            (write_atomic, 0o666),
        ] {
            write(&path, b"x", mode).unwrap();
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o7777, mode);
            assert_eq!(std::fs::read(&path).unwrap(), b"x");
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing unfinished is left");
    }
}
