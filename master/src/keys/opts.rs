//! What the configuration says of keys: where they are, how they are made, and how long those are used that minions are given.

use std::path::PathBuf;
use std::time::Duration;

use brine_protocol::config::{Config, ConfigError, settings};

/// The settings of keys.
#[derive(Debug)]
pub(crate) struct KeyOpts {
    /// `pki_dir`.
    pub(crate) pki_dir: PathBuf,
    /// `keysize`, in bits.
    pub(crate) size: usize,
    /// `master_sign_key_name`: the key that signs the master's; none without `master_sign_pubkey`.
    pub(crate) signed_by: Option<String>,
    /// `publish_session`: how long a session key is used.
    pub(crate) session: Duration,
    /// `rotate_aes_key`: the publish key is replaced when a minion's key is removed.
    pub(crate) rotate_aes_key: bool,
}

impl KeyOpts {
    pub(crate) fn from_config(c: &Config) -> Result<Self, ConfigError> {
        let sign_key_name = c.get(settings::MASTER_SIGN_KEY_NAME)?;
        Ok(Self {
            pki_dir: c.get(settings::PKI_DIR)?,
            size: c.get(settings::KEYSIZE)?,
            signed_by: c.get(settings::MASTER_SIGN_PUBKEY)?.then_some(sign_key_name),
            session: c.get(settings::PUBLISH_SESSION)?,
            rotate_aes_key: c.get(settings::ROTATE_AES_KEY)?,
        })
    }
}
