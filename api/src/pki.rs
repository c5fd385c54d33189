//! The keys of a salt-api on another host than its master's, in `api_pki_dir`: `api.pem`, its own; `api.pub`; and `api_master.pub`, the
//! key of the master that it trusts.

use std::fmt;
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use brine_protocol::files::write_synced;
use brine_protocol::keys::{KeyError, PrivateKey, PublicKey, fingerprint_by};

/// Hashes of fingerprints, by the number of their bytes.
const HASHES: [(usize, &str); 5] = [(20, "sha1"), (28, "sha224"), (32, "sha256"), (48, "sha384"), (64, "sha512")];

/// Why the keys cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// A key file is wrong.
    #[error("{0}")]
    Key(#[from] KeyError),
    /// A file cannot be used.
    #[error("{} cannot be used: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Others may write a file.
    #[error(
        "{} (owner {owner}, mode {mode:04o}) may be written by others, who could put another key there: it must be this user's or \
         root's, mode {should:04o}", path.display()
    )]
    Writable {
        /// The file.
        path: PathBuf,
        /// Its owner.
        owner: u32,
        /// Its mode.
        mode: u32,
        /// The mode that it should have.
        should: u32,
    },
    /// The setting is no fingerprint.
    #[error(
        "api_master_finger is no fingerprint: it has bytes as two hexadecimal digits with colons between them, as salt-key -f shows it"
    )]
    Finger,
}

/// The node's keys.
pub struct NodePki {
    dir: PathBuf,
    key: PrivateKey,
    finger: Option<String>,
}

impl fmt::Debug for NodePki {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodePki").field("dir", &self.dir).finish_non_exhaustive()
    }
}

/// The master's key, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pin {
    /// Its fingerprint, of the configuration.
    Finger(String),
    /// The key of the first contact, and its file.
    Known(PublicKey, PathBuf),
    /// There was no contact yet.
    First,
}

impl Pin {
    /// Whether this is the master's key.
    pub fn fits(&self, key: &PublicKey) -> bool {
        match self {
            Self::Finger(finger) => hash_of(finger)
                .and_then(|hash| fingerprint_by(hash, &key.to_pem()).ok())
                .is_some_and(|own| own.eq_ignore_ascii_case(finger)),
            Self::Known(known, _) => known == key,
            Self::First => true,
        }
    }

    /// What is wrong about another key, and what to do.
    pub(crate) fn mismatch(&self, key: &PublicKey) -> String {
        let found = key.fingerprint();
        match self {
            Self::Known(known, path) => format!(
                "it has another key than before, {found} and not {}: somebody else may be there in its place. If the master has a new \
                 key, compare it with salt-key -f master.pub on the master, and remove {}",
                known.fingerprint(),
                path.display()
            ),
            _ => format!("its key {found} is not that of api_master_finger: somebody else may be there in its place"),
        }
    }
}

/// The hash that a fingerprint is of.
fn hash_of(finger: &str) -> Option<&'static str> {
    let bytes: Vec<&str> = finger.split(':').collect();
    let is_good = bytes.iter().all(|byte| byte.len() == 2 && byte.bytes().all(|digit| digit.is_ascii_hexdigit()));
    HASHES.iter().find(|(length, _)| is_good && *length == bytes.len()).map(|(_, hash)| *hash)
}

impl NodePki {
    /// Reads the keys in this folder, and makes a key of so many bits if there is none, which takes seconds. `finger` is the
    /// fingerprint of the master's key, if the configuration has it.
    ///
    /// # Errors
    /// When a key cannot be made, read or trusted.
    pub fn open(dir: &Path, bits: usize, finger: Option<String>) -> Result<Self, PinError> {
        if finger.as_deref().is_some_and(|finger| hash_of(finger).is_none()) {
            return Err(PinError::Finger);
        }
        let path = dir.join("api.pem");
        let key = match std::fs::symlink_metadata(&path) {
            Ok(_) => {
                refuse_foreign(&path, 0o400)?;
                let failed = |source| PinError::File { path: path.clone(), source };
                if std::fs::metadata(&path).map_err(failed)?.mode() & 0o077 != 0 {
                    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o400)).map_err(failed)?;
                }
                PrivateKey::load(&path)?
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                tracing::info!("making this salt-api's key, {bits} bits, in {}", path.display());
                let key = PrivateKey::generate(bits)?;
                key.write_private(&path)?;
                key
            }
            Err(source) => return Err(PinError::File { path, source }),
        };
        let public = dir.join("api.pub");
        if PublicKey::load(&public).ok().as_ref() != Some(key.public()) {
            key.public().write_public(&public)?;
        }
        Ok(Self { dir: dir.to_owned(), key, finger })
    }

    /// A key without a folder.
    #[cfg(test)]
    pub(crate) fn of(key: PrivateKey) -> Self {
        Self { dir: PathBuf::new(), key, finger: None }
    }

    /// The node's key.
    pub const fn key(&self) -> &PrivateKey {
        &self.key
    }

    /// Its file.
    pub fn key_path(&self) -> PathBuf {
        self.dir.join("api.pem")
    }

    /// The fingerprint of its public half.
    pub fn fingerprint(&self) -> String {
        self.key.public().fingerprint()
    }

    /// Returns what is known of the master's key.
    ///
    /// # Errors
    /// When the file cannot be read or trusted.
    pub fn pin(&self) -> Result<Pin, PinError> {
        if let Some(finger) = &self.finger {
            return Ok(Pin::Finger(finger.clone()));
        }
        let path = self.master_path();
        match std::fs::symlink_metadata(&path) {
            Ok(_) => {
                refuse_foreign(&path, 0o644)?;
                Ok(Pin::Known(PublicKey::load(&path)?, path))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Pin::First),
            Err(source) => Err(PinError::File { path, source }),
        }
    }

    /// Trusts a key from now on, if this is the first contact.
    ///
    /// # Errors
    /// When it cannot be written down; then it is not trusted.
    pub fn trust(&self, pin: &Pin, key: &PublicKey) -> Result<(), PinError> {
        if *pin != Pin::First {
            return Ok(());
        }
        let path = self.master_path();
        tracing::warn!(
            "trusting the master's key {} from now on ({}): compare it with salt-key -f master.pub on the master, or set \
             api_master_finger",
            key.fingerprint(),
            path.display()
        );
        write_synced(&path, key.to_pem().as_bytes(), 0o644).map_err(|source| PinError::File { path, source })
    }

    fn master_path(&self) -> PathBuf {
        self.dir.join("api_master.pub")
    }
}

/// Refuses a file that a user other than root and this one owns, or that the group or others may write.
fn refuse_foreign(path: &Path, should: u32) -> Result<(), PinError> {
    let file = std::fs::metadata(path).map_err(|source| PinError::File { path: path.to_owned(), source })?;
    let (owner, mode) = (file.uid(), file.mode() & 0o7777);
    if mode & 0o022 != 0 || !(owner == 0 || owner == rustix::process::geteuid().as_raw()) {
        return Err(PinError::Writable { path: path.to_owned(), owner, mode, should });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> (tempfile::TempDir, PrivateKey, PrivateKey) {
        let dir = tempfile::tempdir().unwrap();
        let [one, two, _] = brine_kit::keys::PEM.map(|pem| PrivateKey::from_pem(pem).unwrap());
        one.write_private(&dir.path().join("api.pem")).unwrap();
        (dir, one, two)
    }

    #[test]
    fn the_masters_key_is_trusted_once() {
        let (dir, own, master) = folder();
        let pki = NodePki::open(dir.path(), 2_048, None).unwrap();
        assert_eq!(pki.key().public(), own.public());
        assert_eq!(&PublicKey::load(&dir.path().join("api.pub")).unwrap(), own.public());
        let first = pki.pin().unwrap();
        assert!(first == Pin::First && first.fits(master.public()));
        pki.trust(&first, master.public()).unwrap();
        let known = pki.pin().unwrap();
        assert!(known.fits(master.public()) && !known.fits(own.public()));
        assert!(known.mismatch(own.public()).contains("another key than before"));
        // Later keys change nothing.
        pki.trust(&known, own.public()).unwrap();
        assert_eq!(pki.pin().unwrap(), known);
        std::fs::set_permissions(dir.path().join("api_master.pub"), std::fs::Permissions::from_mode(0o666)).unwrap();
        assert!(matches!(pki.pin(), Err(PinError::Writable { .. })));
    }

    #[test]
    fn a_fingerprint_says_which_key() {
        let (dir, own, master) = folder();
        for (_, hash) in HASHES {
            let finger = fingerprint_by(hash, &master.public().to_pem()).unwrap();
            let pki = NodePki::open(dir.path(), 2_048, Some(finger.to_uppercase())).unwrap();
            let pin = pki.pin().unwrap();
            assert!(pin.fits(master.public()) && !pin.fits(own.public()), "{hash}");
            pki.trust(&pin, master.public()).unwrap();
            assert!(!dir.path().join("api_master.pub").exists(), "the configuration has it");
        }
        for wrong in ["", "ab", "xx:yy", &"ab:".repeat(32), &"ab".repeat(32)] {
            assert!(
                matches!(NodePki::open(dir.path(), 2_048, Some(wrong.to_owned())), Err(PinError::Finger)),
                "{wrong}"
            );
        }
    }

    #[test]
    fn the_own_key_is_private() {
        let (dir, ..) = folder();
        let path = dir.path().join("api.pem");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        NodePki::open(dir.path(), 2_048, None).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o400);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o620)).unwrap();
        assert!(matches!(NodePki::open(dir.path(), 2_048, None), Err(PinError::Writable { .. })));
    }
}
