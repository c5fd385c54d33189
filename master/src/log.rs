//! Where the master's log goes: stderr, and `log_file`.

use std::path::Path;

use brine_protocol::config::Config;

/// Starts logging as the configuration says. A file that was asked for must open; one that is only Salt's default need not.
///
/// # Errors
/// When a level is unknown or the file cannot be opened, as one line.
pub fn init(config: &Config, file_asked_for: bool) -> Result<(), String> {
    let level = config.opt_str("log_level").map_err(|e| e.to_string())?.unwrap_or_else(|| "warning".to_owned());
    let file_level = config.opt_str("log_level_logfile").map_err(|e| e.to_string())?.unwrap_or_else(|| level.clone());
    let file = match config.opt_str("log_file").map_err(|e| e.to_string())? {
        Some(_) => Some(config.get_path("log_file").map_err(|e| e.to_string())?),
        None => None,
    };
    let file = file.filter(|path| file_asked_for || can_write(path));
    brine_protocol::logging::init(&level, file.as_deref().map(|path| (path, file_level.as_str())))
}

fn can_write(path: &Path) -> bool {
    std::fs::OpenOptions::new().create(true).append(true).open(path).is_ok()
}
