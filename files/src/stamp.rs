//! Whether a file is the one that it was.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

/// A file as it was at one time, equal as long as nobody changes it: the kernel sets the time of change by its clock, and no call chooses it.
///
/// Clocks of file systems go in ticks, so two changes within one may leave equal stamps: see [`Stamp::has_settled`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    /// Seconds and nanoseconds since 1970.
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    /// Takes it of a file, a folder or, by `lstat`, a link.
    #[must_use]
    pub fn of(file: &Metadata) -> Self {
        Self {
            device: file.dev(),
            inode: file.ino(),
            size: file.size(),
            modified: (file.mtime(), file.mtime_nsec()),
            changed: (file.ctime(), file.ctime_nsec()),
        }
    }

    /// The file's size in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The time of the last change, of content, name or rights. None for one before 1970.
    #[must_use]
    pub fn changed(&self) -> Option<SystemTime> {
        let (seconds, nanoseconds) = self.changed;
        let (seconds, nanoseconds) = (u64::try_from(seconds).ok()?, u32::try_from(nanoseconds).ok()?);
        SystemTime::UNIX_EPOCH.checked_add(Duration::new(seconds, nanoseconds))
    }

    /// Whether the last change is so long ago, more than `tick`, that a change from now on gives the file another stamp.
    #[must_use]
    pub fn has_settled(&self, tick: Duration, now: SystemTime) -> bool {
        self.changed().and_then(|changed| now.duration_since(changed).ok()).is_some_and(|age| age > tick)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_secs(2);

    #[test]
    fn a_file_that_has_just_changed_has_no_stamp_to_rely_on() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let stamp = Stamp::of(&file.as_file().metadata().unwrap());
        let now = SystemTime::now();
        assert!(!stamp.has_settled(TICK, now) && stamp.has_settled(TICK, now + 2 * TICK));
        assert!(!stamp.has_settled(TICK, now - Duration::from_secs(60)), "a clock that was set back");
        for odd in [(-1, 0), (i64::MAX, 0), (0, -1)] {
            assert!(!Stamp { changed: odd, ..stamp }.has_settled(TICK, now), "{odd:?}");
        }
    }

    #[test]
    fn a_program_cannot_set_a_stamp_back() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let stamp = Stamp::of(&file.as_file().metadata().unwrap());
        std::thread::sleep(Duration::from_millis(20));
        // The size and the time of before, which a program can set.
        let modified = SystemTime::UNIX_EPOCH
            + Duration::new(stamp.modified.0.cast_unsigned(), u32::try_from(stamp.modified.1).unwrap());
        file.as_file().set_modified(modified).unwrap();
        let after = Stamp::of(&file.as_file().metadata().unwrap());
        assert_eq!((after.modified, after.size), (stamp.modified, stamp.size));
        assert_ne!(after, stamp);
    }
}
