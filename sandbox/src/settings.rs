//! The `sandbox:` part of the minion's configuration.

use crate::{CompileLimits, Limits, Policy};

/// `sandbox:` of the minion's configuration, checked. All of it has defaults.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `limits`
    pub limits: Limits,
    /// `modules`, `replace_standard`
    pub policy: Policy,
    /// `max_running`
    pub max_running: usize,
    /// `max_queued`
    pub max_queued: usize,
    /// `compile`
    pub compile: CompileLimits,
}

/// A setting that cannot be used: which, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {why}")]
pub struct SettingsError {
    /// Its way in the configuration: `sandbox:limits:memory`.
    pub key: String,
    /// One line.
    pub why: String,
}

impl Settings {
    /// Reads the value of `sandbox`; nil where there is none.
    pub fn read(_value: &rmpv::Value) -> Result<Self, SettingsError> {
        todo!()
    }
}
