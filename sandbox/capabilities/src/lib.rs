//! The capabilities of modules: one declaration for each, and the check of every call.
//!
//! A capability is what the owner of a host grants or refuses by its name in the configuration. Its file declares
//! everything that the other parts need: its operations (for the wire), the bounds of their messages (for the
//! executor), its description and the kind of its grant (for the policy, errors and `sandbox.show`), and the check of
//! each operation. [`each_capability`] lists them.
//!
//! - `declaration.rs` the parts of a declaration; `check.rs` the one check before an operation is performed
//! - `grants.rs`      the grants of one function; `names.rs` names and globs; `written.rs` grants in the form of the
//!   configuration
//! - `forms.rs`       forms of guests' arguments; `hosts.rs` names and addresses of hosts; `rules.rs` rules of hosts
//!   and ports; `reach.rs` applies these rules; `programs.rs` finds the granted program
//! - `direct.rs`     what an executor refuses by itself; for the owner
//! - `looks.rs`       command lines that only look; `trees.rs` directories that the minion changes
//! - the others       one capability each, named as in the configuration; `http.rs` is a part of `network.rs`

mod beacons;
mod changes;
mod check;
mod config;
mod declaration;
mod direct;
mod disks;
mod events;
mod files;
mod filesystem;
pub mod forms;
mod functions;
mod grains;
mod grants;
pub mod hosts;
mod http;
mod jobs;
mod kernel;
mod looks;
mod mine;
mod modules;
mod names;
mod network;
mod pillar;
mod policy;
mod process;
mod programs;
mod progress;
mod publish;
mod reach;
mod receipts;
mod rules;
mod schedule;
pub mod special;
mod states;
mod static_grains;
mod trees;
mod written;

/// Imports for the declarations of capabilities.
mod prelude {
    pub(crate) use serde::{Deserialize, Serialize};
    pub(crate) use serde_bytes::ByteBuf;

    pub(crate) use crate::Capability;
    pub(crate) use crate::check::{Asker, Least, Refusal};
    pub(crate) use crate::declaration::{Answer, Declaration, Kind, Operation, Planned, Shown, Size, Standard};
    pub(crate) use crate::forms::{self, Form, malformed};
    pub(crate) use crate::grants::{Grant, Grants};
}

use serde::{Deserialize, Serialize};

pub use beacons::BeaconEdit;
pub use changes::{Change, Content, Owner, Watch};
pub use check::{Asker, Least, Refusal, check};
pub use config::grant_with_setting;
pub use declaration::{Answer, Declaration, Kind, Operation, Planned, Shown, Size, Standard};
pub use direct::{PathAccess, Wanted};
pub use files::ListKind;
pub use filesystem::grant_with_directory;
pub use grants::{DirectGrants, Directory, Grant, Grants};
pub use http::HttpRequest;
pub use looks::{Look, standard_looks};
pub use names::{MAX_NAME, Names, is_glob};
pub use process::ProcessRun;
pub use programs::{Host, PROGRAM_FOLDERS, ProcessGrant, Program};
pub use reach::{check_address, check_host};
pub use rules::{NetworkRule, read_rule, rule_text};
pub use schedule::{ScheduleChange, SchedulePlace};
pub use states::{Chunk, MAX_PAUSE_BYTES, MAX_REQUESTS_BYTES};
pub use static_grains::WALLS;
pub use trees::{Access, Tree, innermost};
pub use written::{yaml_list, yaml_text};

/// Registers the capabilities: calls the macro `$then` with one row for each, in the order in which owners see them. A
/// row is the capability, the module of its declaration (the executor has a module of the same name), and its
/// operations.
#[macro_export]
macro_rules! each_capability {
    ($then:ident) => {
        $then! {
            Grains in grains: Grains(GrainsOp);
            StaticGrains in static_grains: StaticGrains(StaticGrainsOp);
            Config in config: Config(ConfigOp);
            Modules in modules: Modules(ModulesOp);
            Jobs in jobs: Jobs(JobsOp);
            Disks in disks: Disks(DisksOp);
            Policy in policy: Policy(PolicyOp);
            Process in process: Process(ProcessOp);
            Filesystem in filesystem: Users(UsersOp), Directories(DirectoriesOp);
            Changes in changes: Changes(ChangesOp), Watches(WatchesOp);
            Network in network: Http(HttpOp), Network(NetworkOp);
            Pillar in pillar: Pillar(PillarOp);
            Functions in functions: Functions(FunctionsOp);
            Files in files: Files(FilesOp);
            Events in events: Events(EventsOp);
            Mine in mine: Mine(MineOp);
            Progress in progress: Progress(ProgressOp);
            Schedule in schedule: Schedule(ScheduleOp);
            States in states: States(StatesOp);
            Kernel in kernel: Kernel(KernelOp);
            Beacons in beacons: Beacons(BeaconsOp);
            Receipts in receipts: Receipts(ReceiptsOp);
            Publish in publish: Publish(PublishOp);
        }
    };
}

macro_rules! declare {
    ($($capability:ident in $module:ident: $($op:ident($type:ident)),+;)+) => {
        /// A capability that the owner grants or refuses by its name in the configuration.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Capability {
            $(#[doc = concat!("`", stringify!($module), "`")] $capability,)+
        }

        const DECLARATIONS: [&Declaration; Capability::COUNT] = [$(&$module::DECLARATION),+];

        impl Capability {
            const COUNT: usize = [$(stringify!($capability)),+].len();

            /// All capabilities.
            pub const ALL: [Self; Self::COUNT] = [$(Self::$capability),+];
        }

        /// A guest's request to the broker. The executor itself answers `log` and `job`.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        pub enum HostOp {
            $($(#[doc = concat!("Of the capability `", stringify!($module), "`.")] $op(ops::$type),)+)+
        }

        impl HostOp {
            /// Returns the operation's interface, without version: `brine:host/grains`.
            pub fn interface(&self) -> &'static str {
                match self { $($(Self::$op(_) => <ops::$type as Operation>::INTERFACE,)+)+ }
            }

            /// Returns the capability that the operation needs.
            pub fn capability(&self) -> Capability {
                match self { $($(Self::$op(_) => Capability::$capability,)+)+ }
            }

            /// Returns the sizes of the message's parts.
            pub fn size(&self) -> Size {
                match self { $($(Self::$op(op) => op.size(),)+)+ }
            }

            /// Returns the calls that the operation counts as.
            pub fn calls(&self) -> u32 {
                match self { $($(Self::$op(op) => op.calls(),)+)+ }
            }

            /// Returns how to filter the answer for the module.
            pub fn shown(&self) -> Shown {
                match self { $($(Self::$op(op) => op.shown(),)+)+ }
            }

            /// Whether its answer may be handed over with a call, before the module asks.
            pub fn is_foreseeable(&self) -> bool {
                match self { $($(Self::$op(op) => op.is_foreseeable(),)+)+ }
            }

            /// Returns what becomes of the operation in plan mode, after [`check`] has allowed it.
            pub fn planned(self, granted: &Grants) -> Planned<Self> {
                match self { $($(Self::$op(op) => op.planned(granted).map(Self::$op),)+)+ }
            }

            fn checked(self, who: &Asker<'_>, granted: &Grants) -> Result<Self, Refusal> {
                Ok(match self { $($(Self::$op(op) => Self::$op(op.check(who, granted)?),)+)+ })
            }
        }

        /// The operations of each capability.
        pub mod ops {
            pub use super::HostOp;
            $(pub use super::$module::{$($type),+};)+
        }
    };
}

each_capability!(declare);

impl Capability {
    fn declaration(self) -> &'static Declaration {
        DECLARATIONS[self as usize]
    }

    /// Returns its key in the configuration.
    pub fn key(self) -> &'static str {
        self.declaration().key
    }

    /// Returns a description, for people, of what it lets a module do.
    pub fn words(self) -> &'static str {
        self.declaration().words
    }

    /// Returns its interfaces, without version.
    pub fn interfaces(self) -> &'static [&'static str] {
        self.declaration().interfaces
    }

    /// Returns the capability of this interface (without version), and the declaration's string for it.
    pub fn of(interface: &str) -> Option<(Self, &'static str)> {
        Self::ALL.into_iter().find_map(|capability| {
            let known = capability.interfaces().iter().find(|known| **known == interface)?;
            Some((capability, *known))
        })
    }

    /// Returns the kind of its grant.
    pub fn kind(self) -> Kind {
        self.declaration().kind
    }

    /// Returns the least grant: the module is loaded, and each of its requests is then checked by name.
    pub fn least(self) -> Grant {
        self.kind().least()
    }

    /// Checks whether it is granted unless the owner says otherwise.
    pub fn is_default(self) -> bool {
        self.declaration().by_default
    }

    /// Returns the grant that applies if the owner says nothing.
    pub fn by_default(self) -> Option<Grant> {
        self.is_default().then(|| self.least())
    }

    /// Returns the grant that comes with a standard module. A module that replaces a standard one does not get it.
    pub fn standard(self, module: &str) -> Option<Grant> {
        let (_, standard) = self.declaration().standard.iter().find(|(name, _)| *name == module)?;
        Some(standard.grant(self.kind()))
    }

    /// Returns what is wrong with a name in the configuration.
    pub fn wrong_name(self, name: &str) -> Option<String> {
        (self.declaration().wrong_name)(name)
    }

    /// Checks whether `sandbox.check` reports a grant of it to every module.
    pub fn is_reported_for_all(self) -> bool {
        self.declaration().reported_for_all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_or_interface_is_there_twice() {
        let mut keys: Vec<&str> = Capability::ALL.into_iter().map(Capability::key).collect();
        let mut interfaces: Vec<&str> = Capability::ALL.into_iter().flat_map(Capability::interfaces).copied().collect();
        for names in [&mut keys, &mut interfaces] {
            let all = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), all);
        }
        for capability in Capability::ALL {
            assert!(!capability.words().is_empty() && !capability.interfaces().is_empty(), "{capability:?}");
        }
    }

    /// Sorted, so that whoever looks for a module sees at once whether it is there.
    #[test]
    fn the_standard_modules_of_each_capability_are_sorted() {
        for capability in Capability::ALL {
            let names: Vec<&str> = capability.declaration().standard.iter().map(|(name, _)| *name).collect();
            assert!(names.windows(2).all(|pair| pair[0] < pair[1]), "{capability:?}: {names:?}");
        }
    }
}
