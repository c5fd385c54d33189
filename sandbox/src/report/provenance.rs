//! What a receipt says of the module that ran a function: its content, who signed it, what it was granted.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use brine_sandbox_wire::Sha256Hex;
use rmpv::Value;
use sha2::{Digest as _, Sha256};

use super::granted;
use crate::policy::Policy;
use crate::store::{Entry, Store};

/// Bound on the answers that are remembered: the functions that a busy host is asked for.
const REMEMBERED_MAX: usize = 1024;

/// Where a function came from, and under which rules it ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provenance {
    /// The module's content.
    pub sha256: Sha256Hex,
    /// The version that it says it has.
    pub version: Option<String>,
    /// The keys that signed it and that the owner names, as he wrote them.
    pub signers: Vec<String>,
    /// SHA-256 of the function's grants: of what `sandbox.show` has under `has`, in MessagePack; of an empty map if it may not be
    /// called.
    pub grants: [u8; 32],
    /// SHA-256 of the owner's policy as this version of the program reads it.
    pub policy: [u8; 32],
}

type Known = (Arc<Entry>, Arc<Policy>, Arc<Provenance>);

/// Answers, as long as module and policy are the same.
#[derive(Default)]
pub(crate) struct Remembered(Mutex<HashMap<(String, Option<String>), Known>>);

impl Remembered {
    /// Looks up a function of a module for a master; none if there is no such module.
    pub(crate) fn of(&self, store: &Store, function: &str, master: Option<&str>) -> Option<Arc<Provenance>> {
        let (module, name) = function.split_once('.')?;
        let (entry, policy) = (store.get(module)?, store.policy());
        let key = (function.to_owned(), master.map(str::to_owned));
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, under, answer)) = known.get(&key)
            && Arc::ptr_eq(of, &entry)
            && Arc::ptr_eq(under, &policy)
        {
            return Some(Arc::clone(answer));
        }
        let grants =
            entry.grants.of(name, master).map_or_else(|_| Value::Map(Vec::new()), |held| granted(&held.grants));
        let mut packed = Vec::new();
        // Writing to memory does not fail.
        let _ = rmpv::encode::write_value(&mut packed, &grants);
        let signers = policy.keys.iter().filter(|key| entry.signers.contains(&key.id)).map(|key| key.written.clone());
        let answer = Arc::new(Provenance {
            sha256: entry.module.sha256,
            version: entry.module.info.version.clone(),
            signers: signers.collect(),
            grants: Sha256::digest(&packed).into(),
            policy: Sha256::digest(format!("{policy:?}")).into(),
        });
        if known.len() >= REMEMBERED_MAX {
            known.clear();
        }
        known.insert(key, (entry, policy, Arc::clone(&answer)));
        Some(answer)
    }
}
