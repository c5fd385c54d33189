//! The keys of local callers, `cachedir/.<user>_key` (§7.1). A key proves that the caller can read its file.

use std::io;
use std::path::{Path, PathBuf};

use brine_protocol::crypticle::AesKey;
use brine_protocol::secret::Secret;
use subtle::ConstantTimeEq;

use crate::files;

/// Largest size of a key file in bytes. The master writes 76.
const KEY_MAX: u64 = 1_024;
/// A shorter existing key is replaced, because an empty file must not become an empty password.
const KEY_MIN: usize = 32;

/// A user of this host who gets a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalUser {
    /// The user's name.
    pub name: String,
    /// The owner of the key's file.
    pub uid: u32,
}

/// Returns the users in /etc/passwd for which `wanted` is true.
pub fn users_of_host(wanted: impl Fn(&str) -> bool) -> Vec<LocalUser> {
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let users = passwd.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let (name, uid) = (fields.next()?, fields.nth(1)?.parse().ok()?);
        wanted(name).then(|| LocalUser { name: name.to_owned(), uid })
    });
    users.collect()
}

/// The local keys with their users.
pub struct LocalKeys {
    keys: Vec<(String, Secret<String>)>,
}

impl LocalKeys {
    /// Reads or makes the key files of the master's own users (`masters`) and of others, and gives each of the others
    /// its file. Existing keys are kept, so that callers can continue after a restart.
    ///
    /// # Errors
    /// If a key file cannot be read or written.
    pub fn open(cachedir: &Path, masters: &[String], others: &[LocalUser]) -> io::Result<Self> {
        let mut keys = Self { keys: Vec::new() };
        for name in masters {
            keys.add(cachedir, name)?;
        }
        for LocalUser { name, uid } in others {
            if let Some(path) = keys.add(cachedir, name)?
                && let Err(error) = std::os::unix::fs::chown(&path, Some(*uid), None)
            {
                tracing::warn!("publisher_acl: {name} cannot read {}: {error}", path.display());
            }
        }
        Ok(keys)
    }

    /// Adds a user's key. Returns the path of its file, and `None` if the user has a key already.
    fn add(&mut self, cachedir: &Path, user: &str) -> io::Result<Option<PathBuf>> {
        if self.keys.iter().any(|(known, _)| known == user) {
            return Ok(None);
        }
        let path = key_path(cachedir, user);
        let existing = files::read_given_away(&path, KEY_MAX)?
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
        self.keys.push((user.to_owned(), key));
        Ok(Some(path))
    }

    /// Returns the user of a key. Takes the same time for every wrong key.
    pub fn user_of(&self, offered: &str) -> Option<&str> {
        let mut found = None;
        for (user, key) in &self.keys {
            if bool::from(key.expose().as_bytes().ct_eq(offered.as_bytes())) && found.is_none() {
                found = Some(user.as_str());
            }
        }
        found
    }
}

fn key_path(cachedir: &Path, user: &str) -> PathBuf {
    // Named as in Salt, which replaces the backslash in the names of domain users.
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
        let keys = LocalKeys::open(dir.path(), &users, &[]).unwrap();
        let path = dir.path().join(".root_key");
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!((text.len(), std::fs::metadata(&path).unwrap().permissions().mode() & 0o777), (76, 0o600));
        assert_eq!(keys.user_of(&text), Some("root"));
        // A key file with an open mode gets the right mode, and its key stays.
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(LocalKeys::open(dir.path(), &users, &[]).unwrap().user_of(&text).is_some());
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(LocalKeys::open(dir.path(), &users, &[]).unwrap().user_of(&text).is_some());
        for wrong in ["", " ", &text[1..], "x"] {
            assert_eq!(keys.user_of(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_name_of_a_user_is_no_path() {
        let dir = tempfile::tempdir().unwrap();
        LocalKeys::open(dir.path(), &["DOMAIN\\joe".to_owned(), "../x".to_owned()], &[]).unwrap();
        assert!(dir.path().join(".DOMAIN_joe_key").is_file() && dir.path().join("..._x_key").is_file());
    }

    #[test]
    fn an_empty_key_file_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(".root_key"), "").unwrap();
        let keys = LocalKeys::open(dir.path(), &["root".to_owned()], &[]).unwrap();
        assert_eq!(keys.user_of(""), None);
    }

    #[test]
    fn each_user_has_a_key_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let joe = LocalUser { name: "joe".to_owned(), uid: rustix::process::geteuid().as_raw() };
        let root = LocalUser { name: "root".to_owned(), uid: joe.uid };
        let keys = LocalKeys::open(dir.path(), &["root".to_owned()], &[joe, root]).unwrap();
        for user in ["root", "joe"] {
            let text = std::fs::read_to_string(dir.path().join(format!(".{user}_key"))).unwrap();
            assert_eq!(keys.user_of(&text), Some(user));
        }
    }

    #[test]
    fn users_are_those_of_the_host() {
        assert_eq!(users_of_host(|name| name == "root"), [LocalUser { name: "root".to_owned(), uid: 0 }]);
        assert!(users_of_host(|_| false).is_empty());
    }
}
