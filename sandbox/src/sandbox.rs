//! The sandbox as the minion sees it.
//!
//! - `install.rs` how modules come, are replaced and go; `decide.rs` what the owner decides about them; `reload.rs` what he says anew; `watch.rs` what other programs
//!   on this host decided while this one runs

mod decide;
mod install;
mod late;
mod reload;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use brine_sandbox_walls::Walls;
use brine_sandbox_wire::{JobContext, PolicyOp};
use bytes::Bytes;
use rmpv::Value;
use tokio::sync::{Mutex, Semaphore};
use tokio::task::JoinSet;

use crate::admission::{Bounds, Jobs, PULSE};
use crate::cache::{Cache, own_folder};
use crate::cgroup::Groups;
use crate::compile::Compiler;
use crate::executors::ExecutorSet;
use crate::job::Runner;
use crate::process::{Living, Program};
use crate::report;
use crate::signature::MAX_SIGNATURE;
use crate::store::{ApproveError, Held, RollbackError, Store};
use crate::supervisor::{Parts, Restarts};
use crate::trim::Trim;
use crate::user;
use late::Late;
pub use reload::Reloaded;

use crate::{
    Broker, Caller, InstallError, Installed, JobOutcome, Module, ModuleName, OneEach, RemoveError, SandboxConfig,
    Synced,
};

/// Installs that are under way or wait for their turn to compile; each holds its component.
const MAX_INSTALLS: usize = 64;
/// For running jobs to return that they were ended, before the executor goes.
const SHUTDOWN: Duration = Duration::from_secs(2);

/// Why there is no sandbox.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A folder cannot be used.
    #[error("{path}: {why}")]
    Folder {
        /// Which.
        path: String,
        /// One line.
        why: String,
    },
    /// The compiler cannot be used.
    #[error("{0}")]
    Compiler(String),
    /// The second wall cannot be as it was asked for.
    #[error("{0}")]
    Wall(String),
    /// The executor does not come up.
    #[error("{0}")]
    Executor(String),
}

/// What a removal did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removed {
    /// No such module was installed.
    Absent,
    /// There is no module of this name any more.
    Gone,
    /// The standard module whose place it had taken is back.
    Standard,
}

/// The sandbox of one minion.
pub struct Sandbox {
    inner: Arc<Inner>,
    /// What it does beside jobs; ends with it.
    _beside: JoinSet<()>,
}

struct Inner {
    limits: ArcSwap<brine_sandbox_wire::Limits>,
    store: Arc<Store>,
    executors: ExecutorSet,
    living: Living,
    jobs: Arc<Jobs>,
    trim: Trim,
    /// Held while one module of a name is prepared and switched in: what was checked of it must still be true then.
    installing: OneEach,
    late: Late,
    /// Held for the switch alone: what was checked of all modules together must still be true then.
    switching: Mutex<()>,
    installs: Semaphore,
    /// Held while the owner's word is taken up.
    reloading: Mutex<()>,
}

impl Sandbox {
    /// Checks the folders, starts the executor and gets the modules ready: those of the package, then those installed.
    /// A module that cannot be used is logged and left out.
    pub async fn start(config: SandboxConfig, broker: Arc<dyn Broker>) -> Result<Arc<Self>, StartError> {
        Self::start_with(config, broker, Restarts::default()).await
    }

    /// The same with another bound on how often an executor that dies is started again.
    pub async fn start_with(
        config: SandboxConfig,
        broker: Arc<dyn Broker>,
        restarts: Restarts,
    ) -> Result<Arc<Self>, StartError> {
        let folder = |path: &std::path::Path, error: std::io::Error| StartError::Folder {
            path: path.display().to_string(),
            why: error.to_string(),
        };
        let user = user::of_the_sandbox(config.user.as_deref()).map_err(StartError::Wall)?;
        let compiler = Compiler { program: config.compiler, limits: config.compile, user: user.clone() };
        let (engine, walls) = compiler.engine().await.map_err(|error| StartError::Compiler(error.to_string()))?;
        let (living, lacking) = (Living::default(), walls.lacking());
        if config.require_second_wall && !lacking.is_empty() {
            let lacking = lacking.join("; ");
            return Err(StartError::Wall(format!(
                "the second wall around the compiler is not whole, and sandbox: require_second_wall is set: {lacking}"
            )));
        }
        living.say(&lacking, "the compiler");
        let cache = Cache::open(&config.cache_dir, engine).map_err(|error| folder(&config.cache_dir, error))?;
        // Who can write there can install modules.
        own_folder(&config.modules_dir, 0o022).map_err(|error| folder(&config.modules_dir, error))?;
        let store = Arc::new(Store::new(compiler, cache, config.policy, config.standard_dir, config.modules_dir));
        let late = store.read_folders().await.map_err(|error| folder(&config.cache_dir, error))?;
        let jobs = Arc::new(Jobs::new(Bounds {
            max_running: config.max_running,
            max_waiting: config.max_waiting,
            max_queued: config.max_queued,
            memory: config.total_memory,
        }));
        let parts = Parts {
            program: Program {
                path: config.executor,
                max_running: jobs.max_calls(),
                computing: jobs.max_running(),
                memory: config.total_memory,
                user,
                whole: config.require_second_wall,
                groups: Groups::find(),
                living: living.clone(),
            },
            restarts,
            store: Arc::clone(&store),
            broker,
            suspects: Arc::default(),
            jobs: Arc::clone(&jobs),
        };
        let executors = ExecutorSet::start(parts, config.executor_idle).await.map_err(StartError::Executor)?;
        let inner = Arc::new(Inner {
            limits: ArcSwap::from_pointee(config.limits),
            store,
            executors,
            living,
            jobs,
            trim: Trim::default(),
            installing: OneEach::default(),
            late: Late::default(),
            switching: Mutex::default(),
            installs: Semaphore::new(MAX_INSTALLS),
            reloading: Mutex::default(),
        });
        let mut beside = JoinSet::new();
        late::start(&inner, late, &mut beside).await;
        watch::start(&inner, &mut beside);
        let trimmed = Arc::clone(&inner);
        beside.spawn(async move { trimmed.trim.run(|| trimmed.jobs.count() == 0).await });
        let contended = Arc::clone(&inner);
        beside.spawn(async move { contended.let_by().await });
        Ok(Arc::new(Self { inner, _beside: beside }))
    }

    /// Verifies and compiles a module in the cage and switches it in whole; on any error the last good one stays.
    /// `signature` is what is in `NAME.wasm.minisig`, `origin` the environment of the master's file server. Goes on when the
    /// caller goes away.
    pub async fn install(
        &self,
        name: &str,
        wasm: &[u8],
        signature: Option<&[u8]>,
        origin: &str,
    ) -> Result<Installed, InstallError> {
        let name: ModuleName = name.parse()?;
        let (inner, wasm, origin) = (Arc::clone(&self.inner), Bytes::copy_from_slice(wasm), origin.to_owned());
        // One that is too long is none that can be read, however long it is.
        let signature = signature.map(|bytes| Bytes::copy_from_slice(&bytes[..bytes.len().min(MAX_SIGNATURE + 1)]));
        let ended = InstallError::Ended(name.clone());
        let task = tokio::spawn(async move { inner.install(&name, wasm, signature, &origin).await });
        task.await.unwrap_or(Err(ended))
    }

    /// Takes an installed module away, from the disk too; a standard module that it had replaced comes back. Jobs that call
    /// it run to their end. On any error it stays. Goes on when the caller goes away.
    pub async fn remove(&self, name: &str) -> Result<Removed, RemoveError> {
        let name: ModuleName = name.parse()?;
        let inner = Arc::clone(&self.inner);
        let ended = RemoveError::failed(&name, "the sandbox has ended");
        let task = tokio::spawn(async move { inner.remove(&name).await });
        task.await.unwrap_or(Err(ended))
    }

    /// Installs what is held of a module, if it would be let in by now: its configuration may have changed since.
    pub async fn install_held(&self, name: &str) -> Result<Installed, InstallError> {
        let name: ModuleName = name.parse()?;
        let inner = Arc::clone(&self.inner);
        let ended = InstallError::Ended(name.clone());
        let task = tokio::spawn(async move { inner.install_held(&name).await });
        task.await.unwrap_or(Err(ended))
    }

    /// What waits for the owner's word of a module.
    pub fn held(&self, name: &str) -> Option<Arc<Held>> {
        self.inner.store.held(name)
    }

    /// Writes down a successful sync: of these environments, with the master of this fingerprint; and whether it changed anything.
    pub fn synced(&self, environments: &[&str], master: &str, changed: bool) -> std::io::Result<()> {
        Synced::write(self.inner.store.folder().path(), environments, master, changed)
    }

    /// The owner's word: this content of this module may have all that it asks for. What of it is held is switched in.
    async fn approve(&self, name: &str, sha256: &str) -> Result<Value, ApproveError> {
        let name: ModuleName = name.parse()?;
        let sha256 = sha256.parse().map_err(|_| ApproveError::Sha256(sha256.chars().take(100).collect()))?;
        let inner = Arc::clone(&self.inner);
        let ended = ApproveError::failed(&name, "the sandbox has ended");
        let task = tokio::spawn(async move { inner.approve(&name, sha256).await });
        task.await.unwrap_or(Err(ended))
    }

    /// Goes back to the version before the one in use. `by_owner` is whether somebody typed it on this host: a master's job is held to
    /// the rule on older versions.
    async fn roll_back(&self, name: &str, by_owner: bool) -> Result<Value, RollbackError> {
        let name: ModuleName = name.parse()?;
        let inner = Arc::clone(&self.inner);
        let ended = RollbackError::failed(&name, "the sandbox has ended");
        let task = tokio::spawn(async move { inner.roll_back(&name, by_owner).await });
        task.await.unwrap_or(Err(ended))
    }

    /// The modules that were installed, those too that cannot be used, each with its origin; sorted by name.
    pub fn installed(&self) -> Vec<(String, String)> {
        let installed = self.inner.store.installed();
        installed.into_iter().map(|(name, origin)| (name.to_string(), origin)).collect()
    }

    /// Names of all modules, sorted.
    pub fn names(&self) -> Vec<String> {
        self.inner.store.table().keys().map(ToString::to_string).collect()
    }

    /// One module.
    pub fn describe(&self, name: &str) -> Option<Arc<Module>> {
        self.inner.store.get(name).map(|entry| Arc::clone(&entry.module))
    }

    /// What lies beside a module as `NAME.wasm.minisig`.
    pub fn signature(&self, name: &str) -> Option<Vec<u8>> {
        self.inner.store.get(name)?.signature.as_ref().map(|signature| signature.to_vec())
    }

    /// Runs one job to its end. Whatever goes wrong is an outcome.
    pub async fn run(&self, job: JobContext, fun: &str, args: Vec<Value>, kwargs: Vec<(String, Value)>) -> JobOutcome {
        if let Some(settled) = self.inner.settled(fun) {
            settled.await;
        }
        self.inner.runner().run(job, fun, args, kwargs).await
    }

    /// Calls a function for a running instance: in an instance of its own, with its own module's grants. It has no turn of
    /// its own, what is left of the caller's time, and ends when the future is dropped or the job is killed. What it uses
    /// counts for the caller. Whatever goes wrong is an outcome.
    pub async fn call(&self, caller: &Caller, fun: &str, args: Vec<Value>, kwargs: Vec<(String, Value)>) -> JobOutcome {
        self.inner.runner().nested(caller, fun, args, kwargs).await
    }

    /// Whether a job of this function is expected to be over after a moment, from those before it.
    pub fn is_short(&self, fun: &str) -> bool {
        self.inner.runner().is_short(fun)
    }

    /// Ends the jobs of this id, queued ones too. Says how many there were.
    pub fn kill(&self, jid: &str) -> usize {
        self.inner.jobs.end(|other| other == jid, "it was killed")
    }

    /// Ends every job and the executors.
    pub async fn shutdown(&self) {
        self.inner.jobs.end(|_| true, "the minion is stopping");
        let quiet = async {
            while self.inner.jobs.count() > 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let _ = tokio::time::timeout(SHUTDOWN, quiet).await;
        self.inner.executors.stop().await;
    }

    /// Calls that run or wait, those that jobs made too. For tests and reports.
    pub fn instances(&self) -> usize {
        self.inner.jobs.count()
    }

    /// The executors that run: process id, what they may reach, and the walls around each.
    pub fn walls(&self) -> Vec<(u32, crate::DirectGrants, Walls)> {
        self.inner.living.all()
    }

    /// The process id of the executor without grants while it runs. For tests and reports.
    pub fn executor_pid(&self) -> Option<u32> {
        self.inner.executors.plain().map(|link| link.pid)
    }

    /// What the owner granted to which module, what is in force of it, and what is decided: the answer to `brine:host/policy`. Calls
    /// arrive here only after [`crate::check`] allowed them.
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

    /// The part of it that only looks.
    pub async fn report(&self, op: PolicyOp) -> Result<Value, String> {
        report::answer(&self.inner.store, &self.inner.limits.load_full(), &self.walls(), op).await
    }

    /// Those of all executors that run: of the one without grants first.
    pub fn executor_pids(&self) -> Vec<u32> {
        self.inner.executors.links().iter().map(|link| link.pid).collect()
    }
}

impl Inner {
    /// While jobs wait, finds out which of those that run only wait too, and which are not as short as was thought. It wakes for nothing
    /// else.
    async fn let_by(&self) {
        loop {
            self.jobs.contended().await;
            tokio::time::sleep(PULSE).await;
            let links = self.executors.links();
            // One that does not read is somebody else's business.
            let looks = futures_util::future::join_all(links.iter().map(|link| link.look()));
            let _ = tokio::time::timeout(PULSE, looks).await;
            self.jobs.pulse();
        }
    }

    fn runner(&self) -> Runner<'_> {
        Runner {
            store: &self.store,
            executors: &self.executors,
            jobs: &self.jobs,
            limits: self.limits.load_full(),
            trim: &self.trim,
        }
    }
}
