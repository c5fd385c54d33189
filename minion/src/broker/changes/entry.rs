//! What is at a place.

use brine_protocol::value::{Value, map};
use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::Task;
use super::content;
use super::failure::Failure;
use super::place::{Place, kind};

/// Upper bound on the names in one answer: their message stays below a megabyte.
const MAX_NAMES: usize = 2_000;
/// Upper bound on the names of a directory. One with more cannot be sorted within a job's memory.
const MAX_ENTRIES: usize = 200_000;

/// What is at a path.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) kind: &'static str,
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) user: Option<String>,
    pub(super) group: Option<String>,
    pub(super) size: u64,
    pub(super) inode: u64,
    pub(super) nlink: u64,
    /// `atime`, `mtime` and `ctime`, in seconds since 1970.
    pub(super) times: [f64; 3],
    pub(super) target: Option<String>,
    pub(super) sha256: Option<String>,
}

impl Entry {
    pub(super) fn of(stat: &Stat) -> Self {
        Self {
            kind: kind_name(kind(stat)),
            mode: stat.st_mode & 0o7777,
            uid: stat.st_uid,
            gid: stat.st_gid,
            user: None,
            group: None,
            size: unsigned(stat.st_size),
            inode: stat.st_ino,
            nlink: unsigned(stat.st_nlink),
            times: [
                seconds(stat.st_atime, unsigned(stat.st_atime_nsec)),
                seconds(stat.st_mtime, unsigned(stat.st_mtime_nsec)),
                seconds(stat.st_ctime, unsigned(stat.st_ctime_nsec)),
            ],
            target: None,
            sha256: None,
        }
    }

    /// Looks at a place; none if nothing is there.
    pub(super) fn at(place: &Place) -> Result<Option<Self>, Failure> {
        let Some(stat) = place.stat()? else { return Ok(None) };
        let mut entry = Self::of(&stat);
        if kind(&stat) == FileType::Symlink {
            let target = rustix::fs::readlinkat(&place.dir, place.name.as_str(), Vec::new())?;
            entry.target = Some(String::from_utf8_lossy(target.as_bytes()).into_owned());
        }
        Ok(Some(entry))
    }

    pub(super) fn value(self) -> Value {
        let optional = |text: Option<String>| text.map_or(Value::Nil, Value::from);
        let [atime, mtime, ctime] = self.times;
        map([
            ("kind", Value::from(self.kind)),
            ("mode", Value::from(self.mode)),
            ("uid", Value::from(self.uid)),
            ("gid", Value::from(self.gid)),
            ("user", optional(self.user)),
            ("group", optional(self.group)),
            ("size", Value::from(self.size)),
            ("inode", Value::from(self.inode)),
            ("nlink", Value::from(self.nlink)),
            ("atime", Value::F64(atime)),
            ("mtime", Value::F64(mtime)),
            ("ctime", Value::F64(ctime)),
            ("target", optional(self.target)),
            ("sha256", optional(self.sha256)),
        ])
    }
}

fn kind_name(kind: FileType) -> &'static str {
    match kind {
        FileType::RegularFile => "regular",
        FileType::Directory => "directory",
        FileType::Symlink => "symlink",
        FileType::BlockDevice => "block",
        FileType::CharacterDevice => "character",
        FileType::Fifo => "fifo",
        FileType::Socket => "socket",
        FileType::Unknown => "unknown",
    }
}

/// Converts a field of `stat`, whose integer type depends on the architecture.
pub(super) fn unsigned<T: TryInto<u64>>(value: T) -> u64 {
    value.try_into().unwrap_or(0)
}

#[expect(clippy::cast_precision_loss, reason = "what Python's os.stat does")]
fn seconds(seconds: i64, nanoseconds: u64) -> f64 {
    seconds as f64 + nanoseconds as f64 / 1e9
}

impl Task {
    pub(super) fn look(&self, path: &str, follow: bool, hash: bool) -> Result<Option<Entry>, Failure> {
        let Some(place) = self.find(path, follow)? else { return Ok(None) };
        let mut entry = Entry::at(&place)?;
        if let Some(entry) = entry.as_mut().filter(|entry| hash && entry.kind == "regular") {
            let place = self.find_content(path, follow)?.ok_or(Errno::NOENT)?;
            entry.sha256 = Some(content::hash(&content::open(&place)?, &self.over)?);
        }
        Ok(entry)
    }

    /// Lists a directory: a sorted part of its names.
    pub(super) fn list(&self, path: &str, after: Option<&str>) -> Result<Value, Failure> {
        let place = self.find_content(path, true)?.ok_or(Errno::NOENT)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let dir = rustix::fs::openat(&place.dir, place.name.as_str(), flags, Mode::empty())?;
        self.host.guard.admit(&dir, std::path::Path::new(&place.real))?;
        let mut names: Vec<(String, FileType)> = Vec::new();
        for entry in rustix::fs::Dir::new(dir)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            if matches!(name, "." | "..") || after.is_some_and(|after| name <= after) {
                continue;
            }
            if names.len() >= MAX_ENTRIES {
                return Err(Failure::Other(format!("more than {MAX_ENTRIES} names are in a directory")));
            }
            names.push((name.to_owned(), entry.file_type()));
        }
        names.sort_by(|a, b| a.0.cmp(&b.0));
        names.truncate(MAX_NAMES);
        let names = names
            .into_iter()
            .map(|(name, kind)| map([("name", Value::from(name)), ("kind", Value::from(kind_name(kind)))]));
        Ok(Value::Array(names.collect()))
    }

    pub(super) fn read(&self, path: &str, offset: u64, length: u32) -> Result<Option<Vec<u8>>, Failure> {
        let Some(place) = self.find_content(path, true)? else { return Ok(None) };
        if place.stat()?.is_none() {
            return Ok(None);
        }
        content::part(&content::open(&place)?, offset, length).map(Some)
    }
}
