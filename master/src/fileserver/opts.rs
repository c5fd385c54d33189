//! What the configuration says of the file server.

use std::path::PathBuf;

use brine_protocol::config::settings::{self, Folders, Setting};
use brine_protocol::config::{Config, ConfigError};
use brine_protocol::ids::Saltenv;

use crate::hash_type::HashType;

/// Each environment's folders; the first that has a path wins.
pub(crate) type Roots = Vec<(Saltenv, Vec<PathBuf>)>;

/// The file server's settings.
#[derive(Debug, Clone)]
pub(crate) struct FileOpts {
    /// `file_roots`.
    pub(crate) roots: Roots,
    /// `file_buffer_size`: bytes of a chunk.
    pub(crate) buffer_size: usize,
    /// `hash_type`.
    pub(crate) hash_type: HashType,
    /// `fileserver_followsymlinks`.
    pub(crate) follow_symlinks: bool,
    /// `file_ignore_glob`.
    pub(crate) ignore_glob: Vec<String>,
    /// `file_ignore_regex`.
    pub(crate) ignore_regex: Vec<String>,
    /// `file_recv`.
    pub(crate) recv: bool,
    /// `file_recv_max_size`, in bytes.
    pub(crate) recv_max: u64,
    /// `file_recv_quota`, in bytes, and `file_recv_quota_count`: of all files of one minion; 0 is no bound. Brine's own keys.
    pub(crate) recv_quota: (u64, u64),
}

impl FileOpts {
    pub(crate) fn from_config(c: &Config) -> Result<Self, ConfigError> {
        let mebibytes = |setting| c.get(setting).map(|count: u64| count << 20);
        Ok(Self {
            roots: roots(c, settings::FILE_ROOTS)?,
            buffer_size: c.get(settings::FILE_BUFFER_SIZE)?,
            hash_type: HashType::from_config(c)?,
            follow_symlinks: c.get(settings::FILESERVER_FOLLOWSYMLINKS)?,
            ignore_glob: c.get(settings::FILE_IGNORE_GLOB)?,
            ignore_regex: c.get(settings::FILE_IGNORE_REGEX)?,
            recv: c.get(settings::FILE_RECV)?,
            recv_max: mebibytes(settings::FILE_RECV_MAX_SIZE)?,
            recv_quota: (mebibytes(settings::FILE_RECV_QUOTA)?, c.get(settings::FILE_RECV_QUOTA_COUNT)?),
        })
    }
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
