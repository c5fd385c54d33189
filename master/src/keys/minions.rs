//! The minions' keys as the master uses them: the key store with a cache, and with bounds on what strangers put into it.
//!
//! The store's folders are authoritative: `salt-key`, Brine's or Python's, edits them while the master runs. Keys are
//! cached with their `lstat` data and used only while that is unchanged, so an edit takes effect at the next request.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use brine_files::Stamp;
use brine_protocol::ids::MinionId;
use brine_protocol::keys::{KeyFileAction, KeyFileError, KeyKind, KeyState, KeyStore, PublicKey, clean_pem};

use super::SETTLED;
use super::strangers::{Held, Room};
use crate::files;

/// Bound on the keys removed for a new one. If there are many too many, such as after a lower setting, they are removed
/// gradually.
const GONE_AT_ONCE: usize = 8;
/// A key file that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the key file {} cannot be {}: {}", .0.path.display(), participle(.0.action), .0.source)]
pub struct MinionKeyError(#[from] KeyFileError);

const fn participle(action: KeyFileAction) -> &'static str {
    match action {
        KeyFileAction::Make => "made",
        KeyFileAction::List => "listed",
        KeyFileAction::Inspect => "looked at",
        KeyFileAction::Read => "read",
        KeyFileAction::Write => "written",
        KeyFileAction::Move => "moved",
        KeyFileAction::Remove => "deleted",
    }
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

/// The master's key store. Calls block for short file operations.
pub struct MinionKeys {
    store: KeyStore,
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
        f.debug_struct("MinionKeys").field("store", &self.store).finish_non_exhaustive()
    }
}

impl MinionKeys {
    /// Opens the folders, and makes missing ones.
    ///
    /// # Errors
    /// If a folder cannot be made or listed.
    pub fn open(pki: &Path) -> Result<Self, MinionKeyError> {
        let autosign = pki.join("minions_autosign");
        files::make_dir(&autosign, 0o700).map_err(KeyFileError::at(KeyFileAction::Make, &autosign))?;
        Self::open_kind(KeyKind::Minions, pki)
    }

    /// Opens the folders of another kind of keys, and makes missing ones. For [`super::NodeKeys`].
    pub(super) fn open_kind(kind: KeyKind, pki: &Path) -> Result<Self, MinionKeyError> {
        let store = KeyStore::of(kind, pki);
        for state in KeyState::ALL {
            let path = store.folder(state);
            files::make_dir(&path, 0o700).map_err(KeyFileError::at(KeyFileAction::Make, &path))?;
        }
        let store = Self { store, cache: Mutex::default(), filled: Mutex::default() };
        // Lists the folders now, because listing many keys takes long.
        store.changing(&Filled::STATES, |_| Ok(()))?;
        Ok(store)
    }

    /// Returns the key of `id` in `state`.
    ///
    /// # Errors
    /// If the key's file exists and cannot be read.
    pub fn find(&self, state: KeyState, id: &MinionId) -> Result<Option<Arc<MinionKey>>, MinionKeyError> {
        let Some(now) = self.store.metadata(state, id)? else {
            lock(&self.cache).keys.remove(&(state, id.clone()));
            return Ok(None);
        };
        if let Some((stamp, key)) = lock(&self.cache).keys.get(&(state, id.clone()))
            && *stamp == Stamp::of(&now)
        {
            return Ok(Some(Arc::clone(key)));
        }
        let Some((content, metadata)) = self.store.find(state, id)? else { return Ok(None) };
        let key = Arc::new(MinionKey::new(&String::from_utf8_lossy(&content)));
        // Only accepted keys are needed repeatedly, and the operator decides their number.
        let stamp = Stamp::of(&metadata);
        if state == KeyState::Accepted && stamp.has_settled(SETTLED, SystemTime::now()) {
            lock(&self.cache).keys.insert((state, id.clone()), (stamp, Arc::clone(&key)));
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

    /// Returns whether there is a key of `id`, in any state. If a folder cannot be read, there may be one.
    pub(crate) fn is_known(&self, id: &MinionId) -> bool {
        KeyState::ALL.into_iter().any(|state| !matches!(self.store.metadata(state, id), Ok(None)))
    }

    /// Returns when the accepted key of `id` was put into its folder, according to the file system.
    pub fn stored_at(&self, id: &MinionId) -> Option<SystemTime> {
        Stamp::of(&self.store.metadata(KeyState::Accepted, id).ok()??).changed()
    }

    /// Returns the ids in `state`, sorted.
    ///
    /// # Errors
    /// If the folder cannot be listed.
    pub fn list(&self, state: KeyState) -> Result<Arc<Vec<MinionId>>, MinionKeyError> {
        let path = self.store.folder(state);
        let metadata = std::fs::metadata(&path).map_err(KeyFileError::at(KeyFileAction::List, &path))?;
        let stamp = Stamp::of(&metadata);
        if let Some((known, ids)) = lock(&self.cache).lists.get(&state)
            && *known == stamp
        {
            return Ok(Arc::clone(ids));
        }
        let mut ids = self.store.ids(state, |_| {})?;
        ids.sort();
        let ids = Arc::new(ids);
        let mut cache = lock(&self.cache);
        if stamp.has_settled(SETTLED, SystemTime::now()) {
            cache.lists.insert(state, (stamp, Arc::clone(&ids)));
        } else {
            cache.lists.remove(&state);
        }
        Ok(ids)
    }

    /// Stores a key's cleaned text under `id`. The caller has checked that it is a key. One that is accepted is to be synced
    /// ([`MinionKeys::sync_accepted`]).
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

    /// Waits until the accepted key of `id` is on the disk. Callers hold no lock, so that many share a sync.
    ///
    /// # Errors
    /// If it cannot be synced.
    pub fn sync_accepted(&self, id: &MinionId) -> Result<(), MinionKeyError> {
        Ok(self.store.sync_if_new(KeyState::Accepted, id).map(drop)?)
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
            filled.of(*state).map_or(Ok(()), |held| held.look(&self.store, *state))?;
        }
        let done = change(&mut filled);
        for state in states {
            filled.of(*state).into_iter().for_each(|held| held.changed(&self.store.folder(*state)));
        }
        done
    }

    fn write(&self, state: KeyState, id: &MinionId, pem: &str) -> Result<(), MinionKeyError> {
        let written = self.store.put(state, id, &clean_pem(pem));
        self.forget(state, id);
        Ok(written?)
    }

    /// Moves a key from one state to another, replacing a key there. Returns false if there is no key.
    ///
    /// # Errors
    /// If the key cannot be moved.
    pub fn move_to(&self, from: KeyState, to: KeyState, id: &MinionId) -> Result<bool, MinionKeyError> {
        // A symlink is never moved, because key folders must not contain any.
        if self.store.metadata(from, id)?.is_none_or(|m| !m.is_file()) {
            return Ok(false);
        }
        if from == to {
            return Ok(true);
        }
        if to == KeyState::Accepted && !self.store.sync_if_new(from, id)? {
            return Ok(false);
        }
        let renamed = |filled: &mut Filled| {
            let renamed = self.store.rename(from, to, id)?;
            if renamed {
                filled.of(from).into_iter().for_each(|held| held.remove(id));
                filled.of(to).into_iter().for_each(|held| held.add(id, None));
            }
            Ok(renamed)
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
        self.forget(state, id);
        Ok(self.store.remove(state, id)?)
    }

    /// Returns `pki_dir`.
    pub fn pki(&self) -> &Path {
        self.store.pki_dir()
    }

    fn forget(&self, state: KeyState, id: &MinionId) {
        let mut cache = lock(&self.cache);
        cache.keys.remove(&(state, id.clone()));
        cache.lists.remove(&state);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

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
            std::fs::rename(store.store.path(KeyState::Pending, &a), store.store.path(KeyState::Accepted, &a)).unwrap();
            assert_eq!(store.list(KeyState::Accepted).unwrap().as_slice(), std::slice::from_ref(&a), "round {round}");
            assert!(store.find(KeyState::Accepted, &a).unwrap().is_some());
            // As Python does it: written in place.
            std::fs::write(store.store.path(KeyState::Accepted, &a), format!("text {round}")).unwrap();
            assert_eq!(store.find(KeyState::Accepted, &a).unwrap().unwrap().pem, format!("text {round}"));
            std::fs::write(store.store.path(KeyState::Accepted, &b), "two").unwrap();
            assert_eq!(store.list(KeyState::Accepted).unwrap().len(), 2, "round {round}");
            std::fs::remove_file(store.store.path(KeyState::Accepted, &b)).unwrap();
            std::fs::rename(store.store.path(KeyState::Accepted, &a), store.store.path(KeyState::Pending, &a)).unwrap();
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
        std::fs::write(store.store.path(KeyState::Accepted, &a), "two").unwrap();
        assert_eq!(store.find(KeyState::Accepted, &a).unwrap().unwrap().pem, "two");
    }

    #[test]
    fn keys_are_written_for_the_master_alone() {
        let (_dir, store) = store();
        store.put(KeyState::Pending, &id("a"), "one\n").unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&store.store.path(KeyState::Pending, &id("a"))), 0o600);
        assert_eq!(mode(&store.pki().join("minions")), 0o700);
    }

    #[test]
    fn symlinks_and_dot_files_are_not_keys() {
        let (dir, store) = store();
        std::fs::write(dir.path().join("outside"), "x").unwrap();
        std::os::unix::fs::symlink(dir.path().join("outside"), store.store.path(KeyState::Accepted, &id("a"))).unwrap();
        std::fs::write(store.pki().join("minions/.key_cache"), "x").unwrap();
        assert!(store.list(KeyState::Accepted).unwrap().is_empty());
        assert!(store.find(KeyState::Accepted, &id("a")).unwrap_err().to_string().contains("symlink"));
        assert!(store.accepted(&id("a")).is_none());
        assert!(!store.move_to(KeyState::Accepted, KeyState::Pending, &id("a")).unwrap());
    }
}
