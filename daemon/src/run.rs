//! Start-up, signals and end, the same for every daemon. [`Daemon`] and [`RunningDaemon`] have the differences.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::Duration;

use brine_cli::{commandline, logging, print};
use brine_protocol::config::{Config, settings};
use brine_protocol::exit;
use brine_trim::Code;
use clap::{Args as _, Command};
use tokio::runtime::{Builder, Runtime};

use crate::args::DaemonArgs;
use crate::folders::{self, Folder};
use crate::limits::{self, OpenFiles};
use crate::signals::{SignalRequest, Signals};
use crate::{ProcessError, background, service, trim, user};

/// Time that unfinished blocking work (a slow disk) may delay the end of the process.
const BLOCKING_GRACE: Duration = Duration::from_secs(1);

/// Completes when a daemon ends by itself.
pub type EndFuture = Pin<Box<dyn Future<Output = Result<(), ProcessError>>>>;

/// A daemon before its start: its configuration, and the properties of its process.
pub trait Daemon: Sized {
    /// The program's name.
    const NAME: &'static str;
    /// The purpose of the program, for `--help`.
    const ABOUT: &'static str;

    /// Reads and checks the configuration.
    ///
    /// # Errors
    /// When the configuration cannot be used.
    fn load(args: &DaemonArgs) -> Result<Self, ProcessError>;

    /// Returns the configuration.
    fn config(&self) -> &Config;

    /// Returns the user to run as.
    fn user(&self) -> &str;

    /// Returns the daemon's folders.
    fn folders(&self) -> Vec<Folder>;

    /// Returns the single files, besides the log, that the daemon's user must be able to write.
    fn files(&self) -> Vec<PathBuf>;

    /// Warns of features that do not work on this host. Runs as the daemon's user, after logging has started and before
    /// there is a second thread.
    fn check_host(&self, open_files: OpenFiles) {
        let _ = open_files;
    }

    /// Returns the runtime's settings.
    fn runtime() -> Builder {
        Builder::new_multi_thread()
    }

    /// Starts the daemon. When this resolves, the daemon has everything that it needs from this host.
    fn start(self) -> impl Future<Output = Result<impl RunningDaemon, ProcessError>>;
}

/// A daemon that runs.
pub trait RunningDaemon {
    /// Returns the present activity in one line, for the service manager.
    fn status(&self) -> String;

    /// Returns a future that completes when the daemon ends by itself. Called once.
    fn ended(&mut self) -> EndFuture {
        Box::pin(std::future::pending())
    }

    /// Reads the configuration again and applies the settings that can change at run time. An invalid configuration is
    /// logged and changes nothing.
    fn reload(&mut self, args: &DaemonArgs) -> impl Future<Output = ()>;

    /// Logs tasks and queues.
    fn dump(&self);

    /// Starts a profile of the next seconds.
    fn profile(&self);

    /// The longest time that [`RunningDaemon::stop`] takes, where that depends on the configuration.
    fn time_to_stop(&self) -> Option<Duration> {
        None
    }

    /// Finishes the work under way and ends the daemon.
    fn stop(self, ended: EndFuture) -> impl Future<Output = Result<(), ProcessError>>;
}

/// Runs a daemon from its command line to its end, and returns its exit code.
pub fn run<D: Daemon>() -> i32 {
    // The name and the purpose come last, because clap would otherwise use those of `DaemonArgs`.
    let command = DaemonArgs::augment_args(Command::new(D::NAME)).about(D::ABOUT).version(commandline::VERSION);
    commandline::complete_or_document(&command, &[]);
    match commandline::parse_command::<DaemonArgs>(&command, std::env::args_os()) {
        Err(failure) => failure.report(),
        Ok((args, line)) => start::<D>(&args, &line).unwrap_or_else(|error| {
            print::stderr(&format!("{}: {error}", D::NAME));
            error.exit_code()
        }),
    }
}

fn start<D: Daemon>(args: &DaemonArgs, line: &[OsString]) -> Result<i32, ProcessError> {
    let daemon = D::load(args)?;
    if args.background {
        background::leave_terminal();
    } else if args.daemon {
        return background::start(line.get(1..).unwrap_or_default());
    }
    // This needs root, and must happen before there is a second thread.
    let open_files = limits::raise_open_files(daemon.config())?;
    let warnings = become_user(args, &daemon)?;
    args.start_log(daemon.config())?;
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    open_files.warn_if_few();
    daemon.check_host(open_files);
    let code = Code::look();
    brine_trim::keep_large_apart();
    let failed = |error| ProcessError::new(exit::SOFTWARE, format!("no threads: {error}"));
    let runtime: Runtime = D::runtime().enable_all().build().map_err(failed)?;
    let result = runtime.block_on(serve(args, daemon, code));
    runtime.shutdown_timeout(BLOCKING_GRACE);
    if let Err(error) = &result
        && args.background
    {
        tracing::error!("{error}"); // the terminal may be gone
    }
    result
}

/// Becomes the daemon's user after giving the folders and files to that user. Returns warnings for the log, which has
/// not started yet.
fn become_user<D: Daemon>(args: &DaemonArgs, daemon: &D) -> Result<Vec<String>, ProcessError> {
    let Some(other) = user::find_other(D::NAME, daemon.user(), args.user.is_some())? else { return Ok(Vec::new()) };
    let log = daemon.config().get(settings::LOG_FILE).ok().filter(|path| !logging::is_url(path));
    let files: Vec<PathBuf> = log.into_iter().chain(daemon.files()).collect();
    let files: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    let warnings = folders::give(D::NAME, &daemon.folders(), &files, &other)?;
    other.become_it()?;
    Ok(warnings)
}

async fn serve<D: Daemon>(args: &DaemonArgs, daemon: D, code: Code) -> Result<i32, ProcessError> {
    // Signals come first, because a process that learns that the daemon is ready may end it at once.
    let failed = |error| ProcessError::new(exit::GENERIC, format!("signals cannot be received: {error}"));
    let mut signals = Signals::listen().map_err(failed)?;
    let mut running = daemon.start().await?;
    let mut ended = running.ended();
    let status = running.status();
    service::ready(&status);
    tokio::spawn(service::watchdog());
    tokio::spawn(trim::run(code));
    if args.background {
        background::detach();
    }
    loop {
        let request = tokio::select! {
            result = &mut ended => return result.map(|()| exit::OK),
            request = signals.next() => request,
        };
        match request {
            SignalRequest::Stop => break,
            SignalRequest::Reload => {
                service::reloading();
                tokio::select! {
                    result = &mut ended => return result.map(|()| exit::OK),
                    () = running.reload(args) => {}
                }
                service::ready(&status);
            }
            SignalRequest::Dump => running.dump(),
            SignalRequest::Profile => running.profile(),
        }
    }
    tracing::info!("asked to end");
    service::stopping(running.time_to_stop().map(|time| time + BLOCKING_GRACE));
    tokio::select! {
        result = running.stop(ended) => result.map(|()| exit::OK),
        () = signals.wait_for_stop() => {
            tracing::warn!("asked to end a second time; ending now");
            Ok(exit::GENERIC)
        }
    }
}
