//! The common part of the two programs' command lines.

use std::path::{Path, PathBuf};

use brine_cli::logging;
use brine_cli::print::stderr;
use brine_protocol::config::{Config, ConfigError, settings};

/// Salt's folder of configuration files.
pub(crate) const CONF_DIR: &str = "/etc/salt";

/// The folder of `-c`, which may also name the file in it.
pub(crate) fn conf_dir(given: Option<&Path>) -> PathBuf {
    let dir = given.unwrap_or(Path::new(CONF_DIR));
    if dir.is_file() { dir.parent().unwrap_or(Path::new("/")).to_owned() } else { dir.to_owned() }
}

/// Checks that the folder of `-c` exists: with a mistyped one, a minion would start under another identity.
///
/// # Errors
/// A sentence that names the folder.
pub(crate) fn check_conf_dir(given: Option<&Path>) -> Result<(), String> {
    match given {
        Some(dir) if !dir.exists() => {
            Err(format!("the configuration folder {} does not exist; name another with -c", dir.display()))
        }
        _ => Ok(()),
    }
}

/// Starts logging by the command line and the configuration. If the log file cannot be written, the log goes to stderr alone and says
/// so.
///
/// # Errors
/// When a level is unknown.
pub(crate) fn start_log(
    config: &Config,
    level: Option<&str>,
    file: Option<(&Path, Option<&str>)>,
) -> Result<(), String> {
    let wrong = |error: ConfigError| error.to_string();
    let level = level.map_or_else(|| config.get(settings::LOG_LEVEL), |level| Ok(level.to_owned())).map_err(wrong)?;
    let Some((path, file_level)) = file else { return logging::init(&level, None) };
    let configured = config.find(settings::LOG_LEVEL_LOGFILE).map_err(wrong)?;
    let file_level = file_level.map(str::to_owned).or(configured).unwrap_or_else(|| level.clone());
    logging::parse_level(&level)?;
    logging::parse_level(&file_level)?;
    logging::init(&level, Some((path, &file_level))).or_else(|e| {
        stderr(&format!("{e}; logging to the terminal only"));
        logging::init(&level, None)
    })
}
