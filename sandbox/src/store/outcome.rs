//! Results and errors of installing, approving, rolling back and removing modules.

use crate::policy::Refused;
use crate::signature::SignatureError;
use crate::store::Held;
use crate::{BadName, ModuleName};

/// The effect of an install.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Installed {
    /// The same content was already installed.
    Unchanged,
    /// There was no module of this name.
    New,
    /// It replaced another content.
    Updated,
}

/// Why a module was not installed. The version before is still in use.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// Not a module's name.
    #[error(transparent)]
    Name(#[from] BadName),
    /// It would replace a standard module.
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
        /// Its size in bytes.
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
        /// It was refused earlier, and was not checked again.
        before: bool,
    },
    /// Its signature prevents the install.
    #[error(transparent)]
    Signature(#[from] SignatureError),
    /// It imports something it was not granted, or lacks a required signature.
    #[error(transparent)]
    Policy(#[from] Box<Refused>),
    /// It waits for the owner's decision.
    #[error("{0}")]
    Held(Box<Held>),
    /// A failure of this host. A later install may succeed.
    #[error("module {name} was not installed: {reason}")]
    Failed {
        /// The module.
        name: ModuleName,
        /// One line.
        reason: String,
    },
    /// It is large and still being compiled after the start.
    #[error("module {0} is compiled right now; try again in a moment")]
    Compiling(ModuleName),
    /// Too many installs are in progress.
    #[error("module {0} was not installed: too many modules are being installed; try again")]
    Busy(ModuleName),
    /// The sandbox has ended.
    #[error("module {0} was not installed: the sandbox has ended")]
    Ended(ModuleName),
}

/// Why an approval failed: one line.
#[derive(Debug, thiserror::Error)]
pub enum ApproveError {
    /// Not a module's name.
    #[error(transparent)]
    Name(#[from] BadName),
    /// Not 64 hex digits.
    #[error("{0:?} is no sha256 of a module: 64 hex digits are expected, as `sandbox.diff` shows them")]
    Sha256(String),
    /// Another obstacle, which an approval does not remove.
    #[error("{0}")]
    Refused(Box<InstallError>),
    /// A standard module.
    #[error("module {0} is a standard module and needs no approval")]
    Standard(ModuleName),
    /// A failure of this host.
    #[error("module {name} was not approved: {reason}")]
    Failed {
        /// The module.
        name: ModuleName,
        /// One line.
        reason: String,
    },
}

/// Why a rollback failed: one line.
#[derive(Debug, thiserror::Error)]
pub enum RollbackError {
    /// Not a module's name.
    #[error(transparent)]
    Name(#[from] BadName),
    /// There is no previous version.
    #[error("there is no version of module {0} to go back to on this minion")]
    Nothing(ModuleName),
    /// The previous version is not admitted any more.
    #[error("module {name} does not go back: {why}")]
    Refused {
        /// The module.
        name: ModuleName,
        /// The reason.
        why: Box<InstallError>,
    },
    /// A failure of this host.
    #[error("module {name} does not go back: {reason}")]
    Failed {
        /// The module.
        name: ModuleName,
        /// One line.
        reason: String,
    },
}

/// Why a module was not removed. It is still there.
#[derive(Debug, thiserror::Error)]
pub enum RemoveError {
    /// Not a module's name.
    #[error(transparent)]
    Name(#[from] BadName),
    /// A failure of this host, or the standard module that would be used again is unusable.
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
