//! The keys by which local callers prove that they may read the master's files (§7.1): `cachedir/.<user>_key`.

use std::io;
use std::path::{Path, PathBuf};

use brine_protocol::crypticle::AesKey;
use brine_protocol::secret::Secret;
use subtle::{Choice, ConstantTimeEq};

use crate::files;

/// Bytes of a key file at most; ours have 76.
const KEY_MAX: u64 = 1_024;
/// An existing key shorter than this is replaced: an empty file must not become an empty password.
const KEY_MIN: usize = 32;

/// The local keys, each with the user it is for.
pub struct LocalKeys {
    keys: Vec<(String, Secret<String>)>,
}

impl LocalKeys {
    /// Reads or makes the key files of `users`. Existing ones are kept, so that callers need not look again after a restart.
    pub fn open(cachedir: &Path, users: &[String]) -> io::Result<Self> {
        let mut keys: Vec<(String, Secret<String>)> = Vec::new();
        for user in users {
            if keys.iter().any(|(known, _)| known == user) {
                continue;
            }
            let path = key_path(cachedir, user);
            let existing = files::read_regular(&path, KEY_MAX)?
                .and_then(|(content, _)| String::from_utf8(content).ok())
                .map(|text| Secret::new(text.trim().to_owned()))
                .filter(|text| text.expose().len() >= KEY_MIN);
            let key = match existing {
                Some(key) => {
                    use std::os::unix::fs::PermissionsExt;
                    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
                    key
                }
                None => {
                    let key = AesKey::generate().text().clone();
                    files::write_durable(&path, key.expose().as_bytes(), 0o600)?;
                    key
                }
            };
            keys.push((user.clone(), key));
        }
        Ok(Self { keys })
    }

    /// Whether `offered` is one of the keys. Takes the same time for every wrong key.
    pub fn accepts(&self, offered: &str) -> bool {
        let mut found = Choice::from(0);
        for (_, key) in &self.keys {
            found |= key.expose().as_bytes().ct_eq(offered.as_bytes());
        }
        found.into()
    }
}

fn key_path(cachedir: &Path, user: &str) -> PathBuf {
    // As Salt names it; a domain user's backslash would be a folder elsewhere.
    cachedir.join(format!(".{}_key", user.replace(['\\', '/'], "_")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_key_file_is_private_kept_and_the_only_thing_accepted() {
        let dir = tempfile::tempdir().unwrap();
        let users = ["root".to_owned(), "root".to_owned()];
        let keys = LocalKeys::open(dir.path(), &users).unwrap();
        let path = dir.path().join(".root_key");
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!((text.len(), std::fs::metadata(&path).unwrap().permissions().mode() & 0o777), (76, 0o600));
        assert!(keys.accepts(&text));
        // One that was left open is closed, and stays.
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(LocalKeys::open(dir.path(), &users).unwrap().accepts(&text));
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(LocalKeys::open(dir.path(), &users).unwrap().accepts(&text));
        for wrong in ["", " ", &text[1..], "x"] {
            assert!(!keys.accepts(wrong), "{wrong:?}");
        }
    }

    #[test]
    fn a_name_of_a_user_is_no_path() {
        let dir = tempfile::tempdir().unwrap();
        LocalKeys::open(dir.path(), &["DOMAIN\\joe".to_owned(), "../x".to_owned()]).unwrap();
        assert!(dir.path().join(".DOMAIN_joe_key").is_file() && dir.path().join("..._x_key").is_file());
    }

    #[test]
    fn an_empty_key_file_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(".root_key"), "").unwrap();
        let keys = LocalKeys::open(dir.path(), &["root".to_owned()]).unwrap();
        assert!(!keys.accepts(""));
    }
}
