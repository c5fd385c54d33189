//! Writes files atomically and with an exact mode: a reader sees the old content or the new one, and other users can at
//! no moment read what is not theirs.

use std::fs::{File, Metadata, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
use std::path::Path;

/// Writes a file that need not survive a crash of the host.
///
/// # Errors
/// When the file cannot be made, written or renamed.
pub fn write_atomic(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    write(path, content, mode, None, false)
}

/// Writes a file and syncs its content before it gets its name: after a crash there is the old file or the new one.
///
/// # Errors
/// As [`write_atomic`].
pub fn write_synced(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    write(path, content, mode, None, true)
}

/// As [`write_synced`], and syncs the folder: for files that cannot be made again, such as keys.
///
/// # Errors
/// As [`write_atomic`].
pub fn write_durable(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    write(path, content, mode, None, true)?;
    File::open(folder(path))?.sync_all()
}

/// As [`write_durable`], for a file of somebody else: it keeps its mode and owner, and a symbolic link to it stays one. `mode` is that
/// of a file which is not there yet.
///
/// # Errors
/// As [`write_atomic`], and when the owner cannot be given back.
pub fn replace_durable(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let target = match path.canonicalize() {
        Ok(target) => target,
        Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
        Err(error) => return Err(error),
    };
    let before = match target.metadata() {
        Ok(before) => Some(before),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let mode = before.as_ref().map_or(mode, |before| before.mode() & 0o7777);
    write(&target, content, mode, before.as_ref(), true)?;
    File::open(folder(&target))?.sync_all()
}

fn write(path: &Path, content: &[u8], mode: u32, owner: Option<&Metadata>, sync: bool) -> io::Result<()> {
    // The leading dot keeps the unfinished file out of every listing of keys. The file is made with mode 0600 and gets
    // its final mode before its final name.
    let mut file = tempfile::Builder::new().prefix(".brine-").tempfile_in(folder(path))?;
    file.write_all(content)?;
    if let Some(owner) = owner {
        let made = file.as_file().metadata()?;
        if (made.uid(), made.gid()) != (owner.uid(), owner.gid()) {
            fchown(file.as_file(), Some(owner.uid()), Some(owner.gid()))?;
        }
    }
    // After the owner: a change of that takes setuid and setgid away.
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

    #[test]
    fn what_is_replaced_keeps_its_mode_its_owner_and_its_link() {
        let dir = tempfile::tempdir().unwrap();
        let (path, link) = (dir.path().join("conf"), dir.path().join("link"));
        std::os::unix::fs::symlink("conf", &link).unwrap();
        replace_durable(&path, b"new", 0o640).unwrap();
        assert_eq!(path.metadata().unwrap().mode() & 0o7777, 0o640);
        std::fs::set_permissions(&path, Permissions::from_mode(0o604)).unwrap();
        // Only root gives files away.
        let owner = (path.metadata().unwrap().uid() == 0).then_some(1234);
        std::os::unix::fs::chown(&path, owner, owner).unwrap();
        let before = path.metadata().unwrap();
        replace_durable(&link, b"newer", 0o600).unwrap();
        let after = path.metadata().unwrap();
        assert_eq!((after.mode(), after.uid(), after.gid()), (before.mode(), before.uid(), before.gid()));
        assert_ne!(after.ino(), before.ino(), "at no moment half of it");
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert_eq!(std::fs::read(&link).unwrap(), b"newer");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    }
}
