//! The folders of a daemon: made with owner and mode, given to the daemon's user, checked.
//!
//! Root changes the owner of files in folders that another user may write. It therefore works on open folders and never
//! follows a link: neither a symlink nor a hard link may give another user's file a new owner.

use std::fs::{DirBuilder, Permissions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use brine_protocol::exit;
use brine_protocol::trusted_path::{self, LastLink};
use rustix::fs::{AtFlags, Dir, FileType, Gid, Mode, OFlags, Uid};

use crate::ProcessError;
use crate::user::{self, Other};

/// Upper bound on nested folders; Salt's caches have fewer.
const DEPTH_MAX: usize = 32;

/// A folder of the daemon.
#[derive(Debug, Clone)]
pub struct Folder {
    /// The setting that names the folder.
    pub option: &'static str,
    /// The path.
    pub path: PathBuf,
    /// The mode of a new folder.
    pub mode: u32,
    /// Whether the folder holds secrets. A private folder that others may read is closed to them.
    pub private: bool,
}

impl Folder {
    /// A folder with this mode.
    pub fn new(option: &'static str, path: impl Into<PathBuf>, mode: u32) -> Self {
        Self { option, path: path.into(), mode, private: false }
    }

    /// A folder that only its owner may enter.
    pub fn private(option: &'static str, path: impl Into<PathBuf>) -> Self {
        Self { option, path: path.into(), mode: 0o700, private: true }
    }

    fn error(&self, program: &str, why: &dyn std::fmt::Display) -> ProcessError {
        let (path, option) = (self.path.display(), self.option);
        ProcessError::new(
            exit::GENERIC,
            format!(
                "cannot make or write the folder {path} ({option}): {why}. Start {program} as a user that may, or set {option}"
            ),
        )
    }

    /// Makes the folder if it is missing, and checks that this user or root owns it and that no other user may write in
    /// it.
    ///
    /// # Errors
    /// One line that says what to do, when a check fails.
    pub fn prepare(&self, program: &str) -> Result<(), ProcessError> {
        let me = rustix::process::geteuid().as_raw();
        let folder = trusted_path::folder(&self.path, self.mode, me).map_err(|e| self.error(program, &e))?;
        let meta = folder.metadata().map_err(|e| self.error(program, &e))?;
        let (mode, path, option) = (meta.mode() & 0o7777, self.path.display(), self.option);
        if meta.uid() != me && meta.uid() != 0 {
            let owner = user::name_of(meta.uid()).unwrap_or_else(|| meta.uid().to_string());
            let why = format!(
                "the folder {path} ({option}) belongs to {owner}, who could change what {program} keeps there: chown it to {}, or run as \
                 {owner} (user)",
                user::current()
            );
            return Err(ProcessError::new(exit::NO_PERMISSION, why));
        }
        if mode & 0o002 != 0 {
            let why = format!(
                "anybody may write in the folder {path} ({option}, mode {mode:04o}): mend that with chmod o-w {path}"
            );
            return Err(ProcessError::new(exit::NO_PERMISSION, why));
        }
        if self.private && mode & 0o077 != 0 {
            folder.set_permissions(Permissions::from_mode(0o700)).map_err(|e| self.error(program, &e))?;
            tracing::warn!("the folder {path} ({option}) had mode {mode:04o}; it holds keys, and has 0700 now");
        }
        // The error is reported now, with the folder's name, and not later with the first file that fails.
        let usable = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
        rustix::fs::access(&self.path, usable).map_err(|e| self.error(program, &io::Error::from(e)))
    }
}

/// Makes a folder with exactly `mode`, and its parents with the usual mode. An existing folder stays unchanged.
///
/// # Errors
/// Those of the file system.
pub fn make_dir(path: &Path, mode: u32) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o755).create(parent)?;
    }
    // The folder has its mode from the start, because it may hold secrets.
    match DirBuilder::new().mode(mode).create(path) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        made => made?,
    }
    std::fs::set_permissions(path, Permissions::from_mode(mode))
}

/// Gives folders and files to the user `to`, as root and before becoming that user: makes the folders and gives them
/// with all their content, and gives the single files, such as the log. Returns warnings about files that could not be
/// given; a daemon can run without a log file and a pid file.
///
/// # Errors
/// When a folder cannot be made or given.
pub fn give(program: &str, folders: &[Folder], files: &[&Path], to: &Other) -> Result<Vec<String>, ProcessError> {
    for folder in folders {
        let given = || -> io::Result<()> {
            let dir = OwnedFd::from(trusted_path::folder(&folder.path, folder.mode, to.uid())?);
            give_one(&dir, to)?;
            give_contents(&dir, to, 0)
        };
        given().map_err(|e| folder.error(program, &e))?;
    }
    let failed = |file: &&Path| {
        let error = give_file(file, to).err()?;
        Some(format!("{} cannot be given to the user of {program}: {error}", file.display()))
    };
    Ok(files.iter().filter_map(failed).collect())
}

fn open_dir<P: rustix::path::Arg>(at: impl AsFd, path: P, more: OFlags) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | more;
    Ok(rustix::fs::openat(at, path, flags, Mode::empty())?)
}

fn give_one(fd: &OwnedFd, to: &Other) -> io::Result<()> {
    if rustix::fs::fstat(fd)?.st_uid != to.uid() {
        rustix::fs::fchown(fd, Some(Uid::from_raw(to.uid())), Some(Gid::from_raw(to.gid())))?;
    }
    Ok(())
}

fn give_contents(dir: &OwnedFd, to: &Other, depth: usize) -> io::Result<()> {
    if depth > DEPTH_MAX {
        return Err(io::Error::other(format!("folders are more than {DEPTH_MAX} deep")));
    }
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        if name.to_bytes() == b"." || name.to_bytes() == b".." {
            continue;
        }
        let stat = match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(rustix::io::Errno::NOENT) => continue,
            stat => stat?,
        };
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            let below = open_dir(dir, name, OFlags::NOFOLLOW)?;
            give_one(&below, to)?;
            give_contents(&below, to, depth + 1)?;
        } else if stat.st_uid != to.uid() {
            if stat.st_nlink > 1 {
                return Err(io::Error::other(format!(
                    "{} has a second name elsewhere, so it is not given away",
                    name.to_string_lossy()
                )));
            }
            let (uid, gid) = (Some(Uid::from_raw(to.uid())), Some(Gid::from_raw(to.gid())));
            rustix::fs::chownat(dir, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?;
        }
    }
    Ok(())
}

/// Makes the file if it is missing, and gives it.
fn give_file(path: &Path, to: &Other) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE;
    let file = trusted_path::open_file(path, flags, 0o640, to.uid(), LastLink::Refused)?;
    let meta = file.metadata()?;
    if !meta.is_file() || meta.nlink() > 1 {
        return Err(io::Error::other("it is no regular file, or has a second name elsewhere"));
    }
    give_one(&file.into(), to)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().mode() & 0o7777
    }

    fn chmod(path: &Path, mode: u32) {
        std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn folders_are_made_and_verified() {
        let dir = tempfile::tempdir().unwrap();
        let pki = Folder::private("pki_dir", dir.path().join("a/pki"));
        let cache = Folder::new("cachedir", dir.path().join("b/cache"), 0o750);
        for folder in [&pki, &cache] {
            folder.prepare("salt-master").unwrap();
            assert_eq!(mode(&folder.path), folder.mode);
        }
        chmod(&pki.path, 0o755);
        pki.prepare("salt-master").unwrap();
        assert_eq!(mode(&pki.path), 0o700, "keys are nobody else's");
        chmod(&cache.path, 0o755);
        cache.prepare("salt-master").unwrap();
        assert_eq!(mode(&cache.path), 0o755, "what the owner opened stays open");
        chmod(&cache.path, 0o757);
        let error = cache.prepare("salt-master").unwrap_err();
        let mend = format!("chmod o-w {}", cache.path.display());
        assert!(error.to_string().contains(&mend) && error.exit_code() == 77, "{error}");
        let taken = dir.path().join("file");
        std::fs::write(&taken, "").unwrap();
        let error = Folder::new("sock_dir", taken.join("sock"), 0o755).prepare("salt-master").unwrap_err().to_string();
        assert!(error.contains("set sock_dir") && !error.contains('\n'), "{error}");
    }

    #[test]
    fn what_belongs_to_somebody_else_is_refused() {
        if !rustix::process::geteuid().is_root() {
            return; // only root can give a folder away
        }
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::new("cachedir", dir.path().join("cache"), 0o750);
        folder.prepare("salt-master").unwrap();
        std::os::unix::fs::chown(&folder.path, Some(4_711), None).unwrap();
        let error = folder.prepare("salt-master").unwrap_err().to_string();
        assert!(error.contains("belongs to 4711"), "{error}");
    }

    #[test]
    fn giving_stops_at_links() {
        let Some(nobody) = user::find_other("salt-master", "nobody", false).ok().flatten() else { return };
        let dir = tempfile::tempdir().unwrap();
        let cache = Folder::new("cachedir", dir.path().join("cache"), 0o750);
        std::fs::create_dir_all(cache.path.join("jobs/a")).unwrap();
        std::fs::write(cache.path.join("jobs/a/b"), "").unwrap();
        let (outside, secret) = (dir.path().join("outside"), dir.path().join("secret"));
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(&secret, "").unwrap();
        std::os::unix::fs::symlink(&outside, cache.path.join("jobs/link")).unwrap();
        std::os::unix::fs::symlink(&secret, cache.path.join("log")).unwrap();
        let owner = |path: &Path| std::fs::symlink_metadata(path).unwrap().uid();
        give("salt-master", std::slice::from_ref(&cache), &[&cache.path.join("log"), &cache.path.join("pid")], &nobody)
            .unwrap();
        for given in ["", "jobs", "jobs/a", "jobs/a/b", "pid"] {
            assert_eq!(owner(&cache.path.join(given)), nobody.uid(), "{given}");
        }
        assert_eq!((owner(&outside), owner(&secret)), (0, 0), "never through a symlink");
        std::fs::hard_link(&secret, cache.path.join("jobs/a/hard")).unwrap();
        let error = give("salt-master", &[cache], &[], &nobody).unwrap_err().to_string();
        assert!(error.contains("second name"), "{error}");
        assert_eq!(owner(&secret), 0);
    }
}
