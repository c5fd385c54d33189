//! The settings of the file server.

use brine_fileserver::TreeOpts;
use brine_protocol::config::settings::{self, Setting};
use brine_protocol::config::{Config, ConfigError};
use brine_protocol::options;

options! {
    /// The file server's settings.
    #[derive(Debug, Clone)]
    pub(crate) struct FileOpts from c {
        pub(crate) tree: TreeOpts = TreeOpts::from_config(c)?,
        pub(crate) recv: bool = c.get(settings::FILE_RECV)?,
        /// `file_recv_max_size`, in bytes.
        pub(crate) recv_max: u64 = mebibytes(c, settings::FILE_RECV_MAX_SIZE)?,
        /// `file_recv_quota`, in bytes, and `file_recv_quota_count`: bounds on all files of one minion; 0 is no bound.
        /// Brine's own settings.
        pub(crate) recv_quota: (u64, u64) =
            (mebibytes(c, settings::FILE_RECV_QUOTA)?, c.get(settings::FILE_RECV_QUOTA_COUNT)?),
    }
}

/// Reads a size in MiB as bytes.
fn mebibytes(c: &Config, setting: Setting<u64>) -> Result<u64, ConfigError> {
    c.get(setting).map(|count| count << 20)
}
