//! salt-master: reads flags and configuration, starts the library's server, and ends it at a signal.

use std::path::PathBuf;
use std::process::exit;

use brine_master::server::process;
use brine_master::{MasterOpts, Server};
use brine_protocol::config::{Config, Role};
use brine_protocol::exit::{GENERIC, OK, USAGE};
use clap::Parser;

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
    exit(run(&Flags::parse()));
}

fn run(flags: &Flags) -> i32 {
    let said = |error: &dyn std::fmt::Display, code: i32| {
        eprintln!("salt-master: {error}");
        code
    };
    let mut config = match Config::load(&flags.config_dir.join("master"), Role::Master) {
        Ok(config) => config,
        Err(error) => return said(&error, USAGE),
    };
    for (key, value) in [
        ("user", flags.user.clone()),
        ("pidfile", flags.pid_file.as_ref().map(|path| path.display().to_string())),
        ("log_level", flags.log_level.clone()),
        ("log_file", flags.log_file.as_ref().map(|path| path.display().to_string())),
        ("log_level_logfile", flags.log_file_level.clone()),
    ] {
        if let Some(value) = value {
            config.set(key, value);
        }
    }
    let opts = match MasterOpts::from_config(&config) {
        Ok(opts) => opts,
        Err(error) => return said(&error, USAGE),
    };
    if flags.background {
        process::leave_terminal();
    } else if flags.daemon {
        return process::to_background("--background").unwrap_or_else(|error| said(&error, error.exit_code()));
    }
    if let Err(error) = process::become_user(&opts, flags.user.is_some()) {
        return said(&error, error.exit_code());
    }
    if let Err(error) = brine_master::log::init(&config, flags.log_file.is_some()) {
        return said(&error, USAGE);
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return said(&error, GENERIC),
    };
    runtime.block_on(async {
        let server = match Server::start(opts).await {
            Ok(server) => server,
            Err(error) => return said(&error, error.exit_code()),
        };
        process::notify_service_manager();
        if flags.background {
            process::detach();
        }
        let stopped = process::told_to_stop().await;
        server.stop().await;
        stopped.map_or_else(|error| said(&error, GENERIC), |()| OK)
    })
}
