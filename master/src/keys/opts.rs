//! The settings of keys: their folder and size, and the lifetimes of session and publish keys.

use std::path::PathBuf;
use std::time::Duration;

use brine_protocol::config::settings;
use brine_protocol::options;

options! {
    /// The settings of keys.
    #[derive(Debug)]
    pub(crate) struct KeyOpts from c {
        pub(crate) pki_dir: PathBuf = c.get(settings::PKI_DIR)?,
        /// `keysize`, in bits.
        pub(crate) size: usize = c.get(settings::KEYSIZE)?,
        /// `master_sign_key_name`: the key that signs the master's; `None` without `master_sign_pubkey`.
        pub(crate) signed_by: Option<String> =
            c.get(settings::MASTER_SIGN_PUBKEY)?.then_some(c.get(settings::MASTER_SIGN_KEY_NAME)?),
        /// `publish_session`: the lifetime of a session key.
        pub(crate) session: Duration = c.get(settings::PUBLISH_SESSION)?,
        /// `rotate_aes_key`: the publish key is replaced when a minion's key is removed.
        pub(crate) rotate_aes_key: bool = c.get(settings::ROTATE_AES_KEY)?,
    }
}
