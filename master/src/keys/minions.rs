//! The minions' keys in Salt's `pki_dir` layout (§3.6): a folder for each state, a file for each id.
//!
//! The folders are authoritative: `salt-key`, Brine's or Python's, edits them while the master runs. Keys are cached
//! with their `lstat` data and used only while that is unchanged, so an edit takes effect at the next request.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use brine_protocol::ids::MinionId;
use brine_protocol::keys::{PublicKey, clean_pem};

use super::folder::{Stamp, changed, listed, settled};
use super::strangers::{Held, Room};
use crate::files;

/// Largest size in bytes of a public key's PEM text. 16,384 bits take 2,900.
const PEM_MAX: u64 = 8 * 1024;
/// Bound on the keys removed for a new one. If there are many too many, such as after a lower setting, they are removed
/// gradually.
const GONE_AT_ONCE: usize = 8;
/// After this time, unsynced data is on the disk: the kernel writes it after half a minute.
const WRITTEN_BACK: Duration = Duration::from_secs(90);
/// The state of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyState {
    /// The minion may work with this master.
    Accepted,
    /// The key waits for the operator.
    Pending,
    /// The operator rejected the key.
    Rejected,
    /// Another key is stored for this id: an impostor, or a reinstalled host.
    Denied,
}

impl KeyState {
    /// Every state, in the order of the JSON of `salt-key -L`.
    pub const ALL: [Self; 4] = [Self::Accepted, Self::Pending, Self::Rejected, Self::Denied];

    /// Returns the folder's name in `pki_dir`.
    pub const fn dir(self) -> &'static str {
        match self {
            Self::Accepted => "minions",
            Self::Pending => "minions_pre",
            Self::Rejected => "minions_rejected",
            Self::Denied => "minions_denied",
        }
    }
}

/// A key file that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the key file {path} cannot be {what}: {why}", path = path.display())]
pub struct MinionKeyError {
    path: PathBuf,
    what: &'static str,
    why: io::Error,
}

/// A minion's public key as stored in a folder.
pub struct MinionKey {
    /// The cleaned PEM text.
    pub pem: String,
    /// The parsed key; `None` if the text is no key.
    pub public: Option<PublicKey>,
}

impl fmt::Debug for MinionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MinionKey").field("parses", &self.public.is_some()).finish_non_exhaustive()
    }
}

impl MinionKey {
    fn new(text: &str) -> Self {
        let public = PublicKey::from_pem(text).ok();
        Self { pem: clean_pem(text), public }
    }
}

#[derive(Default)]
struct Cache {
    keys: HashMap<(KeyState, MinionId), (Stamp, Arc<MinionKey>)>,
    lists: HashMap<KeyState, (Stamp, Arc<Vec<MinionId>>)>,
}

/// The key folders. Calls block for short file operations.
pub struct MinionKeys {
    pki: PathBuf,
    cache: Mutex<Cache>,
    /// Held while this process changes one of them.
    filled: Mutex<Filled>,
}

/// The keys in the folders that strangers can fill.
#[derive(Default)]
struct Filled {
    pending: Held,
    rejected: Held,
}

impl Filled {
    const STATES: [KeyState; 2] = [KeyState::Pending, KeyState::Rejected];

    const fn of(&mut self, state: KeyState) -> Option<&mut Held> {
        match state {
            KeyState::Pending => Some(&mut self.pending),
            KeyState::Rejected => Some(&mut self.rejected),
            // These are bounded by the decisions of an operator or a rule, and by the known ids.
            KeyState::Accepted | KeyState::Denied => None,
        }
    }
}

impl fmt::Debug for MinionKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MinionKeys").field("pki", &self.pki).finish_non_exhaustive()
    }
}

impl MinionKeys {
    /// Opens the folders, and makes missing ones.
    ///
    /// # Errors
    /// If a folder cannot be made or listed.
    pub fn open(pki: &Path) -> Result<Self, MinionKeyError> {
        for dir in KeyState::ALL.map(KeyState::dir).into_iter().chain(["minions_autosign"]) {
            let path = pki.join(dir);
            files::make_dir(&path, 0o700).map_err(|why| MinionKeyError { path, what: "made", why })?;
        }
        let store = Self { pki: pki.to_owned(), cache: Mutex::default(), filled: Mutex::default() };
        // Lists the folders now, because listing many keys takes long.
        store.changing(&Filled::STATES, |_| Ok(()))?;
        Ok(store)
    }

    /// Returns the key of `id` in `state`.
    ///
    /// # Errors
    /// If the key's file exists and cannot be read.
    pub fn find(&self, state: KeyState, id: &MinionId) -> Result<Option<Arc<MinionKey>>, MinionKeyError> {
        let path = self.path(state, id);
        let Some(now) = lstat(&path)? else {
            lock(&self.cache).keys.remove(&(state, id.clone()));
            return Ok(None);
        };
        if let Some((stamp, key)) = lock(&self.cache).keys.get(&(state, id.clone()))
            && *stamp == Stamp::of(&now)
        {
            return Ok(Some(Arc::clone(key)));
        }
        let read = files::read_regular(&path, PEM_MAX).map_err(|why| MinionKeyError { path, what: "read", why })?;
        let Some((content, metadata)) = read else { return Ok(None) };
        let key = Arc::new(MinionKey::new(&String::from_utf8_lossy(&content)));
        // Only accepted keys are needed repeatedly, and the operator decides their number.
        if state == KeyState::Accepted && settled(&metadata) {
            lock(&self.cache).keys.insert((state, id.clone()), (Stamp::of(&metadata), Arc::clone(&key)));
        }
        Ok(Some(key))
    }

    /// Returns the accepted key of `id`, if it is usable.
    pub fn accepted(&self, id: &MinionId) -> Option<Arc<MinionKey>> {
        match self.find(KeyState::Accepted, id) {
            Ok(key) => key.filter(|key| key.public.is_some()),
            Err(error) => {
                tracing::error!("{error}");
                None
            }
        }
    }

    /// Returns when the accepted key of `id` was put into its folder, according to the file system.
    pub fn stored_at(&self, id: &MinionId) -> Option<SystemTime> {
        Some(changed(&lstat(&self.path(KeyState::Accepted, id)).ok()??))
    }

    /// Returns the ids in `state`, sorted.
    ///
    /// # Errors
    /// If the folder cannot be listed.
    pub fn list(&self, state: KeyState) -> Result<Arc<Vec<MinionId>>, MinionKeyError> {
        let path = self.pki.join(state.dir());
        let failed = |why| MinionKeyError { path: path.clone(), what: "listed", why };
        let metadata = std::fs::metadata(&path).map_err(failed)?;
        let stamp = Stamp::of(&metadata);
        if let Some((known, ids)) = lock(&self.cache).lists.get(&state)
            && *known == stamp
        {
            return Ok(Arc::clone(ids));
        }
        let mut ids = listed(&path).map_err(failed)?;
        ids.sort();
        let ids = Arc::new(ids);
        let mut cache = lock(&self.cache);
        if settled(&metadata) {
            cache.lists.insert(state, (stamp, Arc::clone(&ids)));
        } else {
            cache.lists.remove(&state);
        }
        Ok(ids)
    }

    /// Stores a key's cleaned text under `id`. The caller has checked that it is a key.
    ///
    /// # Errors
    /// If the key cannot be written.
    pub fn put(&self, state: KeyState, id: &MinionId, pem: &str) -> Result<(), MinionKeyError> {
        self.changing(&[state], |filled| {
            self.write(state, id, pem)?;
            filled.of(state).into_iter().for_each(|held| held.add(id, None));
            Ok(())
        })
    }

    /// Stores the key of a stranger from `origin`, to wait for an operator. If there are too many keys, the oldest are
    /// removed, those of the same address if it has too many. Returns the removed ids.
    ///
    /// # Errors
    /// If the folder cannot be read or written.
    pub fn put_pending(
        &self,
        id: &MinionId,
        pem: &str,
        origin: Option<u64>,
        room: Room,
    ) -> Result<Vec<MinionId>, MinionKeyError> {
        let state = KeyState::Pending;
        self.changing(&[state], |filled| {
            let held = &mut filled.pending;
            let mut gone = Vec::new();
            while gone.len() < GONE_AT_ONCE
                && let Some(oldest) = held.in_the_way(origin, room)
            {
                held.remove(&oldest);
                // Another program may have removed it already.
                if self.unlink(state, &oldest)? {
                    gone.push(oldest);
                }
            }
            self.write(state, id, pem)?;
            held.add(id, origin);
            Ok(gone)
        })
    }

    /// Stores the key of a stranger that a rule rejects. Returns false if there is no room, because rejected keys are
    /// never removed for new ones.
    ///
    /// # Errors
    /// If the folder cannot be read or written.
    pub fn put_rejected(
        &self,
        id: &MinionId,
        pem: &str,
        origin: Option<u64>,
        room: Room,
    ) -> Result<bool, MinionKeyError> {
        let state = KeyState::Rejected;
        self.changing(&[state], |filled| {
            let held = &mut filled.rejected;
            if held.in_the_way(origin, room).is_some() {
                return Ok(false);
            }
            self.write(state, id, pem)?;
            held.add(id, origin);
            Ok(true)
        })
    }

    /// Changes folders, and records that this process did it.
    fn changing<T>(
        &self,
        states: &[KeyState],
        change: impl FnOnce(&mut Filled) -> Result<T, MinionKeyError>,
    ) -> Result<T, MinionKeyError> {
        if states.iter().all(|state| !Filled::STATES.contains(state)) {
            // Other folders are not tracked, and a slow sync must not hold the lock.
            return change(&mut Filled::default());
        }
        let mut filled = lock(&self.filled);
        // Checked first, so that changes of other programs are not taken for our own.
        for state in states {
            let path = self.pki.join(state.dir());
            let looked = filled.of(*state).map_or(Ok(()), |held| held.look(&path));
            looked.map_err(|why| MinionKeyError { path, what: "listed", why })?;
        }
        let done = change(&mut filled);
        for state in states {
            filled.of(*state).into_iter().for_each(|held| held.changed(&self.pki.join(state.dir())));
        }
        done
    }

    /// Writes a key. Only accepted keys are synced, because a sync delays all writers of the disk; strangers send their
    /// keys again.
    fn write(&self, state: KeyState, id: &MinionId, pem: &str) -> Result<(), MinionKeyError> {
        let path = self.path(state, id);
        let write = if state == KeyState::Accepted { files::write_durable } else { files::write_atomic };
        let written = write(&path, clean_pem(pem).as_bytes(), 0o600);
        self.forget(state, id);
        written.map_err(|why| MinionKeyError { path, what: "written", why })
    }

    /// Moves a key from one state to another, replacing a key there. Returns false if there is no key.
    ///
    /// # Errors
    /// If the key cannot be moved.
    pub fn move_to(&self, from: KeyState, to: KeyState, id: &MinionId) -> Result<bool, MinionKeyError> {
        let path = self.path(from, id);
        // A symlink is never moved, because key folders must not contain any.
        if lstat(&path)?.is_none_or(|m| !m.is_file()) {
            return Ok(false);
        }
        if from == to {
            return Ok(true);
        }
        let synced = if to == KeyState::Accepted { sync_if_new(&path) } else { Ok(()) };
        let renamed = |filled: &mut Filled| match synced.and_then(|()| std::fs::rename(&path, self.path(to, id))) {
            Ok(()) => {
                filled.of(from).into_iter().for_each(|held| held.remove(id));
                filled.of(to).into_iter().for_each(|held| held.add(id, None));
                Ok(true)
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(why) => Err(MinionKeyError { path: path.clone(), what: "moved", why }),
        };
        let moved = self.changing(&[from, to], renamed);
        self.forget(from, id);
        self.forget(to, id);
        moved
    }

    /// Deletes a key. Returns false if there was none.
    ///
    /// # Errors
    /// If the key cannot be deleted.
    pub fn remove(&self, state: KeyState, id: &MinionId) -> Result<bool, MinionKeyError> {
        self.changing(&[state], |filled| {
            filled.of(state).into_iter().for_each(|held| held.remove(id));
            self.unlink(state, id)
        })
    }

    fn unlink(&self, state: KeyState, id: &MinionId) -> Result<bool, MinionKeyError> {
        let path = self.path(state, id);
        self.forget(state, id);
        match std::fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(why) => Err(MinionKeyError { path, what: "deleted", why }),
        }
    }

    /// Returns `pki_dir`.
    pub fn pki(&self) -> &Path {
        &self.pki
    }

    fn path(&self, state: KeyState, id: &MinionId) -> PathBuf {
        self.pki.join(state.dir()).join(id.as_str())
    }

    fn forget(&self, state: KeyState, id: &MinionId) {
        let mut cache = lock(&self.cache);
        cache.keys.remove(&(state, id.clone()));
        cache.lists.remove(&state);
    }
}

/// Syncs a key that is about to be accepted, unless it is old: the kernel has written old files to disk by itself.
fn sync_if_new(path: &Path) -> io::Result<()> {
    let file = std::fs::File::open(path)?;
    let age = SystemTime::now().duration_since(file.metadata()?.modified()?);
    if age.is_ok_and(|age| age > WRITTEN_BACK) { Ok(()) } else { file.sync_all() }
}

fn lstat(path: &Path) -> Result<Option<std::fs::Metadata>, MinionKeyError> {
    match std::fs::symlink_metadata(path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(why) => Err(MinionKeyError { path: path.to_owned(), what: "looked at", why }),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn id(text: &str) -> MinionId {
        MinionId::try_from(text).unwrap()
    }

    fn store() -> (tempfile::TempDir, MinionKeys) {
        let dir = tempfile::tempdir().unwrap();
        let store = MinionKeys::open(&dir.path().join("pki")).unwrap();
        (dir, store)
    }

    #[test]
    fn an_edit_by_hand_counts_at_once() {
        let (_dir, store) = store();
        let (a, b) = (id("a"), id("b"));
        store.put(KeyState::Pending, &a, "one").unwrap();
        for round in 0..50 {
            // As salt-key does it: a rename by another program.
            std::fs::rename(store.path(KeyState::Pending, &a), store.path(KeyState::Accepted, &a)).unwrap();
            assert_eq!(store.list(KeyState::Accepted).unwrap().as_slice(), std::slice::from_ref(&a), "round {round}");
            assert!(store.find(KeyState::Accepted, &a).unwrap().is_some());
            // As Python does it: written in place.
            std::fs::write(store.path(KeyState::Accepted, &a), format!("text {round}")).unwrap();
            assert_eq!(store.find(KeyState::Accepted, &a).unwrap().unwrap().pem, format!("text {round}"));
            std::fs::write(store.path(KeyState::Accepted, &b), "two").unwrap();
            assert_eq!(store.list(KeyState::Accepted).unwrap().len(), 2, "round {round}");
            std::fs::remove_file(store.path(KeyState::Accepted, &b)).unwrap();
            std::fs::rename(store.path(KeyState::Accepted, &a), store.path(KeyState::Pending, &a)).unwrap();
            assert!(store.find(KeyState::Accepted, &a).unwrap().is_none());
            assert!(store.list(KeyState::Accepted).unwrap().is_empty(), "round {round}");
        }
    }

    #[test]
    fn an_edit_counts_at_once_when_the_old_key_is_remembered() {
        let (_dir, store) = store();
        let a = id("a");
        store.put(KeyState::Accepted, &a, "one").unwrap();
        // The key is cached once its timestamps are old enough.
        let deadline = std::time::Instant::now() + Duration::from_secs(10);
        while !lock(&store.cache).keys.contains_key(&(KeyState::Accepted, a.clone())) {
            assert!(store.find(KeyState::Accepted, &a).unwrap().is_some() && std::time::Instant::now() < deadline);
            std::thread::yield_now();
        }
        std::fs::write(store.path(KeyState::Accepted, &a), "two").unwrap();
        assert_eq!(store.find(KeyState::Accepted, &a).unwrap().unwrap().pem, "two");
    }

    #[test]
    fn keys_are_written_for_the_master_alone() {
        let (_dir, store) = store();
        store.put(KeyState::Pending, &id("a"), "one\n").unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&store.path(KeyState::Pending, &id("a"))), 0o600);
        assert_eq!(mode(&store.pki.join("minions")), 0o700);
    }

    #[test]
    fn symlinks_and_dot_files_are_not_keys() {
        let (dir, store) = store();
        std::fs::write(dir.path().join("outside"), "x").unwrap();
        std::os::unix::fs::symlink(dir.path().join("outside"), store.path(KeyState::Accepted, &id("a"))).unwrap();
        std::fs::write(store.pki.join("minions/.key_cache"), "x").unwrap();
        assert!(store.list(KeyState::Accepted).unwrap().is_empty());
        assert!(store.find(KeyState::Accepted, &id("a")).unwrap_err().to_string().contains("symlink"));
        assert!(store.accepted(&id("a")).is_none());
        assert!(!store.move_to(KeyState::Accepted, KeyState::Pending, &id("a")).unwrap());
    }
}
