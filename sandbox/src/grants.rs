//! What one function of a module was granted: data that the policy made, the check reads and the executor gets.

use std::collections::BTreeSet;

use brine_sandbox_wire::DirectGrants;

/// What a function of a module was granted of what its module imports; nothing that it does not import.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Grants {
    /// Host interfaces, without version: `brine:host/grains`.
    pub(crate) interfaces: BTreeSet<&'static str>,
    /// Programs.
    pub process: ProcessGrant,
    /// Directories and hosts, which the executor itself reaches.
    pub direct: DirectGrants,
    /// Keys of the pillar, with what is below them.
    pub pillar: Names,
    /// Functions of other modules, globs: `test.*`.
    pub functions: Names,
    /// Paths on the master's file server, globs: `deploy/**`.
    pub files: Names,
    /// Tags of events, globs.
    pub events: Names,
    /// Names in the mine, globs.
    pub mine: Names,
}

/// Some names, or any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Names {
    /// `any`
    Any,
    /// These, as the owner wrote them.
    Only(Vec<String>),
}

impl Default for Names {
    fn default() -> Self {
        Self::Only(Vec::new())
    }
}

/// Programs, and how they may be run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessGrant {
    /// Which: absolute paths.
    pub programs: Names,
    /// Users beside the module's own that they may run as.
    pub users: Names,
    /// Variables that may be set beside the harmless ones of locale and time zone.
    pub env: Names,
    /// Directories, with what is below them, beside `/` that they may start in.
    pub cwd: Names,
}

impl Grants {
    /// Whether calls of this host interface (`brine:host/grains`) are allowed. The broker asks this for each.
    pub fn allows(&self, interface: &str) -> bool {
        self.interfaces.contains(interface)
    }

    /// The interfaces, for the executor to link.
    pub fn interfaces(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.interfaces.iter().copied()
    }
}
