//! The minions' keys, in Salt's `pki_dir` layout (§3.6): one folder a state, one file an id.
//!
//! The folder is the truth: `salt-key`, Brine's or Python's, edits it while the master runs. What is read is cached with what
//! `lstat` said, and used again only while `lstat` says the same, so an edit counts from the next request on.

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

/// Bytes of a public key's PEM text. 16,384 bits take 2,900.
const PEM_MAX: u64 = 8 * 1024;
/// Keys that go for a new one at most. Where there are many too many, as after the setting was lowered, they go bit by bit.
const GONE_AT_ONCE: usize = 8;
/// The kernel writes what was not synced to the disk after half a minute.
const WRITTEN_BACK: Duration = Duration::from_secs(90);
/// What an operator decided about a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyState {
    /// May do what minions do.
    Accepted,
    /// Waits for the operator.
    Pending,
    /// Turned away by the operator.
    Rejected,
    /// Another key than the one stored for its id: an impostor, or a reinstalled host.
    Denied,
}

impl KeyState {
    /// Every state, in the order of `salt-key -L`'s JSON.
    pub const ALL: [Self; 4] = [Self::Accepted, Self::Pending, Self::Rejected, Self::Denied];

    /// The folder's name in `pki_dir`.
    pub const fn dir(self) -> &'static str {
        match self {
            Self::Accepted => "minions",
            Self::Pending => "minions_pre",
            Self::Rejected => "minions_rejected",
            Self::Denied => "minions_denied",
        }
    }
}

/// A key file could not be used.
#[derive(Debug, thiserror::Error)]
#[error("the key file {path} cannot be {what}: {why}", path = path.display())]
pub struct MinionKeyError {
    path: PathBuf,
    what: &'static str,
    why: io::Error,
}

/// A minion's public key as it lies in a folder.
pub struct MinionKey {
    /// The PEM text, cleaned.
    pub pem: String,
    /// The key itself; `None` if the text is no key.
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

/// The key folders. Calls are short file operations.
pub struct MinionKeys {
    pki: PathBuf,
    cache: Mutex<Cache>,
    /// Held while this process changes one of them.
    filled: Mutex<Filled>,
}

/// The folders that strangers fill.
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
            // Of these there is one for each that an operator or a rule of the operator's let in, or that waits.
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
    /// Makes the folders that are missing.
    pub fn open(pki: &Path) -> Result<Self, MinionKeyError> {
        for dir in KeyState::ALL.map(KeyState::dir).into_iter().chain(["minions_autosign"]) {
            let path = pki.join(dir);
            files::make_dir(&path, 0o700).map_err(|why| MinionKeyError { path, what: "made", why })?;
        }
        let store = Self { pki: pki.to_owned(), cache: Mutex::default(), filled: Mutex::default() };
        // They are listed now, because many take their time.
        store.changing(&Filled::STATES, |_| Ok(()))?;
        Ok(store)
    }

    /// The key of `id` in `state`.
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
        // Only accepted keys are asked for again and again, and their number is the operator's choice.
        if state == KeyState::Accepted && settled(&metadata) {
            lock(&self.cache).keys.insert((state, id.clone()), (Stamp::of(&metadata), Arc::clone(&key)));
        }
        Ok(Some(key))
    }

    /// The accepted key of `id`, if it is one that can be used.
    pub fn accepted(&self, id: &MinionId) -> Option<Arc<MinionKey>> {
        match self.find(KeyState::Accepted, id) {
            Ok(key) => key.filter(|key| key.public.is_some()),
            Err(error) => {
                tracing::error!("{error}");
                None
            }
        }
    }

    /// When the accepted key of `id` came to lie where it lies, as far as the file system tells.
    pub fn stored_at(&self, id: &MinionId) -> Option<SystemTime> {
        Some(changed(&lstat(&self.path(KeyState::Accepted, id)).ok()??))
    }

    /// The ids in `state`, sorted.
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

    /// Stores a key's cleaned text under `id`. Whether it is a key was checked before.
    pub fn put(&self, state: KeyState, id: &MinionId, pem: &str) -> Result<(), MinionKeyError> {
        self.changing(&[state], |filled| {
            self.write(state, id, pem)?;
            filled.of(state).into_iter().for_each(|held| held.add(id, None));
            Ok(())
        })
    }

    /// Stores the key of a stranger, which came from `origin`, to wait for an operator. Where there is no room the oldest go, those of the
    /// same address if these are too many; answers which.
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
                // Somebody else may have been faster.
                if self.unlink(state, &oldest)? {
                    gone.push(oldest);
                }
            }
            self.write(state, id, pem)?;
            held.add(id, origin);
            Ok(gone)
        })
    }

    /// Stores the key of a stranger that a rule rejects, if there is room: rejected keys are the operator's, none of them goes for it.
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

    /// Changes folders, and notes that it was this process that did.
    fn changing<T>(
        &self,
        states: &[KeyState],
        change: impl FnOnce(&mut Filled) -> Result<T, MinionKeyError>,
    ) -> Result<T, MinionKeyError> {
        if states.iter().all(|state| !Filled::STATES.contains(state)) {
            // Nothing to note, and a sync that nobody has to wait for.
            return change(&mut Filled::default());
        }
        let mut filled = lock(&self.filled);
        // Else what another program did before this would be taken for ours.
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

    /// Only what lets somebody in is worth a sync, which everybody waits for who writes to this disk: a stranger comes again.
    fn write(&self, state: KeyState, id: &MinionId, pem: &str) -> Result<(), MinionKeyError> {
        let path = self.path(state, id);
        let write = if state == KeyState::Accepted { files::write_durable } else { files::write_atomic };
        let written = write(&path, clean_pem(pem).as_bytes(), 0o600);
        self.forget(state, id);
        written.map_err(|why| MinionKeyError { path, what: "written", why })
    }

    /// Moves a key from one state to another, replacing what is there. False if there is none.
    pub fn move_to(&self, from: KeyState, to: KeyState, id: &MinionId) -> Result<bool, MinionKeyError> {
        let path = self.path(from, id);
        // Never a symlink: after the move it would be one in a folder that must not have any.
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

    /// Deletes a key. False if there was none.
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

    /// `pki_dir`.
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

/// A key that waits is not worth a sync, and one that is accepted is. What lies there for longer is on the disk without.
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
            // as salt-key does it: a rename behind the master's back
            std::fs::rename(store.path(KeyState::Pending, &a), store.path(KeyState::Accepted, &a)).unwrap();
            assert_eq!(store.list(KeyState::Accepted).unwrap().as_slice(), std::slice::from_ref(&a), "round {round}");
            assert!(store.find(KeyState::Accepted, &a).unwrap().is_some());
            // as Python does it: written in place
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
        // It is remembered once its time is past.
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
