//! The key store in `pki_dir` (§3.6): one file for each minion, in the folder of its status. The running master, which
//! reads the folders at each authentication, and Python Salt share them. The content is therefore checked before use: a
//! name that is not a valid id is left out, and a link does not count as a key.

use std::path::{Path, PathBuf};

use brine_protocol::ids::MinionId;
use brine_protocol::keys::{self, PublicKey};
use brine_protocol::target::fnmatch;

/// Upper bound on the bytes of a key file.
const MAX_KEY: u64 = 64 << 10;

/// The status of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Status {
    /// The minion may connect.
    Accepted,
    /// The key waits for acceptance.
    Pending,
    /// The operator rejected the key.
    Rejected,
    /// The key is a second one for an id that has a key.
    Denied,
}

impl Status {
    /// All statuses in the order in which Salt processes them.
    pub const ALL: [Self; 4] = [Self::Pending, Self::Rejected, Self::Accepted, Self::Denied];

    /// The status's folder, which is also its name in listings.
    pub const fn folder(self) -> &'static str {
        match self {
            Self::Accepted => "minions",
            Self::Pending => "minions_pre",
            Self::Rejected => "minions_rejected",
            Self::Denied => "minions_denied",
        }
    }

    /// The name of the transition to this status in events.
    pub const fn act(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Pending => "pending",
            Self::Rejected => "rejected",
            Self::Denied => "denied",
        }
    }
}

/// Why an operation of the key store failed.
#[derive(Debug, thiserror::Error)]
pub enum KeyStoreError {
    /// A file or folder cannot be used.
    #[error("cannot {what} {}: {source}{}", path.display(), advice(.source))]
    Io {
        /// The operation.
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file holds no public key.
    #[error("the key of {id} is not a public key: {reason}")]
    NotAKey {
        /// The id.
        id: String,
        /// The reason.
        reason: String,
    },
}

fn advice(source: &std::io::Error) -> &'static str {
    match source.kind() {
        std::io::ErrorKind::PermissionDenied => "; run this as root or as the user that the master runs as",
        _ => "",
    }
}

/// Ids by status, in the order of a listing.
pub type Listing = Vec<(Status, Vec<String>)>;

/// The key store.
#[derive(Debug, Clone)]
pub struct KeyStore {
    pki_dir: PathBuf,
    owner: Option<u32>,
}

impl KeyStore {
    /// The key store in this folder, which need not exist yet.
    pub fn new(pki_dir: &Path) -> Self {
        Self { pki_dir: pki_dir.to_owned(), owner: None }
    }

    /// Makes this user the owner of new files, if this process is permitted to.
    #[must_use]
    pub const fn owned_by(mut self, uid: Option<u32>) -> Self {
        self.owner = uid;
        self
    }

    /// The ids with a status, sorted case-insensitively as Salt does.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn list(&self, status: Status) -> Result<Vec<String>, KeyStoreError> {
        let folder = self.pki_dir.join(status.folder());
        let failed = |source| KeyStoreError::Io { what: "read", path: folder.clone(), source };
        let entries = match std::fs::read_dir(&folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(failed)?,
        };
        let mut ids = Vec::new();
        for entry in entries {
            let entry = entry.map_err(failed)?;
            let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
            match entry.file_name().into_string() {
                // `.key_cache`, and temporary files
                Ok(name) if name.starts_with('.') => {}
                Ok(name) if is_file && name.parse::<MinionId>().is_ok() => ids.push(name),
                Ok(name) => tracing::warn!("left out {name:?} in {}: not the key of a minion", folder.display()),
                Err(name) => tracing::warn!("left out {name:?} in {}: not an id", folder.display()),
            }
        }
        ids.sort_by_cached_key(|id| id.to_lowercase());
        Ok(ids)
    }

    /// All ids by status.
    ///
    /// # Errors
    /// When a folder cannot be read.
    pub fn list_all(&self) -> Result<Listing, KeyStoreError> {
        Status::ALL.into_iter().map(|status| Ok((status, self.list(status)?))).collect()
    }

    /// The ids that match a glob, or one of several globs separated by commas. Statuses without a match are left out.
    ///
    /// # Errors
    /// When a folder cannot be read.
    pub fn matching(&self, globs: &str) -> Result<Listing, KeyStoreError> {
        let globs: Vec<_> = globs.split(',').collect();
        let mut out = Vec::new();
        for (status, ids) in self.list_all()? {
            let matched: Vec<_> = ids.into_iter().filter(|id| globs.iter().any(|glob| fnmatch(glob, id))).collect();
            if !matched.is_empty() {
                out.push((status, matched));
            }
        }
        Ok(out)
    }

    /// The PEM text of a key.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(&self, status: Status, id: &str) -> Result<String, KeyStoreError> {
        let path = self.path(status, id)?;
        let failed = |source| KeyStoreError::Io { what: "read", path: path.clone(), source };
        String::from_utf8(brine_files::read_own(&path, MAX_KEY).map_err(failed)?)
            .map_err(|_| KeyStoreError::NotAKey { id: id.to_owned(), reason: "it is no text".to_owned() })
    }

    /// Moves a key to another status and returns its PEM text. Only the owner can read the file.
    ///
    /// # Errors
    /// When the file holds no public key or cannot be moved; it then keeps its status.
    pub fn change(&self, from: Status, to: Status, id: &str) -> Result<String, KeyStoreError> {
        let pem = self.read(from, id)?;
        PublicKey::from_pem(&pem)
            .map_err(|error| KeyStoreError::NotAKey { id: id.to_owned(), reason: error.to_string() })?;
        let target = self.path(to, id)?;
        let failed = |source| KeyStoreError::Io { what: "write", path: target.clone(), source };
        let folder = target.parent().unwrap_or(&self.pki_dir);
        std::fs::create_dir_all(folder).map_err(failed)?;
        keys::write_file(&target, pem.as_bytes(), 0o600).map_err(failed)?;
        if self.owner.is_some() {
            // the master may run as another user than root; a process that is not root cannot change the owner and need
            // not
            let _ = std::os::unix::fs::chown(&target, self.owner, None);
        }
        self.delete(from, id)?;
        // an id has one key, so its keys of other statuses are removed, as in Salt
        for other in [Status::Accepted, Status::Pending, Status::Rejected] {
            if other != to {
                self.delete(other, id)?;
            }
        }
        Ok(pem)
    }

    /// Removes a key. A missing key is no error.
    ///
    /// # Errors
    /// When the key cannot be removed.
    pub fn delete(&self, status: Status, id: &str) -> Result<(), KeyStoreError> {
        let path = self.path(status, id)?;
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(KeyStoreError::Io { what: "remove", path, source: error })
            }
            _ => Ok(()),
        }
    }

    /// The public keys of the master itself (`master.pub` and similar), with their PEM texts.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn local(&self) -> Result<Vec<(String, String)>, KeyStoreError> {
        let failed = |source| KeyStoreError::Io { what: "read", path: self.pki_dir.clone(), source };
        let mut out = Vec::new();
        for entry in std::fs::read_dir(&self.pki_dir).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            if name.ends_with(".pub") && entry.path().is_file() {
                let pem = brine_files::read_named_text(&entry.path(), MAX_KEY).map_err(failed)?;
                out.push((name, pem));
            }
        }
        out.sort();
        Ok(out)
    }

    fn path(&self, status: Status, id: &str) -> Result<PathBuf, KeyStoreError> {
        let folder = self.pki_dir.join(status.folder());
        match id.parse::<MinionId>() {
            Ok(id) => Ok(folder.join(id.as_str())),
            Err(error) => {
                let source = std::io::Error::new(std::io::ErrorKind::InvalidInput, error.to_string());
                Err(KeyStoreError::Io { what: "use", path: folder, source })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    const GOLDEN: &str = include_str!("../../cli/tests/salt_key.json");

    fn pem(which: usize) -> String {
        let golden: serde_json::Value = serde_json::from_str(GOLDEN).unwrap();
        golden["pems"][which].as_str().unwrap().to_owned()
    }

    fn store() -> (tempfile::TempDir, KeyStore) {
        let folder = tempfile::tempdir().unwrap();
        for (status, id) in [(Status::Pending, "web1"), (Status::Accepted, "db1"), (Status::Rejected, "bad")] {
            let dir = folder.path().join(status.folder());
            std::fs::create_dir_all(&dir).unwrap();
            std::fs::write(dir.join(id), pem(0)).unwrap();
        }
        let store = KeyStore::new(folder.path());
        (folder, store)
    }

    #[test]
    fn ids_that_leave_the_folder_are_refused() {
        let (folder, store) = store();
        std::fs::write(folder.path().join("master.pub"), pem(0)).unwrap();
        for id in ["../master.pub", "..", ".", "", "a/b", "a\0b", "..\\x"] {
            assert!(store.read(Status::Accepted, id).is_err(), "{id:?}");
            assert!(store.delete(Status::Accepted, id).is_err(), "{id:?}");
            assert!(store.change(Status::Accepted, Status::Rejected, id).is_err(), "{id:?}");
        }
        assert!(folder.path().join("master.pub").exists());
    }

    #[test]
    fn links_and_hidden_files_are_nobodys_keys() {
        let (folder, store) = store();
        let pending = folder.path().join("minions_pre");
        std::os::unix::fs::symlink("/etc/passwd", pending.join("evil")).unwrap();
        std::fs::write(pending.join(".tmp123"), pem(0)).unwrap();
        std::fs::create_dir(pending.join("folder")).unwrap();
        assert_eq!(store.list(Status::Pending).unwrap(), ["web1"]);
    }

    #[test]
    fn a_changed_key_is_for_its_owner_only() {
        let (folder, store) = store();
        std::fs::set_permissions(folder.path().join("minions_pre/web1"), std::fs::Permissions::from_mode(0o666))
            .unwrap();
        store.change(Status::Pending, Status::Accepted, "web1").unwrap();
        let mode = std::fs::metadata(folder.path().join("minions/web1")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(store.list(Status::Pending).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn garbage_is_not_accepted_and_stays_where_it_is() {
        let (folder, store) = store();
        std::fs::write(folder.path().join("minions_pre/web1"), "garbage").unwrap();
        let error = store.change(Status::Pending, Status::Accepted, "web1").unwrap_err();
        assert!(error.to_string().starts_with("the key of web1 is not a public key"), "{error}");
        assert_eq!(store.list(Status::Pending).unwrap(), ["web1"]);
        assert_eq!(store.list(Status::Accepted).unwrap(), ["db1"]);
    }

    #[test]
    fn globs() {
        let (_folder, store) = store();
        let ids = |globs: &str| store.matching(globs).unwrap().into_iter().flat_map(|(_, ids)| ids).collect::<Vec<_>>();
        assert_eq!(ids("*"), ["web1", "bad", "db1"]);
        assert_eq!(ids("web?,db*"), ["web1", "db1"]);
        assert_eq!(ids("[w]eb1"), ["web1"]);
        assert_eq!(ids("none"), Vec::<String>::new());
        assert_eq!(ids("../minions/*"), Vec::<String>::new());
    }

    #[test]
    fn no_store_yet_is_an_empty_one() {
        let store = KeyStore::new(Path::new("/nonexistent/pki"));
        assert!(store.list_all().unwrap().iter().all(|(_, ids)| ids.is_empty()));
    }
}
