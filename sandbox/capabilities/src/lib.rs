//! What modules may ask of a host: one declaration for each capability, and the check of every call.
//!
//! A capability is something that the owner of a host grants or refuses by its name in the configuration. Its file here declares all
//! that the other parts need to know of it: its operations (the wire), the bounds of their messages (the executor), its words and the
//! kind of its grant (policy, errors, `sandbox.show`), and the check of each operation. [`each_capability`] lists them.
//!
//! - `declaration.rs` what a declaration has in it; `check.rs` the one check before an operation is done
//! - `grants.rs`      what one function of a module was granted; `names.rs` names and globs; `written.rs` grants as the owner writes them
//! - `forms.rs`       forms of what guests pass; `hosts.rs` names and addresses of hosts; `rules.rs` rules of hosts and ports, `reach.rs`
//!   what may be reached by them; `programs.rs` which granted program is meant
//! - the others       one capability each, of the name that it has in the configuration; `http.rs` is a part of `network.rs`

mod check;
mod config;
mod declaration;
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
mod mine;
mod modules;
mod names;
mod network;
mod pillar;
mod policy;
mod process;
mod programs;
mod progress;
mod reach;
mod rules;
mod written;

/// What the declaration of a capability needs.
mod prelude {
    pub(crate) use serde::{Deserialize, Serialize};
    pub(crate) use serde_bytes::ByteBuf;

    pub(crate) use crate::Capability;
    pub(crate) use crate::check::{Asker, Refusal};
    pub(crate) use crate::declaration::{Declaration, Kind, Operation, Shown, Size, Standard};
    pub(crate) use crate::forms::{self, Form, malformed};
    pub(crate) use crate::grants::{Grant, Grants};
}

use serde::{Deserialize, Serialize};

pub use check::{Asker, Refusal, check};
pub use config::grant_with_setting;
pub use declaration::{Declaration, Kind, Operation, Shown, Size, Standard};
pub use files::ListKind;
pub use filesystem::grant_with_directory;
pub use grants::{DirectGrants, Directory, Grant, Grants};
pub use http::HttpRequest;
pub use names::{MAX_NAME, Names, is_glob};
pub use process::ProcessRun;
pub use programs::{Host, PROGRAM_FOLDERS, ProcessGrant, Program};
pub use reach::check_host;
pub use rules::{NetworkRule, read_rule, rule_text};
pub use written::{yaml_list, yaml_text};

/// Registers the capabilities: calls the macro `$then` with a row for each, in the order in which owners are told of them. A row is
/// the capability, the module of its declaration (of the same name where the executor links it), and its operations.
#[macro_export]
macro_rules! each_capability {
    ($then:ident) => {
        $then! {
            Grains in grains: Grains(GrainsOp);
            Config in config: Config(ConfigOp);
            Modules in modules: Modules(ModulesOp);
            Jobs in jobs: Jobs(JobsOp);
            Disks in disks: Disks(DisksOp);
            Policy in policy: Policy(PolicyOp);
            Process in process: Process(ProcessOp);
            Filesystem in filesystem: Users(UsersOp), Directories(DirectoriesOp);
            Network in network: Http(HttpOp), Network(NetworkOp);
            Pillar in pillar: Pillar(PillarOp);
            Functions in functions: Functions(FunctionsOp);
            Files in files: Files(FilesOp);
            Events in events: Events(EventsOp);
            Mine in mine: Mine(MineOp);
            Progress in progress: Progress(ProgressOp);
        }
    };
}

macro_rules! declare {
    ($($capability:ident in $module:ident: $($op:ident($type:ident)),+;)+) => {
        /// A thing that the owner grants or refuses by its name in the configuration.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Capability {
            $(#[doc = concat!("`", stringify!($module), "`")] $capability,)+
        }

        const DECLARATIONS: [&Declaration; Capability::COUNT] = [$(&$module::DECLARATION),+];

        impl Capability {
            const COUNT: usize = [$(stringify!($capability)),+].len();

            /// All of them.
            pub const ALL: [Self; Self::COUNT] = [$(Self::$capability),+];
        }

        /// What a guest asks the broker. `log` and `job` are answered in the executor.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        pub enum HostOp {
            $($(#[doc = concat!("Of the capability `", stringify!($module), "`.")] $op(ops::$type),)+)+
        }

        impl HostOp {
            /// The interface it belongs to, without version: `brine:host/grains`.
            pub fn interface(&self) -> &'static str {
                match self { $($(Self::$op(_) => <ops::$type as Operation>::INTERFACE,)+)+ }
            }

            /// The capability that it needs.
            pub fn capability(&self) -> Capability {
                match self { $($(Self::$op(_) => Capability::$capability,)+)+ }
            }

            /// What its message is made of.
            pub fn size(&self) -> Size {
                match self { $($(Self::$op(op) => op.size(),)+)+ }
            }

            /// What of its answer is the module's to see.
            pub fn shown(&self) -> Shown {
                match self { $($(Self::$op(op) => op.shown(),)+)+ }
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

    /// Its key in the configuration.
    pub fn key(self) -> &'static str {
        self.declaration().key
    }

    /// What it lets a module do, for people.
    pub fn words(self) -> &'static str {
        self.declaration().words
    }

    /// The interfaces it opens, without version.
    pub fn interfaces(self) -> &'static [&'static str] {
        self.declaration().interfaces
    }

    /// What opens this interface (without version), in the declaration's own words for it.
    pub fn of(interface: &str) -> Option<(Self, &'static str)> {
        Self::ALL.into_iter().find_map(|capability| {
            let known = capability.interfaces().iter().find(|known| **known == interface)?;
            Some((capability, *known))
        })
    }

    /// What a grant of it is made of.
    pub fn kind(self) -> Kind {
        self.declaration().kind
    }

    /// The least grant: the module is loaded, and what it then asks for is decided name by name.
    pub fn least(self) -> Grant {
        self.kind().least()
    }

    /// Granted unless the owner says otherwise.
    pub fn is_default(self) -> bool {
        self.declaration().by_default
    }

    /// What is granted of it where the owner says nothing.
    pub fn by_default(self) -> Option<Grant> {
        self.is_default().then(|| self.least())
    }

    /// What a standard module comes with; nothing for a module that took the place of one.
    pub fn standard(self, module: &str) -> Option<Grant> {
        let (_, standard) = self.declaration().standard.iter().find(|(name, _)| *name == module)?;
        Some(standard.grant(self.kind()))
    }

    /// What is wrong with a name in a list of the owner's.
    pub fn wrong_name(self, name: &str) -> Option<String> {
        (self.declaration().wrong_name)(name)
    }

    /// Whether `sandbox.check` reports a grant of it to every module.
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
}
