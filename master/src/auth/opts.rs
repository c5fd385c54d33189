//! What the configuration says of who is let in (§3.2, §3.7).

use std::path::PathBuf;
use std::time::Duration;

use brine_protocol::config::{Config, ConfigError, settings};

use crate::keys::Room;

/// Which minions are let in, and how.
#[derive(Debug, Clone)]
pub(crate) struct GateOpts {
    /// `auto_accept`.
    pub(crate) auto_accept: bool,
    /// `open_mode`.
    pub(crate) open_mode: bool,
    /// `max_minions`; 0 is no bound.
    pub(crate) max_minions: usize,
    /// `autosign_file`.
    pub(crate) autosign_file: Option<PathBuf>,
    /// `autoreject_file`.
    pub(crate) autoreject_file: Option<PathBuf>,
    /// `autosign_timeout`.
    pub(crate) autosign_timeout: Duration,
    /// `autosign_grains_dir`.
    pub(crate) autosign_grains_dir: Option<PathBuf>,
    /// `permissive_pki_access`.
    pub(crate) permissive_pki_access: bool,
    /// `auth_events`.
    pub(crate) auth_events: bool,
    /// `auth_events_autosign_grains`: the acts whose events tell the grains that the minion sent to be signed by.
    pub(crate) auth_events_autosign_grains: Vec<String>,
    /// `minimum_auth_version` (CVE-2025-62349).
    pub(crate) minimum_auth_version: u64,
    /// `max_pending_keys`, `max_pending_keys_per_address`: keys that may wait for an operator. Brine's own keys.
    pub(crate) room: Room,
}

impl GateOpts {
    pub(crate) fn from_config(c: &Config) -> Result<Self, ConfigError> {
        Ok(Self {
            auto_accept: c.get(settings::AUTO_ACCEPT)?,
            open_mode: c.get(settings::OPEN_MODE)?,
            max_minions: c.get(settings::MAX_MINIONS)?,
            autosign_file: c.find(settings::AUTOSIGN_FILE)?,
            autoreject_file: c.find(settings::AUTOREJECT_FILE)?,
            autosign_timeout: c.get(settings::AUTOSIGN_TIMEOUT)?,
            autosign_grains_dir: c.find(settings::AUTOSIGN_GRAINS_DIR)?,
            permissive_pki_access: c.get(settings::PERMISSIVE_PKI_ACCESS)?,
            auth_events: c.get(settings::AUTH_EVENTS)?,
            auth_events_autosign_grains: c.get(settings::AUTH_EVENTS_AUTOSIGN_GRAINS)?,
            minimum_auth_version: c.get(settings::MINIMUM_AUTH_VERSION)?,
            room: Room {
                all: c.get(settings::MAX_PENDING_KEYS)?,
                of_address: c.get(settings::MAX_PENDING_KEYS_PER_ADDRESS)?,
            },
        })
    }
}
