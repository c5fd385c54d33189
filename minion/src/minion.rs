//! A minion's life: get ready, sign in, take jobs, return what they led to, and end in order.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use brine_protocol::exit;
use brine_protocol::job::FunCall;
use brine_sandbox::{Broker, JobOutcome, Sandbox, SandboxConfig, Settings};
use futures_util::future::BoxFuture;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tracing::{debug, info, warn};

use crate::broker::{MinionBroker, Sources};
use crate::config::{MinionOpts, Package};
use crate::connection::{Arrival, Channel, Patience, Publications, SignInError};
pub use crate::control::Control;
use crate::events::Events;
use crate::facts::{GrainsStore, PillarStore};
use crate::fileclient::FileClient;
use crate::jobs::{CONTROL_SLOTS, Jobs, Origin, Parts, ProcDir, Runner, judge, usage};
use crate::mine::Mine;
use crate::modules::Modules;
use crate::pillar::Refresh;
use crate::pki::{Pki, PkiError};
use crate::process;
use crate::returns::{Returns, Spool, SpoolError};
use crate::runtime::Runtime;

/// The sandbox's own bound of jobs at once, less those kept for control.
const MAX_SLOTS: usize = 1000;
/// How long the last returns may take when the minion ends; what is left is in the spool.
const LAST_RETURNS: Duration = Duration::from_secs(3);

/// Why a minion cannot start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum MinionError {
    /// Its keys.
    #[error(transparent)]
    Pki(#[from] PkiError),
    /// Its spool.
    #[error(transparent)]
    Spool(#[from] SpoolError),
    /// Another of its folders.
    #[error("the folder {path} cannot be used: {source}")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The sandbox.
    #[error("the sandbox cannot start: {0}")]
    Sandbox(String),
    /// What the owner configured for it.
    #[error("the setting {0}")]
    Settings(#[from] brine_sandbox::SettingsError),
    /// The master.
    #[error(transparent)]
    SignIn(#[from] SignInError),
}

impl MinionError {
    /// Salt's exit code.
    pub fn exit_code(&self) -> i32 {
        match self {
            Self::SignIn(e) => e.exit_code(),
            Self::Sandbox(_) => exit::UNAVAILABLE,
            Self::Settings(_) => exit::USAGE,
            _ => exit::GENERIC,
        }
    }
}

/// Makes the sandbox, given who answers its modules and how many jobs there are at once.
pub type MakeRuntime =
    Box<dyn FnOnce(Arc<dyn Broker>, usize) -> BoxFuture<'static, Result<Arc<dyn Runtime>, MinionError>> + Send>;

/// What a minion is made of, and what `salt-call` has of it.
pub(crate) struct Base {
    pub(crate) opts: Arc<MinionOpts>,
    pub(crate) grains: Arc<GrainsStore>,
    pub(crate) pillar: Arc<PillarStore>,
    pub(crate) refresh: Arc<Refresh>,
    pub(crate) procs: Arc<ProcDir>,
    pub(crate) modules: Arc<Modules>,
    pub(crate) runtime: Arc<dyn Runtime>,
    /// None for `salt-call --local`.
    pub(crate) channel: Option<Arc<Channel>>,
    /// None for `salt-call --local`.
    pub(crate) events: Option<Arc<Events>>,
    /// Jobs at once.
    pub(crate) slots: usize,
    /// Jobs that may wait after they have begun, and before.
    pub(crate) max_waiting: usize,
    pub(crate) max_queued: usize,
}

/// What the owner's configuration says of the sandbox.
///
/// # Errors
/// When a setting cannot be used; the error names it.
pub fn sandbox_settings(opts: &MinionOpts) -> Result<Settings, MinionError> {
    Ok(Settings::load(&opts.sandbox, &opts.conf_dir)?)
}

/// The product's sandbox: the programs and standard modules of the package.
///
/// `modules_dir` takes the place of the folder of fetched modules.
pub fn package_sandbox(opts: &MinionOpts, modules_dir: Option<PathBuf>) -> Result<MakeRuntime, MinionError> {
    let package = Package::find().map_err(|e| MinionError::Sandbox(e.to_string()))?;
    sandbox_of(package, opts, modules_dir)
}

/// The product's sandbox with the parts of this package, wherever it was found.
pub fn sandbox_of(
    package: Package,
    opts: &MinionOpts,
    modules_dir: Option<PathBuf>,
) -> Result<MakeRuntime, MinionError> {
    let settings = sandbox_settings(opts)?;
    let cache_dir = opts.cachedir.join("sandbox");
    let modules_dir = modules_dir.unwrap_or_else(|| opts.modules_dir());
    Ok(Box::new(move |broker, jobs| {
        Box::pin(async move {
            let config = SandboxConfig {
                executor: package.executor,
                compiler: package.compiler,
                cache_dir,
                standard_dir: package.modules,
                modules_dir,
                limits: settings.limits,
                policy: settings.policy,
                max_running: jobs,
                max_waiting: settings.max_waiting,
                max_queued: settings.max_queued,
                total_memory: settings.total_memory,
                executor_idle: settings.executor_idle,
                compile: settings.compile,
                user: settings.user,
                require_second_wall: settings.require_second_wall,
            };
            let sandbox = Sandbox::start(config, broker).await.map_err(|e| MinionError::Sandbox(e.to_string()))?;
            let runtime: Arc<dyn Runtime> = sandbox;
            Ok(runtime)
        })
    }))
}

impl Base {
    /// Gets everything ready that needs no master. `with_master` is false for `salt-call --local`.
    pub(crate) async fn prepare(
        opts: MinionOpts,
        with_master: bool,
        make_runtime: MakeRuntime,
    ) -> Result<Self, MinionError> {
        let opts = Arc::new(opts);
        let settings = sandbox_settings(&opts)?;
        let folder = |path: PathBuf| move |source| MinionError::Folder { path, source };
        make_private(&opts.cachedir).map_err(folder(opts.cachedir.clone()))?;
        let proc_dir = opts.cachedir.join("proc");
        let procs = ProcDir::open(&proc_dir).map_err(folder(proc_dir))?;
        let grains = GrainsStore::new(Arc::clone(&opts));
        let channel = match with_master {
            false => None,
            true => {
                let (dir, size) = (opts.pki_dir.clone(), opts.auth.keysize);
                let pki = tokio::task::spawn_blocking(move || Pki::open(&dir, size)).await;
                let pki = pki.expect("making a key neither panics nor is cancelled")?;
                Some(Channel::new(Arc::clone(&opts), pki, Arc::clone(&grains)))
            }
        };
        let client = channel.as_ref().map(|channel| FileClient::new(Arc::clone(channel), settings.compile.module));
        let modules = Modules::new(client, &opts.modules, &opts.modules_dir());
        let pillar = PillarStore::new();
        let refresh = Refresh::new(Arc::clone(&opts), channel.clone(), Arc::clone(&grains), Arc::clone(&pillar));
        let broker = MinionBroker::new(Sources {
            opts: Arc::clone(&opts),
            grains: Arc::clone(&grains),
            pillar: Arc::clone(&pillar),
            procs: Arc::clone(&procs),
            modules: Arc::clone(&modules),
            refresh: Arc::clone(&refresh),
            channel: channel.clone(),
        });
        let slots = opts.jobs.running_max.unwrap_or(settings.max_running).clamp(1, MAX_SLOTS);
        let (max_waiting, max_queued) = (settings.max_waiting, settings.max_queued);
        let answers: Arc<dyn Broker> = broker.clone();
        let runtime = make_runtime(answers, slots + CONTROL_SLOTS).await?;
        modules.attach(&runtime);
        let events = channel.as_ref().map(|channel| {
            let events = Events::new(Arc::clone(&opts), Arc::clone(channel), Arc::clone(&grains));
            modules.tell_by(Arc::clone(&events));
            events
        });
        broker.attach(&runtime);
        Ok(Self {
            opts,
            grains,
            pillar,
            refresh,
            procs,
            modules,
            runtime,
            channel,
            events,
            slots,
            max_waiting,
            max_queued,
        })
    }

    pub(crate) fn runner(&self) -> Runner {
        Runner {
            id: self.opts.id.clone(),
            runtime: Arc::clone(&self.runtime),
            modules: Arc::clone(&self.modules),
            test: self.opts.jobs.test,
            multifunc_ordered: self.opts.jobs.multifunc_ordered,
        }
    }
}

/// How a call of [`Local`] ended.
#[derive(Debug)]
pub struct Called {
    /// Its return, and the code that it ends with.
    pub outcome: JobOutcome,
    /// Whether the function returned; otherwise the value says why it did not.
    pub ran: bool,
    /// What it used, as a return carries it.
    pub usage: brine_protocol::value::Value,
}

/// What answers a module where there is no master, as `salt-call --local` has it: for tests of what modules can do to it.
pub struct Local {
    base: Base,
}

impl Local {
    /// Gets everything ready.
    pub async fn prepare(opts: MinionOpts, make_runtime: MakeRuntime) -> Result<Self, MinionError> {
        Ok(Self { base: Base::prepare(opts, false, make_runtime).await? })
    }

    /// The sandbox.
    pub fn runtime(&self) -> &Arc<dyn Runtime> {
        &self.base.runtime
    }

    /// Calls a function as `salt-call` does, with arguments as a job has them. Whatever goes wrong is an outcome.
    pub async fn call(&self, fun: &str, arg: Vec<brine_protocol::value::Value>) -> Called {
        let jid = brine_protocol::ids::Jid::now();
        let call = FunCall { fun: fun.to_owned(), arg };
        let from = Origin { jid: jid.as_str(), user: &process::own_name(), master: None, ends: None, end: None };
        let mut outcome = self.base.runner().call(&from, &call).await;
        let ran = outcome.success;
        judge(&mut outcome);
        let usage = usage(&outcome);
        Called { outcome, ran, usage }
    }

    /// What a master would have told.
    pub fn pillar(&self) -> &PillarStore {
        &self.base.pillar
    }
}

/// A minion that is ready to sign in.
pub struct Minion {
    base: Base,
    channel: Arc<Channel>,
    events: Arc<Events>,
    returns: Arc<Returns>,
    jobs: Arc<Jobs>,
    /// Modules were fetched once, or need not be.
    synced: Arc<AtomicBool>,
    /// Told when pillar and modules are here.
    ready: Arc<Notify>,
}

impl Minion {
    /// Gets everything ready that needs no master: folders, keys, the spool, the sandbox. What an earlier run left
    /// unfinished is in the spool when this returns.
    pub async fn prepare(opts: MinionOpts, make_runtime: MakeRuntime) -> Result<Self, MinionError> {
        let base = Base::prepare(opts, true, make_runtime).await?;
        let channel = base.channel.clone().expect("it was asked for");
        let opts = &base.opts;
        let (spool, left) = Spool::open(&opts.cachedir.join("spool"), opts.returns.limits)?;
        let kept: std::collections::HashSet<String> = left.iter().map(|entry| entry.jid().to_owned()).collect();
        let events = base.events.clone().expect("there is a master");
        let returns = Returns::new(spool, left, Arc::clone(&channel), Arc::clone(&events), opts.returns.retry);
        let jobs = Jobs::new(Parts {
            opts: Arc::clone(opts),
            runner: base.runner(),
            procs: Arc::clone(&base.procs),
            returns: Arc::clone(&returns),
            events: Arc::clone(&events),
            grains: Arc::clone(&base.grains),
            pillar: Arc::clone(&base.pillar),
            slots: base.slots,
            max_waiting: base.max_waiting,
            max_queued: base.max_queued,
        });
        jobs.answer_for_the_dead(|jid| kept.contains(jid)).await;
        let synced = Arc::new(AtomicBool::new(!base.opts.modules.autoload));
        Ok(Self { base, channel, events, returns, jobs, synced, ready: Arc::default() })
    }

    /// What can be told to the minion while it runs.
    pub fn control(&self) -> Control {
        Control {
            runtime: Arc::clone(&self.base.runtime),
            procs: Arc::clone(&self.base.procs),
            channel: Arc::clone(&self.channel),
            returns: Arc::clone(&self.returns),
            jobs: Arc::clone(&self.jobs),
        }
    }

    /// Serves the master until `end` is there; then no more jobs are taken, those that run may end, and their returns
    /// are sent or stay in the spool.
    pub async fn run(self, end: impl Future<Output = ()>) -> Result<(), MinionError> {
        // Dropped, and with that ended, when this function is.
        let mut tasks = JoinSet::new();
        tasks.spawn(deliver(Arc::clone(&self.channel), Arc::clone(&self.returns)));
        if let Some(interval) = self.base.opts.events.ping {
            tasks.spawn(ping(Arc::clone(&self.events), Arc::clone(&self.channel), interval));
        }
        let mine = Mine {
            opts: Arc::clone(&self.base.opts),
            channel: Arc::clone(&self.channel),
            pillar: Arc::clone(&self.base.pillar),
            runner: self.base.runner(),
            ready: Arc::clone(&self.ready),
        };
        tasks.spawn(mine.run());
        let mut background = JoinSet::new();
        let ended = tokio::select! {
            ended = self.serve(&mut background) => ended,
            () = end => Ok(()),
        };
        info!("ending: {} jobs are running, {} returns wait", self.jobs.count(), self.returns.waiting());
        self.jobs.drain(self.base.opts.jobs.drain).await;
        if self.channel.live().is_some() && tokio::time::timeout(LAST_RETURNS, self.returns.drained()).await.is_err() {
            let (kept, refusals) = (self.returns.waiting(), self.returns.refusals());
            warn!(
                "{kept} returns stay in the spool and will be sent at the next start; {refusals} refusals are not sent"
            );
        }
        self.base.runtime.shutdown().await;
        Ok(ended?)
    }

    /// Signs in and takes publications; ends only with an error.
    async fn serve(&self, background: &mut JoinSet<()>) -> Result<(), SignInError> {
        let live = self.channel.sign_in_until_accepted(Patience::Start).await?;
        let mut publications = Publications::subscribe(Arc::clone(&self.channel), live);
        loop {
            while background.try_join_next().is_some() {}
            match publications.next().await? {
                Arrival::Load { load, master } => {
                    self.jobs.accept(&load, &master);
                }
                Arrival::Ready { again } => {
                    self.returns.master_is_back();
                    // A connection that comes and goes must not pile up greetings: the last one counts.
                    background.abort_all();
                    background.spawn(self.greet(again));
                }
            }
        }
    }

    /// What a minion does when it is connected: the pillar, then the start events (PROTOCOL §6.7), then, once, modules.
    fn greet(&self, again: bool) -> impl Future<Output = ()> + Send + 'static {
        let (refresh, events) = (Arc::clone(&self.base.refresh), Arc::clone(&self.events));
        let (modules, synced) = (Arc::clone(&self.base.modules), Arc::clone(&self.synced));
        let ready = Arc::clone(&self.ready);
        async move {
            if again {
                refresh.grains().await;
            }
            refresh.pillar_or_log().await;
            events.started().await;
            debug!("the start events are sent");
            if !synced.load(Ordering::Relaxed) {
                match modules.sync(Vec::new()).await {
                    Ok(_) => synced.store(true, Ordering::Relaxed),
                    // With the next connection: it may have been the end of this one.
                    Err(e) => warn!("modules could not be synced at start: {e}"),
                }
            }
            ready.notify_one();
        }
    }
}

/// Sends returns, from the first time the minion is signed in.
async fn deliver(channel: Arc<Channel>, returns: Arc<Returns>) {
    channel.signed_in().await;
    returns.run().await;
}

/// `ping_interval`
async fn ping(events: Arc<Events>, channel: Arc<Channel>, interval: Duration) {
    loop {
        tokio::time::sleep(interval).await;
        channel.signed_in().await;
        if let Err(e) = events.ping().await {
            warn!("the master does not answer the ping: {e}");
            channel.drop_idle();
        }
    }
}

fn make_private(dir: &std::path::Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o750).create(dir)
}
