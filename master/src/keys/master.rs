//! The master's own key pair in `pki_dir` (§3.6): read in the layouts of all versions of Python's master, or made.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use brine_protocol::ids::MinionId;
use brine_protocol::keys::{self, PrivateKey, PrivateOps};

/// Largest size of `master.pub` in bytes.
const PUBLIC_MAX: u64 = 64 << 10;

/// The reason why the master has no usable key.
#[derive(Debug, thiserror::Error)]
pub enum MasterKeyError {
    /// The key exists but is unusable.
    #[error(
        "{0}. The master cannot run without its key: restore the file, or remove it and its .pub to start with a new one \
             (every minion will then refuse this master until its minion_master.pub is removed)"
    )]
    Unusable(keys::KeyError),
    /// The key exists, but this user cannot read it.
    #[error(
        "the master's key {path} cannot be read by {user}: chown it to {user}, or run salt-master as the user it belongs to (user)",
        path = path.display()
    )]
    Unreadable {
        /// The key's file.
        path: PathBuf,
        /// The user that runs the master.
        user: String,
    },
    /// `master.pem` is a symlink to nowhere.
    #[error("{path} is a symlink to a file that does not exist: restore the key it named")]
    Dangling {
        /// The symlink.
        path: PathBuf,
    },
    /// Making or writing a new key failed.
    #[error("no key could be made in {path}: {why}", path = path.display())]
    Make {
        /// `pki_dir`.
        path: PathBuf,
        /// The error.
        why: String,
    },
}

/// A key pair with the implementation of its private operations.
#[derive(Clone)]
pub struct MasterKey {
    key: PrivateKey,
    ops: Arc<dyn PrivateOps>,
}

impl std::fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("MasterKey").field(&self.ops.public().fingerprint()).finish()
    }
}

impl MasterKey {
    /// Reads `<name>.pem` in `pki_dir`, or makes `<name>.pem` (0400) and `<name>.pub`. In 3008's layout `master.pem` is
    /// a symlink to `<id>.pem`. It is followed, because the master's own folder is trusted, unlike the folders of
    /// minions' keys. If only the symlink was lost, `<id>.pem` is found by the master's id.
    ///
    /// # Errors
    /// If the key is unusable or unreadable, or a new one cannot be made.
    pub fn open(pki_dir: &Path, name: &str, id: Option<&str>, bits: usize) -> Result<Self, MasterKeyError> {
        let mut private = pki_dir.join(format!("{name}.pem"));
        let mut public = pki_dir.join(format!("{name}.pub"));
        if let Some(id) =
            id.map(|id| id.strip_suffix("_master").unwrap_or(id)).and_then(|id| MinionId::try_from(id).ok())
            && std::fs::symlink_metadata(&private).is_err()
            && pki_dir.join(format!("{id}.pem")).is_file()
        {
            private = pki_dir.join(format!("{id}.pem"));
            public = pki_dir.join(format!("{id}.pub"));
        }
        let key = match std::fs::metadata(&private) {
            Ok(_) if rustix::fs::access(&private, rustix::fs::Access::READ_OK) == Err(rustix::io::Errno::ACCESS) => {
                return Err(MasterKeyError::Unreadable { path: private, user: brine_daemon::user::current() });
            }
            Ok(_) => PrivateKey::load(&private).map_err(MasterKeyError::Unusable)?,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                if std::fs::symlink_metadata(&private).is_ok() {
                    return Err(MasterKeyError::Dangling { path: private });
                }
                let failed = |why: String| MasterKeyError::Make { path: pki_dir.to_owned(), why };
                tracing::info!("making a new key of {bits} bits in {}", private.display());
                let key = crate::private_ops::generate(bits).map_err(|e| failed(e.to_string()))?;
                key.write_private(&private).map_err(|e| failed(e.to_string()))?;
                key
            }
            Err(source) => return Err(MasterKeyError::Unusable(keys::KeyError::File { path: private, source })),
        };
        let matches = brine_files::read_named_text(&public, PUBLIC_MAX)
            .is_ok_and(|pem| keys::clean_pem(&pem) == key.public().clean_pem());
        if !matches
            && std::fs::symlink_metadata(&public).is_err()
            && let Err(error) = key.public().write_public(&public)
        {
            tracing::warn!("{error}");
        }
        Ok(Self { ops: crate::private_ops::accelerate(key.clone()), key })
    }

    /// Returns the key itself, which TLS needs.
    pub const fn private(&self) -> &PrivateKey {
        &self.key
    }

    /// Returns the private operations.
    pub fn ops(&self) -> &Arc<dyn PrivateOps> {
        &self.ops
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn the_key_is_made_once_private_and_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let first = MasterKey::open(dir.path(), "master", None, 2048).unwrap();
        let mode = |name: &str| std::fs::metadata(dir.path().join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("master.pem"), mode("master.pub")), (0o400, 0o644));
        let second = MasterKey::open(dir.path(), "master", None, 2048).unwrap();
        assert_eq!(first.ops().public(), second.ops().public());
        // 3008's layout
        std::fs::rename(dir.path().join("master.pem"), dir.path().join("web.pem")).unwrap();
        std::fs::rename(dir.path().join("master.pub"), dir.path().join("web.pub")).unwrap();
        symlink("web.pem", dir.path().join("master.pem")).unwrap();
        symlink("web.pub", dir.path().join("master.pub")).unwrap();
        let third = MasterKey::open(dir.path(), "master", None, 2048).unwrap();
        assert_eq!(first.ops().public(), third.ops().public());
        std::fs::remove_file(dir.path().join("master.pem")).unwrap();
        let fourth = MasterKey::open(dir.path(), "master", Some("web_master"), 2048).unwrap();
        assert_eq!(first.ops().public(), fourth.ops().public());
        symlink("web.pem", dir.path().join("master.pem")).unwrap();
        // Never a new key in place of a missing one.
        std::fs::remove_file(dir.path().join("web.pem")).unwrap();
        assert!(matches!(MasterKey::open(dir.path(), "master", None, 2048), Err(MasterKeyError::Dangling { .. })));
    }
}
