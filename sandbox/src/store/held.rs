//! A content that waits for the owner's decision: why, and what would admit it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use brine_sandbox_wire::Sha256Hex;
use bytes::Bytes;

use super::Module;
use super::decisions::Seen;
use crate::ModuleName;
use crate::policy::{Capability, Line};
use crate::sentence::join_names;
use crate::signature::KeyId;

/// An update, or the first version of a module, that needs the owner's decision. Displays as one line with the reasons
/// and what the owner can do.
#[derive(Debug, Clone)]
pub struct Held {
    /// The held module.
    pub module: Arc<Module>,
    pub(crate) name: ModuleName,
    /// The policy's keys that signed it, and when.
    pub(crate) signers: Vec<KeyId>,
    pub(crate) time: Option<u64>,
    /// The signature as it came with the component.
    pub(crate) signature: Option<Bytes>,
    /// Whether another version of this name is in use.
    pub(crate) is_update: bool,
    pub(crate) why: Why,
    /// Configuration lines that would grant what it asks for.
    pub(crate) lines: Vec<Line>,
}

/// The reasons; at least one is set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Why {
    /// Imports that were not granted.
    pub(crate) more: BTreeMap<String, Capability>,
    /// The newest version seen, if this one is older.
    pub(crate) older: Option<Seen>,
    /// The owner rolled back from this version.
    pub(crate) rolled_back: bool,
}

impl Why {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn capabilities(&self) -> BTreeSet<Capability> {
        self.more.values().copied().collect()
    }
}

impl Held {
    /// Returns the hash of the content.
    pub fn sha256(&self) -> Sha256Hex {
        self.module.sha256
    }

    /// Returns the signature as it came with the component.
    pub fn signature(&self) -> Option<&[u8]> {
        self.signature.as_deref()
    }

    /// Returns the command that admits it, whatever the reason.
    pub fn command(&self) -> String {
        format!("salt-call --local sandbox.approve {} {}", self.name, self.module.sha256)
    }

    /// Returns the configuration lines that would grant what it asks for. None if missing grants are not the reason.
    pub fn lines(&self) -> Option<String> {
        (!self.lines.is_empty()).then(|| Line::file(&self.lines))
    }

    /// Returns each of these lines alone.
    pub(crate) fn each_line(&self) -> Vec<String> {
        self.lines.iter().map(Line::text).collect()
    }

    /// Returns the reasons, without the remedy.
    pub(crate) fn reasons(&self) -> String {
        let Why { more, older, rolled_back } = &self.why;
        let mut reasons = Vec::new();
        if !more.is_empty() {
            let mut wanted: BTreeMap<Capability, Vec<&str>> = BTreeMap::new();
            for (import, capability) in more {
                wanted.entry(*capability).or_default().push(import);
            }
            let wanted: Vec<String> = wanted
                .into_iter()
                .map(|(capability, imports)| format!("{} ({})", capability.words(), join_names(&imports)))
                .collect();
            reasons.push(format!("it asks for what it was not granted: to {}", join_names(&wanted)));
        }
        reasons
            .extend(older.as_ref().map(|newest| format!("it is older than the newest that was seen here ({newest})")));
        if *rolled_back {
            reasons.push("this host went back from it (sandbox.rollback)".to_owned());
        }
        reasons.join(", and ")
    }
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = self.module.info.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
        let name = &self.name;
        if self.is_update {
            write!(f, "update{version} of module {name} is held, the version before it serves on: {}", self.reasons())?;
        } else {
            write!(f, "module {name}{version} is held: {}", self.reasons())?;
        }
        let command = self.command();
        match self.lines.as_slice() {
            // A grant alone would not suffice, or none is missing.
            lines if lines.is_empty() || self.why.rolled_back || self.why.older.is_some() => {
                write!(f, "; the owner of this host lets it in with `{command}`")?;
                if self.why.older.is_some() {
                    write!(f, ", or older versions by `downgrade: true` in its entry of the minion's configuration")?;
                }
            }
            lines => write!(f, "{}, or lets this content in with `{command}`", Line::sentence(lines))?,
        }
        write!(f, "; `sandbox.diff {name}` shows what it changes")
    }
}
