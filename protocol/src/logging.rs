//! Logs of all programs: to stderr, and to a file if one is named.

use std::path::Path;

/// Starts logging. The level is one of Salt's names (`quiet`, `critical`, `error`, `warning`, `info`, `profile`, `debug`,
/// `trace`, `garbage`, `all`); what is logged to the file has the level `file_level`. Call it once.
///
/// # Errors
/// When a level is unknown or the file cannot be opened, as one line.
pub fn init(level: &str, file: Option<(&Path, &str)>) -> Result<(), String> {
    let _ = (level, file);
    todo!()
}
