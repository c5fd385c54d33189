//! The settings of authentication (§3.2, §3.7).

use std::path::PathBuf;
use std::time::Duration;

use brine_protocol::config::settings;
use brine_protocol::options;

use crate::keys::Room;

options! {
    /// Which minions are accepted.
    #[derive(Debug, Clone)]
    pub(crate) struct GateOpts from c {
        pub(crate) auto_accept: bool = c.get(settings::AUTO_ACCEPT)?,
        pub(crate) open_mode: bool = c.get(settings::OPEN_MODE)?,
        /// `max_minions`; 0 is no bound.
        pub(crate) max_minions: usize = c.get(settings::MAX_MINIONS)?,
        pub(crate) autosign_file: Option<PathBuf> = c.find(settings::AUTOSIGN_FILE)?,
        pub(crate) autoreject_file: Option<PathBuf> = c.find(settings::AUTOREJECT_FILE)?,
        pub(crate) autosign_timeout: Duration = c.get(settings::AUTOSIGN_TIMEOUT)?,
        pub(crate) autosign_grains_dir: Option<PathBuf> = c.find(settings::AUTOSIGN_GRAINS_DIR)?,
        pub(crate) permissive_pki_access: bool = c.get(settings::PERMISSIVE_PKI_ACCESS)?,
        pub(crate) auth_events: bool = c.get(settings::AUTH_EVENTS)?,
        /// `auth_events_autosign_grains`: the acts whose events contain the grains that the minion sent for
        /// autosigning.
        pub(crate) auth_events_autosign_grains: Vec<String> = c.get(settings::AUTH_EVENTS_AUTOSIGN_GRAINS)?,
        /// `minimum_auth_version` (CVE-2025-62349).
        pub(crate) minimum_auth_version: u64 = c.get(settings::MINIMUM_AUTH_VERSION)?,
        /// `max_pending_keys`, `max_pending_keys_per_address`: bounds on keys that wait for an operator. Brine's own
        /// settings.
        pub(crate) room: Room = Room {
            all: c.get(settings::MAX_PENDING_KEYS)?,
            of_address: c.get(settings::MAX_PENDING_KEYS_PER_ADDRESS)?,
        },
    }
}
