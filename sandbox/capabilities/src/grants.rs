//! The grants of one function of a module: data that the policy makes, the check reads and the executor receives.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::names::Names;
use crate::programs::{Host, ProcessGrant};
use crate::rules::NetworkRule;
use crate::trees::{Tree, innermost};
use crate::{Capability, Kind};

/// The owner's decision on one capability.
#[expect(clippy::large_enum_variant, reason = "grants are few, and made once for each module")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grant {
    /// `false`
    No,
    /// `true`, for capabilities without values.
    Yes,
    /// Some names, or any.
    Names(Names),
    /// Programs.
    Process(ProcessGrant),
    /// Directories, sorted by path.
    Directories(Vec<Directory>),
    /// Directories that the minion changes, sorted by path.
    Changes(Vec<Tree>),
    /// Hosts, sorted.
    Network(Vec<NetworkRule>),
}

impl Grant {
    /// Returns what this grants beyond the other, as far as a grant can say that.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        fn fewer<T: PartialEq + Clone>(these: &[T], those: &[T]) -> Vec<T> {
            these.iter().filter(|one| !those.contains(one)).cloned().collect()
        }
        let names = |these: &Names, those: &Names| match (these, those) {
            (Names::Only(these), Names::Only(those)) => Names::Only(fewer(these, those)),
            (these, _) => these.clone(),
        };
        match (self, other) {
            (Self::Names(these), Self::Names(those)) => Self::Names(names(these, those)),
            (Self::Directories(these), Self::Directories(those)) => Self::Directories(fewer(these, those)),
            (Self::Changes(these), Self::Changes(those)) => Self::Changes(fewer(these, those)),
            (Self::Network(these), Self::Network(those)) => Self::Network(fewer(these, those)),
            (Self::Process(these), Self::Process(those)) => Self::Process(ProcessGrant {
                programs: names(&these.programs, &those.programs),
                lines: match (&these.lines, &those.lines) {
                    (Some(these), Some(those)) => Some(fewer(these, those)).filter(|lines| !lines.is_empty()),
                    (these, _) => these.clone(),
                },
                users: names(&these.users, &those.users),
                groups: names(&these.groups, &those.groups),
                env: names(&these.env, &those.env),
                cwd: names(&these.cwd, &those.cwd),
                detach: these.detach && !those.detach,
                file_size: these.file_size.filter(|_| these.file_size != those.file_size),
                looks: fewer(&these.looks, &those.looks),
                own_looks: Vec::new(),
                host: these.host.clone(),
            }),
            (this, _) => this.clone(),
        }
    }

    /// Adds what another grant of the same capability permits: what either permits, the sum permits.
    pub fn add(&mut self, other: &Self) {
        match (&mut *self, other) {
            (Self::Names(names), Self::Names(others)) => names.add(others),
            (Self::Process(process), Self::Process(other)) => process.add(other),
            (Self::Directories(directories), Self::Directories(others)) => {
                let within = |all: &[Directory], path: &str| {
                    let around = all.iter().filter(|dir| dir.path == path || dir.rest(path).is_some());
                    around.max_by_key(|dir| dir.path.len()).is_some_and(|dir| dir.writable)
                };
                let paths: BTreeSet<&String> = directories.iter().chain(others).map(|dir| &dir.path).collect();
                let sum = paths.into_iter().map(|path| Directory {
                    path: path.clone(),
                    writable: within(directories, path) || within(others, path),
                });
                *directories = sum.collect();
            }
            (Self::Changes(trees), Self::Changes(others)) => {
                let paths: BTreeSet<&String> = trees.iter().chain(others).map(|tree| &tree.path).collect();
                let sum = paths.into_iter().filter_map(|path| {
                    let (own, other) = (innermost(trees, path), innermost(others, path));
                    let access = own.into_iter().chain(other).map(|tree| tree.access).max()?;
                    Some(Tree { path: path.clone(), access })
                });
                *trees = sum.collect();
            }
            (Self::Network(rules), Self::Network(others)) => {
                rules.extend(others.iter().cloned());
                rules.sort();
                rules.dedup();
            }
            // A grant with names, and the older one of a setting without: that of more counts.
            (Self::Yes, Self::Names(_)) => *self = other.clone(),
            (Self::No, other) => *self = other.clone(),
            _ => {}
        }
    }
}

/// The grants of a module's function. They cover only interfaces that its module imports.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Grants {
    /// Host interfaces, without version: `brine:host/grains`.
    interfaces: BTreeSet<&'static str>,
    /// Programs.
    pub process: ProcessGrant,
    /// Directories that the minion changes for the module, sorted by path.
    pub changes: Vec<Tree>,
    /// Directories and hosts, which the executor accesses directly.
    pub direct: DirectGrants,
    /// In plan mode, the directories that are writable otherwise.
    pub would_write: Vec<String>,
    /// In plan mode, the hosts that can be reached otherwise.
    pub would_reach: Vec<NetworkRule>,
    /// For capabilities that are granted by names: the names. Capabilities without names are absent.
    names: BTreeMap<Capability, Names>,
    /// The unix user that the module acts as, if it is not the minion's own.
    pub user: Option<String>,
}

/// Grants that the executor's process itself needs. Only modules with the same direct grants share an executor.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DirectGrants {
    /// Directories, sorted by path.
    pub directories: Vec<Directory>,
    /// Hosts, sorted.
    pub network: Vec<NetworkRule>,
    /// The user of the process, if it is not the sandbox's own.
    pub user: Option<String>,
}

/// A directory that guests see under its own path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Directory {
    /// Absolute, without `.` and `..`.
    pub path: String,
    /// Whether guests may change its content.
    pub writable: bool,
}

impl Directory {
    /// Returns the rest of a path within this directory: for `/srv/app/x` within `/srv/app` it is `x`.
    pub fn rest<'a>(&self, path: &'a str) -> Option<&'a str> {
        let rest = path.strip_prefix(self.path.trim_end_matches('/'))?.strip_prefix('/')?;
        (!rest.is_empty()).then_some(rest)
    }
}

impl Grants {
    /// Checks whether calls of this host interface (`brine:host/grains`) are allowed. The broker checks this for each
    /// call.
    pub fn allows(&self, interface: &str) -> bool {
        self.interfaces.contains(interface)
    }

    /// Returns the interfaces that the function may call.
    pub fn interfaces(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.interfaces.iter().copied()
    }

    /// Returns the granted names of a capability. Empty if it is not granted by names.
    pub fn names(&self, capability: Capability) -> &Names {
        self.names.get(&capability).unwrap_or(Names::NONE)
    }

    /// Sets the granted names of a capability.
    pub fn set_names(&mut self, capability: Capability, names: Names) {
        if names.is_none() {
            self.names.remove(&capability);
        } else {
            self.names.insert(capability, names);
        }
    }

    /// Checks whether the capability is granted by values and has none.
    pub fn names_nothing(&self, capability: Capability) -> bool {
        match capability.kind() {
            Kind::Flag | Kind::Settings => false,
            Kind::Names => self.names(capability).is_none(),
            Kind::Process => self.process.is_none(),
            Kind::Directories => self.direct.directories.is_empty(),
            Kind::Changes => self.changes.is_empty(),
            Kind::Network => self.direct.network.is_empty(),
        }
    }

    /// Adds the policy's grant of a capability with these interfaces. `self.user` must already be set.
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
                // A function without directories needs no executor of its own because of its user.
                self.direct.user = self.user.clone().filter(|_| !self.direct.directories.is_empty());
            }
            Grant::Changes(trees) => self.changes = trees,
            Grant::Network(rules) => self.direct.network = rules,
        }
    }

    /// Returns the grants for plan mode: directories are read-only, and no host can be reached. The executor's process
    /// has no more than that, so its second wall holds it too.
    #[must_use]
    pub fn planned(&self) -> Self {
        let mut planned = self.clone();
        for directory in &mut planned.direct.directories {
            if std::mem::take(&mut directory.writable) {
                planned.would_write.push(directory.path.clone());
            }
        }
        planned.would_reach = std::mem::take(&mut planned.direct.network);
        planned
    }

    /// Returns the grants restricted to exactly these interfaces.
    pub fn only(mut self, interfaces: impl IntoIterator<Item = &'static str>) -> Self {
        self.interfaces = interfaces.into_iter().collect();
        self
    }
}
