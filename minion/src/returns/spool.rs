//! The spool: returns on disk until the master has acknowledged them.
//!
//! One file a return, `cachedir/spool/<sequence>-<jid>`: a map in network MessagePack with `master`, the fingerprint of the key of the
//! master that asked (as `salt-key -f` prints it), and `load`, the load of the `_return` request. Earlier versions wrote the load
//! alone; such a return goes to the master that the minion has.
//!
//! The return is written before anything else happens with it, so that the end of this process loses nothing. A small one gets a slot of
//! `cachedir/spool.spare/slots` ([`Slots`]): a master that answers acknowledges it some milliseconds later. A return that is still there
//! then gets its file, and is synced against the end of the whole machine ([`Spool::sync`]); the master has an acknowledged one on its own
//! disk. A file that a crash left torn does not decode whole and is dropped. The minion alone chooses the names of the files.
//!
//! **When it is full.** A job is only admitted while there is room for its return ([`Spool::has_room`]). A return that
//! would still exceed the bound in bytes is kept as a short failed return that says how much was dropped: a job never
//! vanishes without a trace, and the disk never fills.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use brine_protocol::ids::Jid;
use brine_protocol::msgpack;
use brine_protocol::value::{Value, ValueExt, map};
use tracing::{error, warn};

use crate::config::SpoolLimits;
use crate::slots::{Slot, Slots};
use crate::spare_files::SpareFiles;

const TEMPORARY: &str = ".tmp";
const MASTER: &str = "master";
const LOAD: &str = "load";
/// Bounds for decoding the spool's own files. The minion wrote them, so the bounds on a job's return apply, not those
/// on foreign data.
const OWN: msgpack::Limits = msgpack::Limits { max_bytes: 512 << 20, max_depth: 1024, max_items: 64 << 20 };
/// Upper bound on the bytes of a shortened return.
const STUB_BYTES: u64 = 4 * 1024;

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
    /// Time since it was written.
    pub fn age(&self) -> Duration {
        self.since.elapsed()
    }
}

/// A return in the spool.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SpooledReturn {
    name: String,
    size: u64,
    master: Option<Arc<str>>,
}

impl SpooledReturn {
    #[cfg(test)]
    pub(super) fn for_tests(number: u64, size: u64, master: Option<&str>) -> Self {
        Self { name: format!("{number:020}-{number}"), size, master: master.map(Into::into) }
    }

    /// The jid that the return answers.
    pub fn jid(&self) -> &str {
        self.name.split_once('-').map_or("", |(_, jid)| jid)
    }

    /// Bytes in the spool.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The fingerprint of the key of the master that the return is for; none for the master that the minion has.
    pub fn master(&self) -> Option<&str> {
        self.master.as_deref()
    }
}

/// The folder and a count of its content.
#[derive(Debug)]
pub struct Spool {
    dir: PathBuf,
    files: SpareFiles,
    /// None if they cannot be used: then each return gets its file at once.
    slots: Option<Slots>,
    limits: SpoolLimits,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    next: u64,
    count: usize,
    bytes: u64,
    /// Names of the returns that were written and neither synced nor removed.
    unsynced: HashSet<String>,
    /// The slots of returns that have no file.
    slots: HashMap<String, Slot>,
}

impl Spool {
    /// Opens the spool and returns what an earlier run left, oldest first.
    ///
    /// # Errors
    /// When the folder cannot be made, made private or read.
    pub fn open(dir: &Path, limits: SpoolLimits) -> Result<(Self, Vec<SpooledReturn>), SpoolError> {
        let fail = |what| move |source| SpoolError { path: dir.to_owned(), what, source };
        crate::spare_files::private_dir(dir).map_err(fail("made private"))?;
        let files = SpareFiles::open(dir).map_err(fail("made private"))?;
        let slots = open_slots(dir, &files);
        let mut entries = Vec::new();
        for item in fs::read_dir(dir).map_err(fail("read"))? {
            let item = item.map_err(fail("read"))?;
            let Ok(name) = item.file_name().into_string() else { continue };
            if !item.file_type().map_err(fail("read"))?.is_file() {
                continue;
            }
            let Some((name, master)) = recover(dir, &name) else { continue };
            let size = fs::metadata(dir.join(&name)).map_err(fail("read"))?.len();
            entries.push(SpooledReturn { name, size, master });
        }
        entries.sort();
        let next = entries.last().and_then(|e| sequence(&e.name)).map_or(0, |n| n + 1);
        let held = Held { next, count: entries.len(), bytes: entries.iter().map(|e| e.size).sum(), ..Held::default() };
        Ok((Self { dir: dir.to_owned(), files, slots, limits, held: Mutex::new(held) }, entries))
    }

    /// Whether one more job may be admitted beside `running` ones that will each need a place.
    pub fn has_room(&self, running: usize) -> bool {
        let held = self.held();
        held.count + running < self.limits.max_count
            && held.bytes + (running as u64 + 1) * STUB_BYTES < self.limits.max_bytes
    }

    /// Writes a return for the master with this fingerprint; none for the master that the minion has. When this returns, the return
    /// survives the end of this process, and once it is synced, the end of the machine.
    ///
    /// `load` itself is shortened when it does not fit, so that the minion sends what it kept. `seal` is called when nothing else in it
    /// changes, and again after it was shortened.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn put(
        &self,
        jid: &str,
        master: Option<Arc<str>>,
        load: &mut Value,
        mut seal: impl FnMut(&mut Value),
    ) -> Result<(SpooledReturn, Unsynced), SpoolError> {
        seal(load);
        let mut bytes = encode(master.as_deref(), load);
        let name = {
            let mut held = self.held();
            if held.bytes + bytes.len() as u64 > self.limits.max_bytes {
                warn!(jid, bytes = bytes.len(), "the spool of returns is full; the return is kept without its content");
                shorten(load, bytes.len());
                seal(load);
                bytes = encode(master.as_deref(), load);
            }
            let name = format!("{:020}-{jid}", held.next);
            held.next += 1;
            held.count += 1;
            held.bytes += bytes.len() as u64;
            held.unsynced.insert(name.clone());
            name
        };
        let entry = SpooledReturn { name, size: bytes.len() as u64, master };
        match self.slots.as_ref().and_then(|slots| slots.put(&entry.name, &bytes)) {
            Some(slot) => drop(self.held().slots.insert(entry.name.clone(), slot)),
            None => self.files.create(&self.dir.join(&entry.name), &bytes).map_err(|source| {
                self.forget(&entry);
                SpoolError { path: self.dir.clone(), what: "written to", source }
            })?,
        }
        let unsynced = Unsynced { name: entry.name.clone(), since: Instant::now() };
        Ok((entry, unsynced))
    }

    /// Reads the load of a return; none if the file is gone or broken, and then the return is forgotten.
    pub fn read(&self, entry: &SpooledReturn) -> Option<Value> {
        let path = self.dir.join(&entry.name);
        let in_slot = {
            let held = self.held();
            self.slots.as_ref().zip(held.slots.get(&entry.name)).and_then(|(slots, slot)| slots.read(slot))
        };
        let load = in_slot.map_or_else(|| read(&path), |bytes| decode(&bytes)).map(|(_, load)| load);
        if load.is_none() {
            warn!(file = %path.display(), "a return in the spool cannot be read; it is removed");
            self.remove(entry);
        }
        load
    }

    /// Removes a return that was acknowledged or given up.
    pub fn remove(&self, entry: &SpooledReturn) {
        let slot = self.held().slots.remove(&entry.name);
        if let Some((slots, slot)) = self.slots.as_ref().zip(slot) {
            self.forget(entry);
            return slots.clear(slot);
        }
        let size = usize::try_from(entry.size).unwrap_or(usize::MAX);
        match self.files.remove(&self.dir.join(&entry.name), size) {
            Ok(()) => self.forget(entry),
            Err(e) if e.kind() == io::ErrorKind::NotFound => self.forget(entry),
            Err(e) => warn!("cannot remove {} from the spool: {e}", entry.name),
        }
    }

    /// Syncs these returns, except those that are gone from the spool by now. Blocks on the disk. Returns those that have no file yet.
    pub fn sync(&self, written: impl IntoIterator<Item = Unsynced>) -> Vec<Unsynced> {
        let (mut in_slots, mut any) = (Vec::new(), false);
        for unsynced in written {
            {
                let mut held = self.held();
                if !held.unsynced.remove(&unsynced.name) {
                    continue;
                }
                if held.slots.contains_key(&unsynced.name) {
                    in_slots.push(unsynced);
                    continue;
                }
            }
            any |= self.sync_file(&unsynced.name);
        }
        // One sync for all of them.
        if let Some(slots) = self.slots.as_ref().filter(|_| !in_slots.is_empty())
            && let Err(e) = slots.sync()
        {
            warn!("{} returns in the spool are not synced: {e}", in_slots.len());
        }
        self.sync_folder(any);
        in_slots
    }

    /// Makes the files of these returns, which have slots unless they are gone by now, and syncs them. Blocks on the disk.
    pub fn make_files(&self, in_slots: impl IntoIterator<Item = Unsynced>) {
        let mut any = false;
        for Unsynced { name, .. } in in_slots {
            let mut held = self.held();
            let Some((slots, slot)) = self.slots.as_ref().zip(held.slots.get(&name)) else { continue };
            let content = slots.read(slot).ok_or_else(|| io::ErrorKind::InvalidData.into());
            match content.and_then(|content| self.files.create(&self.dir.join(&name), &content)) {
                Ok(()) => {
                    // From here on it is in its file alone. Until that is synced, the slot keeps what it has on the disk.
                    let slot = held.slots.remove(&name);
                    drop(held);
                    any |= self.sync_file(&name);
                    slot.into_iter().for_each(|slot| slots.clear(slot));
                }
                // It keeps its slot until the master takes it, or the next start.
                Err(e) => warn!("{name} in the spool gets no file: {e}"),
            }
        }
        self.sync_folder(any);
    }

    fn sync_file(&self, name: &str) -> bool {
        // The file is opened again, so that returns that wait for a slow disk hold no descriptors.
        match brine_files::open_own(&self.dir.join(name)).and_then(|file| file.sync_data()) {
            Ok(()) => return true,
            // The master acknowledged the return just now.
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => warn!("{name} in the spool is not synced: {e}"),
        }
        false
    }

    fn sync_folder(&self, changed: bool) {
        // Renaming gave the files their names, so the folder is synced too.
        if changed && let Err(e) = File::open(&self.dir).and_then(|dir| dir.sync_all()) {
            warn!("the folder of the spool is not synced: {e}");
        }
    }

    /// The number of spooled returns, and their bytes.
    pub fn held_now(&self) -> (usize, u64) {
        let held = self.held();
        (held.count, held.bytes)
    }

    fn forget(&self, entry: &SpooledReturn) {
        let mut held = self.held();
        held.unsynced.remove(&entry.name);
        held.count = held.count.saturating_sub(1);
        held.bytes = held.bytes.saturating_sub(entry.size);
    }

    fn held(&self) -> std::sync::MutexGuard<'_, Held> {
        // No panic is possible while the lock is held.
        self.held.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Opens the slots, and makes the files of the returns that an earlier run left in them.
fn open_slots(dir: &Path, files: &SpareFiles) -> Option<Slots> {
    let opened = Slots::open(&files.slots());
    let (slots, left) = opened.inspect_err(|e| warn!("returns get files at once: {e}")).ok()?;
    for (slot, record) in left {
        // The name becomes a path.
        let named = sequence(&record.name).is_some()
            && record.name.split_once('-').is_some_and(|(_, jid)| jid.parse::<Jid>().is_ok());
        match named.then(|| files.create(&dir.join(&record.name), &record.content)) {
            None => warn!("a slot of the spool holds no return"),
            // It keeps its slot for the next start.
            Some(Err(e)) => {
                error!("{}, a return that an earlier run left, waits for the next start: {e}", record.name);
                continue;
            }
            Some(Ok(())) => {}
        }
        slots.clear(slot);
    }
    Some(slots)
}

/// Judges a file found at start: returns its name and its master if it is a whole return. Earlier versions wrote under a temporary
/// name first.
fn recover(dir: &Path, name: &str) -> Option<(String, Option<Arc<str>>)> {
    let path = dir.join(name);
    let final_name = name.strip_suffix(TEMPORARY).unwrap_or(name).to_owned();
    if sequence(&final_name).is_none() {
        warn!(file = %path.display(), "not a return; it is left alone");
        return None;
    }
    // After a power failure, the file may have the content of another return.
    let jid = final_name.split_once('-').map(|(_, jid)| jid);
    if let Some((master, _)) = read(&path).filter(|(_, load)| load.get_text("jid") == jid)
        && (final_name == name || fs::rename(&path, dir.join(&final_name)).is_ok())
    {
        return Some((final_name, master));
    }
    warn!(file = %path.display(), "a return that a crash left torn is dropped");
    let _ = fs::remove_file(&path);
    None
}

/// Encodes the content of a file; `load` is the same afterwards.
fn encode(master: Option<&str>, load: &mut Value) -> Vec<u8> {
    let Some(master) = master else { return msgpack::encode_network(load) };
    let mut file = map([(MASTER, Value::from(master)), (LOAD, std::mem::replace(load, Value::Nil))]);
    let bytes = msgpack::encode_network(&file);
    *load = file.remove(LOAD).unwrap_or(Value::Nil);
    bytes
}

/// Reads the master and the load of a file.
fn read(path: &Path) -> Option<(Option<Arc<str>>, Value)> {
    decode(&brine_files::read_own(path, OWN.max_bytes as u64).ok()?)
}

/// The master and the load of a return that was written.
fn decode(written: &[u8]) -> Option<(Option<Arc<str>>, Value)> {
    let mut file = msgpack::decode(written, &OWN).ok()?;
    let (master, load) = match file.remove(LOAD) {
        Some(load) => (Some(file.get_text(MASTER)?.into()), load),
        None => (None, file),
    };
    load.entries().is_some().then_some((master, load))
}

fn sequence(name: &str) -> Option<u64> {
    let (number, jid) = name.split_once('-')?;
    (number.len() == 20 && !jid.is_empty()).then(|| number.parse().ok())?
}

/// Replaces the content of a return that does not fit.
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
            spool.put(JID, None, &mut load(text), |_| ()).unwrap();
        }
        drop(spool);
        let (spool, found) = Spool::open(&path, ROOM).unwrap();
        let texts: Vec<String> =
            found.iter().map(|e| spool.read(e).unwrap().get_text("return").unwrap().to_owned()).collect();
        assert_eq!(texts, ["one", "two", "three"]);
        assert_eq!(found[0].jid(), JID);
        let (fourth, _) = spool.put(JID, None, &mut load("four"), |_| ()).unwrap();
        assert!(fourth > found[2]);
        for entry in found.iter().chain([&fourth]) {
            spool.remove(entry);
        }
        assert_eq!(spool.held_now(), (0, 0));
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
    }

    #[test]
    fn a_return_knows_its_master_and_an_old_one_has_none() {
        let (_folder, dir) = folder();
        fs::write(dir.join(format!("{:020}-{JID}", 0)), msgpack::encode_network(&load("old"))).unwrap();
        for (n, torn) in
            [(1, map([("load", load("x"))])), (2, map([("master", Value::from("aa")), (LOAD, Value::Nil)]))]
        {
            fs::write(dir.join(format!("{n:020}-{JID}")), msgpack::encode_network(&torn)).unwrap();
        }
        let (spool, found) = Spool::open(&dir, ROOM).unwrap();
        assert_eq!(found.iter().map(SpooledReturn::master).collect::<Vec<_>>(), [None]);
        let mut new = load("new");
        let (entry, _) = spool.put(JID, Some("aa:bb".into()), &mut new, |_| ()).unwrap();
        assert_eq!((entry.master(), &new), (Some("aa:bb"), &load("new")));
        drop(spool);
        let (spool, found) = Spool::open(&dir, ROOM).unwrap();
        assert_eq!(found.iter().map(SpooledReturn::master).collect::<Vec<_>>(), [None, Some("aa:bb")]);
        assert_eq!(found.iter().filter_map(|e| spool.read(e)).collect::<Vec<_>>(), [load("old"), load("new")]);
    }

    #[test]
    fn files_are_the_owners_alone() {
        use std::os::unix::fs::PermissionsExt;
        let (_folder, dir) = folder();
        let path = dir.join("spool");
        let (spool, _) = Spool::open(&path, ROOM).unwrap();
        let (entry, _) = spool.put(JID, None, &mut load("x"), |_| ()).unwrap();
        let slots = dir.join("spool.spare/slots");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(fs::metadata(slots).unwrap().permissions().mode() & 0o777, 0o600);
        let (large, _) = spool.put(JID, None, &mut load(&"x".repeat(5000)), |_| ()).unwrap();
        assert_eq!(fs::metadata(path.join(&large.name)).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(!path.join(&entry.name).exists());
    }

    /// Of a return that the master does not acknowledge, and of those that an earlier process left.
    #[test]
    fn a_return_in_a_slot_gets_its_file() {
        let (_folder, dir) = folder();
        let (spool, _) = Spool::open(&dir, ROOM).unwrap();
        let put = |text: &str| spool.put(JID, Some("aa".into()), &mut load(text), |_| ()).unwrap();
        let (kept, unsynced) = put("kept");
        let (gone, also_unsynced) = put("gone");
        let path = dir.join(&kept.name);
        let in_slots = spool.sync([unsynced, also_unsynced]);
        assert_eq!((in_slots.len(), path.exists()), (2, false));
        spool.remove(&gone);
        spool.make_files(in_slots);
        assert!(path.exists() && !dir.join(&gone.name).exists());
        assert_eq!(spool.read(&kept), Some(load("kept")));
        let (left, _) = put("left");
        drop(spool);
        let (spool, found) = Spool::open(&dir, ROOM).unwrap();
        assert_eq!(found, [kept, left.clone()]);
        assert!(dir.join(&left.name).exists());
        found.iter().for_each(|entry| spool.remove(entry));
        drop(spool);
        assert_eq!(Spool::open(&dir, ROOM).unwrap().1, []);
    }

    /// Its name becomes a path.
    #[test]
    fn a_slot_with_a_strange_name_makes_no_file() {
        let (_folder, dir) = folder();
        drop(Spool::open(&dir, ROOM).unwrap());
        let (slots, _) = Slots::open(&SpareFiles::open(&dir).unwrap().slots()).unwrap();
        let content = msgpack::encode_network(&load("x"));
        for name in ["../x", "notes", &format!("{:020}-../../x", 1), &format!("{:020}-", 1)] {
            slots.put(name, &content).unwrap();
        }
        drop(slots);
        assert_eq!(Spool::open(&dir, ROOM).unwrap().1, []);
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
        assert!(!dir.join("../x").exists());
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
        assert!(spool.put(JID, None, &mut load("next"), |_| ()).unwrap().0.name.starts_with(&format!("{:020}", 8)));
    }

    #[test]
    fn a_broken_file_is_removed_when_it_is_read() {
        let (_folder, dir) = folder();
        let (spool, _) = Spool::open(&dir, ROOM).unwrap();
        let (entry, unsynced) = spool.put(JID, None, &mut load("x"), |_| ()).unwrap();
        spool.make_files([unsynced]);
        fs::write(dir.join(&entry.name), b"\xc1garbage").unwrap();
        assert!(spool.read(&entry).is_none());
        assert_eq!(spool.held_now(), (0, 0));
        assert!(!dir.join(&entry.name).exists());
    }

    #[test]
    fn only_what_is_still_there_is_synced() {
        let (_folder, dir) = folder();
        let (spool, _) = Spool::open(&dir, ROOM).unwrap();
        let (kept, kept_file) = spool.put(JID, None, &mut load("kept"), |_| ()).unwrap();
        let (gone, gone_file) = spool.put(JID, None, &mut load("gone"), |_| ()).unwrap();
        spool.remove(&gone);
        assert_eq!(spool.held().unsynced, HashSet::from([kept.name.clone()]));
        spool.sync([gone_file, kept_file]);
        assert!(spool.held().unsynced.is_empty());
        assert!(spool.read(&kept).is_some());
    }

    #[test]
    fn a_full_spool_admits_no_job_and_shortens_what_still_comes() {
        let (_folder, dir) = folder();
        let (spool, _) = Spool::open(&dir, SpoolLimits { max_bytes: 20_000, max_count: 3 }).unwrap();
        assert!(spool.has_room(0) && spool.has_room(2) && !spool.has_room(3));
        spool.put(JID, None, &mut load(&"x".repeat(15_000)), |_| ()).unwrap();
        let mut big = load(&"y".repeat(15_000));
        spool.put(JID, None, &mut big, |_| ()).unwrap();
        assert!(big.get_text("return").unwrap().contains("did not fit"));
        assert_eq!(big.get_i64("retcode"), Some(1));
        assert!(!spool.has_room(1));
    }
}
