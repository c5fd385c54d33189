//! What the file system tells of a folder of keys, and whether it has changed since.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use brine_protocol::ids::MinionId;

/// A file changed this recently may change again within the clock's grain without looking different, so it is not cached yet.
pub(super) const SETTLED: Duration = Duration::from_millis(50);

/// What `lstat` says about a file that did not change.
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

/// Whether a change could hide behind the same stamp, because the clock has not moved on since the last one.
pub(super) fn settled(m: &std::fs::Metadata) -> bool {
    SystemTime::now().duration_since(changed(m)).is_ok_and(|age| age > SETTLED)
}

/// The inode's own time: a rename sets it, and nobody can set it back.
pub(super) fn changed(m: &std::fs::Metadata) -> SystemTime {
    let nanos = Duration::from_nanos(u64::try_from(m.ctime_nsec()).unwrap_or(0));
    SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(m.ctime()).unwrap_or(0)) + nanos
}

/// The ids in a folder, in no order.
pub(super) fn listed(dir: &Path) -> io::Result<Vec<MinionId>> {
    let mut ids = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        // Salt's own files (.key_cache) and ours on their way start with a dot; symlinks are not read, so not listed.
        if let Some(name) = entry.file_name().to_str()
            && !name.starts_with('.')
            && entry.file_type()?.is_file()
            && let Ok(id) = MinionId::try_from(name)
        {
            ids.push(id);
        }
    }
    Ok(ids)
}
