//! `salt-minion`: the program.

use std::ffi::OsString;
use std::path::PathBuf;

use brine_protocol::{commandline, exit};
use clap::{CommandFactory as _, Parser};
use tokio::signal::unix::{SignalKind, signal};
use tracing::{error, info, warn};

use crate::cli;
use crate::config::MinionOpts;
use crate::minion::{Minion, MinionError, package_sandbox};
use crate::process::{self, Background, PidFile, ProcessError};

/// Two threads: the daemon waits for the network nearly all the time, and a sandbox's work is in other processes.
const WORKER_THREADS: usize = 2;

/// The Salt minion: takes jobs from its master and runs each in a sandbox of its own.
#[derive(Debug, Parser)]
#[command(name = "salt-minion", version = concat!(env!("CARGO_PKG_VERSION"), " (Brine)"), disable_version_flag = true)]
struct Flags {
    /// The folder of the configuration [default: /etc/salt].
    #[arg(short = 'c', long = "config-dir", value_name = "DIR")]
    config_dir: Option<PathBuf>,
    /// Run in the background.
    #[arg(short = 'd', long)]
    daemon: bool,
    /// The user to run as.
    #[arg(short = 'u', long)]
    user: Option<String>,
    /// What to log on the terminal: quiet, critical, error, warning, info, debug, trace.
    #[arg(short = 'l', long = "log-level", value_name = "LEVEL")]
    log_level: Option<String>,
    /// The log file.
    #[arg(long = "log-file", value_name = "FILE")]
    log_file: Option<PathBuf>,
    /// What to log to the file.
    #[arg(long = "log-file-level", value_name = "LEVEL")]
    log_file_level: Option<String>,
    /// The file with the process id.
    #[arg(long = "pid-file", value_name = "FILE")]
    pid_file: Option<PathBuf>,
    /// Accepted for Salt's sake; this minion is one process.
    #[arg(long, hide = true)]
    disable_keepalive: bool,
    /// Print the version and end.
    #[arg(short = 'V', long, action = clap::ArgAction::Version)]
    version: (),
}

/// Runs the program and returns its exit code.
pub fn main(args: impl IntoIterator<Item = OsString>) -> i32 {
    commandline::answer(&Flags::command(), &[]);
    let flags = match cli::parse::<Flags>(args) {
        Ok(flags) => flags,
        Err(code) => return code,
    };
    match start(&flags) {
        Ok(()) => exit::OK,
        Err((code, message)) => {
            eprintln!("salt-minion: {message}");
            code
        }
    }
}

fn start(flags: &Flags) -> Result<(), (i32, String)> {
    let usage = |message: String| (exit::USAGE, message);
    cli::check_conf_dir(flags.config_dir.as_deref()).map_err(usage)?;
    let opts = MinionOpts::load(&cli::conf_dir(flags.config_dir.as_deref()), None)
        .map_err(|e| (e.exit_code(), e.to_string()))?;

    // Before there is a second thread, since a user is set thread by thread.
    let user = flags.user.as_deref().unwrap_or(&opts.user);
    process::become_user(user).map_err(|e| (e.exit_code(), e.to_string()))?;
    if flags.daemon && process::daemonize().map_err(|e| (e.exit_code(), e.to_string()))? == Background::Parent {
        return Ok(());
    }
    let log_file = flags.log_file.clone().or_else(|| opts.config.get_path("log_file").ok());
    let log_file = log_file.as_deref().map(|path| (path, flags.log_file_level.as_deref()));
    cli::start_log(&opts.config, flags.log_level.as_deref(), log_file).map_err(usage)?;
    let pid_file = flags.pid_file.as_deref().unwrap_or(&opts.pidfile);
    let _pid_file = match PidFile::write(pid_file) {
        Ok(file) => Some(file),
        Err(e @ ProcessError::Running { .. }) => return Err((e.exit_code(), e.to_string())),
        // As Salt: a minion that cannot say its pid is better than none.
        Err(e) => {
            warn!("{e}");
            None
        }
    };

    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKER_THREADS)
        .enable_all()
        .build()
        .map_err(|e| (exit::SOFTWARE, format!("no threads: {e}")))?;
    let result = runtime.block_on(serve(opts));
    // Blocking work that is left (a slow disk) must not keep the process.
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    result.map_err(|e| {
        if flags.daemon {
            error!("{e}"); // there is no terminal to read it on
        }
        (e.exit_code(), e.to_string())
    })
}

async fn serve(opts: MinionOpts) -> Result<(), MinionError> {
    let signals = |kind| signal(kind).map_err(|e| MinionError::Sandbox(format!("no signals: {e}")));
    let (mut term, mut int) = (signals(SignalKind::terminate())?, signals(SignalKind::interrupt())?);
    info!("minion {} starts; its master is {}", opts.id, opts.master.request_endpoint());
    let make_runtime = package_sandbox(&opts, None)?;
    let minion = Minion::prepare(opts, make_runtime).await?;
    let (ask, asked) = tokio::sync::oneshot::channel::<()>();
    let mut running = Box::pin(minion.run(async move {
        let _ = asked.await;
    }));
    let mut ask = Some(ask);
    loop {
        tokio::select! {
            ended = &mut running => return ended,
            _ = term.recv() => {}
            _ = int.recv() => {}
        }
        match ask.take() {
            Some(ask) => {
                info!("asked to end");
                let _ = ask.send(());
            }
            None => {
                warn!("asked to end a second time; ending now");
                return Ok(());
            }
        }
    }
}
