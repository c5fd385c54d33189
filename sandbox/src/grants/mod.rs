//! What one function of a module was granted: data that the policy made, the check reads and the executor gets.
//!
//! - `names.rs`    names and globs
//! - `programs.rs` which granted program is meant
//! - `hosts.rs`    hosts and ports

mod hosts;
mod names;
mod programs;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use brine_sandbox_wire::DirectGrants;

pub(crate) use hosts::{read_rule, rule_text};
pub(crate) use names::{MAX_NAME, is_glob};
pub(crate) use programs::locate;
pub use programs::{PROGRAM_FOLDERS, Program};

use crate::policy::{Capability, Explain, Grant};

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
    /// Settings beside the public ones, globs, with what is below them.
    pub config: Names,
    /// Functions of other modules, globs: `test.*`.
    pub functions: Names,
    /// Paths on the master's file server, globs: `deploy/**`.
    pub files: Names,
    /// Tags of events, globs.
    pub events: Names,
    /// Names in the mine, globs.
    pub mine: Names,
    /// The unix user that the module acts as, where it is not the minion's own.
    pub user: Option<String>,
    /// For errors: how the owner would grant more.
    pub(crate) explain: Option<Arc<Explain>>,
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
    /// Groups beside those of their user.
    pub groups: Names,
    /// Variables that may be set beside the harmless ones of locale and time zone.
    pub env: Names,
    /// Directories, with what is below them, beside `/` that they may start in.
    pub cwd: Names,
    /// Whether what made itself a session of its own stays when the program ended well.
    pub detach: bool,
    /// Bytes of the largest file that they may write; none: what the minion itself may.
    pub file_size: Option<u64>,
    /// What this host's folders of programs are links to.
    pub(crate) host: Host,
}

/// What a decision needs to know of the host; found out once, so that the decision does not look.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Host {
    /// Folders that are the same as others: `/bin` is `/usr/bin`.
    pub folders: Arc<BTreeMap<String, String>>,
    /// The user that the minion runs as.
    pub user: Option<Arc<str>>,
}

impl Grants {
    /// Whether calls of this host interface (`brine:host/grains`) are allowed. The broker asks this for each.
    pub fn allows(&self, interface: &str) -> bool {
        self.interfaces.contains(interface)
    }

    /// The interfaces of this function.
    pub fn interfaces(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.interfaces.iter().copied()
    }

    /// Takes what the policy granted.
    /// Whether this is granted by values, and there are none.
    pub(crate) fn names_nothing(&self, capability: Capability) -> bool {
        match capability {
            Capability::Process => self.process.programs.is_none(),
            Capability::Filesystem => self.direct.directories.is_empty(),
            Capability::Network => self.direct.network.is_empty(),
            Capability::Pillar => self.pillar.is_none(),
            Capability::Functions => self.functions.is_none(),
            Capability::Files => self.files.is_none(),
            Capability::Events => self.events.is_none(),
            Capability::Mine => self.mine.is_none(),
            Capability::Grains
            | Capability::Config
            | Capability::Modules
            | Capability::Jobs
            | Capability::Disks
            | Capability::Policy => false,
        }
    }

    pub(crate) fn put(&mut self, capability: Capability, grant: Grant, host: &Host) {
        match (capability, grant) {
            (Capability::Pillar, Grant::Names(names)) => self.pillar = names,
            (Capability::Config, Grant::Names(names)) => self.config = names,
            (Capability::Functions, Grant::Names(names)) => self.functions = names,
            (Capability::Files, Grant::Names(names)) => self.files = names,
            (Capability::Events, Grant::Names(names)) => self.events = names,
            (Capability::Mine, Grant::Names(names)) => self.mine = names,
            (Capability::Process, Grant::Process(process)) => {
                self.process = ProcessGrant { host: host.clone(), ..process }
            }
            (Capability::Filesystem, Grant::Directories(directories)) => {
                self.direct.directories = directories;
                // Who reaches no directory needs no executor of its own for being somebody.
                self.direct.user = self.user.clone().filter(|_| !self.direct.directories.is_empty());
            }
            (Capability::Network, Grant::Network(rules)) => self.direct.network = rules,
            _ => {}
        }
    }
}
