//! salt-minion as a daemon: the hooks for [`brine_daemon::run`].

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use brine_daemon::args::DaemonArgs;
use brine_daemon::folders::Folder;
use brine_daemon::pidfile::PidFile;
use brine_daemon::profile::{self, Timings};
use brine_daemon::run::{self, EndFuture};
use brine_daemon::{ProcessError, reload};
use brine_protocol::config::{Config, settings};
use brine_sandbox::Preparing;
use tokio::runtime::Builder;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinHandle;
use tracing::{error, info, warn};

use crate::config::MinionOpts;
use crate::minion::{Minion, MinionControl, MinionError, package_sandbox, sandbox_settings};

/// Two threads: the daemon mostly waits for the network, and the sandbox works in other processes. With one, fewer wakings and system calls
/// were counted for a job, but all was slower by a fifth: files of the master, whose pieces are opened beside hashing and writing, and jobs
/// that follow each other (docs/benchmarks.md).
const WORKER_THREADS: usize = 2;
/// Upper bound on the rest of an end after `drain_timeout`: killed jobs, notes, the last returns, executors.
const AFTER_JOBS: Duration = Duration::from_secs(20);

/// The program salt-minion.
#[derive(Debug)]
pub struct MinionDaemon(MinionOpts);

impl run::Daemon for MinionDaemon {
    const NAME: &'static str = "salt-minion";
    const ABOUT: &'static str = "Runs a Salt minion: takes jobs from its master and runs them in sandboxes";

    fn load(args: &DaemonArgs) -> Result<Self, ProcessError> {
        load(args).map(Self)
    }

    fn config(&self) -> &Config {
        &self.0.config
    }

    fn user(&self) -> &str {
        &self.0.user
    }

    fn folders(&self) -> Vec<Folder> {
        vec![Folder::private("pki_dir", &self.0.pki_dir), Folder::new("cachedir", &self.0.cachedir, 0o750)]
    }

    fn files(&self) -> Vec<PathBuf> {
        vec![self.0.pidfile.clone()]
    }

    fn runtime() -> Builder {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(WORKER_THREADS);
        builder
    }

    async fn start(self) -> Result<impl run::RunningDaemon, ProcessError> {
        for folder in run::Daemon::folders(&self) {
            folder.prepare(Self::NAME)?;
        }
        let Self(opts) = self;
        let pid_file = PidFile::take(Self::NAME, &opts.pidfile)?;
        info!("minion {} starts; its master is {}", opts.id, opts.master.request_endpoint());
        let before = opts.clone();
        // A new minion makes its key meanwhile; another would compete with its own sign-in.
        let is_new = !opts.pki_dir.join("minion.pem").exists();
        let preparing = if is_new { Preparing::Beside } else { Preparing::Later };
        let make_sandbox = package_sandbox(&opts, None, preparing).map_err(|error| failed(&error))?;
        let minion = Minion::prepare(opts, make_sandbox).await.map_err(|error| failed(&error))?;
        let control = minion.control();
        let (stop, stopped) = oneshot::channel::<()>();
        // The minion runs in a task and not on this thread, so that the work for a publication stays on the worker
        // thread that read it.
        let task = tokio::spawn(minion.run(async move {
            let _ = stopped.await;
        }));
        let profiler = Profiler::new(before.cachedir.join("profiles"));
        Ok(RunningMinion { opts: before, control, profiler, stop, task: Some(task), _pid_file: pid_file })
    }
}

fn load(args: &DaemonArgs) -> Result<MinionOpts, ProcessError> {
    MinionOpts::load_with(&args.conf_dir()?, None, &args.overrides())
        .map_err(|e| ProcessError::new(e.exit_code(), e.to_string()))
}

fn failed(error: &MinionError) -> ProcessError {
    ProcessError::new(error.exit_code(), error.to_string())
}

struct RunningMinion {
    opts: MinionOpts,
    control: MinionControl,
    profiler: Profiler,
    stop: oneshot::Sender<()>,
    task: Option<JoinHandle<Result<(), MinionError>>>,
    _pid_file: Option<PidFile>,
}

impl run::RunningDaemon for RunningMinion {
    /// The minion is ready even if it waits days for its key to be accepted: it has everything that it needs from this
    /// host.
    fn status(&self) -> String {
        format!("{} of {}", self.opts.id, self.opts.master.request_endpoint())
    }

    fn ended(&mut self) -> EndFuture {
        let task = self.task.take().expect("called once");
        Box::pin(async {
            match task.await {
                Ok(result) => result.map_err(|error| failed(&error)),
                // Continues a panic of the task.
                Err(error) => match error.try_into_panic() {
                    Ok(panic) => std::panic::resume_unwind(panic),
                    Err(_cancelled) => Ok(()),
                },
            }
        })
    }

    async fn reload(&mut self, args: &DaemonArgs) {
        if let Some(opts) = take_up(args, &self.opts, &self.control).await {
            self.opts = opts;
        }
    }

    fn dump(&self) {
        self.control.dump();
    }

    fn profile(&self) {
        self.profiler.begin();
    }

    fn time_to_stop(&self) -> Option<Duration> {
        Some(self.opts.jobs.drain.saturating_add(AFTER_JOBS))
    }

    async fn stop(self, ended: EndFuture) -> Result<(), ProcessError> {
        let _ = self.stop.send(());
        ended.await
    }
}

/// Reads the configuration again and applies the settings that may change at run time. Returns None if the
/// configuration is invalid; the present one then stays in use.
async fn take_up(args: &DaemonArgs, before: &MinionOpts, control: &MinionControl) -> Option<MinionOpts> {
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
    // Key files may have changed even if the configuration has not.
    let modules = control.reload(settings).await;
    reload::report(&before.config, &opts.config);
    if let Err(why) = control.reload_schedule(&opts.config) {
        error!("the schedule of the configuration is not taken up, the one before stays: {why}");
    }
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

/// Writes profiles, one at a time.
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
        // This task ends by itself, or with the process.
        tokio::spawn(async move {
            // The profile has no timings: the returns of jobs have their usage.
            match profile::write("salt-minion", &dir, profile::WINDOW, &Timings::default()).await {
                Ok(path) => warn!("the profile is in {}", path.display()),
                Err(error) => error!("no profile: {} cannot be written: {error}", dir.display()),
            }
            drop(alone);
        });
    }
}
