//! One entry of the owner's configuration: about a module, a function or all modules.

use std::collections::{BTreeMap, BTreeSet};

use brine_capabilities::{Capability, Grant};
use brine_sandbox_wire::{Limits, Sha256Hex};

use crate::signature::KeyId;

/// The owner's rules for a module, for one of its functions, or for every module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Entry {
    /// If set, grants apply only to this content.
    pub sha256: Option<Sha256Hex>,
    /// If set, the module is refused without these signatures, and grants apply only with them.
    pub signed_by: Option<Signers>,
    /// Whether an older version than the newest one seen may replace it.
    pub downgrade: Option<bool>,
    /// Granted and refused capabilities.
    pub says: BTreeMap<Capability, Grant>,
    /// The unix user the module acts as.
    pub user: Option<String>,
    /// Limits that differ from the common ones.
    pub limits: LimitChanges,
    /// How many of its jobs may run at once.
    pub max_running: Option<usize>,
    /// How many of its jobs may wait.
    pub max_queued: Option<usize>,
    /// When its calls are recorded.
    pub record: Option<RecordWhen>,
}

/// When the calls of a module are recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RecordWhen {
    /// Never.
    #[default]
    Off,
    /// When the job asks for it.
    Asked,
    /// Always.
    On,
}

impl RecordWhen {
    /// The word for it in the configuration.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Asked => "asked",
            Self::On => "on",
        }
    }
}

/// The required signatures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Signers {
    /// `false`: no signature is required.
    NotNeeded,
    /// A number of signatures by these keys.
    Needed(Quorum),
}

/// The keys that may sign, and how many different ones must.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quorum {
    /// At least 1.
    pub at_least: usize,
    /// The listed keys, or all keys of the owner's folder.
    pub of: Vec<Signer>,
    /// Whether `of` stands for all keys in the owner's folder.
    pub any: bool,
}

impl Quorum {
    /// Returns the distinct keys.
    pub(crate) fn keys(&self) -> BTreeSet<KeyId> {
        self.of.iter().filter_map(|signer| signer.key).collect()
    }

    /// Returns how many of the quorum's keys are among these signers.
    pub(crate) fn signed_by(&self, signers: &[KeyId]) -> usize {
        self.keys().iter().filter(|key| signers.contains(key)).count()
    }
}

/// A key as written in the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signer {
    /// A file name or the key's line.
    pub written: String,
    /// None until the key's file is read.
    pub key: Option<KeyId>,
}

/// Limits that differ from the common ones.
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
    /// Applies the changes to the limits.
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
    /// Checks whether the entry's grants apply to this content.
    pub(crate) fn binds(&self, sha256: Sha256Hex, signers: &[KeyId]) -> bool {
        self.sha256.is_none_or(|bound| bound == sha256) && self.signed(signers)
    }

    /// Returns the entry for another content, with what holds whatever the content is: refusals, signatures that are needed, limits and
    /// recordings. What was granted to the content that it is bound to is left out.
    pub(crate) fn for_content(&self, sha256: Sha256Hex) -> Self {
        let Self { sha256: _, signed_by, downgrade: _, says, user: _, limits, max_running, max_queued, record } = self;
        Self {
            sha256: Some(sha256),
            signed_by: signed_by.clone().filter(|signers| *signers != Signers::NotNeeded),
            downgrade: None,
            says: says.iter().filter(|(_, grant)| **grant == Grant::No).map(|(key, no)| (*key, no.clone())).collect(),
            user: None,
            limits: *limits,
            max_running: *max_running,
            max_queued: *max_queued,
            record: *record,
        }
    }

    /// Checks whether the content has the signatures that the entry requires.
    pub(crate) fn signed(&self, signers: &[KeyId]) -> bool {
        match &self.signed_by {
            None | Some(Signers::NotNeeded) => true,
            Some(Signers::Needed(quorum)) => quorum.signed_by(signers) >= quorum.at_least.max(1),
        }
    }

    /// Returns the entry's decision on a capability for this content. A refusal applies to every content.
    pub(crate) fn answer(&self, sha256: Sha256Hex, signers: &[KeyId], capability: Capability) -> Option<&Grant> {
        self.says.get(&capability).filter(|grant| **grant == Grant::No || self.binds(sha256, signers))
    }
}
