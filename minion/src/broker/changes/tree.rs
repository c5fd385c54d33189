//! Makes and removes directories.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::Ordering;

use brine_sandbox::Owner;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::entry::Entry;
use super::failure::Failure;
use super::place::kind;
use super::put::{Ids, ids, raw, sync};
use super::{Done, Task};

/// Upper bound on the entries that are removed at once. A tree with more is removed by a program.
const MAX_REMOVED: u64 = 1_000_000;
/// Upper bound on nested directories. Each takes an open file.
const MAX_DEPTH: usize = 128;
/// The mode of a new directory, as with Salt's usual umask.
const NEW: u32 = 0o755;

impl Task {
    pub(super) fn make_directory(
        &self,
        path: &str,
        parents: bool,
        owner: &Owner,
        mode: Option<u32>,
    ) -> Result<Done, Failure> {
        let ids = ids(owner)?;
        let mut made = 0;
        let mut last = None;
        let ends = path.match_indices('/').map(|(at, _)| at).skip(1).chain([path.len()]);
        let ends: Vec<usize> = if parents { ends.collect() } else { vec![path.len()] };
        if ends.len() > MAX_DEPTH {
            return Err(Errno::NAMETOOLONG.into());
        }
        for end in ends {
            let part = &path[..end];
            let is_last = end == path.len();
            // Directories outside of the grants have to be there.
            if !is_last && brine_sandbox::innermost(&self.trees, part).is_none() {
                continue;
            }
            let found = self.find(part, true)?;
            match found.as_ref().map(Entry::at).transpose()?.flatten() {
                Some(entry) if entry.kind == "directory" => {
                    last = Some((Some(entry.clone()), entry));
                    continue;
                }
                Some(_) if is_last => return Err(Errno::EXIST.into()),
                Some(_) => return Err(Errno::NOTDIR.into()),
                None => {}
            }
            let entry = self.make_one(part, ids, mode.unwrap_or(NEW))?;
            made += 1;
            last = Some((None, entry));
        }
        let (before, after) = last.ok_or(Errno::INVAL)?;
        Ok(Done { before, after: Some(after), count: made, new_files: made, ..Done::default() })
    }

    /// Makes a directory that has its owner and mode when it gets its name in sight of others: others may not enter it
    /// before.
    fn make_one(&self, path: &str, owner: Ids, mode: u32) -> Result<Entry, Failure> {
        let place = self.find_to_change(path, false, true)?;
        rustix::fs::mkdirat(&place.dir, &place.name, Mode::RWXU)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let dir = rustix::fs::openat(&place.dir, &place.name, flags, Mode::empty())?;
        let (user, group) = raw(owner);
        rustix::fs::fchown(&dir, user, group)?;
        rustix::fs::fchmod(&dir, Mode::from_raw_mode(mode))?;
        sync(&place.dir);
        Ok(Entry::of(&rustix::fs::fstat(&dir)?))
    }

    pub(super) fn remove(&self, path: &str, recursive: bool) -> Result<Done, Failure> {
        let Some(place) = self.find(path, false)? else { return Ok(Done::default()) };
        let Some(stat) = place.stat()? else { return Ok(Done::default()) };
        let place = self.find_to_change(path, false, true)?;
        let before = Entry::at(&place)?;
        let mut count = 0;
        if kind(&stat) == FileType::Directory {
            if recursive {
                let dir = enter(&place.dir, &place.name)?;
                self.empty(&dir, Path::new(&place.real), 0, &mut count)?;
            }
            rustix::fs::unlinkat(&place.dir, &place.name, AtFlags::REMOVEDIR)?;
        } else {
            rustix::fs::unlinkat(&place.dir, &place.name, AtFlags::empty())?;
        }
        sync(&place.dir);
        Ok(Done { before, count: count + 1, ..Done::default() })
    }

    /// Removes what is in a directory. No link is followed, and no other file system is entered.
    fn empty(&self, dir: &OwnedFd, real: &Path, depth: usize, count: &mut u64) -> Result<(), Failure> {
        if depth >= MAX_DEPTH {
            return Err(Failure::Other(format!("more than {MAX_DEPTH} directories are within each other")));
        }
        self.host.guard.admit(dir, real)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        // Names that were read stay valid while others are removed: they are collected first, within the bound.
        let names = rustix::fs::Dir::new(rustix::fs::openat(dir, ".", flags, Mode::empty())?)?;
        for entry in names {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            if self.over.load(Ordering::Relaxed) {
                return Err(Failure::Other("the job has ended".to_owned()));
            }
            *count += 1;
            if *count > MAX_REMOVED {
                return Err(Failure::Other(format!("more than {MAX_REMOVED} files are not removed at once")));
            }
            match rustix::fs::unlinkat(dir, name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => continue,
                Err(Errno::ISDIR | Errno::PERM) => {}
                Err(error) => return Err(error.into()),
            }
            let below = enter(dir, name)?;
            self.empty(&below, real, depth + 1, count)?;
            match rustix::fs::unlinkat(dir, name, AtFlags::REMOVEDIR) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// Opens a directory in a directory, unless it is a link or another file system.
fn enter(dir: &OwnedFd, name: impl rustix::path::Arg) -> Result<OwnedFd, Failure> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_XDEV;
    rustix::fs::openat2(dir, name, flags, Mode::empty(), resolve).map_err(|error| match error {
        Errno::XDEV => Failure::Other("another file system is mounted in it".to_owned()),
        error => error.into(),
    })
}
