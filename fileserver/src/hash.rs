//! Hashes of served files, computed once for each unchanged file.

use std::collections::HashMap;
use std::io::Read;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use aws_lc_rs::digest::{Algorithm, Context, SHA256, SHA384, SHA512};
use brine_files::Stamp;
use sha2::{Digest as _, Sha224};

use crate::hash_type::HashType;
use crate::root::Found;

/// Bound on the hashes in memory. If there are more, all are forgotten.
const REMEMBERED_MAX: usize = 65_536;
/// The hash of a file that changed more recently than this is not kept, because the file may change again without new
/// timestamps.
const SETTLED: Duration = Duration::from_millis(100);

/// A hash that is known or being computed.
type Slot = Arc<OnceLock<Option<Arc<str>>>>;

#[derive(Debug)]
pub(crate) struct HashCache {
    kind: HashType,
    /// With a flag whether the hash was requested since the last `upkeep`.
    known: Mutex<HashMap<Stamp, (Slot, bool)>>,
}

impl HashCache {
    pub(crate) fn new(kind: HashType) -> Self {
        Self { kind, known: Mutex::default() }
    }

    pub(crate) const fn kind(&self) -> HashType {
        self.kind
    }

    /// Returns the hash of an open file; `None` if it cannot be read. Concurrent requests for one file share one
    /// computation.
    pub(crate) fn of(&self, found: &Found) -> Option<Arc<str>> {
        let key = Stamp::of(&found.metadata);
        if !key.has_settled(SETTLED, SystemTime::now()) {
            return self.make(found);
        }
        let slot = {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            if known.len() >= REMEMBERED_MAX {
                known.clear();
            }
            let (slot, asked) = known.entry(key).or_default();
            *asked = true;
            Arc::clone(slot)
        };
        let hash = slot.get_or_init(|| self.make(found)).clone();
        if hash.is_none() {
            self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
        }
        hash
    }

    /// Forgets hashes without requests since the last call, such as those of changed or removed files.
    pub(crate) fn upkeep(&self) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, (_, asked)| std::mem::take(asked));
    }

    /// Returns the number of hashes in memory.
    pub(crate) fn remembered(&self) -> usize {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn make(&self, found: &Found) -> Option<Arc<str>> {
        match self.kind {
            HashType::Sha224 => {
                let mut digest = Sha224::new();
                read_through(&found.file, |piece| digest.update(piece)).ok()?;
                Some(hex::encode(digest.finalize()).into())
            }
            HashType::Sha256 => digest(&SHA256, found),
            HashType::Sha384 => digest(&SHA384, found),
            HashType::Sha512 => digest(&SHA512, found),
        }
    }
}

/// By AWS-LC, which takes half of `sha2`'s time where the processor has no instructions for it, and has no SHA-224.
fn digest(algorithm: &'static Algorithm, found: &Found) -> Option<Arc<str>> {
    let mut digest = Context::new(algorithm);
    read_through(&found.file, |piece| digest.update(piece)).ok()?;
    Some(hex::encode(digest.finish()).into())
}

/// Reads a whole file in pieces.
fn read_through(mut file: &std::fs::File, mut each: impl FnMut(&[u8])) -> std::io::Result<()> {
    let mut buffer = vec![0; 128 * 1024];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(n) => each(&buffer[..n]),
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}
