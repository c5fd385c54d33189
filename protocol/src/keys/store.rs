//! The minions' keys in Salt's layout of `pki_dir` (§3.6): a folder for each state, a file for each id.
//!
//! The running master, `salt-key` and Python Salt share these folders. The content is therefore checked before use: a
//! name that is not a valid id is left out, and a link does not count as a key. Nothing is cached here; the master has
//! its own layer for that.

use std::ffi::OsStr;
use std::fmt;
use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::PublicKey;
use crate::files::{write_atomic, write_synced};
use crate::ids::MinionId;
use crate::target::fnmatch;

/// Upper bound on the bytes of a minion's key file. 16,384 bits take 2,900.
const MAX_MINION_KEY: u64 = 8 << 10;
/// After this time, unsynced data is on the disk: the kernel writes it after half a minute.
const WRITTEN_BACK: Duration = Duration::from_secs(90);

/// The state of a minion's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KeyState {
    /// The minion may work with the master.
    Accepted,
    /// The key waits for the operator.
    Pending,
    /// The operator rejected the key.
    Rejected,
    /// Another key is stored for this id: an impostor, or a reinstalled host.
    Denied,
}

impl KeyState {
    /// All states in the order in which Salt processes them.
    pub const ALL: [Self; 4] = [Self::Pending, Self::Rejected, Self::Accepted, Self::Denied];

    /// The state's folder of minions' keys, which is also its name in listings.
    pub const fn folder(self) -> &'static str {
        match self {
            Self::Accepted => "minions",
            Self::Pending => "minions_pre",
            Self::Rejected => "minions_rejected",
            Self::Denied => "minions_denied",
        }
    }

    /// The name of the transition to this state in events.
    pub const fn act(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Pending => "pending",
            Self::Rejected => "rejected",
            Self::Denied => "denied",
        }
    }

    /// The states that a word of `salt-key --list` selects, by its beginning as in Salt.
    pub fn listed_by(word: &str) -> Option<&'static [Self]> {
        let all: [(&str, &[Self]); 6] = [
            ("acc", &[Self::Accepted]),
            ("pre", &[Self::Pending]),
            ("un", &[Self::Pending]),
            ("rej", &[Self::Rejected]),
            ("den", &[Self::Denied]),
            ("all", &Self::ALL),
        ];
        all.into_iter().find(|(prefix, _)| word.starts_with(prefix)).map(|(_, states)| states)
    }
}

/// Whose keys a store has. Each kind has folders of its own, so a key that is accepted for one counts for no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// Minions, in Salt's folders.
    Minions,
    /// Nodes: salt-api on other hosts.
    Nodes,
}

impl KeyKind {
    /// The folder of the keys in a state, which is also its name in listings.
    pub const fn folder(self, state: KeyState) -> &'static str {
        match (self, state) {
            (Self::Minions, state) => state.folder(),
            (Self::Nodes, KeyState::Accepted) => "nodes",
            (Self::Nodes, KeyState::Pending) => "nodes_pre",
            (Self::Nodes, KeyState::Rejected) => "nodes_rejected",
            (Self::Nodes, KeyState::Denied) => "nodes_denied",
        }
    }
}

/// An operation on a file or folder of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum KeyFileAction {
    Make,
    List,
    Inspect,
    Read,
    Write,
    Move,
    Remove,
}

impl fmt::Display for KeyFileAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Make => "make",
            Self::List | Self::Read => "read",
            Self::Inspect => "look at",
            Self::Write => "write",
            Self::Move => "move",
            Self::Remove => "remove",
        })
    }
}

/// A file or folder of the key store that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}: {source}{}", path.display(), advice(source))]
pub struct KeyFileError {
    /// The operation.
    pub action: KeyFileAction,
    /// The file or folder.
    pub path: PathBuf,
    /// The system's error.
    pub source: io::Error,
}

impl KeyFileError {
    /// Makes the error of this action on this file of the system's error.
    pub fn at(action: KeyFileAction, path: &Path) -> impl Fn(io::Error) -> Self + Copy {
        move |source| Self { action, path: path.to_owned(), source }
    }
}

/// Why a key could not be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum KeyStoreError {
    /// A file or folder cannot be used.
    #[error(transparent)]
    File(#[from] KeyFileError),
    /// The file holds no public key.
    #[error("the key of {id} is not a public key: {reason}")]
    NotAKey {
        /// The id.
        id: MinionId,
        /// The reason.
        reason: String,
    },
}

fn advice(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::PermissionDenied => "; run this as root or as the user that the master runs as",
        _ => "",
    }
}

/// Ids by state, in the order of a listing.
pub type KeyListing = Vec<(KeyState, Vec<MinionId>)>;

/// The key store. Calls block for short file operations.
#[derive(Debug, Clone)]
pub struct KeyStore {
    pki_dir: PathBuf,
    kind: KeyKind,
    owner: Option<u32>,
}

impl KeyStore {
    /// The store of minions' keys in this folder, which need not exist yet.
    pub fn new(pki_dir: &Path) -> Self {
        Self::of(KeyKind::Minions, pki_dir)
    }

    /// The store of keys of a kind in this folder, which need not exist yet.
    pub fn of(kind: KeyKind, pki_dir: &Path) -> Self {
        Self { pki_dir: pki_dir.to_owned(), kind, owner: None }
    }

    /// Whose keys it has.
    pub const fn kind(&self) -> KeyKind {
        self.kind
    }

    /// Makes this user the owner of new files, if this process is permitted to.
    #[must_use]
    pub const fn owned_by(mut self, uid: Option<u32>) -> Self {
        self.owner = uid;
        self
    }

    /// `pki_dir`.
    pub fn pki_dir(&self) -> &Path {
        &self.pki_dir
    }

    /// The folder of the keys in a state.
    pub fn folder(&self, state: KeyState) -> PathBuf {
        self.pki_dir.join(self.kind.folder(state))
    }

    /// The file of a key.
    pub fn path(&self, state: KeyState, id: &MinionId) -> PathBuf {
        self.folder(state).join(id.as_str())
    }

    /// The ids in a state, unsorted; `odd` is called with each other name that is neither an id's nor hidden.
    ///
    /// # Errors
    /// When the folder is missing or cannot be read.
    pub fn ids(&self, state: KeyState, mut odd: impl FnMut(&OsStr)) -> Result<Vec<MinionId>, KeyFileError> {
        let folder = self.folder(state);
        let failed = KeyFileError::at(KeyFileAction::List, &folder);
        let mut ids = Vec::new();
        for entry in std::fs::read_dir(&folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            // Salt's `.key_cache`, and unfinished files
            if name.as_encoded_bytes().starts_with(b".") {
                continue;
            }
            // Links are never read, so they are not listed.
            let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
            match name.to_str().and_then(|name| MinionId::new(name).ok()).filter(|_| is_file) {
                Some(id) => ids.push(id),
                None => odd(&name),
            }
        }
        Ok(ids)
    }

    /// The ids in a state, sorted case-insensitively as Salt does. A missing folder is an empty one; names that are not
    /// the key of a minion are logged.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn list(&self, state: KeyState) -> Result<Vec<MinionId>, KeyFileError> {
        let odd = |name: &OsStr| {
            tracing::warn!("left out {name:?} in {}: not the key of a minion", self.folder(state).display());
        };
        let mut ids = match self.ids(state, odd) {
            Err(error) if error.source.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            ids => ids?,
        };
        ids.sort_by_cached_key(|id| id.as_str().to_lowercase());
        Ok(ids)
    }

    /// All ids by state.
    ///
    /// # Errors
    /// When a folder cannot be read.
    pub fn list_all(&self) -> Result<KeyListing, KeyFileError> {
        KeyState::ALL.into_iter().map(|state| Ok((state, self.list(state)?))).collect()
    }

    /// The ids that match a glob, or one of several globs separated by commas. States without a match are left out.
    ///
    /// # Errors
    /// When a folder cannot be read.
    pub fn matching(&self, globs: &str) -> Result<KeyListing, KeyFileError> {
        let globs: Vec<_> = globs.split(',').collect();
        let mut out = self.list_all()?;
        for (_, ids) in &mut out {
            ids.retain(|id| globs.iter().any(|glob| fnmatch(glob, id.as_str())));
        }
        out.retain(|(_, ids)| !ids.is_empty());
        Ok(out)
    }

    /// The `lstat` data of a key's file; none if it is missing.
    ///
    /// # Errors
    /// When the folder cannot be searched.
    pub fn metadata(&self, state: KeyState, id: &MinionId) -> Result<Option<Metadata>, KeyFileError> {
        let path = self.path(state, id);
        unless_missing(std::fs::symlink_metadata(&path), KeyFileAction::Inspect, &path)
    }

    /// The content of a key's file, and the metadata of the file that was read; none if it is missing.
    ///
    /// # Errors
    /// When it cannot be read, is no regular file of the store's owner, or is too large.
    pub fn find(&self, state: KeyState, id: &MinionId) -> Result<Option<(Vec<u8>, Metadata)>, KeyFileError> {
        let path = self.path(state, id);
        unless_missing(read(&path), KeyFileAction::Read, &path)
    }

    /// The PEM text of a key.
    ///
    /// # Errors
    /// When it is missing or cannot be read.
    pub fn read(&self, state: KeyState, id: &MinionId) -> Result<String, KeyStoreError> {
        let path = self.path(state, id);
        let (content, _) = read(&path).map_err(KeyFileError::at(KeyFileAction::Read, &path))?;
        String::from_utf8(content)
            .map_err(|_| KeyStoreError::NotAKey { id: id.clone(), reason: "it is no text".to_owned() })
    }

    /// Writes a key that only the owner can read. It is not synced ([`KeyStore::sync_if_new`]): strangers send their keys again, and
    /// a sync delays all writers of the disk.
    ///
    /// # Errors
    /// When the key cannot be written.
    pub fn put(&self, state: KeyState, id: &MinionId, pem: &str) -> Result<(), KeyFileError> {
        self.write(state, id, pem, write_atomic)
    }

    fn write(
        &self,
        state: KeyState,
        id: &MinionId,
        pem: &str,
        write: fn(&Path, &[u8], u32) -> io::Result<()>,
    ) -> Result<(), KeyFileError> {
        let path = self.path(state, id);
        write(&path, pem.as_bytes(), 0o600).map_err(KeyFileError::at(KeyFileAction::Write, &path))?;
        if self.owner.is_some() {
            // the master may run as another user than root; a process that is not root cannot change the owner and need
            // not
            let _ = std::os::unix::fs::chown(&path, self.owner, None);
        }
        Ok(())
    }

    /// Moves a key to another state by writing it anew, checked and with owner and mode, and removes the id's other
    /// keys. Returns its PEM text.
    ///
    /// # Errors
    /// When the file holds no public key or cannot be moved; it then keeps its state.
    pub fn change(&self, from: KeyState, to: KeyState, id: &MinionId) -> Result<String, KeyStoreError> {
        let pem = self.read(from, id)?;
        PublicKey::from_pem(&pem)
            .map_err(|error| KeyStoreError::NotAKey { id: id.clone(), reason: error.to_string() })?;
        std::fs::create_dir_all(self.folder(to)).map_err(KeyFileError::at(KeyFileAction::Write, &self.path(to, id)))?;
        self.write(to, id, &pem, write_synced)?;
        self.remove(from, id)?;
        // an id has one key, so its keys of other states are removed, as in Salt
        for other in [KeyState::Accepted, KeyState::Pending, KeyState::Rejected] {
            if other != to {
                self.remove(other, id)?;
            }
        }
        Ok(pem)
    }

    /// Renames the file of a key that is known to be the master's own and replaces a key there. Returns false if there
    /// is no such key.
    ///
    /// # Errors
    /// When the key cannot be moved.
    pub fn rename(&self, from: KeyState, to: KeyState, id: &MinionId) -> Result<bool, KeyFileError> {
        let path = self.path(from, id);
        let renamed = std::fs::rename(&path, self.path(to, id));
        Ok(unless_missing(renamed, KeyFileAction::Move, &path)?.is_some())
    }

    /// Syncs a key and its place in the folder, unless it is old: the kernel has written old files to disk by itself. Syncs that are
    /// asked for at the same time share their way to the disk. Returns false if there is no such key.
    ///
    /// # Errors
    /// When the key cannot be synced.
    pub fn sync_if_new(&self, state: KeyState, id: &MinionId) -> Result<bool, KeyFileError> {
        let sync = |path: &Path| {
            let file = File::open(path)?;
            let age = SystemTime::now().duration_since(file.metadata()?.modified()?);
            if age.is_ok_and(|age| age > WRITTEN_BACK) {
                return Ok(());
            }
            file.sync_all()?;
            File::open(self.folder(state))?.sync_all()
        };
        let path = self.path(state, id);
        Ok(unless_missing(sync(&path), KeyFileAction::Move, &path)?.is_some())
    }

    /// Removes a key. Returns false if there was none.
    ///
    /// # Errors
    /// When the key cannot be removed.
    pub fn remove(&self, state: KeyState, id: &MinionId) -> Result<bool, KeyFileError> {
        let path = self.path(state, id);
        Ok(unless_missing(std::fs::remove_file(&path), KeyFileAction::Remove, &path)?.is_some())
    }

    /// The public keys of the master itself (`master.pub` and similar), with their PEM texts.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn local(&self) -> Result<Vec<(String, String)>, KeyFileError> {
        let failed = KeyFileError::at(KeyFileAction::List, &self.pki_dir);
        let mut out = Vec::new();
        for entry in std::fs::read_dir(&self.pki_dir).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            if name.ends_with(".pub") && entry.path().is_file() {
                let pem = brine_files::read_named_text(&entry.path(), super::MAX_KEY_FILE).map_err(failed)?;
                out.push((name, pem));
            }
        }
        out.sort();
        Ok(out)
    }
}

fn read(path: &Path) -> io::Result<(Vec<u8>, Metadata)> {
    let file = brine_files::open_own(path)?;
    let metadata = file.metadata()?;
    Ok((brine_files::read(&file, MAX_MINION_KEY)?, metadata))
}

fn unless_missing<T>(result: io::Result<T>, action: KeyFileAction, path: &Path) -> Result<Option<T>, KeyFileError> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some).map_err(KeyFileError::at(action, path)),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::sync::LazyLock;

    use super::super::PrivateKey;
    use super::*;

    static PEM: LazyLock<String> = LazyLock::new(|| PrivateKey::generate(1024).unwrap().public().to_pem());

    fn store() -> (tempfile::TempDir, KeyStore) {
        let folder = tempfile::tempdir().unwrap();
        for (state, id) in [(KeyState::Pending, "web1"), (KeyState::Accepted, "db1"), (KeyState::Rejected, "bad")] {
            let dir = folder.path().join(state.folder());
            std::fs::create_dir_all(&dir).unwrap();
            std::fs::write(dir.join(id), &*PEM).unwrap();
        }
        let store = KeyStore::new(folder.path());
        (folder, store)
    }

    fn id(text: &str) -> MinionId {
        text.parse().unwrap()
    }

    /// The store takes checked ids only.
    #[test]
    fn ids_that_leave_the_folder_are_refused() {
        for id in ["../master.pub", "..", ".", "", "a/b", "a\0b", "..\\x"] {
            assert!(id.parse::<MinionId>().is_err(), "{id:?}");
        }
    }

    #[test]
    fn links_and_hidden_files_are_nobodys_keys() {
        let (folder, store) = store();
        let pending = folder.path().join("minions_pre");
        std::os::unix::fs::symlink("/etc/passwd", pending.join("evil")).unwrap();
        std::fs::write(pending.join(".tmp123"), &*PEM).unwrap();
        std::fs::create_dir(pending.join("folder")).unwrap();
        assert_eq!(store.list(KeyState::Pending).unwrap(), [id("web1")]);
        let mut odd = Vec::new();
        store.ids(KeyState::Pending, |name| odd.push(name.to_owned())).unwrap();
        odd.sort();
        assert_eq!(odd, ["evil", "folder"]);
        assert!(store.read(KeyState::Pending, &id("evil")).unwrap_err().to_string().contains("symlink"));
        assert!(store.change(KeyState::Pending, KeyState::Accepted, &id("evil")).is_err());
    }

    #[test]
    fn a_changed_key_is_for_its_owner_only() {
        let (folder, store) = store();
        std::fs::set_permissions(folder.path().join("minions_pre/web1"), std::fs::Permissions::from_mode(0o666))
            .unwrap();
        store.change(KeyState::Pending, KeyState::Accepted, &id("web1")).unwrap();
        let mode = std::fs::metadata(folder.path().join("minions/web1")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(store.list(KeyState::Pending).unwrap().is_empty());
    }

    #[test]
    fn garbage_is_not_accepted_and_stays_where_it_is() {
        let (folder, store) = store();
        std::fs::write(folder.path().join("minions_pre/web1"), "garbage").unwrap();
        let error = store.change(KeyState::Pending, KeyState::Accepted, &id("web1")).unwrap_err();
        assert!(error.to_string().starts_with("the key of web1 is not a public key"), "{error}");
        assert_eq!(store.list(KeyState::Pending).unwrap(), [id("web1")]);
        assert_eq!(store.list(KeyState::Accepted).unwrap(), [id("db1")]);
    }

    #[test]
    fn globs() {
        let (_folder, store) = store();
        let ids = |globs: &str| store.matching(globs).unwrap().into_iter().flat_map(|(_, ids)| ids).collect::<Vec<_>>();
        assert_eq!(ids("*"), ["web1", "bad", "db1"]);
        assert_eq!(ids("web?,db*"), ["web1", "db1"]);
        assert_eq!(ids("[w]eb1"), ["web1"]);
        assert!(ids("none").is_empty());
        assert!(ids("../minions/*").is_empty());
    }

    #[test]
    fn no_store_yet_is_an_empty_one() {
        let store = KeyStore::new(Path::new("/nonexistent/pki"));
        assert!(store.list_all().unwrap().iter().all(|(_, ids)| ids.is_empty()));
    }
}
