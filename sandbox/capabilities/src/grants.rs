//! What one function of a module was granted: data that the policy makes, the check reads and the executor gets.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::names::Names;
use crate::programs::{Host, ProcessGrant};
use crate::rules::NetworkRule;
use crate::{Capability, Kind};

/// What the owner says of one capability.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grant {
    /// `false`
    No,
    /// `true`, where there is nothing to choose.
    Yes,
    /// Some names, or any.
    Names(Names),
    /// Programs.
    Process(ProcessGrant),
    /// Directories, sorted by path.
    Directories(Vec<Directory>),
    /// Hosts, sorted.
    Network(Vec<NetworkRule>),
}

/// What a function of a module was granted of what its module imports; nothing that it does not import.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Grants {
    /// Host interfaces, without version: `brine:host/grains`.
    interfaces: BTreeSet<&'static str>,
    /// Programs.
    pub process: ProcessGrant,
    /// Directories and hosts, which the executor itself reaches.
    pub direct: DirectGrants,
    /// Of the capabilities that are granted by names, those that have any.
    names: BTreeMap<Capability, Names>,
    /// The unix user that the module acts as, where it is not the minion's own.
    pub user: Option<String>,
}

/// Grants that the executor's process itself must have, so that modules with the same ones share an executor and no others do.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DirectGrants {
    /// Directories, sorted by path.
    pub directories: Vec<Directory>,
    /// Hosts, sorted.
    pub network: Vec<NetworkRule>,
    /// The user the process runs as, where it is not the sandbox's own.
    pub user: Option<String>,
}

/// A directory that guests see, under its own path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Directory {
    /// Absolute, without `.` and `..`.
    pub path: String,
    /// Whether they may change what is in it.
    pub writable: bool,
}

impl Directory {
    /// What is left of the path of something within it: of `/srv/app/x` within `/srv/app` it is `x`.
    pub fn rest<'a>(&self, path: &'a str) -> Option<&'a str> {
        let rest = path.strip_prefix(self.path.trim_end_matches('/'))?.strip_prefix('/')?;
        (!rest.is_empty()).then_some(rest)
    }
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

    /// The names that were granted of a capability; none where it is not one that is granted by names.
    pub fn names(&self, capability: Capability) -> &Names {
        self.names.get(&capability).unwrap_or(Names::NONE)
    }

    /// Grants these names of a capability.
    pub fn set_names(&mut self, capability: Capability, names: Names) {
        if names.is_none() {
            self.names.remove(&capability);
        } else {
            self.names.insert(capability, names);
        }
    }

    /// Whether this is granted by values, and there are none.
    pub fn names_nothing(&self, capability: Capability) -> bool {
        match capability.kind() {
            Kind::Flag | Kind::Settings => false,
            Kind::Names => self.names(capability).is_none(),
            Kind::Process => self.process.programs.is_none(),
            Kind::Directories => self.direct.directories.is_empty(),
            Kind::Network => self.direct.network.is_empty(),
        }
    }

    /// Takes what the policy granted of a capability, whose interfaces these are. The user is to be there before.
    pub fn put(
        &mut self,
        capability: Capability,
        interfaces: impl IntoIterator<Item = &'static str>,
        grant: Grant,
        host: &Host,
    ) {
        self.interfaces.extend(interfaces);
        match grant {
            Grant::No | Grant::Yes => {}
            Grant::Names(names) => self.set_names(capability, names),
            Grant::Process(process) => self.process = ProcessGrant { host: host.clone(), ..process },
            Grant::Directories(directories) => {
                self.direct.directories = directories;
                // Who reaches no directory needs no executor of its own for being somebody.
                self.direct.user = self.user.clone().filter(|_| !self.direct.directories.is_empty());
            }
            Grant::Network(rules) => self.direct.network = rules,
        }
    }

    /// The same with these interfaces and no others.
    pub fn only(mut self, interfaces: impl IntoIterator<Item = &'static str>) -> Self {
        self.interfaces = interfaces.into_iter().collect();
        self
    }
}
