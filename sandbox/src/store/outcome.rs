//! What installing and removing come to.

use crate::policy::Refused;
use crate::signature::SignatureError;
use crate::store::Held;
use crate::{BadName, ModuleName};

/// What an install did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Installed {
    /// It was there already, with the same content.
    Unchanged,
    /// There was no module of this name.
    New,
    /// It took the place of another content.
    Updated,
}

/// Why a module was not installed; what was there before is still there.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// Not a module's name.
    #[error(transparent)]
    Name(#[from] BadName),
    /// It would take the place of a standard module.
    #[error(
        "module {0} is a standard module and is not replaced; the owner of this host allows it by `replace_standard: [{0}]` \
         under `sandbox:` in the minion's configuration"
    )]
    Standard(ModuleName),
    /// Larger than the limit.
    #[error("module {name} has {size} bytes; the limit (sandbox:compile:module) is {limit}")]
    TooLarge {
        /// The module.
        name: ModuleName,
        /// Its bytes.
        size: u64,
        /// The setting.
        limit: u64,
    },
    /// The content is refused, now and later.
    #[error("module {name} {reason}")]
    Refused {
        /// The module.
        name: ModuleName,
        /// One line.
        reason: String,
        /// It was refused earlier and was not looked at again.
        before: bool,
    },
    /// Its signature is in the way.
    #[error(transparent)]
    Signature(#[from] SignatureError),
    /// It imports what it was not granted, or is not signed as it has to be.
    #[error(transparent)]
    Policy(#[from] Box<Refused>),
    /// It waits for the owner of this host.
    #[error("{0}")]
    Held(Box<Held>),
    /// This host's fault: another time it may be installed.
    #[error("module {name} was not installed: {reason}")]
    Failed {
        /// The module.
        name: ModuleName,
        /// One line.
        reason: String,
    },
    /// It is large, and the start does not wait for it.
    #[error("module {0} is compiled right now; try again in a moment")]
    Compiling(ModuleName),
    /// So many modules are being installed that this one was not taken.
    #[error("module {0} was not installed: too many modules are being installed; try again")]
    Busy(ModuleName),
    /// The sandbox has ended.
    #[error("module {0} was not installed: the sandbox has ended")]
    Ended(ModuleName),
}

/// Why nothing was approved: one line.
#[derive(Debug, thiserror::Error)]
pub enum ApproveError {
    /// Not a module's name.
    #[error(transparent)]
    Name(#[from] BadName),
    /// Not 64 hex digits.
    #[error("{0:?} is no sha256 of a module: 64 hex digits are expected, as `sandbox.diff` shows them")]
    Sha256(String),
    /// Something else is in the way, which an approval does not lift.
    #[error("{0}")]
    Refused(Box<InstallError>),
    /// A standard module.
    #[error("module {0} is a standard module and needs no approval")]
    Standard(ModuleName),
    /// This host's fault.
    #[error("module {name} was not approved: {reason}")]
    Failed {
        /// The module.
        name: ModuleName,
        /// One line.
        reason: String,
    },
}

/// Why a module did not go back to the version before: one line.
#[derive(Debug, thiserror::Error)]
pub enum RollbackError {
    /// Not a module's name.
    #[error(transparent)]
    Name(#[from] BadName),
    /// There is none.
    #[error("there is no version of module {0} to go back to on this minion")]
    Nothing(ModuleName),
    /// It is not let in any more.
    #[error("module {name} does not go back: {why}")]
    Refused {
        /// The module.
        name: ModuleName,
        /// Why.
        why: Box<InstallError>,
    },
    /// This host's fault.
    #[error("module {name} does not go back: {reason}")]
    Failed {
        /// The module.
        name: ModuleName,
        /// One line.
        reason: String,
    },
}

/// Why a module was not removed; it is still there.
#[derive(Debug, thiserror::Error)]
pub enum RemoveError {
    /// Not a module's name.
    #[error(transparent)]
    Name(#[from] BadName),
    /// This host's fault, or the standard module that would come back cannot be used.
    #[error("module {name} was not removed: {reason}")]
    Failed {
        /// The module.
        name: ModuleName,
        /// One line.
        reason: String,
    },
}

impl ApproveError {
    pub(crate) fn failed(name: &ModuleName, reason: impl std::fmt::Display) -> Self {
        Self::Failed { name: name.clone(), reason: reason.to_string() }
    }
}

impl RollbackError {
    pub(crate) fn failed(name: &ModuleName, reason: impl std::fmt::Display) -> Self {
        Self::Failed { name: name.clone(), reason: reason.to_string() }
    }
}

impl RemoveError {
    pub(crate) fn failed(name: &ModuleName, reason: impl std::fmt::Display) -> Self {
        Self::Failed { name: name.clone(), reason: reason.to_string() }
    }
}

impl InstallError {
    pub(crate) fn failed(name: &ModuleName, reason: impl std::fmt::Display) -> Self {
        Self::Failed { name: name.clone(), reason: reason.to_string() }
    }
}
