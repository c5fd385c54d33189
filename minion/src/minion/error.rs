//! Why a minion cannot start, or ended.

use std::path::PathBuf;

use brine_protocol::exit;

use crate::connection::SignInError;
use crate::pki::PkiError;
use crate::receipts::ReceiptsError;
use crate::returns::SpoolError;

/// Why a minion cannot start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum MinionError {
    /// Its keys cannot be used.
    #[error(transparent)]
    Pki(#[from] PkiError),
    /// Its spool cannot be used.
    #[error(transparent)]
    Spool(#[from] SpoolError),
    /// Its receipts cannot be used.
    #[error(transparent)]
    Receipts(#[from] ReceiptsError),
    /// Another of its folders cannot be used.
    #[error("the folder {path} cannot be used: {source}")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The sandbox cannot start.
    #[error("the sandbox cannot start: {0}")]
    Sandbox(String),
    /// A setting of the sandbox cannot be used.
    #[error("the setting {0}")]
    Settings(#[from] brine_sandbox::SettingsError),
    /// A setting of its own files or its own pillar cannot be used, where it has no master.
    #[error(transparent)]
    Config(#[from] brine_protocol::config::ConfigError),
    /// It cannot sign in at its master.
    #[error(transparent)]
    SignIn(#[from] SignInError),
}

impl MinionError {
    /// Salt's exit code.
    pub fn exit_code(&self) -> i32 {
        match self {
            Self::SignIn(e) => e.exit_code(),
            Self::Sandbox(_) => exit::UNAVAILABLE,
            Self::Settings(_) | Self::Config(_) => exit::USAGE,
            _ => exit::GENERIC,
        }
    }
}
