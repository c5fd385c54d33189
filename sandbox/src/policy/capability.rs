//! What there is to grant: a table of names, the interfaces behind each, and what is granted where the owner says nothing.

use brine_sandbox_wire::{HostOp, Limits};

use super::entry::Grant;
use crate::grants::{Names, ProcessGrant};

/// A thing that the owner grants or refuses by its name in the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Capability {
    /// This host's grains.
    Grains,
    /// The minion's settings: the public ones, and those that are named.
    Config,
    /// List, describe and refresh modules, and have grains and pillar refreshed.
    Modules,
    /// See and end running jobs.
    Jobs,
    /// What is mounted, and how full it is.
    Disks,
    /// What the owner granted to which module.
    Policy,
    /// Run programs.
    Process,
    /// See directories.
    Filesystem,
    /// Reach hosts.
    Network,
    /// Read keys of the pillar.
    Pillar,
    /// Call functions of other modules.
    Functions,
    /// Read files of the master's file server.
    Files,
    /// Fire events.
    Events,
    /// Publish to the mine.
    Mine,
}

/// What a grant of a capability is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `true`
    Flag,
    /// `any` or some names.
    Names,
    /// Programs.
    Process,
    /// Directories.
    Directories,
    /// Hosts and ports.
    Network,
    /// `true` for what is public, some names with that, or `any`.
    Settings,
}

impl Capability {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::Grains,
        Self::Config,
        Self::Modules,
        Self::Jobs,
        Self::Disks,
        Self::Policy,
        Self::Process,
        Self::Filesystem,
        Self::Network,
        Self::Pillar,
        Self::Functions,
        Self::Files,
        Self::Events,
        Self::Mine,
    ];

    /// Its key in the configuration.
    pub fn key(self) -> &'static str {
        match self {
            Self::Grains => "grains",
            Self::Config => "config",
            Self::Modules => "modules",
            Self::Jobs => "jobs",
            Self::Disks => "disks",
            Self::Policy => "policy",
            Self::Process => "process",
            Self::Filesystem => "filesystem",
            Self::Network => "network",
            Self::Pillar => "pillar",
            Self::Functions => "functions",
            Self::Files => "files",
            Self::Events => "events",
            Self::Mine => "mine",
        }
    }

    /// What it lets a module do, for people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Grains => "read this host's grains",
            Self::Config => "read the minion's public settings",
            Self::Modules => "list, describe and refresh modules, have grains and pillar refreshed",
            Self::Jobs => "see and end running jobs",
            Self::Disks => "see what is mounted and how full it is",
            Self::Policy => "see what is granted to which module",
            Self::Process => "run programs",
            Self::Filesystem => "see directories of this host",
            Self::Network => "reach other hosts",
            Self::Pillar => "read this minion's pillar",
            Self::Functions => "call functions of other modules",
            Self::Files => "read files of the master's file server",
            Self::Events => "fire events on the master's bus",
            Self::Mine => "publish to the mine",
        }
    }

    /// The interfaces it opens, without version.
    pub fn interfaces(self) -> &'static [&'static str] {
        match self {
            Self::Grains => &["brine:host/grains"],
            Self::Config => &["brine:host/config"],
            Self::Modules => &["brine:host/modules"],
            Self::Jobs => &["brine:host/jobs"],
            Self::Disks => &["brine:host/disks"],
            Self::Policy => &["brine:host/policy"],
            Self::Process => &["brine:host/process"],
            Self::Filesystem => &["brine:host/metadata", "wasi:filesystem/preopens", "wasi:filesystem/types"],
            Self::Network => &[
                "brine:host/http",
                "wasi:sockets/instance-network",
                "wasi:sockets/ip-name-lookup",
                "wasi:sockets/network",
                "wasi:sockets/tcp",
                "wasi:sockets/tcp-create-socket",
                "wasi:sockets/udp",
                "wasi:sockets/udp-create-socket",
            ],
            Self::Pillar => &["brine:host/pillar"],
            Self::Functions => &["brine:host/functions"],
            Self::Files => &["brine:host/files"],
            Self::Events => &["brine:host/events"],
            Self::Mine => &["brine:host/mine"],
        }
    }

    /// What opens this interface (without version), in the table's own words for it.
    pub fn of(interface: &str) -> Option<(Self, &'static str)> {
        Self::ALL.into_iter().find_map(|capability| {
            let known = capability.interfaces().iter().find(|known| **known == interface)?;
            Some((capability, *known))
        })
    }

    /// What a call of the host needs.
    pub(crate) fn needed(op: &HostOp) -> Self {
        match op {
            HostOp::Grains(_) => Self::Grains,
            HostOp::Config(_) => Self::Config,
            HostOp::Modules(_) => Self::Modules,
            HostOp::Jobs(_) => Self::Jobs,
            HostOp::Disks(_) => Self::Disks,
            HostOp::Policy(_) => Self::Policy,
            HostOp::Process(_) => Self::Process,
            HostOp::Users(_) | HostOp::Directories(_) => Self::Filesystem,
            HostOp::Http(_) | HostOp::Network(_) => Self::Network,
            HostOp::Pillar(_) => Self::Pillar,
            HostOp::Functions(_) => Self::Functions,
            HostOp::Files(_) => Self::Files,
            HostOp::Events(_) => Self::Events,
            HostOp::Mine(_) => Self::Mine,
        }
    }

    pub(crate) fn kind(self) -> Kind {
        match self {
            Self::Grains | Self::Modules | Self::Jobs | Self::Disks | Self::Policy => Kind::Flag,
            Self::Config => Kind::Settings,
            Self::Process => Kind::Process,
            Self::Filesystem => Kind::Directories,
            Self::Network => Kind::Network,
            Self::Pillar | Self::Functions | Self::Files | Self::Events | Self::Mine => Kind::Names,
        }
    }

    /// The least grant: the module is loaded, and what it then asks for is decided name by name.
    pub(crate) fn least(self) -> Grant {
        match self.kind() {
            Kind::Flag | Kind::Settings => Grant::Yes,
            Kind::Names => Grant::Names(Names::default()),
            Kind::Process => Grant::Process(ProcessGrant::default()),
            Kind::Directories => Grant::Directories(Vec::new()),
            Kind::Network => Grant::Network(Vec::new()),
        }
    }

    /// Granted unless the owner says otherwise.
    pub fn is_default(self) -> bool {
        self.by_default().is_some()
    }

    /// What of it is.
    pub(crate) fn by_default(self) -> Option<Grant> {
        matches!(self, Self::Grains | Self::Config).then_some(Grant::Yes)
    }

    /// What a standard module comes with; nothing for a module that took the place of one.
    pub(crate) fn standard(self, module: &str) -> Option<Grant> {
        match (module, self) {
            ("sys" | "saltutil", Self::Modules)
            | ("saltutil", Self::Jobs)
            | ("sandbox", Self::Policy)
            | ("disk", Self::Disks) => Some(Grant::Yes),
            ("cp", Self::Files) => Some(Grant::Names(Names::Any)),
            // What the master sent, returned to that master: they have no other way out.
            ("pillar" | "config", Self::Pillar) => Some(Grant::Names(Names::Any)),
            // It calls what it is told to, as who asks could; each function has its own module's grants.
            ("mine", Self::Mine | Self::Functions) => Some(Grant::Names(Names::Any)),
            ("mine", Self::Pillar | Self::Config) => Some(Grant::Names(Names::Only(vec!["mine_functions".to_owned()]))),
            // The same for whoever may call `test.*`, which is often all that users may: so only what needs no grant of its own.
            ("test", Self::Functions) => Some(Grant::Names(Names::Only(
                ["test.*", "sys.*", "grains.*", "config.items"].map(str::to_owned).to_vec(),
            ))),
            // Linked, and nothing behind it: then the error of a call says what it needs.
            ("cp" | "file", Self::Filesystem) | ("cmd", Self::Process) => Some(self.least()),
            _ => None,
        }
    }
}

/// What a standard module needs beyond the defaults for what it is for, where the owner has not said another limit of all.
pub(crate) fn standard_limits(module: &str, limits: &mut Limits) {
    /// Twice the largest file that comes from a master.
    const FILES: u64 = 1 << 30;
    if module == "cp" && limits.written == Limits::default().written {
        limits.written = FILES;
    }
}

/// Interfaces that every module may import. `*` stands for the rest of a name.
pub(crate) const ALWAYS: [&str; 11] = [
    "brine:host/log",
    "brine:host/job",
    "wasi:clocks/*",
    "wasi:random/*",
    "wasi:io/*",
    "wasi:cli/environment",
    "wasi:cli/exit",
    "wasi:cli/stdin",
    "wasi:cli/stdout",
    "wasi:cli/stderr",
    "wasi:cli/terminal-*",
];

/// Whether every module may import it.
pub fn always(interface: &str) -> bool {
    ALWAYS.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(start) => interface.starts_with(start),
        None => interface == *pattern,
    })
}
