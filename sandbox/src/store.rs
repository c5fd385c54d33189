//! The modules there are, and how one is switched in.

use brine_component::ModuleInfo;
use brine_sandbox_wire::Sha256Hex;

use crate::{BadName, Refused};

/// One module that jobs can call.
#[derive(Debug)]
pub struct Module {
    /// As in `test.ping`: `test`.
    pub name: String,
    /// Of the component.
    pub sha256: Sha256Hex,
    /// Bytes of the component.
    pub size: u64,
    /// `standard`, or the environment of the master's file server it came from.
    pub origin: String,
    /// What the component says about itself.
    pub info: ModuleInfo,
}

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
    /// Refused by the policy.
    #[error(transparent)]
    Policy(#[from] Refused),
}
