//! `salt-minion`: the program.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use brine_daemon::args::DaemonArgs;
use brine_daemon::folders::{self, Folder};
use brine_daemon::pidfile::PidFile;
use brine_daemon::profile::{self, Timings};
use brine_daemon::signals::{Signals, Told};
use brine_daemon::{ProcessError, background, limits, reload, service, user};
use brine_protocol::config::settings;
use brine_protocol::{commandline, exit};
use clap::{CommandFactory as _, Parser};
use tokio::sync::Semaphore;
use tracing::{error, info, warn};

use crate::cli;
use crate::config::MinionOpts;
use crate::minion::{Control, Minion, MinionError, package_sandbox, sandbox_settings};

/// Two threads: the daemon waits for the network nearly all the time, and a sandbox's work is in other processes.
const WORKER_THREADS: usize = 2;

/// The Salt Minion, receives commands from a remote Salt Master
#[derive(Debug, Parser)]
#[command(name = "salt-minion", version = concat!(env!("CARGO_PKG_VERSION"), " (Brine)"))]
struct Flags {
    #[command(flatten)]
    daemon: DaemonArgs,
}

/// Runs the program and returns its exit code.
pub fn main(args: impl IntoIterator<Item = OsString>) -> i32 {
    commandline::answer(&Flags::command(), &[]);
    let (flags, line) = match cli::parse_all::<Flags>(args) {
        Ok(read) => read,
        Err(code) => return code,
    };
    start(&flags.daemon, &line).unwrap_or_else(|error| {
        commandline::output::stderr(&format!("salt-minion: {error}"));
        error.exit_code()
    })
}

fn load(args: &DaemonArgs) -> Result<MinionOpts, ProcessError> {
    MinionOpts::load_with(&args.conf_dir()?, None, &args.overrides())
        .map_err(|e| ProcessError::new(e.exit_code(), e.to_string()))
}

/// The folders a minion works in.
fn own_folders(opts: &MinionOpts) -> [Folder; 2] {
    [Folder::private("pki_dir", &opts.pki_dir), Folder::new("cachedir", &opts.cachedir, 0o750)]
}

fn start(args: &DaemonArgs, line: &[OsString]) -> Result<i32, ProcessError> {
    let opts = load(args)?;
    if args.background {
        background::leave_terminal();
    } else if args.daemon {
        return background::start(line.get(1..).unwrap_or_default());
    }
    // While this is root still, if it is, and before there is a second thread.
    let open_files = limits::raise_open_files(&opts.config)?;
    let mut given = Vec::new();
    if let Some(other) = user::other("salt-minion", &opts.user, args.user.is_some())? {
        let log = opts.config.get(settings::LOG_FILE).ok().filter(|path| !path.to_string_lossy().contains("://"));
        let files: Vec<&Path> = log.as_deref().into_iter().chain([opts.pidfile.as_path()]).collect();
        given = folders::give("salt-minion", &own_folders(&opts), &files, &other)?;
        other.become_it()?;
    }
    args.start_log(&opts.config)?;
    for line in given {
        warn!("{line}");
    }
    open_files.say();
    for folder in own_folders(&opts) {
        folder.prepare("salt-minion")?;
    }
    let _pid_file = PidFile::take("salt-minion", &opts.pidfile)?;

    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKER_THREADS)
        .enable_all()
        .build()
        .map_err(|e| ProcessError::new(exit::SOFTWARE, format!("no threads: {e}")))?;
    let result = runtime.block_on(serve(args, opts));
    // Blocking work that is left (a slow disk) must not keep the process.
    runtime.shutdown_timeout(Duration::from_secs(1));
    result.map(|()| exit::OK).map_err(|e| {
        if args.background {
            error!("{e}"); // there may be no terminal any more to read it on
        }
        ProcessError::new(e.exit_code(), e.to_string())
    })
}

async fn serve(args: &DaemonArgs, opts: MinionOpts) -> Result<(), MinionError> {
    let mut signals = Signals::listen().map_err(|e| MinionError::Sandbox(format!("no signals: {e}")))?;
    info!("minion {} starts; its master is {}", opts.id, opts.master.request_endpoint());
    let mut now = opts.clone();
    let make_runtime = package_sandbox(&opts, None)?;
    let minion = Minion::prepare(opts, make_runtime).await?;
    let control = minion.control();
    let status = format!("{} of {}", now.id, now.master.request_endpoint());
    // It may wait for its key to be accepted for days; what it needs of this host it has.
    service::ready(&status);
    tokio::spawn(service::watchdog());
    if args.background {
        background::detach();
    }
    let profiler = Profiler::new(now.cachedir.join("profiles"));
    let (ask, asked) = tokio::sync::oneshot::channel::<()>();
    // A task, and not this thread's own: what a publication leads to then stays on the thread that read it.
    let mut running = tokio::spawn(minion.run(async move {
        let _ = asked.await;
    }));
    loop {
        let told = tokio::select! {
            ended = &mut running => return ended_with(ended),
            told = signals.next() => told,
        };
        match told {
            Told::Stop => break,
            Told::Reload => {
                service::reloading();
                // Beside what runs: deciding on modules anew may take a moment.
                let read = take_up(args, &now, &control);
                tokio::select! {
                    ended = &mut running => return ended_with(ended),
                    read = read => now = read.unwrap_or(now),
                }
                service::ready(&status);
            }
            Told::Dump => control.dump(),
            Told::Profile => profiler.begin(),
        }
    }
    info!("asked to end");
    service::stopping();
    let _ = ask.send(());
    tokio::select! {
        ended = running => ended_with(ended),
        () = signals.stop() => {
            warn!("asked to end a second time; ending now");
            Ok(())
        }
    }
}

/// A panic goes on as one.
fn ended_with(ended: Result<Result<(), MinionError>, tokio::task::JoinError>) -> Result<(), MinionError> {
    ended.unwrap_or_else(|error| match error.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(_cancelled) => Ok(()),
    })
}

/// Reads the configuration again and takes up what can change while the minion runs; none where it cannot be used, and the one before
/// stays.
async fn take_up(args: &DaemonArgs, before: &MinionOpts, control: &Control) -> Option<MinionOpts> {
    let read = || -> Result<_, String> {
        let opts = load(args).map_err(|e| e.to_string())?;
        let settings = sandbox_settings(&opts).map_err(|e| e.to_string())?;
        reload::logs(&opts.config)?;
        Ok((opts, settings))
    };
    let (opts, settings) = match read() {
        Ok(read) => read,
        Err(why) => {
            error!("the configuration is not taken up, the one before stays: {why}");
            return None;
        }
    };
    // Files of keys may have changed where the configuration has not.
    let modules = control.reload(settings).await;
    reload::report(&before.config, &opts.config);
    let names = |names: &[brine_sandbox::ModuleName]| {
        let names: Vec<&str> = names.iter().map(brine_sandbox::ModuleName::as_str).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    };
    warn!(
        "modules that may do something else now: {}; refused now: {}",
        names(&modules.changed),
        names(&modules.refused)
    );
    let differs = |name: &str| before.config.value(name) != opts.config.value(name);
    let later: Vec<&str> = settings::rows()
        .filter_map(|row| Some((row, row.name.strip_prefix("sandbox:")?)))
        .filter(|(row, key)| !key.contains(':') && row.minion.is_some_and(|side| !side.live) && differs(row.name))
        .map(|(_, key)| key)
        .collect();
    if !later.is_empty() {
        warn!("of sandbox these count from the next start: {}", later.join(", "));
    }
    Some(opts)
}

/// Makes a profile, one at a time.
struct Profiler {
    dir: PathBuf,
    alone: Arc<Semaphore>,
}

impl Profiler {
    fn new(dir: PathBuf) -> Self {
        Self { dir, alone: Arc::new(Semaphore::new(1)) }
    }

    fn begin(&self) {
        let Ok(alone) = Arc::clone(&self.alone).try_acquire_owned() else {
            warn!("a profile is being made already");
            return;
        };
        warn!("making a profile of the next {} s", profile::WINDOW.as_secs());
        let dir = self.dir.clone();
        // Owned by nobody: it ends by itself, or with the process.
        tokio::spawn(async move {
            // What jobs take is in their returns.
            match profile::write("salt-minion", &dir, profile::WINDOW, &Timings::default()).await {
                Ok(path) => warn!("the profile is in {}", path.display()),
                Err(error) => error!("no profile: {} cannot be written: {error}", dir.display()),
            }
            drop(alone);
        });
    }
}
