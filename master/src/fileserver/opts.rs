//! The settings of the file server.

use std::path::PathBuf;

use brine_protocol::config::settings::{self, Folders, Setting};
use brine_protocol::config::{Config, ConfigError};
use brine_protocol::ids::Saltenv;

use crate::hash_type::HashType;
use crate::options::options;

/// The folders of each environment. The first folder that has a path wins.
pub(crate) type Roots = Vec<(Saltenv, Vec<PathBuf>)>;

options! {
    /// The file server's settings.
    #[derive(Debug, Clone)]
    pub(crate) struct FileOpts from c {
        pub(crate) roots: Roots = roots(c, settings::FILE_ROOTS)?,
        /// `file_buffer_size`: size of a chunk in bytes.
        pub(crate) buffer_size: usize = c.get(settings::FILE_BUFFER_SIZE)?,
        pub(crate) hash_type: HashType = HashType::from_config(c)?,
        pub(crate) follow_symlinks: bool = c.get(settings::FILESERVER_FOLLOWSYMLINKS)?,
        pub(crate) ignore_glob: Vec<String> = c.get(settings::FILE_IGNORE_GLOB)?,
        pub(crate) ignore_regex: Vec<String> = c.get(settings::FILE_IGNORE_REGEX)?,
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

/// Reads `file_roots` or `pillar_roots`.
pub(crate) fn roots(c: &Config, setting: Setting<Folders>) -> Result<Roots, ConfigError> {
    let mut roots = Vec::new();
    for (env, paths) in c.find(setting)?.unwrap_or_default() {
        let env = Saltenv::try_from(env.as_str())
            .map_err(|_| c.wrong(setting.row.name, "a map of environments to folders"))?;
        roots.push((env, paths.into_iter().map(|path| c.dir().join(path)).collect()));
    }
    Ok(roots)
}
