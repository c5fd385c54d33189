//! Detects changes of key folders and files by their metadata.

use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};

/// A file that changed more recently than this may change again without new timestamps, so it is not cached yet.
pub(super) const SETTLED: Duration = Duration::from_millis(50);

/// The `lstat` data of a file, equal as long as the file does not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    dev: u64,
    ino: u64,
    size: u64,
    mtime: (i64, i64),
    ctime: (i64, i64),
}

impl Stamp {
    pub(super) fn of(m: &std::fs::Metadata) -> Self {
        Self {
            dev: m.dev(),
            ino: m.ino(),
            size: m.size(),
            mtime: (m.mtime(), m.mtime_nsec()),
            ctime: (m.ctime(), m.ctime_nsec()),
        }
    }
}

/// Returns whether the last change is old enough that a further change would get another stamp.
pub(super) fn settled(m: &std::fs::Metadata) -> bool {
    SystemTime::now().duration_since(changed(m)).is_ok_and(|age| age > SETTLED)
}

/// Returns the inode's change time: a rename sets it, and no program can set it back.
pub(super) fn changed(m: &std::fs::Metadata) -> SystemTime {
    let nanos = Duration::from_nanos(u64::try_from(m.ctime_nsec()).unwrap_or(0));
    SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(m.ctime()).unwrap_or(0)) + nanos
}
