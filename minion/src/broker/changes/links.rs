//! Links, names, owners, modes and times.

use std::path::Path;

use brine_sandbox::{Access, Owner};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, Timespec, Timestamps};
use rustix::io::Errno;

use super::entry::Entry;
use super::failure::Failure;
use super::place::{Place, kind};
use super::put::{Ids, SET_ID, ids, raw, sync};
use super::{Done, Task};

const SET_GID: u32 = 0o2000;
const STICKY: u32 = 0o1000;
const WRITABLE_BY_OTHERS: u32 = 0o022;
const WRITABLE_BY_GROUP: u32 = 0o020;
/// The mode of a file that `touch` makes.
const NEW: u32 = 0o644;

impl Task {
    pub(super) fn symlink(&self, path: &str, target: &str, owner: &Owner, replace: bool) -> Result<Done, Failure> {
        let place = self.find_to_change(path, false, true)?;
        let (user, group) = raw(ids(owner)?);
        let before = Entry::at(&place)?;
        match &before {
            Some(entry) if entry.kind == "directory" => return Err(Errno::EXIST.into()),
            Some(_) if !replace => return Err(Errno::EXIST.into()),
            _ => {}
        }
        let real = Path::new(&place.real).parent().map_or("/".into(), Path::to_string_lossy);
        let mut temporary = self.host.journal.temporary(&place.dir, &real)?;
        rustix::fs::symlinkat(target, &place.dir, &temporary.name)?;
        rustix::fs::chownat(&place.dir, &temporary.name, user, group, AtFlags::SYMLINK_NOFOLLOW)?;
        let flags = if replace { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
        match rustix::fs::renameat_with(&place.dir, &temporary.name, &place.dir, &place.name, flags) {
            // A file system without this flag; that nothing was there was seen above.
            Err(Errno::INVAL) => rustix::fs::renameat(&place.dir, &temporary.name, &place.dir, &place.name)?,
            done => done?,
        }
        temporary.kept = true;
        sync(&place.dir);
        let new_files = u64::from(before.is_none());
        Ok(Done { after: Entry::at(&place)?, before, count: 1, new_files, ..Done::default() })
    }

    pub(super) fn hard_link(&self, path: &str, target: &str) -> Result<Done, Failure> {
        let from = self.find_to_change(target, false, false)?;
        let place = self.find_to_change(path, false, true)?;
        let stat = from.stat()?.ok_or(Errno::NOENT)?;
        if kind(&stat) != FileType::RegularFile {
            return Err(Failure::Other("only a file gets another name".to_owned()));
        }
        rustix::fs::linkat(&from.dir, &from.name, &place.dir, &place.name, AtFlags::empty())?;
        sync(&place.dir);
        Ok(Done { after: Entry::at(&place)?, count: 1, new_files: 1, ..Done::default() })
    }

    pub(super) fn rename(&self, path: &str, to: &str) -> Result<Done, Failure> {
        let from = self.find_to_change(path, false, true)?;
        let place = self.find_to_change(to, false, true)?;
        let before = Entry::at(&from)?;
        if before.is_none() {
            return Err(Errno::NOENT.into());
        }
        rustix::fs::renameat(&from.dir, &from.name, &place.dir, &place.name)?;
        sync(&from.dir);
        sync(&place.dir);
        Ok(Done { before, after: Entry::at(&place)?, count: 1, ..Done::default() })
    }

    pub(super) fn set_permissions(
        &self,
        path: &str,
        owner: &Owner,
        mode: Option<u32>,
        follow: bool,
    ) -> Result<Done, Failure> {
        let place = self.find_to_change(path, follow, false)?;
        let before = Entry::at(&place)?.ok_or(Errno::NOENT)?;
        let ids = ids(owner)?;
        self.admit_permissions(&place, &before, ids, mode)?;
        let (user, group) = raw(ids);
        if before.kind == "symlink" {
            if mode.is_some() {
                return Err(Failure::Other("a symbolic link has no mode of its own".to_owned()));
            }
            rustix::fs::chownat(&place.dir, &place.name, user, group, AtFlags::SYMLINK_NOFOLLOW)?;
            let after = Entry::at(&place)?;
            return Ok(Done { before: Some(before), after, count: 1, ..Done::default() });
        }
        // What was judged is what changes: it is held by a descriptor, and no link is followed.
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let held = rustix::fs::openat(&place.dir, &place.name, flags, Mode::empty())?;
        let stat = rustix::fs::fstat(&held)?;
        if stat.st_ino != before.inode || kind(&stat) == FileType::Symlink {
            return Err(Failure::Other("it was exchanged while it was looked at".to_owned()));
        }
        if ids != (None, None) {
            rustix::fs::chownat(&held, "", user, group, AtFlags::EMPTY_PATH)?;
        }
        // A change of the owner takes set-user-id away; one that may stay is given again.
        let keeps = before.mode & SET_ID != 0 && place.access >= Access::ChangeSetId && ids != (None, None);
        if let Some(mode) = mode.or_else(|| keeps.then_some(before.mode)) {
            // The kernel has no fchmod for such a descriptor before 6.6; its entry in /proc is one to the same file.
            let way = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&held));
            rustix::fs::chmod(way, Mode::from_raw_mode(mode))?;
        }
        let after = Entry::of(&rustix::fs::fstat(&held)?);
        Ok(Done { before: Some(before), after: Some(after), count: 1, ..Done::default() })
    }

    /// Checks that no file begins to run as its owner, and that nobody else gets the minion's folders.
    fn admit_permissions(
        &self,
        place: &Place,
        before: &Entry,
        (uid, gid): Ids,
        mode: Option<u32>,
    ) -> Result<(), Failure> {
        let is_directory = before.kind == "directory";
        if mode.is_some_and(|mode| mode & SET_GID != 0) && !is_directory && place.access < Access::ChangeSetId {
            return Err(Failure::Denied(format!(
                "{} is no directory, so set-group-id needs the grant rw+setid of its directory",
                place.real
            )));
        }
        let own = rustix::process::geteuid().as_raw();
        let opens = mode.is_some_and(|mode| mode & WRITABLE_BY_OTHERS != 0 && mode & STICKY == 0);
        let group_writes = mode.unwrap_or(before.mode) & WRITABLE_BY_GROUP != 0;
        let gives = uid.is_some_and(|uid| uid != 0 && uid != own)
            || gid.is_some_and(|gid| group_writes && gid != 0 && gid != before.gid);
        if is_directory && (opens || gives) && self.host.guard.is_around(Path::new(&place.real)) {
            return Err(Failure::Denied(format!(
                "{} has folders of this minion in it, so nobody else may own it or write in it",
                place.real
            )));
        }
        Ok(())
    }

    pub(super) fn touch(&self, path: &str, atime: Option<i64>, mtime: Option<i64>) -> Result<Done, Failure> {
        let place = self.find_to_change(path, true, false)?;
        let before = Entry::at(&place)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match &before {
            Some(entry) if matches!(entry.kind, "regular" | "directory") => {
                let file = rustix::fs::openat(&place.dir, &place.name, flags, Mode::empty())?;
                if rustix::fs::fstat(&file)?.st_ino != entry.inode {
                    return Err(Failure::Other("it was exchanged while it was looked at".to_owned()));
                }
                file
            }
            Some(_) => return Err(Failure::Other("it is neither a file nor a directory".to_owned())),
            None => {
                self.admit_change(&place, true)?;
                let new = flags | OFlags::CREATE | OFlags::EXCL;
                let file = rustix::fs::openat(&place.dir, &place.name, new, Mode::RUSR | Mode::WUSR)?;
                rustix::fs::fchmod(&file, Mode::from_raw_mode(NEW))?;
                sync(&place.dir);
                file
            }
        };
        let time = |seconds: Option<i64>| match seconds {
            Some(seconds) => Timespec { tv_sec: seconds, tv_nsec: 0 },
            None => Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW },
        };
        rustix::fs::futimens(&file, &Timestamps { last_access: time(atime), last_modification: time(mtime) })?;
        let after = Some(Entry::of(&rustix::fs::fstat(&file)?));
        let new_files = u64::from(before.is_none());
        Ok(Done { before, after, count: 1, new_files, ..Done::default() })
    }
}
