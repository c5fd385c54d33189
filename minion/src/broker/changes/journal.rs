//! The temporary files of changes, so that none is left when the minion is killed.
//!
//! A file is written under a temporary name beside its own. The journal has a small file for each, made before and
//! removed after it, and locked as long as its minion lives. The next start removes what an unlocked one names.

use std::fs::{DirBuilder, File};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, ResolveFlags};
use tracing::{info, warn};

use super::failure::Failure;

/// Upper bound on the bytes of an entry: a path.
const MAX_ENTRY: u64 = 8 << 10;
/// Bytes of the random part of a temporary name, in hex.
const TOKEN: usize = 32;

pub(super) struct Journal(PathBuf);

/// A temporary name, removed on drop unless the file got its own name.
pub(super) struct Temporary<'a> {
    pub(super) name: String,
    dir: &'a OwnedFd,
    entry: PathBuf,
    _lock: File,
    pub(super) kept: bool,
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.kept {
            let _ = rustix::fs::unlinkat(self.dir, &self.name, AtFlags::empty());
        }
        let _ = std::fs::remove_file(&self.entry);
    }
}

/// The temporary name of a token. It begins with a dot: programs that read all files of a directory pass such names over.
fn name(token: &str) -> String {
    format!(".brine-{token}.tmp")
}

impl Journal {
    pub(super) fn new(cachedir: &Path) -> Self {
        Self(super::folder(cachedir))
    }

    /// Notes a temporary name in this directory, whose path is `real`.
    pub(super) fn temporary<'a>(&self, dir: &'a OwnedFd, real: &str) -> Result<Temporary<'a>, Failure> {
        let token = hex::encode(rand::random::<[u8; TOKEN / 2]>());
        let entry = self.0.join(&token);
        let made = || -> std::io::Result<File> {
            let mut lock = brine_files::create_own(&entry, 0o600)?;
            rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
            lock.write_all(real.as_bytes())?;
            Ok(lock)
        };
        let lock = match made() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                DirBuilder::new().mode(0o700).recursive(true).create(&self.0)?;
                made()?
            }
            made => made?,
        };
        Ok(Temporary { name: name(&token), dir, entry, _lock: lock, kept: false })
    }

    /// Removes the temporary files of minions that were killed.
    pub(super) fn sweep(&self) {
        let Ok(entries) = std::fs::read_dir(&self.0) else { return };
        for entry in entries.filter_map(Result::ok) {
            let path = entry.path();
            let token = entry.file_name().into_string().unwrap_or_default();
            if token.len() != TOKEN || !token.bytes().all(|c| c.is_ascii_hexdigit()) {
                continue;
            }
            match swept(&path, &name(&token)) {
                Ok(true) => info!("removed what a change that was cut off left: {}", path.display()),
                Ok(false) => {}
                Err(error) => warn!("{}: what it names cannot be removed: {error}", path.display()),
            }
        }
    }
}

/// Removes the file that an entry names, unless its minion lives. Returns whether there was one.
fn swept(entry: &Path, name: &str) -> std::io::Result<bool> {
    let file = brine_files::open_own(entry)?;
    if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Ok(false);
    }
    let dir = String::from_utf8(brine_files::read(&file, MAX_ENTRY)?).unwrap_or_default();
    let removed = remove(&dir, name);
    std::fs::remove_file(entry)?;
    removed
}

fn remove(dir: &str, name: &str) -> std::io::Result<bool> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let Ok(dir) = rustix::fs::openat2(CWD, dir, flags, Mode::empty(), resolve) else { return Ok(false) };
    let Ok(stat) = rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW) else { return Ok(false) };
    // A link is the temporary form of a link.
    if !matches!(FileType::from_raw_mode(stat.st_mode), FileType::RegularFile | FileType::Symlink) {
        return Ok(false);
    }
    rustix::fs::unlinkat(&dir, name, AtFlags::empty())?;
    Ok(true)
}
