//! The sandbox as the minion uses it.
//!
//! - `install.rs` installs, replaces and removes modules; `decide.rs` carries out the owner's decisions; `reload.rs`
//!   applies a changed configuration; `watch.rs` picks up decisions that other programs on this host made meanwhile

mod decide;
mod install;
mod late;
mod reload;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use brine_sandbox_walls::Walls;
use brine_sandbox_wire::{DirectGrants, JobContext, PolicyOp, Sha256Hex, StateContext};
use bytes::Bytes;
use rmpv::Value;
use tokio::sync::{Mutex, Semaphore};
use tokio::task::JoinSet;

use crate::kernel::admission::{Bounds, Jobs, PULSE};
use crate::kernel::cache::{Cache, own_folder};
use crate::kernel::cgroup::Groups;
use crate::kernel::compile::Compiler;
use crate::kernel::executors::ExecutorSet;
use crate::kernel::process::{self, ExecutorProgram, Living};
use crate::kernel::record::Record;
use crate::kernel::run::Runner;
use crate::kernel::supervisor::{Parts, Restarts};
use crate::kernel::trim::Trim;
use crate::kernel::user;
use crate::recordings::Recordings;
use crate::report;
use crate::resolve::Resolver;
use crate::signature::MAX_SIGNATURE;
use crate::store::{ApproveError, Held, RollbackError, Store, WAIT};
use late::Late;
pub use reload::Reloaded;

use crate::{
    Broker, Caller, InstallError, Installed, JobOutcome, Module, ModuleName, RemoveError, RunningCall, SandboxConfig,
    Synced,
};

/// Upper bound on installs that run or wait for the compiler. Each holds its component in memory.
const MAX_INSTALLS: usize = 64;
/// Time at shutdown for running jobs to return that they were ended.
const SHUTDOWN: Duration = Duration::from_secs(2);

/// Why the sandbox cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A folder cannot be used.
    #[error("{path}: {why}")]
    Folder {
        /// The folder.
        path: String,
        /// One line.
        why: String,
    },
    /// The compiler cannot be used.
    #[error("{0}")]
    Compiler(String),
    /// The second wall cannot be built as configured.
    #[error("{0}")]
    Wall(String),
    /// The executor does not start.
    #[error("{0}")]
    Executor(String),
    /// The start was given up.
    #[error("the start was given up")]
    GivenUp,
}

/// How much later than a start [`Preparing::Later`] begins. A sign-in takes a tenth of that.
const LATER: Duration = Duration::from_secs(1);

/// When the standard modules are verified, and compiled if they have to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preparing {
    /// Before the start ends.
    First,
    /// Beside the jobs; those that a job needs first.
    Beside,
    /// The same, but begun some time after the start, which has the processors until then: for a host on which they are compiled already.
    Later,
    /// Each when a job needs it: for a program that runs one job.
    OnNeed,
}

/// The effect of a removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removed {
    /// Nothing of this name was installed.
    Absent,
    /// The module is removed, and no other has its name.
    Gone,
    /// The standard module that it had replaced is in use again.
    Standard,
}

/// The sandbox of one minion.
pub struct Sandbox {
    inner: Arc<Inner>,
    /// Background tasks, which end with the sandbox.
    _beside: JoinSet<()>,
}

struct Inner {
    limits: ArcSwap<brine_sandbox_wire::Limits>,
    store: Arc<Store>,
    executors: ExecutorSet,
    living: Living,
    jobs: Arc<Jobs>,
    trim: Trim,
    record: Record,
    broker: Arc<dyn Broker>,
    late: Late,
    provenance: report::Remembered,
    /// Locked only for the switch, so that checks over all modules still hold then.
    switching: Mutex<()>,
    installs: Semaphore,
    /// Locked while a changed configuration is applied.
    reloading: Mutex<()>,
}

impl Sandbox {
    /// Checks the folders, starts the executor and prepares the modules: the standard ones, then the installed ones. A
    /// module that cannot be used is logged and left out.
    ///
    /// # Errors
    ///
    /// A folder, the compiler, the second wall or the executor cannot be used.
    pub async fn start(config: SandboxConfig, broker: Arc<dyn Broker>) -> Result<Arc<Self>, StartError> {
        Self::start_with(config, broker, Restarts::default()).await
    }

    /// Like [`Sandbox::start`], with another bound on restarts of a dying executor.
    ///
    /// # Errors
    ///
    /// As for [`Sandbox::start`].
    pub async fn start_with(
        config: SandboxConfig,
        broker: Arc<dyn Broker>,
        restarts: Restarts,
    ) -> Result<Arc<Self>, StartError> {
        Self::start_before(config, std::future::ready(Some(broker)), restarts, Preparing::First).await
    }

    /// Like [`Sandbox::start_with`], with a broker that comes later: the folders are read, and modules compiled, before it is waited for.
    /// Without one the start is given up. `standard` says when the standard modules are prepared.
    ///
    /// # Errors
    ///
    /// As for [`Sandbox::start`].
    pub async fn start_before(
        config: SandboxConfig,
        broker: impl Future<Output = Option<Arc<dyn Broker>>> + Send,
        restarts: Restarts,
        standard: Preparing,
    ) -> Result<Arc<Self>, StartError> {
        let folder = |path: &std::path::Path, error: std::io::Error| StartError::Folder {
            path: path.display().to_string(),
            why: error.to_string(),
        };
        let user = user::of_the_sandbox(config.settings.user.as_deref()).map_err(StartError::Wall)?;
        let compiler = Compiler { program: config.compiler, limits: config.settings.compile, user: user.clone() };
        let jobs = Arc::new(Jobs::new(Bounds {
            max_running: config.settings.max_running,
            max_waiting: config.settings.max_waiting,
            max_queued: config.settings.max_queued,
            memory: config.settings.total_memory,
        }));
        let living = Living::default();
        let program = ExecutorProgram {
            path: config.executor,
            max_running: jobs.max_calls(),
            computing: jobs.max_running(),
            memory: config.settings.total_memory,
            user,
            whole: config.settings.require_second_wall,
            groups: Groups::find(),
            living: living.clone(),
        };
        // The executor starts beside the compiler and the folders: each takes milliseconds of every start. If one of them fails, the process
        // ends with this set.
        let mut starting = JoinSet::new();
        let first = program.clone();
        starting.spawn(async move { process::start(&first, &DirectGrants::default()).await });
        let (engine, walls) = compiler.engine().await.map_err(|error| StartError::Compiler(error.to_string()))?;
        let lacking = walls.lacking();
        if config.settings.require_second_wall && !lacking.is_empty() {
            let lacking = lacking.join("; ");
            return Err(StartError::Wall(format!(
                "the second wall around the compiler is not whole, and sandbox: require_second_wall is set: {lacking}"
            )));
        }
        living.say(&lacking, "the compiler");
        let cache = Cache::open(&config.cache_dir, engine).map_err(|error| folder(&config.cache_dir, error))?;
        // A user who can write there can install modules.
        own_folder(&config.modules_dir, 0o022).map_err(|error| folder(&config.modules_dir, error))?;
        let store =
            Arc::new(Store::new(compiler, cache, config.settings.policy, config.standard_dir, config.modules_dir));
        let late =
            store.read_folders(config.standard.as_ref()).await.map_err(|error| folder(&config.cache_dir, error))?;
        let mut beside = JoinSet::new();
        match standard {
            Preparing::OnNeed => {}
            Preparing::First | Preparing::Beside | Preparing::Later => {
                let store = Arc::clone(&store);
                beside.spawn(async move {
                    if standard == Preparing::Later {
                        tokio::time::sleep(LATER).await;
                    }
                    store.settle_all().await;
                    store.prune().await;
                });
            }
        }
        let broker = broker.await.ok_or(StartError::GivenUp)?;
        let recordings = Recordings::new(config.recordings_dir, config.settings.recordings, Arc::clone(&broker));
        let record = recordings.record();
        let parts = Parts {
            program,
            restarts,
            source: Arc::<Store>::clone(&store),
            broker: Arc::clone(&broker),
            suspects: Arc::default(),
            lines: Arc::default(),
            jobs: Arc::clone(&jobs),
        };
        let first = starting.join_next().await.expect("it was started above");
        let first = first.unwrap_or_else(|ended| std::panic::resume_unwind(ended.into_panic()));
        let first = first.map_err(StartError::Executor)?;
        let executors = ExecutorSet::start(parts, config.settings.executor_idle, first).await;
        let inner = Arc::new(Inner {
            limits: ArcSwap::from_pointee(config.settings.limits),
            store,
            executors,
            living,
            jobs,
            trim: Trim::default(),
            record,
            broker,
            late: Late::default(),
            provenance: report::Remembered::default(),
            switching: Mutex::default(),
            installs: Semaphore::new(MAX_INSTALLS),
            reloading: Mutex::default(),
        });
        if standard == Preparing::First {
            inner.store.settle_all().await;
        }
        late::start(&inner, late, &mut beside).await;
        watch::start(&inner, &mut beside);
        let trimmed = Arc::clone(&inner);
        beside.spawn(async move { trimmed.trim.run(|| trimmed.jobs.count() == 0).await });
        let contended = Arc::clone(&inner);
        beside.spawn(async move { contended.let_by().await });
        Ok(Arc::new(Self { inner, _beside: beside }))
    }

    /// Verifies a module, compiles it in the cage and switches it in atomically. On any error the version in use stays.
    /// `signature` is the content of `NAME.wasm.minisig`, `origin` the environment of the master's file server. The
    /// install continues if the caller goes away.
    ///
    /// # Errors
    ///
    /// The name, the signature, the component or the policy does not allow the install, or the disk or the compiler
    /// failed.
    pub async fn install(
        &self,
        name: &str,
        wasm: &[u8],
        signature: Option<&[u8]>,
        origin: &str,
    ) -> Result<Installed, InstallError> {
        let name: ModuleName = name.parse()?;
        let (inner, wasm, origin) = (Arc::clone(&self.inner), Bytes::copy_from_slice(wasm), origin.to_owned());
        // A file over the bound is refused as unreadable, so one byte more than the bound suffices.
        let signature = signature.map(|bytes| Bytes::copy_from_slice(&bytes[..bytes.len().min(MAX_SIGNATURE + 1)]));
        let ended = InstallError::Ended(name.clone());
        let task = tokio::spawn(async move { inner.install(&name, wasm, signature, &origin).await });
        task.await.unwrap_or(Err(ended))
    }

    /// Removes an installed module, from the disk too. A standard module that it had replaced is used again. Jobs that
    /// call it run to their end. The removal continues if the caller goes away.
    ///
    /// # Errors
    ///
    /// On any error the module stays.
    pub async fn remove(&self, name: &str) -> Result<Removed, RemoveError> {
        let name: ModuleName = name.parse()?;
        let inner = Arc::clone(&self.inner);
        let ended = RemoveError::failed(&name, "the sandbox has ended");
        let task = tokio::spawn(async move { inner.remove(&name).await });
        task.await.unwrap_or(Err(ended))
    }

    /// Installs a held module if the current configuration admits it.
    ///
    /// # Errors
    ///
    /// As for [`Sandbox::install`].
    pub async fn install_held(&self, name: &str) -> Result<Installed, InstallError> {
        let name: ModuleName = name.parse()?;
        let inner = Arc::clone(&self.inner);
        let ended = InstallError::Ended(name.clone());
        let task = tokio::spawn(async move { inner.install_held(&name).await });
        task.await.unwrap_or(Err(ended))
    }

    /// Returns the version of a module that waits for the owner's decision.
    pub fn held(&self, name: &str) -> Option<Arc<Held>> {
        self.inner.store.held(name)
    }

    /// Records a successful sync: its environments, the master's fingerprint, and whether it changed anything.
    ///
    /// # Errors
    ///
    /// The record cannot be written.
    pub fn synced(&self, environments: &[&str], master: &str, changed: bool) -> std::io::Result<()> {
        Synced::write(self.inner.store.folder().path(), environments, master, changed)
    }

    /// Records the owner's approval of this content of a module with all that it asks for. If it is held, it is
    /// switched in.
    async fn approve(&self, name: &str, sha256: &str) -> Result<Value, ApproveError> {
        let name: ModuleName = name.parse()?;
        let sha256 = sha256.parse().map_err(|_| ApproveError::Sha256(sha256.chars().take(100).collect()))?;
        let inner = Arc::clone(&self.inner);
        let ended = ApproveError::failed(&name, "the sandbox has ended");
        let task = tokio::spawn(async move { inner.approve(&name, sha256).await });
        task.await.unwrap_or(Err(ended))
    }

    /// Restores the version before the one in use. `by_owner`: the owner typed the command on this host. A master's job
    /// is bound by the rule about older versions.
    async fn roll_back(&self, name: &str, by_owner: bool) -> Result<Value, RollbackError> {
        let name: ModuleName = name.parse()?;
        let inner = Arc::clone(&self.inner);
        let ended = RollbackError::failed(&name, "the sandbox has ended");
        let task = tokio::spawn(async move { inner.roll_back(&name, by_owner).await });
        task.await.unwrap_or(Err(ended))
    }

    /// Returns the installed modules, unusable ones included, with their origins, sorted by name.
    pub fn installed(&self) -> Vec<(String, String)> {
        let installed = self.inner.store.installed();
        installed.into_iter().map(|(name, origin)| (name.to_string(), origin)).collect()
    }

    /// Waits until this module is ready, if it is still being prepared, for a bounded time. A job of it waits by itself.
    pub async fn settle(&self, module: &str) {
        self.inner.settle(module).await;
    }

    /// Waits until all standard modules are ready, for a bounded time.
    ///
    /// # Errors
    ///
    /// One line, when some of them are not ready yet.
    pub async fn settle_all(&self) -> Result<(), String> {
        match tokio::time::timeout(WAIT, self.inner.store.settle_all()).await {
            Ok(()) => Ok(()),
            Err(_) => Err("some of the standard modules are still being compiled; try again in a moment".to_owned()),
        }
    }

    /// Waits until the standard modules with these names are ready, for a bounded time.
    pub async fn settle_those(&self, wanted: impl Fn(&str) -> bool) {
        for name in self.inner.store.pending().into_iter().filter(|name| wanted(name.as_str())) {
            self.inner.settle(name.as_str()).await;
        }
    }

    /// Checks whether all standard modules are ready.
    pub fn is_settled(&self) -> bool {
        !self.inner.store.has_pending()
    }

    /// Returns the names of the installed modules, which does not count the standard ones, sorted.
    pub fn names_installed(&self) -> Vec<String> {
        let table = self.inner.store.table();
        table.values().filter(|entry| !entry.is_standard()).map(|entry| entry.name().to_string()).collect()
    }

    /// Returns the names of all modules that are ready, sorted.
    pub fn names(&self) -> Vec<String> {
        self.inner.store.table().keys().map(ToString::to_string).collect()
    }

    /// Returns the function whose name is almost this one, `test.ping` for `test.pin`; none if several letters differ, or if a
    /// module is named.
    pub fn meant(&self, fun: &str) -> Option<String> {
        crate::resolve::meant_by(&self.inner.store, fun)
    }

    /// Returns one module's description.
    pub fn describe(&self, name: &str) -> Option<Arc<Module>> {
        self.inner.store.get(name).map(|entry| Arc::clone(&entry.module))
    }

    /// Returns the hash of a module's content: of the one in use, else of the one that the policy or the owner keeps out.
    pub fn content(&self, name: &str) -> Option<Sha256Hex> {
        self.inner.store.content(name)
    }

    /// Returns what a receipt says of the module of a function in jobs of this master (None: of this host); none if there is no such
    /// module.
    pub fn provenance(&self, function: &str, master: Option<&str>) -> Option<Arc<crate::Provenance>> {
        self.inner.provenance.of(&self.inner.store, function, master)
    }

    /// Returns the content of a module's `NAME.wasm.minisig`.
    pub fn signature(&self, name: &str) -> Option<Vec<u8>> {
        self.inner.store.get(name)?.signature.as_ref().map(|signature| signature.to_vec())
    }

    /// Runs one job to its end. Every failure is an outcome.
    pub async fn run(&self, job: JobContext, fun: &str, args: Vec<Value>, kwargs: Vec<(String, Value)>) -> JobOutcome {
        self.inner.settle_function(fun).await;
        self.inner.resolver().run(job, fun, args, kwargs).await
    }

    /// Calls a function for a running instance: in a separate instance, with the grants of its own module. The call
    /// holds no turn, has the caller's remaining time, and ends when the future is dropped or the job is killed. Its
    /// usage counts for the caller. Every failure is an outcome.
    pub async fn call(&self, caller: &Caller, fun: &str, args: Vec<Value>, kwargs: Vec<(String, Value)>) -> JobOutcome {
        self.inner.settle_function(fun).await;
        self.inner.resolver().nested(caller, fun, args, kwargs).await
    }

    /// Runs a state (`file.managed`) for a running instance: like [`Sandbox::call`], with the grants and limits of the
    /// state's own module. With `test`, the state only reports; in a job with `test=True` each state does.
    pub async fn state(
        &self,
        caller: &Caller,
        state: &str,
        context: StateContext,
        test: bool,
        kwargs: Vec<(String, Value)>,
    ) -> JobOutcome {
        self.inner.settle_function(state).await;
        self.inner.resolver().state(caller, (state, context), test, kwargs).await
    }

    /// Runs a function of a module's interface `beacons`, which no job calls: `load.beacons.validate`. Every failure is an
    /// outcome.
    pub async fn beacon(&self, job: JobContext, fun: &str, kwargs: Vec<(String, Value)>) -> JobOutcome {
        self.inner.settle_function(fun).await;
        self.inner.resolver().beacon(job, fun, kwargs).await
    }

    /// Checks whether a job of this function is expected to be short, from its past calls.
    pub fn is_short(&self, fun: &str) -> bool {
        self.inner.resolver().is_short(fun)
    }

    /// Ends the jobs with this id, queued ones included. Returns their number.
    pub fn kill(&self, jid: &str) -> usize {
        self.inner.jobs.end(|job| job.jid == jid, "it was killed")
    }

    /// Ends all jobs and the executors.
    pub async fn shutdown(&self) {
        self.inner.store.stop_settling();
        self.inner.jobs.end(|_| true, "the minion is stopping");
        let quiet = async {
            while self.inner.jobs.count() > 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let _ = tokio::time::timeout(SHUTDOWN, quiet).await;
        self.inner.executors.stop().await;
    }

    /// Returns the number of calls that run or wait, nested ones included. For tests and reports.
    pub fn instances(&self) -> usize {
        self.inner.jobs.count()
    }

    /// Returns the calls that run, nested ones included, with what they use. It asks the executors, and waits for them half a
    /// second at most.
    pub async fn running(&self) -> Vec<RunningCall> {
        let links = self.inner.executors.links();
        let calls = futures_util::future::join_all(links.iter().map(|link| link.measure())).await;
        let mut calls: Vec<RunningCall> = calls.into_iter().flatten().collect();
        calls.sort_by_key(|call| call.number);
        calls
    }

    /// Returns the running executors: process id, direct grants, and walls.
    pub fn walls(&self) -> Vec<(u32, crate::DirectGrants, Walls)> {
        self.inner.living.all()
    }

    /// Returns the walls around the executor without grants, for the grain `sandbox`: `walls`, a dict of names to what
    /// holds, and `lacking`, a list of what this host lacks.
    pub fn walls_summary(&self) -> Value {
        self.plain(|walls| report::walls_summary(Some(walls))).unwrap_or_else(|| report::walls_summary(None))
    }

    /// Returns the names of the walls that hold around the executor without grants, for receipts: each job has one.
    pub fn wall_names(&self) -> Vec<String> {
        self.plain(report::wall_names).unwrap_or_default()
    }

    fn plain<T>(&self, say: impl FnOnce(&Walls) -> T) -> Option<T> {
        self.inner.living.walls(self.executor_pid()?, say)
    }

    /// Returns the process id of the executor without grants while it runs. For tests and reports.
    pub fn executor_pid(&self) -> Option<u32> {
        self.inner.executors.plain().map(|link| link.pid)
    }

    /// Answers `brine:host/policy`: the owner's grants for each module, what is in force, and decisions.
    /// [`crate::check`] must have allowed the call.
    ///
    /// # Errors
    ///
    /// One line for the caller.
    pub async fn policy(&self, caller: &Caller, op: PolicyOp) -> Result<Value, String> {
        match op {
            PolicyOp::Approve { name, sha256 } => self.approve(&name, &sha256).await.map_err(|error| error.to_string()),
            PolicyOp::Rollback { name } => {
                let by_owner = caller.is_typed_here("sandbox.rollback");
                self.roll_back(&name, by_owner).await.map_err(|error| error.to_string())
            }
            op => self.report(op).await,
        }
    }

    /// Answers the read-only queries of [`Sandbox::policy`].
    ///
    /// # Errors
    ///
    /// One line for the caller.
    pub async fn report(&self, op: PolicyOp) -> Result<Value, String> {
        match &op {
            PolicyOp::Show { name } | PolicyOp::Diff { name } => self.settle(name).await,
            _ => self.settle_all().await?,
        }
        report::answer(&self.inner.store, &self.inner.limits.load_full(), &self.walls(), op).await
    }

    /// Returns what the master is told of the modules: `modules` (each with name, version, sha256, origin, signers, what
    /// it asks for, has and lacks) and `held` (updates that wait for the owner). The same state gives the same value. None while some
    /// modules are not ready.
    pub fn summary(&self) -> Option<Value> {
        self.is_settled().then(|| report::summary(&self.inner.store))
    }

    /// Returns what the summary is made from. As long as it is equal, so is the summary. None while some modules are not ready.
    pub fn summary_basis(&self) -> Option<report::Basis> {
        self.is_settled().then(|| report::Basis::of(&self.inner.store))
    }

    /// Returns the process ids of all running executors, that of the executor without grants first.
    pub fn executor_pids(&self) -> Vec<u32> {
        self.inner.executors.links().iter().map(|link| link.pid).collect()
    }
}

impl Inner {
    /// While jobs wait, finds running jobs that only wait for something, and jobs that are not as short as expected.
    /// Does nothing while no job waits.
    async fn let_by(&self) {
        loop {
            self.jobs.contended().await;
            tokio::time::sleep(PULSE).await;
            let links = self.executors.links();
            // An executor that does not read is dealt with elsewhere.
            let looks = futures_util::future::join_all(links.iter().map(|link| link.look()));
            let _ = tokio::time::timeout(PULSE, looks).await;
            self.jobs.pulse();
        }
    }

    fn resolver(&self) -> Resolver<'_> {
        Resolver {
            store: &self.store,
            jobs: &self.jobs,
            limits: self.limits.load_full(),
            runner: Runner {
                broker: &*self.broker,
                source: &*self.store,
                executors: &self.executors,
                jobs: &self.jobs,
                trim: &self.trim,
            },
            record: &self.record,
            broker: &*self.broker,
        }
    }
}
