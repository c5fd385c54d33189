//! The minion's key and the master's key that it trusts, on disk (PROTOCOL §3.6).
//!
//! A user who can write these files can act as the minion or as its master, so the minion refuses files that others may
//! write.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use brine_protocol::files::write_synced;
use brine_protocol::keys::{KeyError, PrivateKey, PublicKey};
use brine_receipts::SigningKey;
use tracing::info;

/// Upper bound on the bytes of `minion.pub`.
const MAX_PUBLIC: u64 = 64 << 10;

/// Why keys cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    /// The folder cannot be used.
    #[error("the folder {path} of the minion's keys cannot be {what}: {source}")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The operation that failed.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// Others may have changed the file.
    #[error(
        "{path} may be written by others (mode {mode:04o}, owner {owner}), so it is not trusted; chown it to the minion's user and chmod {should:04o} it"
    )]
    Writable {
        /// The file or folder.
        path: PathBuf,
        /// Its mode.
        mode: u32,
        /// Its owner's uid.
        owner: u32,
        /// A mode that the minion accepts.
        should: u32,
    },
    /// A key cannot be used.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The key that must have signed the master's key cannot be used.
    #[error("verify_master_pubkey_sign is set, but {source}; copy the master's public signing key to {path}")]
    VerifyKey {
        /// The file of the key.
        path: PathBuf,
        /// The error.
        source: KeyError,
    },
}

/// The folder `pki_dir` and the minion's key in it.
#[derive(Debug, Clone)]
pub struct Pki {
    dir: PathBuf,
    key: Arc<PrivateKey>,
}

impl Pki {
    /// Opens `pki_dir`. Makes the folder and the key if they are missing; making a key takes seconds.
    ///
    /// # Errors
    /// When the folder or a key cannot be made, read or trusted.
    pub fn open(dir: &Path, keysize: usize) -> Result<Self, PkiError> {
        let fail = |what| move |source| PkiError::Folder { path: dir.to_owned(), what, source };
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(fail("made"))?;
        refuse_foreign(dir, 0o700)?;
        let path = dir.join("minion.pem");
        let key = if path.exists() {
            refuse_foreign(&path, 0o400)?;
            let mode = fs::metadata(&path).map_err(fail("read"))?.permissions().mode();
            if mode & 0o077 != 0 {
                // An earlier program left it readable by others.
                fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).map_err(fail("made private"))?;
            }
            PrivateKey::load(&path)?
        } else {
            info!("making the minion's key, {keysize} bits");
            let key = PrivateKey::generate(keysize)?;
            key.write_private(&path)?;
            key
        };
        let public = dir.join("minion.pub");
        if brine_files::read_named_text(&public, MAX_PUBLIC).ok().as_deref() != Some(key.public().to_pem().as_str()) {
            key.public().write_public(&public)?;
        }
        Ok(Self { dir: dir.to_owned(), key: Arc::new(key) })
    }

    /// The minion's key.
    pub fn key(&self) -> &Arc<PrivateKey> {
        &self.key
    }

    /// The key that signs receipts, `minion_receipts.pem`. Makes it if it is missing.
    ///
    /// # Errors
    /// When the file cannot be made, read or trusted.
    pub fn receipts_key(&self) -> Result<SigningKey, PkiError> {
        let path = self.dir.join("minion_receipts.pem");
        let fail = |what| move |source| PkiError::Folder { path: self.dir.clone(), what, source };
        if !path.exists() {
            info!("making the key of receipts, {}", path.display());
            let pem = SigningKey::generate().map_err(|e| fail("written to")(io::Error::other(e)))?;
            write_synced(&path, pem.as_bytes(), 0o400).map_err(fail("written to"))?;
        }
        refuse_foreign(&path, 0o400)?;
        let pem = brine_files::read_named_text(&path, MAX_PUBLIC).map_err(fail("read"))?;
        SigningKey::from_pem(&pem)
            .map_err(|e| fail("used for receipts")(io::Error::other(format!("{}: {e}", path.display()))))
    }

    /// The file of the trusted master key.
    pub fn master_path(&self) -> PathBuf {
        self.dir.join("minion_master.pub")
    }

    /// The master key that the minion has trusted since first contact; none before that.
    ///
    /// # Errors
    /// When the file cannot be read or trusted.
    pub fn master(&self) -> Result<Option<PublicKey>, PkiError> {
        let path = self.master_path();
        if !path.exists() {
            return Ok(None);
        }
        refuse_foreign(&path, 0o644)?;
        Ok(Some(PublicKey::load(&path)?))
    }

    /// Trusts a master key from now on.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn trust_master(&self, key: &PublicKey) -> Result<(), PkiError> {
        let path = self.master_path();
        info!("trusting the master's key {} from now on ({})", key.fingerprint(), path.display());
        write_synced(&path, key.clean_pem().as_bytes(), 0o644).map_err(|source| PkiError::Folder {
            path: self.dir.clone(),
            what: "written to",
            source,
        })
    }

    /// Loads the key that signs master keys (`verify_master_pubkey_sign`).
    ///
    /// # Errors
    /// When the file cannot be read or trusted.
    pub fn verify_key(path: &Path) -> Result<PublicKey, PkiError> {
        if path.exists() {
            refuse_foreign(path, 0o644)?;
        }
        PublicKey::load(path).map_err(|source| PkiError::VerifyKey { path: path.to_owned(), source })
    }
}

/// Refuses a file that a user other than root and this one owns, or that the group or others may write.
fn refuse_foreign(path: &Path, should: u32) -> Result<(), PkiError> {
    let meta = fs::metadata(path).map_err(|source| PkiError::Folder { path: path.to_owned(), what: "read", source })?;
    let own = rustix::process::geteuid().as_raw();
    let mode = meta.permissions().mode() & 0o7777;
    if mode & 0o022 != 0 || !(meta.uid() == own || meta.uid() == 0) {
        return Err(PkiError::Writable { path: path.to_owned(), mode, owner: meta.uid(), should });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn a_key_is_made_once_and_is_private() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("pki");
        let first = Pki::open(&dir, 2048).unwrap();
        assert_eq!((mode(&dir), mode(&dir.join("minion.pem"))), (0o700, 0o400));
        let again = Pki::open(&dir, 2048).unwrap();
        assert_eq!(first.key().public(), again.key().public());
        assert!(first.master().unwrap().is_none());
        first.trust_master(again.key().public()).unwrap();
        assert_eq!(first.master().unwrap().as_ref(), Some(again.key().public()));
    }

    #[test]
    fn what_others_may_write_is_not_trusted() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("pki");
        let pki = Pki::open(&dir, 2048).unwrap();
        pki.trust_master(pki.key().public()).unwrap();
        fs::set_permissions(pki.master_path(), fs::Permissions::from_mode(0o666)).unwrap();
        assert!(matches!(pki.master(), Err(PkiError::Writable { .. })));
        fs::set_permissions(dir.join("minion.pem"), fs::Permissions::from_mode(0o420)).unwrap();
        assert!(matches!(Pki::open(&dir, 2048), Err(PkiError::Writable { .. })));
        fs::set_permissions(dir.join("minion.pem"), fs::Permissions::from_mode(0o444)).unwrap();
        Pki::open(&dir, 2048).unwrap();
        assert_eq!(mode(&dir.join("minion.pem")), 0o400);
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(Pki::open(&dir, 2048), Err(PkiError::Writable { .. })));
    }
}
