//! Makes and replaces files: under a temporary name in the same directory, with its owner and mode, synced, and only then
//! under its own name. A reader never sees a part, and a minion that is killed leaves the old file or the new one.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use aws_lc_rs::digest::{Context, SHA256};
use brine_sandbox::{Access, Content, Owner};
use nix::unistd::{Group, User};
use rustix::fs::{FileType, Gid, Mode, OFlags, Stat, Uid, XattrFlags};
use rustix::io::Errno;

use super::content;
use super::entry::{Entry, unsigned};
use super::failure::Failure;
use super::place::{Place, kind};
use super::{Done, Task};

/// Set-user-id and set-group-id.
pub(super) const SET_ID: u32 = 0o6000;
/// The mode of a new file, as with Salt's usual umask.
const NEW: u32 = 0o644;
/// Upper bound on the bytes of a label of SELinux.
const MAX_LABEL: usize = 4 << 10;

/// How a file is put.
pub(super) struct How<'a> {
    pub(super) owner: &'a Owner,
    pub(super) mode: Option<u32>,
    pub(super) backup: bool,
    pub(super) expect: Option<&'a str>,
}

/// Owner and group as numbers; none to leave them.
pub(super) type Ids = (Option<u32>, Option<u32>);

/// Looks up the owner by name, or by number.
pub(super) fn ids(owner: &Owner) -> Result<Ids, Failure> {
    let failed =
        |what: &str, error: nix::Error| Failure::Other(format!("{what} cannot be looked up: {}", error.desc()));
    let missing = |what: String| Failure::Other(format!("{what} is not on this host"));
    let uid = match owner.user.as_deref() {
        None => None,
        Some(name) => {
            let what = format!("the user {name}");
            let found = User::from_name(name).map_err(|error| failed(&what, error))?;
            let number = || name.parse::<u32>().ok().filter(|uid| *uid != u32::MAX);
            Some(found.map(|user| user.uid.as_raw()).or_else(number).ok_or_else(|| missing(what))?)
        }
    };
    let gid = match owner.group.as_deref() {
        None => None,
        Some(name) => {
            let what = format!("the group {name}");
            let found = Group::from_name(name).map_err(|error| failed(&what, error))?;
            let number = || name.parse::<u32>().ok().filter(|gid| *gid != u32::MAX);
            Some(found.map(|group| group.gid.as_raw()).or_else(number).ok_or_else(|| missing(what))?)
        }
    };
    Ok((uid, gid))
}

pub(super) fn raw((uid, gid): Ids) -> (Option<Uid>, Option<Gid>) {
    (uid.map(Uid::from_raw), gid.map(Gid::from_raw))
}

impl Task {
    pub(super) fn put(&self, path: &str, content: &Content, follow: bool, how: &How<'_>) -> Result<Done, Failure> {
        let place = self.find_to_change(path, follow, true)?;
        let source = self.source(path, content)?;
        let (uid, gid) = ids(how.owner)?;
        let stat = self.replaceable(&place, how.expect)?;
        let mut before = Entry::at(&place)?;
        let old = stat.as_ref().filter(|stat| kind(stat) == FileType::RegularFile);
        if let (Some(before), Some(_)) = (&mut before, old)
            && before.size <= content::MAX_CONTENT
        {
            before.sha256 = Some(content::hash(&content::open(&place)?, &self.over)?);
        }
        let owner = (uid.or(old.map(|old| old.st_uid)), gid.or(old.map(|old| old.st_gid)));
        let mut mode = how.mode.or(old.map(|old| old.st_mode & 0o7777)).unwrap_or(NEW);
        if place.access < Access::ChangeSetId {
            // As when a file is written to.
            mode &= !SET_ID;
        }
        // What was staged was counted when it was.
        let new_bytes = if matches!(content, Content::Staged(_)) { 0 } else { source.size()? };
        let copied = old.filter(|_| how.backup).map_or(0, |old| unsigned(old.st_size));
        if new_bytes.saturating_add(copied) > self.most {
            return Err(Failure::Other(format!(
                "{} bytes would be written, and this call may write {} at most (sandbox:limits:written)",
                new_bytes.saturating_add(copied),
                self.most
            )));
        }
        let backup = match (how.backup, old) {
            (true, Some(_)) => Some(Unused(self.host.backups.keep(&place, &self.over)?)),
            _ => None,
        };
        let real = place.real.rsplit_once('/').map_or("/", |(dir, _)| if dir.is_empty() { "/" } else { dir });
        let mut temporary = self.host.journal.temporary(&place.dir, real)?;
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&place.dir, &temporary.name, flags, Mode::RUSR | Mode::WUSR)?;
        let file = File::from(file);
        let (written, sha256) = source.write(&file, self)?;
        if let Content::Master { sha256: Some(expect), path, .. } = content
            && *expect != sha256
        {
            return Err(Failure::Other(format!(
                "salt://{path} has the SHA-256 {sha256}, and {expect} was expected; it may have changed meanwhile"
            )));
        }
        let (user, group) = raw(owner);
        rustix::fs::fchown(&file, user, group)?;
        // After the owner, whose change takes set-user-id away.
        rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?;
        if old.is_some() {
            copy_label(&place, &file);
        }
        rustix::fs::fsync(&file)?;
        // What was judged may have been exchanged while the content was written.
        let now = self.replaceable(&place, how.expect)?;
        if now.as_ref().map(|now| (now.st_dev, now.st_ino)) != stat.as_ref().map(|stat| (stat.st_dev, stat.st_ino)) {
            return Err(Failure::Other("it was exchanged while it was written".to_owned()));
        }
        self.admit_change(&place, true)?;
        rustix::fs::renameat(&place.dir, &temporary.name, &place.dir, &place.name)?;
        temporary.kept = true;
        let backup = backup.map(Unused::used);
        sync(&place.dir);
        let mut after = Entry::of(&rustix::fs::fstat(&file)?);
        after.sha256 = Some(sha256);
        let new = u64::from(before.is_none()) + u64::from(backup.is_some());
        // What was staged was counted when it was.
        let content = if matches!(content, Content::Staged(_)) { 0 } else { written };
        let copy = if backup.is_some() { before.as_ref().map_or(0, |before| before.size) } else { 0 };
        let written = content.saturating_add(copy);
        Ok(Done { count: 1, new_files: new, written, before, after: Some(after), backup })
    }

    /// Checks that a file may take the place of what is there.
    fn replaceable(&self, place: &Place, expect: Option<&str>) -> Result<Option<Stat>, Failure> {
        let stat = place.stat()?;
        match stat.as_ref().map(kind) {
            None | Some(FileType::RegularFile | FileType::Symlink) => {}
            Some(FileType::Directory) => return Err(Errno::ISDIR.into()),
            Some(_) => return Err(Failure::Other("it is a device, a pipe or a socket, and stays one".to_owned())),
        }
        let now = match (expect, &stat) {
            (None, _) => return Ok(stat),
            (Some(_), Some(stat)) if kind(stat) == FileType::RegularFile => {
                content::hash(&content::open(place)?, &self.over)?
            }
            (Some(_), Some(_)) => "a link".to_owned(),
            (Some(_), None) => String::new(),
        };
        if expect == Some(now.as_str()) {
            return Ok(stat);
        }
        Err(Failure::Other("it has changed since it was read".to_owned()))
    }

    fn source<'a>(&self, path: &str, content: &'a Content) -> Result<Source<'a>, Failure> {
        Ok(match content {
            Content::Bytes(bytes) => Source::Bytes(bytes),
            Content::Staged(number) => Source::File(self.host.stages.used(&self.job, *number).map_err(Failure::Other)?),
            Content::Master { .. } => Source::File(self.fetched.clone().ok_or(Errno::NOENT)?),
            Content::File(from) => {
                let place = self.find_content(from, true)?.ok_or(Errno::NOENT)?;
                let opened = content::open(&place);
                Source::File(Arc::new(opened.map_err(|failure| of_source(failure, from))?))
            }
            Content::Backup(name) => Source::File(Arc::new(self.host.backups.open(path, name)?)),
        })
    }
}

/// A backup whose file is not replaced yet. It goes if that fails: nothing would count it.
struct Unused(String);

impl Unused {
    fn used(mut self) -> String {
        std::mem::take(&mut self.0)
    }
}

impl Drop for Unused {
    fn drop(&mut self) {
        if !self.0.is_empty() {
            let _ = std::fs::remove_file(&self.0);
        }
    }
}

/// An error about the file that is copied, and not about its copy.
fn of_source(failure: Failure, from: &str) -> Failure {
    match failure {
        Failure::System(error) => Failure::Other(format!("{from} cannot be read: {}", std::io::Error::from(error))),
        other => other,
    }
}

enum Source<'a> {
    Bytes(&'a [u8]),
    File(Arc<File>),
}

impl Source<'_> {
    fn size(&self) -> Result<u64, Failure> {
        Ok(match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File(file) => file.metadata()?.len(),
        })
    }

    /// Returns the number of bytes and their SHA-256.
    fn write(&self, mut to: &File, task: &Task) -> Result<(u64, String), Failure> {
        let mut hash = Context::new(&SHA256);
        let bytes = match self {
            Self::Bytes(bytes) => {
                to.write_all(bytes)?;
                hash.update(bytes);
                bytes.len() as u64
            }
            Self::File(from) => content::each(from, &task.over, |bytes| {
                to.write_all(bytes)?;
                hash.update(bytes);
                Ok(())
            })?,
        };
        Ok((bytes, hex::encode(hash.finish())))
    }
}

/// Gives a file the label of SELinux that the file before it has. Most hosts have none.
fn copy_label(place: &Place, file: &File) {
    const LABEL: &str = "security.selinux";
    if let Ok(old) = content::open(place) {
        let mut label = [0; MAX_LABEL];
        if let Ok(length) = rustix::fs::fgetxattr(&old, LABEL, &mut label) {
            let _ = rustix::fs::fsetxattr(file, LABEL, &label[..length], XattrFlags::empty());
        }
    }
}

/// Syncs a directory, so that a new name survives a loss of power. Some file systems cannot, and the change is made.
pub(super) fn sync(dir: &OwnedFd) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    if let Ok(dir) = rustix::fs::openat(dir, ".", flags, Mode::empty()) {
        let _ = rustix::fs::fsync(dir);
    }
}
