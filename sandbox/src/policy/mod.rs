//! Decides what a module may do: a table of defaults, the owner's configuration, and one pure decision over both
//! (DESIGN.md §3.3).
//!
//! The most specific rule applies, for each capability separately: the owner's rule for the function, for the module,
//! for all modules (`"*"`), at each of these levels first the one for the requesting master and then the general one;
//! then the profiles that the owner took over, for standard modules; then what these come with; then the table of defaults. An entry bound to a `sha256` or a key does not
//! apply to other content, but its refusals (`false`) always apply.
//!
//! - `always.rs`     interfaces that every module has; `entry.rs` one entry of the configuration
//! - `profile.rs`    blocks of grants that Brine ships, or the owner wrote as files of the same kind
//! - `decide.rs`     from imports, functions and configuration to [`ModuleGrants`]
//! - `update.rs`     what an update asks for beyond the version before it
//! - `refused.rs`    what is missing; `line.rs` the configuration line that would grant it

mod always;
mod decide;
mod entry;
mod line;
mod profile;
mod refused;
#[cfg(test)]
mod tests;
mod update;

use std::collections::{BTreeMap, BTreeSet};

use brine_capabilities::Host;
use brine_component::group;
use brine_sandbox_wire::{Limits, Sha256Hex};

pub use always::always;
pub(crate) use brine_capabilities::{Capability, Grant};
pub use decide::{Granted, ModuleGrants};
pub use entry::{Entry, LimitChanges, Quorum, RecordWhen, Signer, Signers};
pub(crate) use line::{Explain, Line};
pub use profile::{Never, Profile, ProfileWords};
pub use refused::Refused;

use crate::ModuleName;
use crate::kernel::admission::Concurrency;
use crate::signature::{KeyId, SigningKey};

/// The owner's policy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// Rules for all jobs.
    pub general: Rules,
    /// Rules for the jobs of one master, by its fingerprint.
    pub masters: BTreeMap<String, Rules>,
    /// Blocks of grants for standard modules that the owner took over.
    pub profiles: Vec<Profile>,
    /// The profiles of the owner's folder, those with parameters without any.
    pub own_profiles: Vec<Profile>,
    /// Standard modules that an installed module may replace.
    pub replace_standard: BTreeSet<ModuleName>,
    /// The keys that entries name, those in the owner's folder of keys, and revoked ones.
    pub keys: Vec<SigningKey>,
    /// Revocations, which override all rules.
    pub revoked: Revoked,
    /// Facts about this host that decisions need.
    pub host: Host,
    /// Oddities found while the configuration was read; `sandbox.check` shows them.
    pub findings: Vec<String>,
}

/// Keys and contents that the owner revoked, wherever else they are named.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Revoked {
    /// Revoked keys. Their signatures do not count, and a module signed only by them is refused.
    pub keys: BTreeSet<KeyId>,
    /// Revoked contents; standard modules are included.
    pub sha256: BTreeSet<Sha256Hex>,
    /// The keys as the owner wrote them.
    pub written: Vec<Signer>,
}

/// Entries by what they apply to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// Entries for single functions, for single states (`states.managed`), and for all states of a module (`states`) or
    /// all that its beacon does (`beacons`).
    pub functions: BTreeMap<(ModuleName, String), Entry>,
    /// Entries for modules.
    pub modules: BTreeMap<ModuleName, Entry>,
    /// The entry for every module: `"*"`.
    pub every: Entry,
}

/// The properties of a module that a decision uses.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// Its name.
    pub name: &'a ModuleName,
    /// Whether it is a standard module.
    pub standard: bool,
    /// Its content.
    pub sha256: Sha256Hex,
    /// The keys that signed it, without revoked ones.
    pub signers: &'a [KeyId],
}

/// The entries that apply to a function, the most specific first: of the function, of its group (the module's states, its
/// beacon), of the module, of every module, each for the master and in general.
pub(crate) type Levels<'a> = [Option<&'a Entry>; 8];

/// Index of the general entry of a function among the [`Levels`].
const FUNCTION: usize = 1;
/// Index of the general entry of a function's group.
const GROUP: usize = 3;
/// Index of the module's general entry.
const MODULE: usize = 5;

/// Whether a function of a module is a state.
fn is_state(function: &str) -> bool {
    group(function) == Some(brine_component::STATES)
}

impl Policy {
    /// Returns the entries that apply to a function, or to a state (`states.managed`), the most specific first. The
    /// last two apply to every module, the two before to the whole module, and the two before those to the function's group.
    pub(crate) fn entries(&self, module: &ModuleName, function: Option<&str>, master: Option<&str>) -> Levels<'_> {
        let master = master.and_then(|master| self.masters.get(master));
        let key = function.map(|function| (module.clone(), function.to_owned()));
        let key = key.as_ref();
        let group = function.and_then(group).map(|group| (module.clone(), group.to_owned()));
        let group = group.as_ref();
        [
            master.and_then(|rules| rules.functions.get(key?)),
            key.and_then(|key| self.general.functions.get(key)),
            master.and_then(|rules| rules.functions.get(group?)),
            group.and_then(|group| self.general.functions.get(group)),
            master.and_then(|rules| rules.modules.get(module)),
            self.general.modules.get(module),
            master.map(|rules| &rules.every),
            Some(&self.general.every),
        ]
    }

    /// Returns the limits for one job of a function, with `base` as the common limits. Each limit is decided
    /// separately, whatever the content.
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
        if is_state(function) {
            always::state_limits(&mut limits);
        }
        if standard {
            for entry in self.profiled(module, Some(function)).rev() {
                entry.limits.apply(&mut limits);
            }
        }
        for entry in self.entries(module, Some(function), master).into_iter().rev().flatten() {
            entry.limits.apply(&mut limits);
        }
        limits
    }

    /// Checks whether a module is the one that runs states for jobs and steers their runs: the standard `state`, or what the
    /// owner let replace it. On a host that has no standard one, another of that name is not.
    pub fn runs_states(&self, module: &ModuleName, standard: bool) -> bool {
        module.as_str() == "state" && (standard || self.replace_standard.contains(module))
    }

    /// Returns when calls of a function are recorded: the most specific entry that says it decides.
    pub fn record(&self, module: &ModuleName, function: &str, master: Option<&str>) -> RecordWhen {
        let said = self.entries(module, Some(function), master).into_iter().flatten().find_map(|entry| entry.record);
        said.unwrap_or_default()
    }

    /// Returns the limits on the number of a module's jobs.
    pub fn concurrency(&self, module: &ModuleName) -> Concurrency {
        let own = self.general.modules.get(module);
        let every = &self.general.every;
        Concurrency {
            max_running: own.and_then(|entry| entry.max_running).or(every.max_running),
            max_queued: own.and_then(|entry| entry.max_queued).or(every.max_queued),
        }
    }
}
