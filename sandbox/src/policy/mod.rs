//! What a module may do: a table of defaults, the owner's word, and one pure decision over both (DESIGN.md §3.3).
//!
//! The most particular word counts, for each capability alone: what the owner says of the function, of the module, of all
//! (`"*"`), at each of these for the master that asks before in general; then what standard modules come with; then the table.
//! An entry that is bound to a `sha256` or a key does not count for other content; a refusal (`false`) always does.
//!
//! - `always.rs`     what every module has; `entry.rs` what one entry of the configuration says
//! - `decide.rs`     from imports, functions and the owner's word to [`ModuleGrants`]
//! - `update.rs`     what an update asks for that the version before it did not
//! - `refused.rs`    what is missing; `line.rs` the line of the configuration that would grant it

mod always;
mod decide;
mod entry;
mod line;
mod refused;
#[cfg(test)]
mod tests;
mod update;

use std::collections::{BTreeMap, BTreeSet};

use brine_capabilities::Host;
use brine_sandbox_wire::{Limits, Sha256Hex};

pub use always::always;
pub(crate) use brine_capabilities::{Capability, Grant};
pub use decide::{Granted, ModuleGrants};
pub use entry::{Entry, LimitChanges, Quorum, Signer, Signers};
pub(crate) use line::{Explain, Line};
pub use refused::Refused;

use crate::ModuleName;
use crate::admission::Concurrency;
use crate::signature::{KeyId, SigningKey};

/// What the owner of the host says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// In general.
    pub general: Rules,
    /// Of jobs of one master, by its fingerprint.
    pub masters: BTreeMap<String, Rules>,
    /// Standard modules that an installed one may take the place of.
    pub replace_standard: BTreeSet<ModuleName>,
    /// The keys that entries name, those of the owner's folder of keys and those that are revoked.
    pub keys: Vec<SigningKey>,
    /// What goes before every other word.
    pub revoked: Revoked,
    /// What a decision needs to know of this host.
    pub host: Host,
    /// What who read the configuration found odd in it; `sandbox.check` shows it.
    pub findings: Vec<String>,
}

/// What the owner does not trust any more, wherever else it is named.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Revoked {
    /// Keys: what they signed counts as not signed, and what nobody else signed is refused.
    pub keys: BTreeSet<KeyId>,
    /// Contents, standard modules too.
    pub sha256: BTreeSet<Sha256Hex>,
    /// The keys as the owner wrote them.
    pub written: Vec<Signer>,
}

/// Entries by what they are about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// Of single functions.
    pub functions: BTreeMap<(ModuleName, String), Entry>,
    /// Of modules.
    pub modules: BTreeMap<ModuleName, Entry>,
    /// Of every module: `"*"`.
    pub every: Entry,
}

/// A module that is decided on.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// Its name.
    pub name: &'a ModuleName,
    /// Whether it is the package's.
    pub standard: bool,
    /// Its content.
    pub sha256: Sha256Hex,
    /// The keys that signed it, and are not revoked.
    pub signers: &'a [KeyId],
}

impl Policy {
    /// The entries that are about a function, the most particular first. The last two are about every module.
    pub(crate) fn entries(
        &self,
        module: &ModuleName,
        function: Option<&str>,
        master: Option<&str>,
    ) -> [Option<&Entry>; 6] {
        let master = master.and_then(|master| self.masters.get(master));
        let key = function.map(|function| (module.clone(), function.to_owned()));
        let key = key.as_ref();
        [
            master.and_then(|rules| rules.functions.get(key?)),
            key.and_then(|key| self.general.functions.get(key)),
            master.and_then(|rules| rules.modules.get(module)),
            self.general.modules.get(module),
            master.map(|rules| &rules.every),
            Some(&self.general.every),
        ]
    }

    /// What one job of a function may use, where all may use `base`. Each limit for itself; not bound to content.
    pub fn limits(
        &self,
        base: &Limits,
        module: &ModuleName,
        standard: bool,
        function: &str,
        master: Option<&str>,
    ) -> Limits {
        let mut limits = base.clone();
        if standard {
            always::standard_limits(module.as_str(), &mut limits);
        }
        for entry in self.entries(module, Some(function), master).into_iter().rev().flatten() {
            entry.limits.apply(&mut limits);
        }
        limits
    }

    /// How many jobs of a module there may be.
    pub fn concurrency(&self, module: &ModuleName) -> Concurrency {
        let own = self.general.modules.get(module);
        let every = &self.general.every;
        Concurrency {
            max_running: own.and_then(|entry| entry.max_running).or(every.max_running),
            max_queued: own.and_then(|entry| entry.max_queued).or(every.max_queued),
        }
    }
}
