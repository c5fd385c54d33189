//! The spool: returns on disk until the master has acknowledged them.
//!
//! One file a return, `cachedir/spool/<sequence>-<jid>`, the `_return` load as network MessagePack. It is written before anything
//! else happens with the return, so that the end of this process takes nothing. Against the end of the whole machine it is synced
//! ([`Unsynced::sync`]) unless the master has acknowledged it by then: what the master has on its disk needs no place on this one.
//! A file that a crash left torn does not decode whole and is dropped. The master has no say in what is here: ids and names are
//! the minion's own.
//!
//! **When it is full.** A job is only admitted while there is room for its return ([`Spool::has_room`]). A return that
//! would still lead past the bound in bytes is kept as a short failed return that says how much was dropped: a job never
//! vanishes without a trace, and the disk never fills.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use brine_protocol::msgpack;
use brine_protocol::value::{Value, ValueExt};
use tracing::warn;

use crate::recycled::Recycled;

const TEMPORARY: &str = ".tmp";
/// What this program wrote itself is bounded by what a job may return, not by what a stranger may send.
const OWN: msgpack::Limits = msgpack::Limits { max_bytes: 512 << 20, max_depth: 1024, max_items: 64 << 20 };
/// Name, jid and function of a shortened return fit in here.
const STUB_BYTES: u64 = 4 * 1024;

/// How much the spool may hold.
#[derive(Debug, Clone, Copy)]
pub struct SpoolLimits {
    /// Bytes of all files.
    pub max_bytes: u64,
    /// Files.
    pub max_count: usize,
}

/// Why the spool cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the spool of returns at {path} cannot be {what}: {source}")]
pub struct SpoolError {
    path: PathBuf,
    what: &'static str,
    source: io::Error,
}

/// A return that was written and may not be on the disk yet.
#[derive(Debug)]
pub struct Unsynced {
    name: String,
    since: Instant,
}

impl Unsynced {
    /// How long ago it was written.
    pub fn age(&self) -> Duration {
        self.since.elapsed()
    }

    /// Waits until it survives a power failure, unless it is gone from the spool by now. Blocks on the disk.
    pub fn sync(self, spool: &Spool) {
        if !spool.held().unsynced.remove(&self.name) {
            return;
        }
        // Opened again, so that what waits for a slow disk holds no descriptors. The folder too: the file got its name by renaming.
        let synced = brine_files::open_own(&spool.dir.join(&self.name))
            .and_then(|file| file.sync_data())
            .and_then(|()| File::open(&spool.dir)?.sync_all());
        match synced {
            // Acknowledged and removed in this moment.
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => warn!("{} in the spool is not synced: {e}", self.name),
            Ok(()) => {}
        }
    }
}

/// A return in the spool.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    name: String,
    size: u64,
}

impl Entry {
    /// The jid that the return answers.
    pub fn jid(&self) -> &str {
        self.name.split_once('-').map_or("", |(_, jid)| jid)
    }
}

/// The folder and what is known of it.
#[derive(Debug)]
pub struct Spool {
    dir: PathBuf,
    files: Recycled,
    limits: SpoolLimits,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    next: u64,
    count: usize,
    bytes: u64,
    /// Names of those that were written and neither synced nor removed.
    unsynced: HashSet<String>,
}

impl Spool {
    /// Opens the spool; what an earlier run left comes back, oldest first.
    pub fn open(dir: &Path, limits: SpoolLimits) -> Result<(Self, Vec<Entry>), SpoolError> {
        let fail = |what| move |source| SpoolError { path: dir.to_owned(), what, source };
        crate::process::private_dir(dir).map_err(fail("made private"))?;
        let files = Recycled::open(dir).map_err(fail("made private"))?;
        let mut entries = Vec::new();
        for item in fs::read_dir(dir).map_err(fail("read"))? {
            let item = item.map_err(fail("read"))?;
            let Ok(name) = item.file_name().into_string() else { continue };
            if !item.file_type().map_err(fail("read"))?.is_file() {
                continue;
            }
            let Some(name) = recover(dir, &name) else { continue };
            let size = fs::metadata(dir.join(&name)).map_err(fail("read"))?.len();
            entries.push(Entry { name, size });
        }
        entries.sort();
        let next = entries.last().and_then(|e| sequence(&e.name)).map_or(0, |n| n + 1);
        let held = Held { next, count: entries.len(), bytes: entries.iter().map(|e| e.size).sum(), ..Held::default() };
        Ok((Self { dir: dir.to_owned(), files, limits, held: Mutex::new(held) }, entries))
    }

    /// Whether one more job may be admitted beside `running` ones that will each need a place.
    pub fn has_room(&self, running: usize) -> bool {
        let held = self.held();
        held.count + running < self.limits.max_count
            && held.bytes + (running as u64 + 1) * STUB_BYTES < self.limits.max_bytes
    }

    /// Writes a return; when this returns it survives the end of this process, and once it is synced that of the machine.
    ///
    /// `load` itself is shortened when it does not fit, so that what is sent is what was kept.
    pub fn put(&self, jid: &str, load: &mut Value) -> Result<(Entry, Unsynced), SpoolError> {
        let mut bytes = msgpack::encode_network(load);
        let name = {
            let mut held = self.held();
            if held.bytes + bytes.len() as u64 > self.limits.max_bytes {
                warn!(jid, bytes = bytes.len(), "the spool of returns is full; the return is kept without its content");
                shorten(load, bytes.len());
                bytes = msgpack::encode_network(load);
            }
            let name = format!("{:020}-{jid}", held.next);
            held.next += 1;
            held.count += 1;
            held.bytes += bytes.len() as u64;
            held.unsynced.insert(name.clone());
            name
        };
        let entry = Entry { name, size: bytes.len() as u64 };
        self.files.create(&self.dir.join(&entry.name), &bytes).map_err(|source| {
            self.forget(&entry);
            SpoolError { path: self.dir.clone(), what: "written to", source }
        })?;
        let unsynced = Unsynced { name: entry.name.clone(), since: Instant::now() };
        Ok((entry, unsynced))
    }

    /// Reads a return back; `None` where it is gone or broken, and then it is forgotten.
    pub fn read(&self, entry: &Entry) -> Option<Value> {
        let path = self.dir.join(&entry.name);
        let load = read(&path);
        if load.is_none() {
            warn!(file = %path.display(), "a return in the spool cannot be read; it is removed");
            self.remove(entry);
        }
        load
    }

    /// Removes a return: it was acknowledged, or given up.
    pub fn remove(&self, entry: &Entry) {
        let size = usize::try_from(entry.size).unwrap_or(usize::MAX);
        match self.files.remove(&self.dir.join(&entry.name), size) {
            Ok(()) => self.forget(entry),
            Err(e) if e.kind() == io::ErrorKind::NotFound => self.forget(entry),
            Err(e) => warn!("cannot remove {} from the spool: {e}", entry.name),
        }
    }

    /// How many returns wait, and their bytes.
    pub fn held_now(&self) -> (usize, u64) {
        let held = self.held();
        (held.count, held.bytes)
    }

    fn forget(&self, entry: &Entry) {
        let mut held = self.held();
        held.unsynced.remove(&entry.name);
        held.count = held.count.saturating_sub(1);
        held.bytes = held.bytes.saturating_sub(entry.size);
    }

    fn held(&self) -> std::sync::MutexGuard<'_, Held> {
        // Nothing between lock and unlock can panic half way through a change.
        self.held.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Judges a file found at start: its name if it is a whole return. Earlier versions wrote under a temporary name first.
fn recover(dir: &Path, name: &str) -> Option<String> {
    let path = dir.join(name);
    let final_name = name.strip_suffix(TEMPORARY).unwrap_or(name).to_owned();
    if sequence(&final_name).is_none() {
        warn!(file = %path.display(), "not a return; it is left alone");
        return None;
    }
    let load = read(&path);
    // A power failure may have left another return's content under this name.
    let whole = load.is_some_and(|load| load.get_text("jid") == final_name.split_once('-').map(|(_, jid)| jid));
    if whole && (final_name == name || fs::rename(&path, dir.join(&final_name)).is_ok()) {
        return Some(final_name);
    }
    warn!(file = %path.display(), "a return that a crash left torn is dropped");
    let _ = fs::remove_file(&path);
    None
}

fn read(path: &Path) -> Option<Value> {
    decode(&brine_files::read_own(path, OWN.max_bytes as u64).ok()?)
}

fn decode(bytes: &[u8]) -> Option<Value> {
    msgpack::decode(bytes, &OWN).ok().filter(|load| load.entries().is_some())
}

fn sequence(name: &str) -> Option<u64> {
    let (number, jid) = name.split_once('-')?;
    (number.len() == 20 && !jid.is_empty()).then(|| number.parse().ok())?
}

/// Takes the content out of a return that does not fit.
fn shorten(load: &mut Value, size: usize) {
    let said = format!(
        "The job ended, but its return of {size} bytes did not fit into the minion's spool (the master has not acknowledged \
         earlier ones). Run it again once the master takes returns."
    );
    load.insert("return", said.as_str());
    load.insert("retcode", 1);
    load.insert("success", false);
    load.insert("fun_args", Value::Array(Vec::new()));
    for key in ["metadata", "ret_config", "ret_kwargs"] {
        let _ = load.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: SpoolLimits = SpoolLimits { max_bytes: 256 << 20, max_count: 10_000 };
    use brine_protocol::value::map;

    const JID: &str = "20261120134740245008";

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("spool");
        fs::create_dir(&dir).unwrap();
        (folder, dir)
    }

    fn load(text: &str) -> Value {
        map([("cmd", Value::from("_return")), ("jid", Value::from(JID)), ("return", Value::from(text))])
    }

    #[test]
    fn what_is_put_survives_and_keeps_its_order() {
        let (_folder, dir) = folder();
        let path = dir.join("spool");
        let (spool, found) = Spool::open(&path, ROOM).unwrap();
        assert!(found.is_empty());
        for text in ["one", "two", "three"] {
            spool.put(JID, &mut load(text)).unwrap();
        }
        drop(spool);
        let (spool, found) = Spool::open(&path, ROOM).unwrap();
        let texts: Vec<String> =
            found.iter().map(|e| spool.read(e).unwrap().get_text("return").unwrap().to_owned()).collect();
        assert_eq!(texts, ["one", "two", "three"]);
        assert_eq!(found[0].jid(), JID);
        let (fourth, _) = spool.put(JID, &mut load("four")).unwrap();
        assert!(fourth > found[2]);
        for entry in found.iter().chain([&fourth]) {
            spool.remove(entry);
        }
        assert_eq!(spool.held_now(), (0, 0));
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
    }

    #[test]
    fn files_are_the_owners_alone() {
        use std::os::unix::fs::PermissionsExt;
        let (_folder, dir) = folder();
        let path = dir.join("spool");
        let (spool, _) = Spool::open(&path, ROOM).unwrap();
        let (entry, _) = spool.put(JID, &mut load("x")).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(fs::metadata(path.join(&entry.name)).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_complete_file_is_taken_up_and_a_torn_one_is_not() {
        let (_folder, dir) = folder();
        let whole = msgpack::encode_network(&load("whole"));
        let other = msgpack::encode_network(&map([("jid", "20261120134740245009")]));
        for (n, torn) in [(3, &whole[..whole.len() - 1]), (4, &[]), (5, &[0; 64]), (6, &other)] {
            fs::write(dir.join(format!("{n:020}-{JID}")), torn).unwrap();
        }
        fs::write(dir.join(format!("{:020}-{JID}.tmp", 7)), &whole).unwrap();
        fs::write(dir.join(format!("{:020}-{JID}.tmp", 8)), &whole[..whole.len() - 1]).unwrap();
        fs::write(dir.join("notes"), "not ours").unwrap();
        let (spool, found) = Spool::open(&dir, ROOM).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(spool.read(&found[0]).unwrap().get_text("return"), Some("whole"));
        assert!(dir.join("notes").exists());
        assert!(spool.put(JID, &mut load("next")).unwrap().0.name.starts_with(&format!("{:020}", 8)));
    }

    #[test]
    fn a_broken_file_is_removed_when_it_is_read() {
        let (_folder, dir) = folder();
        let (spool, _) = Spool::open(&dir, ROOM).unwrap();
        let (entry, _) = spool.put(JID, &mut load("x")).unwrap();
        fs::write(dir.join(&entry.name), b"\xc1garbage").unwrap();
        assert!(spool.read(&entry).is_none());
        assert_eq!(spool.held_now(), (0, 0));
        assert!(!dir.join(&entry.name).exists());
    }

    #[test]
    fn only_what_is_still_there_is_synced() {
        let (_folder, dir) = folder();
        let (spool, _) = Spool::open(&dir, ROOM).unwrap();
        let (kept, kept_file) = spool.put(JID, &mut load("kept")).unwrap();
        let (gone, gone_file) = spool.put(JID, &mut load("gone")).unwrap();
        spool.remove(&gone);
        assert_eq!(spool.held().unsynced, HashSet::from([kept.name.clone()]));
        gone_file.sync(&spool);
        kept_file.sync(&spool);
        assert!(spool.held().unsynced.is_empty());
        assert!(spool.read(&kept).is_some());
    }

    #[test]
    fn a_full_spool_admits_no_job_and_shortens_what_still_comes() {
        let (_folder, dir) = folder();
        let (spool, _) = Spool::open(&dir, SpoolLimits { max_bytes: 20_000, max_count: 3 }).unwrap();
        assert!(spool.has_room(0) && spool.has_room(2) && !spool.has_room(3));
        spool.put(JID, &mut load(&"x".repeat(15_000))).unwrap();
        let mut big = load(&"y".repeat(15_000));
        spool.put(JID, &mut big).unwrap();
        assert!(big.get_text("return").unwrap().contains("did not fit"));
        assert_eq!(big.get_i64("retcode"), Some(1));
        assert!(!spool.has_room(1));
    }
}
