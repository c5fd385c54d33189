//! `_file_recv` (§6.6): a minion pushes a file into its own folder under the master's cache. Off unless `file_recv` is
//! set.
//!
//! The bytes and the number of all files of one minion are bounded. Existing files are counted once, and the sums are
//! then kept in memory.

use std::collections::HashMap;
use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use brine_protocol::ids::{MinionId, SafePath};
use brine_protocol::value::{Value, ValueExt};
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::FileOpts;

/// Shortest interval between counts. If there are too many files, they are counted again, because somebody may have
/// removed some.
const COUNT_AGAIN: Duration = Duration::from_secs(10);
/// Sums older than this are forgotten, so that minions that no longer push take no memory.
const REMEMBERED: Duration = Duration::from_secs(600);

#[derive(Debug)]
pub(super) struct PushedFiles {
    minions: PathBuf,
    on: bool,
    bytes_max: u64,
    /// Bounds on bytes and files of one minion; 0 is no bound.
    quota: (u64, u64),
    /// The sums of each minion, locked while a file of the minion is written.
    used: Mutex<HashMap<MinionId, Arc<Mutex<Used>>>>,
}

/// The sums of one minion's files.
#[derive(Debug, Default)]
struct Used {
    bytes: u64,
    /// Number of files and folders.
    count: u64,
    counted: Option<Instant>,
}

/// The effect of a chunk.
struct Change {
    /// The file's size before the chunk; `after` is the size after it.
    before: u64,
    after: u64,
    /// Number of new files and folders.
    new: u64,
}

impl PushedFiles {
    /// Makes a receiver of files below `minions`.
    pub(super) fn new(minions: PathBuf, opts: &FileOpts) -> Self {
        Self { minions, on: opts.recv, bytes_max: opts.recv_max, quota: opts.recv_quota, used: Mutex::default() }
    }

    /// Stores one chunk. The first one truncates the file, the others extend it.
    pub(super) fn store(&self, id: &MinionId, load: &Value) -> Result<(), String> {
        if !self.on {
            return Err("file_recv is off".to_owned());
        }
        let parts = load.get_list("path").ok_or("its path is not a list")?;
        let parts =
            parts.iter().map(ValueExt::text).collect::<Option<Vec<_>>>().ok_or("its path is not a list of texts")?;
        let path = SafePath::try_from(parts.join("/")).map_err(|e| e.to_string())?;
        let at = load.get_u64("loc").ok_or("its loc is not a position")?;
        let data = load.get_bytes("data").ok_or("it has no data")?;
        let end = at.checked_add(data.len() as u64).filter(|end| *end <= self.bytes_max);
        let end = end.ok_or_else(|| format!("it is larger than file_recv_max_size ({} MiB)", self.bytes_max >> 20))?;
        let root = self.minions.join(id.as_str()).join("files");
        let used = Arc::clone(self.used().entry(id.clone()).or_default());
        let mut used = used.lock().unwrap_or_else(PoisonError::into_inner);
        let said = |e: io::Error| e.to_string();
        let change = planned(&root, &path, at, end).map_err(said)?;
        self.check(&root, &mut used, &change)?;
        let written = write(&root, &path, at, data);
        used.count += change.new;
        used.bytes = used.bytes.saturating_sub(change.before) + change.after;
        written.map_err(said)
    }

    /// Forgets old sums.
    pub(super) fn upkeep(&self) {
        // An entry in use belongs to a request that is writing.
        let is_old = |used: &Arc<Mutex<Used>>| {
            used.try_lock().is_ok_and(|used| used.counted.is_none_or(|at| at.elapsed() >= REMEMBERED))
        };
        self.used().retain(|_, used| Arc::strong_count(used) > 1 || !is_old(used));
    }

    fn check(&self, root: &Path, used: &mut Used, change: &Change) -> Result<(), String> {
        let (bytes_max, count_max) = self.quota;
        let is_met = |max: u64, more: bool, sum: u64| max > 0 && more && sum > max;
        loop {
            let too_long = is_met(
                bytes_max,
                change.after > change.before,
                used.bytes.saturating_sub(change.before).saturating_add(change.after),
            );
            let too_many = is_met(count_max, change.new > 0, used.count.saturating_add(change.new));
            let is_fresh = used.counted.is_some_and(|at| at.elapsed() < COUNT_AGAIN);
            match (used.counted.is_none() || (too_long || too_many) && !is_fresh, too_long, too_many) {
                (true, ..) => {
                    used.count(root, self.quota).map_err(|e| format!("its files cannot be counted: {e}"))?;
                }
                (false, true, _) => {
                    return Err(format!(
                        "its files would have more than file_recv_quota ({} MiB): the minion's or the operator's to remove",
                        bytes_max >> 20
                    ));
                }
                (false, _, true) => {
                    return Err(format!("its files would be more than file_recv_quota_count ({count_max})"));
                }
                (false, false, false) => return Ok(()),
            }
        }
    }

    fn used(&self) -> std::sync::MutexGuard<'_, HashMap<MinionId, Arc<Mutex<Used>>>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Used {
    /// Counts the existing files. Stops as soon as there are too many.
    fn count(&mut self, root: &Path, (bytes_max, count_max): (u64, u64)) -> io::Result<()> {
        (self.bytes, self.count) = (0, 0);
        self.counted = Some(Instant::now());
        if bytes_max == 0 && count_max == 0 {
            return Ok(());
        }
        let mut folders = vec![root.to_owned()];
        while let Some(folder) = folders.pop() {
            let entries = match std::fs::read_dir(&folder) {
                Ok(entries) => entries,
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                Err(e) => return Err(e),
            };
            for entry in entries {
                let entry = entry?;
                // Does not follow symlinks. A file that has just been removed does not count.
                let Ok(metadata) = entry.metadata() else { continue };
                self.count += 1;
                if metadata.is_dir() {
                    folders.push(entry.path());
                } else {
                    self.bytes = self.bytes.saturating_add(metadata.len());
                }
                if count_max > 0 && self.count > count_max {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// Returns the effect of storing a chunk that ends at `end`, without a change.
fn planned(root: &Path, path: &SafePath, at: u64, end: u64) -> io::Result<Change> {
    let parts: Vec<&str> = path.as_str().split('/').collect();
    let mut here = match rustix::fs::open(root, OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
        Ok(here) => Some(here),
        Err(Errno::NOENT) => None,
        Err(e) => return Err(e.into()),
    };
    let mut found = 0;
    let mut before = 0;
    for (n, part) in parts.iter().enumerate() {
        let Some(dir) = &here else { break };
        let is_last = n + 1 == parts.len();
        let flags = if is_last { OFlags::PATH } else { OFlags::PATH | OFlags::DIRECTORY };
        match beneath(dir, part, flags) {
            Ok(next) => {
                found += 1;
                if is_last {
                    before = File::from(next).metadata()?.len();
                    break;
                }
                here = Some(next);
            }
            Err(Errno::NOENT) => here = None,
            Err(e) => return Err(e.into()),
        }
    }
    // A gap would become zeroes that the minion did not send.
    if before < at {
        return Err(io::Error::other("the chunk before it is missing"));
    }
    let after = if at == 0 { end } else { before.max(end) };
    Ok(Change { before, after, new: (parts.len() - found) as u64 })
}

fn write(root: &Path, path: &SafePath, at: u64, data: &[u8]) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(root)?;
    let mut dir = rustix::fs::open(root, OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let (folders, name) = path.as_str().rsplit_once('/').unwrap_or(("", path.as_str()));
    for folder in folders.split('/').filter(|folder| !folder.is_empty()) {
        match rustix::fs::mkdirat(&dir, folder, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(e) => return Err(e.into()),
        }
        dir = beneath(&dir, folder, OFlags::DIRECTORY | OFlags::PATH)?;
    }
    let mut flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NONBLOCK;
    if at == 0 {
        flags |= OFlags::TRUNC;
    }
    let file = File::from(beneath(&dir, name, flags)?);
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("there is something else with this name"));
    }
    if metadata.len() < at {
        return Err(io::Error::other("the chunk before it is missing"));
    }
    file.write_all_at(data, at)
}

/// Opens one path component, never through a symlink.
fn beneath(dir: &OwnedFd, name: &str, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let mode = if flags.contains(OFlags::CREATE) { Mode::RUSR | Mode::WUSR } else { Mode::empty() };
    rustix::fs::openat2(dir.as_fd(), name, flags | OFlags::CLOEXEC, mode, resolve)
}
