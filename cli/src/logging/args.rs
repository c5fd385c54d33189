//! The options of logging.

use std::path::{Path, PathBuf};

use brine_protocol::exit;
use clap::Args;

use super::{LEVELS, init};
use crate::Failure;

/// What is logged where.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Logging Options")]
pub struct LogArgs {
    /// What to log to stderr. Default: warning, or a daemon's setting log_level. Levels below info may show secrets.
    #[arg(short = 'l', long = "log-level", value_name = "LOG_LEVEL", value_parser = LEVELS, ignore_case = true)]
    pub log_level: Option<String>,
    /// Also log to this file.
    #[arg(long = "log-file", value_name = "LOG_FILE")]
    pub log_file: Option<PathBuf>,
    /// What to log to that file. Default: warning, or a daemon's setting log_level_logfile.
    #[arg(long = "log-file-level", value_name = "LOG_LEVEL_LOGFILE", value_parser = LEVELS, ignore_case = true)]
    pub log_file_level: Option<String>,
}

impl LogArgs {
    /// Starts logging.
    ///
    /// # Errors
    /// When the log file cannot be opened.
    pub fn start(&self) -> Result<(), Failure> {
        start_logging(self.log_level.as_deref(), self.log_file.as_deref(), self.log_file_level.as_deref())
    }
}

/// Starts logging at these levels; the default is `warning`.
///
/// # Errors
/// When the log file cannot be opened.
pub fn start_logging(level: Option<&str>, file: Option<&Path>, file_level: Option<&str>) -> Result<(), Failure> {
    let file = file.map(|path| (path, file_level.unwrap_or("warning")));
    init(level.unwrap_or("warning"), file).map_err(|error| Failure::new(exit::CANT_CREATE, error))
}
