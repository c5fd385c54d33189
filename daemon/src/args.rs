//! The options of both daemons, with Salt's names.

use std::path::{Path, PathBuf};

use brine_cli::logging::{self, LogArgs};
use brine_protocol::config::{Config, settings};
use brine_protocol::exit;
use brine_protocol::value::Value;
use clap::Args;

use crate::ProcessError;

/// Salt's folder of configuration files.
const CONFIG_DIR: &str = "/etc/salt";

/// The options of a daemon.
#[derive(Debug, Clone, Args)]
pub struct DaemonArgs {
    /// The folder with the configuration. Default: /etc/salt.
    #[arg(short, long, value_name = "CONFIG_DIR")]
    pub config_dir: Option<PathBuf>,
    /// Run as this user. Only root can change to another user. Default: the setting user.
    #[arg(short, long, value_name = "USER")]
    pub user: Option<String>,
    /// Go to the background once the daemon answers.
    #[arg(short, long)]
    pub daemon: bool,
    /// The file that keeps the daemon's process id. Default: the setting pidfile.
    #[arg(long, value_name = "PIDFILE")]
    pub pid_file: Option<PathBuf>,
    /// Changes nothing: a daemon that ended is started again by the service manager alone.
    #[arg(long)]
    pub disable_keepalive: bool,
    /// Set by -d for the process it starts.
    #[arg(long, hide = true)]
    pub background: bool,
    /// Logs.
    #[command(flatten)]
    pub log: LogArgs,
}

impl DaemonArgs {
    /// The folder of the configuration: `-c`, else `SALT_CONFIG_DIR`, else Salt's. `-c` may also name the file in it.
    ///
    /// # Errors
    /// When a named folder does not exist: with a mistyped name, a daemon would start under another identity.
    pub fn conf_dir(&self) -> Result<PathBuf, ProcessError> {
        let from_env = || std::env::var_os("SALT_CONFIG_DIR").filter(|dir| !dir.is_empty()).map(PathBuf::from);
        let Some(dir) = self.config_dir.clone().or_else(from_env) else { return Ok(CONFIG_DIR.into()) };
        if dir.is_file() {
            return Ok(dir.parent().unwrap_or(Path::new("/")).to_owned());
        }
        // Salt starts with its defaults if its own default folder does not exist.
        if dir == Path::new(CONFIG_DIR) || dir.try_exists().unwrap_or(true) {
            return Ok(dir);
        }
        let why =
            format!("the configuration folder {} does not exist: make it, or name another with -c", dir.display());
        Err(ProcessError::new(exit::USAGE, why))
    }

    /// Overrides the configuration with the options of the command line.
    pub fn overrule(&self, config: &mut Config) {
        for (key, value) in self.overrides() {
            config.set(key, value);
        }
    }

    /// The settings that the command line overrides.
    pub fn overrides(&self) -> Vec<(&'static str, Value)> {
        // Paths are relative to the daemon's working directory, not to the configuration.
        let path = |path: &Option<PathBuf>| {
            let path = path.as_deref()?;
            if logging::is_url(path) {
                return Some(path.display().to_string());
            }
            Some(std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string())
        };
        let given = [
            (settings::USER.row.name, self.user.clone()),
            (settings::PIDFILE.row.name, path(&self.pid_file)),
            (settings::LOG_LEVEL.row.name, self.log.log_level.clone()),
            (settings::LOG_FILE.row.name, path(&self.log.log_file)),
            (settings::LOG_LEVEL_LOGFILE.row.name, self.log.log_file_level.clone()),
        ];
        given.into_iter().filter_map(|(key, value)| Some((key, Value::from(value?)))).collect()
    }

    /// Starts logging by the configuration and the command line. Salt's default log file is optional: it need not open.
    ///
    /// # Errors
    /// When a level is unknown, or a configured file cannot be opened.
    pub fn start_log(&self, config: &Config) -> Result<(), ProcessError> {
        let usage = |why: String| ProcessError::new(exit::USAGE, why);
        let levels = levels(config).map_err(usage)?;
        let file = config.find(settings::LOG_FILE).map_err(|e| usage(e.to_string()))?;
        let both = |file| logging::init(&levels.0, Some((file, levels.1.as_str())));
        match file.as_deref() {
            Some(file) if self.log.log_file.is_some() => both(file).map_err(usage),
            Some(file) => both(file).or_else(|why| {
                logging::init(&levels.0, None).map_err(usage)?;
                tracing::warn!("{why}; what is logged goes to standard error only");
                Ok(())
            }),
            None => logging::init(&levels.0, None).map_err(usage),
        }
    }
}

/// The configured log levels of console and log file.
///
/// # Errors
/// One line, when a level is unknown.
pub fn levels(config: &Config) -> Result<(String, String), String> {
    let console = config.get(settings::LOG_LEVEL).map_err(|error| error.to_string())?;
    let file = config.find(settings::LOG_LEVEL_LOGFILE).map_err(|error| error.to_string())?;
    let file = file.unwrap_or_else(|| console.clone());
    for (setting, level) in [(settings::LOG_LEVEL, &console), (settings::LOG_LEVEL_LOGFILE, &file)] {
        let at = config.path().display();
        logging::parse_level(level).map_err(|why| format!("the option {} in {at}: {why}", setting.row.name))?;
    }
    Ok((console, file))
}
