//! What the owner says of a module, a function or all modules.

use std::collections::{BTreeMap, BTreeSet};

use brine_capabilities::{Capability, Grant};
use brine_sandbox_wire::{Limits, Sha256Hex};

use crate::signature::KeyId;

/// What the owner says of a module, of one of its functions, or of every module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Entry {
    /// Grants count for this content only.
    pub sha256: Option<Sha256Hex>,
    /// Grants count for content that is so signed, and the module is refused where it is not.
    pub signed_by: Option<Signers>,
    /// Whether an older version than the newest that was seen may take its place.
    pub downgrade: Option<bool>,
    /// Granted or refused.
    pub says: BTreeMap<Capability, Grant>,
    /// The unix user the module acts as.
    pub user: Option<String>,
    /// What its jobs may use, where it is not what all may.
    pub limits: LimitChanges,
    /// How many of its jobs run at once.
    pub max_running: Option<usize>,
    /// How many may wait.
    pub max_queued: Option<usize>,
}

/// Who has to have signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Signers {
    /// `false`: nobody has to.
    NotNeeded,
    /// So many of these keys.
    Needed(Quorum),
}

/// How many different keys of which have to have signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quorum {
    /// At least 1.
    pub at_least: usize,
    /// Those listed, or all of the owner's folder of keys.
    pub of: Vec<Signer>,
    /// Whether `of` is the owner's folder of keys, whatever is in it.
    pub any: bool,
}

impl Quorum {
    /// Different keys that there are to choose from.
    pub(crate) fn keys(&self) -> BTreeSet<KeyId> {
        self.of.iter().filter_map(|signer| signer.key).collect()
    }

    /// Different ones of its keys among these.
    pub(crate) fn signed_by(&self, signers: &[KeyId]) -> usize {
        self.keys().iter().filter(|key| signers.contains(key)).count()
    }
}

/// A key as the owner wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signer {
    /// A file's name or the key's line.
    pub written: String,
    /// The key; none as long as its file was not read.
    pub key: Option<KeyId>,
}

/// Limits that differ from those of all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "as in `Limits`")]
pub struct LimitChanges {
    pub memory: Option<u64>,
    pub wall_ms: Option<u64>,
    pub cpu_ms: Option<u64>,
    pub calls_cpu_ms: Option<u64>,
    pub output: Option<u64>,
    pub log: Option<u64>,
    pub log_lines: Option<u32>,
    pub host_bytes: Option<u64>,
    pub host_calls: Option<u32>,
    pub written: Option<u64>,
    pub new_files: Option<u64>,
}

impl LimitChanges {
    /// Puts what is said here into the limits.
    pub fn apply(&self, limits: &mut Limits) {
        fn set<T: Copy>(to: &mut T, from: Option<T>) {
            *to = from.unwrap_or(*to);
        }
        set(&mut limits.memory, self.memory);
        set(&mut limits.wall_ms, self.wall_ms);
        set(&mut limits.cpu_ms, self.cpu_ms);
        set(&mut limits.calls_cpu_ms, self.calls_cpu_ms);
        set(&mut limits.output, self.output);
        set(&mut limits.log, self.log);
        set(&mut limits.log_lines, self.log_lines);
        set(&mut limits.host_bytes, self.host_bytes);
        set(&mut limits.host_calls, self.host_calls);
        set(&mut limits.written, self.written);
        set(&mut limits.new_files, self.new_files);
    }
}

impl Entry {
    /// Whether its grants count for this content.
    pub(crate) fn binds(&self, sha256: Sha256Hex, signers: &[KeyId]) -> bool {
        self.sha256.is_none_or(|bound| bound == sha256) && self.signed(signers)
    }

    /// Whether the content is signed as this entry wants it.
    pub(crate) fn signed(&self, signers: &[KeyId]) -> bool {
        match &self.signed_by {
            None | Some(Signers::NotNeeded) => true,
            Some(Signers::Needed(quorum)) => quorum.signed_by(signers) >= quorum.at_least.max(1),
        }
    }

    /// What it says for this content. A refusal is not bound to any.
    pub(crate) fn answer(&self, sha256: Sha256Hex, signers: &[KeyId], capability: Capability) -> Option<&Grant> {
        self.says.get(&capability).filter(|grant| **grant == Grant::No || self.binds(sha256, signers))
    }
}
