//! `pillar_cache`: compiled pillars, by minion and environment.
//!
//! On disk they are unencrypted, as in Salt, in files that nobody but the master's user reads; the key to decrypt them
//! would be beside them. A minion's id is the one that the channel proved, so a minion meets its own entries alone.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use brine_pillar::CacheOpts;
use brine_protocol::ids::{MinionId, Saltenv};
use brine_protocol::msgpack::{self, Limits};
use brine_protocol::value::Value;

use crate::files;

/// Bound on the bytes of all pillars in memory. For a new one, the oldest are dropped.
const MEMORY_MAX: usize = 256 << 20;
/// Bound on the environments of one minion that are kept: it names them.
const ENVIRONMENTS_MAX: usize = 16;
/// Largest file that is read.
const FILE_MAX: u64 = 32 << 20;

/// Which pillar: of a minion, for an environment if one is set.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) id: MinionId,
    pub(super) pillarenv: Option<Saltenv>,
}

/// Compiled pillars. They do not print.
pub(super) struct PillarCache {
    folder: PathBuf,
    memory: Mutex<Memory>,
}

#[derive(Default)]
struct Memory {
    entries: HashMap<Key, (SystemTime, Vec<u8>)>,
    bytes: usize,
}

impl PillarCache {
    pub(super) fn new(cachedir: &Path) -> Self {
        Self { folder: cachedir.join("pillar_cache"), memory: Mutex::default() }
    }

    /// Returns a pillar that is not too old. Blocks.
    pub(super) fn get(&self, key: &Key, opts: CacheOpts) -> Option<Value> {
        let bytes = if opts.on_disk {
            let (bytes, metadata) = files::read_regular(&self.path(key), FILE_MAX).ok()??;
            is_fresh(metadata.modified().ok()?, opts.ttl).then_some(bytes)?
        } else {
            let memory = self.memory();
            let (since, bytes) = memory.entries.get(key)?;
            is_fresh(*since, opts.ttl).then(|| bytes.clone())?
        };
        msgpack::decode(&bytes, &Limits { max_bytes: FILE_MAX as usize, ..Limits::REQUEST }).ok()
    }

    /// Keeps a pillar. Blocks. The error is one line.
    pub(super) fn put(&self, key: &Key, pillar: &Value, opts: CacheOpts) -> Result<(), String> {
        let bytes = msgpack::encode_disk(pillar);
        if !opts.on_disk {
            self.memory().put(key, bytes);
            return Ok(());
        }
        let path = self.path(key);
        let failed = |error: std::io::Error| format!("{} cannot be written: {error}", path.display());
        let folder = self.folder(&key.id);
        files::make_private_dir(&folder).map_err(failed)?;
        if !path.exists() && std::fs::read_dir(&folder).map_err(failed)?.count() >= ENVIRONMENTS_MAX {
            return Err(format!("{} has pillars of {ENVIRONMENTS_MAX} environments already", key.id));
        }
        files::write_atomic(&path, &bytes, 0o600).map_err(failed)
    }

    /// Forgets the pillars of a minion: of one environment, or of all. Blocks.
    pub(super) fn forget(&self, id: &MinionId, pillarenv: Option<&Saltenv>) {
        let is_meant = |key: &Key| key.id == *id && pillarenv.is_none_or(|env| key.pillarenv.as_ref() == Some(env));
        let mut memory = self.memory();
        let meant: Vec<Key> = memory.entries.keys().filter(|key| is_meant(key)).cloned().collect();
        for key in &meant {
            memory.remove(key);
        }
        drop(memory);
        let _ = match pillarenv {
            Some(env) => std::fs::remove_file(self.path(&Key { id: id.clone(), pillarenv: Some(env.clone()) })),
            None => std::fs::remove_dir_all(self.folder(id)),
        };
    }

    fn folder(&self, id: &MinionId) -> PathBuf {
        self.folder.join(id.as_str())
    }

    fn path(&self, key: &Key) -> PathBuf {
        let name = key.pillarenv.as_ref().map_or("all.p".to_owned(), |env| format!("env-{env}.p"));
        self.folder(&key.id).join(name)
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Memory {
    fn put(&mut self, key: &Key, bytes: Vec<u8>) {
        self.remove(key);
        let of_minion = self.entries.keys().filter(|known| known.id == key.id).count();
        if bytes.len() > MEMORY_MAX || of_minion >= ENVIRONMENTS_MAX {
            return;
        }
        while self.bytes + bytes.len() > MEMORY_MAX {
            let oldest = self.entries.iter().min_by_key(|(_, (since, _))| *since).map(|(key, _)| key.clone());
            let Some(oldest) = oldest else { break };
            self.remove(&oldest);
        }
        self.bytes += bytes.len();
        self.entries.insert(key.clone(), (SystemTime::now(), bytes));
    }

    fn remove(&mut self, key: &Key) {
        if let Some((_, bytes)) = self.entries.remove(key) {
            self.bytes -= bytes.len();
        }
    }
}

fn is_fresh(since: SystemTime, ttl: Duration) -> bool {
    since.elapsed().is_ok_and(|age| age < ttl)
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_protocol::value::map;

    #[test]
    fn both_backends_keep_and_forget() {
        let dir = tempfile::tempdir().unwrap();
        let cache = PillarCache::new(dir.path());
        let key = |id: &str, env: Option<&str>| Key {
            id: id.parse().unwrap(),
            pillarenv: env.map(|env| Saltenv::try_from(env).unwrap()),
        };
        for on_disk in [true, false] {
            let opts = CacheOpts { ttl: Duration::from_secs(60), on_disk };
            let old = CacheOpts { ttl: Duration::ZERO, on_disk };
            let (all, dev, other) = (key("web", None), key("web", Some("dev")), key("web:dev", None));
            for (key, value) in [(&all, "all"), (&dev, "dev"), (&other, "other")] {
                assert!(cache.get(key, opts).is_none());
                cache.put(key, &map([("v", value)]), opts).unwrap();
            }
            assert_eq!(cache.get(&all, opts), Some(map([("v", "all")])));
            assert_eq!(cache.get(&dev, opts), Some(map([("v", "dev")])));
            assert_eq!(cache.get(&other, opts), Some(map([("v", "other")])), "no other minion's");
            assert_eq!(cache.get(&all, old), None);
            cache.forget(&all.id, dev.pillarenv.as_ref());
            assert!(cache.get(&dev, opts).is_none() && cache.get(&all, opts).is_some());
            cache.forget(&all.id, None);
            assert!(cache.get(&all, opts).is_none() && cache.get(&other, opts).is_some());
        }
    }

    #[test]
    fn memory_has_a_bound() {
        let mut memory = Memory::default();
        for n in 0..40 {
            let key = Key { id: format!("m{n}").parse().unwrap(), pillarenv: None };
            memory.put(&key, vec![0; 16 << 20]);
            assert!(memory.bytes <= MEMORY_MAX && memory.entries.contains_key(&key));
        }
        let env =
            |n: usize| Key { id: "m".parse().unwrap(), pillarenv: Saltenv::try_from(format!("e{n}").as_str()).ok() };
        (0..100).for_each(|n| memory.put(&env(n), vec![0]));
        assert_eq!(memory.entries.keys().filter(|key| key.id.as_str() == "m").count(), ENVIRONMENTS_MAX);
    }
}
