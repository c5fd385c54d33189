//! salt-master: reads flags and configuration, starts the library's server, and ends it at a signal.

use std::path::{Path, PathBuf};
use std::process::exit;

use brine_master::server::process;
use brine_master::{MasterOpts, Server};
use brine_protocol::config::{Config, ConfigError, Role};
use brine_protocol::exit::{GENERIC, OK, USAGE};
use clap::{CommandFactory as _, Parser};

/// The Salt master: publishes jobs to minions, collects their returns, serves files and events.
#[derive(Debug, Parser)]
#[command(name = "salt-master", version, disable_version_flag = true)]
struct Flags {
    /// The folder of the configuration file `master`
    #[arg(short, long, value_name = "DIR", default_value = "/etc/salt")]
    config_dir: PathBuf,
    /// Console log level: quiet, critical, error, warning, info, debug, trace, all
    #[arg(short, long, value_name = "LEVEL")]
    log_level: Option<String>,
    /// The log file
    #[arg(long, value_name = "FILE")]
    log_file: Option<PathBuf>,
    /// The log file's level
    #[arg(long, value_name = "LEVEL")]
    log_file_level: Option<String>,
    /// Run in the background
    #[arg(short, long)]
    daemon: bool,
    /// Run as this user
    #[arg(short, long)]
    user: Option<String>,
    /// The pid file
    #[arg(long, value_name = "FILE")]
    pid_file: Option<PathBuf>,
    /// Taken for Salt's sake; this master needs no process to keep it alive
    #[arg(long, hide = true)]
    disable_keepalive: bool,
    /// Set by -d for the process it starts
    #[arg(long, hide = true)]
    background: bool,
    /// Print the version
    #[arg(short = 'V', long, action = clap::ArgAction::Version)]
    version: Option<bool>,
}

fn main() {
    brine_protocol::commandline::answer(&Flags::command(), &[]);
    exit(run(&Flags::parse()).unwrap_or_else(|(error, code)| {
        eprintln!("salt-master: {error}");
        code
    }));
}

fn run(flags: &Flags) -> Result<i32, (String, i32)> {
    let wrong = |error: ConfigError| (error.to_string(), USAGE);
    let dir = &flags.config_dir;
    // Salt starts with its defaults then, keys in /etc/salt included.
    if dir != Path::new("/etc/salt") && !dir.try_exists().unwrap_or(true) {
        let why =
            format!("the configuration folder {} does not exist: make it, or name another with -c", dir.display());
        return Err((why, USAGE));
    }
    let mut config = Config::load(&flags.config_dir.join("master"), Role::Master).map_err(wrong)?;
    let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
    for (key, value) in [
        ("user", flags.user.clone()),
        ("pidfile", path(&flags.pid_file)),
        ("log_level", flags.log_level.clone()),
        ("log_file", path(&flags.log_file)),
        ("log_level_logfile", flags.log_file_level.clone()),
    ] {
        if let Some(value) = value {
            config.set(key, value);
        }
    }
    let opts = MasterOpts::from_config(&config).map_err(wrong)?;
    if flags.background {
        process::leave_terminal();
    } else if flags.daemon {
        return process::to_background("--background").map_err(|e| (e.to_string(), e.exit_code()));
    }
    process::become_user(&opts, flags.user.is_some()).map_err(|e| (e.to_string(), e.exit_code()))?;
    brine_master::log::init(&config, flags.log_file.is_some()).map_err(|error| (error, USAGE))?;
    let runtime = tokio::runtime::Runtime::new().map_err(|e| (e.to_string(), GENERIC))?;
    runtime.block_on(async {
        // First: whoever hears that it answers may end it at once.
        let told_to_stop = process::told_to_stop().map_err(|e| (e.to_string(), GENERIC))?;
        let server = Server::start(opts).await.map_err(|e| (e.to_string(), e.exit_code()))?;
        process::notify_service_manager();
        if flags.background {
            process::detach();
        }
        told_to_stop.await;
        server.stop().await;
        Ok(OK)
    })
}
