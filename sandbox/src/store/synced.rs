//! Records when modules were last fetched, and from which master. The age reveals a master that is away or that
//! withholds updates.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::clock;
use crate::kernel::cache;

const FILE: &str = "last_sync.json";
/// Upper bound on the file's bytes.
const MAX_BYTES: u64 = 1 << 20;
/// Upper bound on the remembered environments.
const MAX_ENVIRONMENTS: usize = 256;

/// The last successful sync of each environment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Synced {
    environments: BTreeMap<String, SyncedFrom>,
}

/// The last successful sync of one environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncedFrom {
    /// The fingerprint of the master's key.
    pub master: String,
    /// When the last sync ended, in seconds since 1970.
    pub at: u64,
    /// When a sync last changed anything, in seconds since 1970. None if no sync has.
    #[serde(default)]
    pub changed_at: Option<u64>,
}

impl Synced {
    /// Reads the record in the folder of installed modules. An unreadable record counts as empty.
    pub fn read(dir: &Path) -> Self {
        let read = brine_files::read_own(&dir.join(FILE), MAX_BYTES);
        read.ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
    }

    /// Records that these environments were synced now with this master, and whether that changed anything.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn write(dir: &Path, environments: &[&str], master: &str, changed: bool) -> io::Result<()> {
        let (mut synced, at) = (Self::read(dir), clock::now());
        for environment in environments {
            let before = synced.environments.get(*environment).and_then(|before| before.changed_at);
            let changed_at = if changed { Some(at) } else { before };
            let from = SyncedFrom { master: master.to_owned(), at, changed_at };
            synced.environments.insert((*environment).to_owned(), from);
        }
        while synced.environments.len() > MAX_ENVIRONMENTS {
            let oldest = synced.environments.iter().min_by_key(|(_, from)| from.at).map(|(name, _)| name.clone());
            synced.environments.remove(&oldest.unwrap_or_default());
        }
        cache::write_whole(&dir.join(FILE), &serde_json::to_vec_pretty(&synced)?)
    }

    /// Returns the last sync of one environment.
    pub fn of(&self, environment: &str) -> Option<&SyncedFrom> {
        self.environments.get(environment)
    }

    /// Returns all environments, sorted.
    pub fn all(&self) -> impl Iterator<Item = (&str, &SyncedFrom)> {
        self.environments.iter().map(|(environment, from)| (environment.as_str(), from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_sync_of_each_environment_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        Synced::write(dir.path(), &["base", "dev"], "aa:bb", true).unwrap();
        Synced::write(dir.path(), &["base"], "cc:dd", false).unwrap();
        let synced = Synced::read(dir.path());
        let base = synced.of("base").unwrap();
        assert_eq!((base.master.as_str(), base.changed_at.is_some()), ("cc:dd", true));
        assert_eq!(synced.of("dev").unwrap().master, "aa:bb");
        assert_eq!(synced.all().count(), 2);
        std::fs::write(dir.path().join(FILE), "junk").unwrap();
        assert_eq!(Synced::read(dir.path()), Synced::default());
    }
}
