//! `cachedir/returners/`: returns that wait for a returner, one file each: a map of `name`, `master`, `user` and `load` in
//! MessagePack. The minion alone chooses the names of the files.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use brine_protocol::ids::Jid;
use brine_protocol::msgpack;
use brine_protocol::value::{Value, ValueExt, map};
use tracing::warn;

use super::Item;

/// Upper bounds on what waits.
const MAX_FILES: usize = 1_000;
const MAX_BYTES: u64 = 64 << 20;
/// Returns are as sensitive as the jobs that they are of.
const MODE: u32 = 0o600;
/// Bounds for the minion's own files.
const OWN: msgpack::Limits = msgpack::Limits { max_bytes: 64 << 20, max_depth: 1024, max_items: 8 << 20 };

/// The files.
pub(super) struct Kept {
    dir: PathBuf,
    next: AtomicU64,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    files: usize,
    bytes: u64,
}

/// One file.
#[derive(Debug)]
pub(super) struct Waiting {
    path: PathBuf,
    bytes: u64,
}

impl Kept {
    pub(super) fn new(dir: PathBuf) -> Self {
        Self { dir, next: AtomicU64::new(0), held: Mutex::default() }
    }

    /// Keeps a return; none if there is no room or no disk, which is said in the log.
    pub(super) fn keep(&self, item: &Item) -> Option<Waiting> {
        let mut whole = map([("name", Value::from(item.name.as_str())), ("user", item.user.as_str().into())]);
        whole.insert("load", item.load.clone());
        if let Some(master) = &item.master {
            whole.insert("master", master.as_str());
        }
        let bytes = msgpack::encode_disk(&whole);
        let lost = |why: &dyn std::fmt::Display| {
            warn!(jid = item.jid(), "the returner {} does not get this return: {why}", item.name);
        };
        let waiting = Waiting { path: self.path(), bytes: bytes.len() as u64 };
        if !self.hold(&waiting) {
            lost(&format_args!("as many wait as may wait ({MAX_FILES}, of {MAX_BYTES} bytes in all)"));
            return None;
        }
        let made = crate::spare_files::private_dir(&self.dir)
            .and_then(|()| brine_protocol::files::write_synced(&waiting.path, &bytes, MODE));
        if let Err(e) = made {
            lost(&format_args!("{} cannot be written: {e}", waiting.path.display()));
            self.release(&waiting);
            return None;
        }
        Some(waiting)
    }

    /// Removes the file of a return that was given, or given up.
    pub(super) fn done(&self, waiting: &Waiting) {
        if let Err(e) = std::fs::remove_file(&waiting.path)
            && e.kind() != std::io::ErrorKind::NotFound
        {
            warn!("{} cannot be removed: {e}", waiting.path.display());
        }
        self.release(waiting);
    }

    /// What an earlier process left. A file that cannot be read is removed.
    pub(super) fn left(&self) -> Vec<(Item, Waiting)> {
        let Ok(files) = std::fs::read_dir(&self.dir) else { return Vec::new() };
        let mut left = Vec::new();
        for file in files.flatten() {
            let path = file.path();
            match read(&path) {
                Ok((item, bytes)) => {
                    let waiting = Waiting { path, bytes };
                    if self.hold(&waiting) {
                        left.push((item, waiting));
                    }
                }
                Err(why) => {
                    warn!("{} holds no return, and is removed: {why}", path.display());
                    let _ = std::fs::remove_file(&path);
                }
            }
        }
        left
    }

    /// A name that no file has.
    fn path(&self) -> PathBuf {
        self.dir.join(format!("{}-{}", Jid::now(), self.next.fetch_add(1, Ordering::Relaxed)))
    }

    fn hold(&self, waiting: &Waiting) -> bool {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let has_room = held.files < MAX_FILES && held.bytes.saturating_add(waiting.bytes) <= MAX_BYTES;
        if has_room {
            (held.files, held.bytes) = (held.files + 1, held.bytes + waiting.bytes);
        }
        has_room
    }

    fn release(&self, waiting: &Waiting) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        (held.files, held.bytes) = (held.files.saturating_sub(1), held.bytes.saturating_sub(waiting.bytes));
    }
}

fn read(path: &Path) -> Result<(Item, u64), String> {
    let bytes = brine_files::read_own(path, MAX_BYTES).map_err(|e| e.to_string())?;
    let whole = msgpack::decode(&bytes, &OWN).map_err(|e| e.to_string())?;
    let text = |key: &str| whole.get_text(key).map(str::to_owned);
    let (Some(name), Some(user)) = (text("name"), text("user")) else { return Err("it names no returner".to_owned()) };
    let load = whole.get("load").filter(|load| load.entries().is_some()).cloned().ok_or("it has no return")?;
    Ok((Item { name, master: text("master"), user, load }, bytes.len() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(name: &str, bytes: usize) -> Item {
        let load = map([("jid", Value::from("20261124000000000001")), ("return", "x".repeat(bytes).into())]);
        Item { name: name.to_owned(), master: Some("aa:bb".to_owned()), user: "root".to_owned(), load }
    }

    #[test]
    fn what_waits_is_there_after_a_restart_until_it_is_done() {
        let dir = tempfile::tempdir().unwrap();
        let kept = Kept::new(dir.path().join("returners"));
        let (one, two) = (kept.keep(&item("one", 5)).unwrap(), kept.keep(&item("two", 5)).unwrap());
        kept.done(&one);
        std::fs::write(dir.path().join("returners/torn"), b"\x82\xa4name").unwrap();
        let again = Kept::new(dir.path().join("returners"));
        let left = again.left();
        assert_eq!(left.iter().map(|(item, _)| item).collect::<Vec<_>>(), [&item("two", 5)]);
        assert_eq!(left[0].1.path, two.path);
        assert_eq!(std::fs::read_dir(dir.path().join("returners")).unwrap().count(), 1, "what is torn is gone");
    }

    #[test]
    fn what_waits_is_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let kept = Kept::new(dir.path().join("returners"));
        let held = |kept: &Kept| {
            let held = kept.held.lock().unwrap();
            (held.files, held.bytes)
        };
        let large = kept.keep(&item("one", 40 << 20)).unwrap();
        assert!(kept.keep(&item("two", 40 << 20)).is_none(), "64 MiB in all");
        kept.done(&large);
        assert_eq!(held(&kept), (0, 0));
        kept.held.lock().unwrap().files = MAX_FILES;
        assert!(kept.keep(&item("three", 5)).is_none());
    }
}
