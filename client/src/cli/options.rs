//! Options that the commands share: where the configuration is, how output looks, what is logged.

use std::path::PathBuf;

use brine_protocol::config::{Config, Role};
use brine_protocol::{exit, logging};
use clap::Args;

use super::Failure;
use crate::ClientOpts;

/// Where Salt's configuration is unless said otherwise.
const CONFIG_DIR: &str = "/etc/salt";

/// Salt's names of log levels.
pub const LEVELS: [&str; 10] =
    ["all", "garbage", "trace", "debug", "profile", "info", "warning", "error", "critical", "quiet"];

/// `-c`.
#[derive(Debug, Clone, Args)]
pub struct ConfigArgs {
    /// Pass in an alternative configuration directory. Default: '/etc/salt'.
    #[arg(short = 'c', long = "config-dir", value_name = "CONFIG_DIR")]
    pub config_dir: Option<PathBuf>,
}

impl ConfigArgs {
    /// Reads the master's configuration.
    ///
    /// # Errors
    /// When it cannot be used.
    pub fn load(&self) -> Result<(Config, ClientOpts), Failure> {
        let usage = |error: &dyn std::fmt::Display| Failure::new(exit::USAGE, error.to_string());
        let from_env = || std::env::var_os("SALT_CONFIG_DIR").map(PathBuf::from);
        let named = self.config_dir.clone().or_else(from_env);
        // Salt warns and goes on with its defaults: another master's, or one that is not there.
        if let Some(dir) = &named
            && let Err(error) = std::fs::metadata(dir)
            && error.kind() == std::io::ErrorKind::NotFound
        {
            return Err(usage(&format_args!(
                "the configuration folder {} does not exist: name the one that salt-master was started with (-c)",
                dir.display()
            )));
        }
        let dir = named.unwrap_or_else(|| CONFIG_DIR.into());
        let config = Config::load(&dir.join("master"), Role::Master).map_err(|error| usage(&error))?;
        let opts = ClientOpts::new(&config).map_err(|error| usage(&error))?;
        Ok((config, opts))
    }
}

/// `--out` and the like.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Output Options")]
pub struct OutputArgs {
    /// Print the output using the specified outputter. One of 'nested', 'json', 'yaml', 'txt', 'raw', 'pprint', 'key',
    /// 'no_return' or 'quiet'.
    #[arg(long = "out", alias = "output", value_name = "OUTPUT")]
    pub output: Option<String>,
    /// Print the output indented by the provided value in spaces. A negative value puts all on one line. Only applicable
    /// in outputters that support indentation.
    #[arg(long = "out-indent", alias = "output-indent", value_name = "OUTPUT_INDENT", allow_negative_numbers = true)]
    pub output_indent: Option<i64>,
    /// Write the output to the specified file.
    #[arg(long = "out-file", alias = "output-file", value_name = "OUTPUT_FILE")]
    pub output_file: Option<PathBuf>,
    /// Append the output to the specified file.
    #[arg(long = "out-file-append", alias = "output-file-append")]
    pub output_file_append: bool,
    /// Disable all colored output.
    #[arg(long = "no-color", alias = "no-colour")]
    pub no_color: bool,
    /// Force colored output.
    #[arg(long = "force-color", alias = "force-colour")]
    pub force_color: bool,
    /// Override the configured state_output value for minion output. One of 'full', 'terse', 'mixed', 'changes' or 'filter'.
    #[arg(long = "state-output", alias = "state_output", value_name = "STATE_OUTPUT")]
    pub state_output: Option<String>,
    /// Override the configured state_verbose value for minion output. Set to True or False.
    #[arg(long = "state-verbose", alias = "state_verbose", value_name = "STATE_VERBOSE")]
    pub state_verbose: Option<String>,
}

/// `-l` and the like.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Logging Options")]
pub struct LogArgs {
    /// Console logging log level. The following log levels are INSECURE and may log sensitive data: all, debug, garbage,
    /// profile, trace
    #[arg(short = 'l', long = "log-level", value_name = "LOG_LEVEL", value_parser = LEVELS, hide_possible_values = false)]
    pub log_level: Option<String>,
    /// Log file path.
    #[arg(long = "log-file", value_name = "LOG_FILE")]
    pub log_file: Option<PathBuf>,
    /// Logfile logging log level.
    #[arg(long = "log-file-level", value_name = "LOG_LEVEL_LOGFILE", value_parser = LEVELS)]
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

/// Starts logging at these levels, `warning` unless said otherwise.
///
/// # Errors
/// When the log file cannot be opened.
pub fn start_logging(
    level: Option<&str>,
    file: Option<&std::path::Path>,
    file_level: Option<&str>,
) -> Result<(), Failure> {
    let file = file.map(|path| (path, file_level.unwrap_or("warning")));
    logging::init(level.unwrap_or("warning"), file).map_err(|error| Failure::new(exit::CANT_CREATE, error))
}
