//! The settings of the files.

use std::path::PathBuf;

use brine_protocol::config::settings::{self, Folders, Setting};
use brine_protocol::config::{Config, ConfigError};
use brine_protocol::ids::Saltenv;
use brine_protocol::options;

use crate::hash_type::HashType;

/// The folders of each environment. The first folder that has a path wins.
pub type Roots = Vec<(Saltenv, Vec<PathBuf>)>;

options! {
    /// Which files there are, and how they are served.
    #[derive(Debug, Clone)]
    pub struct TreeOpts from c {
        /// `file_roots`
        pub roots: Roots = roots(c, settings::FILE_ROOTS)?,
        /// `file_buffer_size`: size of a chunk in bytes.
        pub buffer_size: usize = c.get(settings::FILE_BUFFER_SIZE)?,
        /// `hash_type`
        pub hash_type: HashType = HashType::from_config(c)?,
        /// `fileserver_followsymlinks`
        pub follow_symlinks: bool = c.get(settings::FILESERVER_FOLLOWSYMLINKS)?,
        /// `file_ignore_glob`
        pub ignore_glob: Vec<String> = c.get(settings::FILE_IGNORE_GLOB)?,
        /// `file_ignore_regex`
        pub ignore_regex: Vec<String> = c.get(settings::FILE_IGNORE_REGEX)?,
    }
}

/// Reads `file_roots` or `pillar_roots`.
///
/// # Errors
/// The setting is no map of environments to folders.
pub fn roots(c: &Config, setting: Setting<Folders>) -> Result<Roots, ConfigError> {
    let mut roots = Vec::new();
    for (env, paths) in c.find(setting)?.unwrap_or_default() {
        let env = Saltenv::try_from(env.as_str())
            .map_err(|_| c.wrong(setting.row.name, "a map of environments to folders"))?;
        roots.push((env, paths.into_iter().map(|path| c.dir().join(path)).collect()));
    }
    Ok(roots)
}
