//! The sandbox as the minion sees it.

use std::sync::Arc;
use std::time::Duration;

use brine_sandbox_walls::Walls;
use brine_sandbox_wire::{JobContext, PolicyOp};
use bytes::Bytes;
use rmpv::Value;
use tokio::sync::{Mutex, Semaphore};
use tokio::task::JoinSet;

use crate::admission::{Bounds, Jobs};
use crate::cache::{Cache, own_folder};
use crate::cgroup::Groups;
use crate::compile::Compiler;
use crate::executors::ExecutorSet;
use crate::job::Runner;
use crate::process::{Living, Program};
use crate::report;
use crate::signature::MAX_SIGNATURE;
use crate::store::{Entry, Store};
use crate::supervisor::{Parts, Restarts};
use crate::trim::Trim;
use crate::user;
use crate::{Broker, Caller, InstallError, Installed, JobOutcome, Module, ModuleName, RemoveError, SandboxConfig};

/// Installs that may wait for the one that compiles; each holds its component.
const MAX_INSTALLS: usize = 64;
/// Between two looks at whether a replaced module is still called.
const RETIRE_TICK: Duration = Duration::from_millis(500);
/// How much later than its own clock a job may end.
const LATE: Duration = Duration::from_secs(10);
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
    limits: brine_sandbox_wire::Limits,
    store: Arc<Store>,
    executors: ExecutorSet,
    living: Living,
    jobs: Jobs,
    trim: Trim,
    /// Held while a module is prepared and switched in: what was checked must still be true then.
    installing: Mutex<()>,
    installs: Semaphore,
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
        store.read_folders().await.map_err(|error| folder(&config.cache_dir, error))?;
        let bounds =
            Bounds { max_running: config.max_running, max_queued: config.max_queued, memory: config.total_memory };
        let jobs = Jobs::new(bounds);
        let parts = Parts {
            program: Program {
                path: config.executor,
                max_running: jobs.max_calls(),
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
        };
        let executors = ExecutorSet::start(parts, config.executor_idle).await.map_err(StartError::Executor)?;
        let inner = Arc::new(Inner {
            limits: config.limits,
            store,
            executors,
            living,
            jobs,
            trim: Trim::default(),
            installing: Mutex::default(),
            installs: Semaphore::new(MAX_INSTALLS),
        });
        let mut beside = JoinSet::new();
        let trimmed = Arc::clone(&inner);
        beside.spawn(async move { trimmed.trim.run(|| trimmed.jobs.count() == 0).await });
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
        self.inner.runner().run(job, fun, args, kwargs).await
    }

    /// Calls a function for a running instance: in an instance of its own, with its own module's grants. It has no turn of
    /// its own, what is left of the caller's time, and ends when the future is dropped or the job is killed. What it uses
    /// counts for the caller. Whatever goes wrong is an outcome.
    pub async fn call(&self, caller: &Caller, fun: &str, args: Vec<Value>, kwargs: Vec<(String, Value)>) -> JobOutcome {
        self.inner.runner().nested(caller, fun, args, kwargs).await
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

    /// What the owner granted to which module, and what is in force of it: the answer to `brine:host/policy`.
    pub async fn report(&self, op: PolicyOp) -> Value {
        report::answer(&self.inner.store, &self.inner.limits, &self.walls(), op).await
    }

    /// Those of all executors that run: of the one without grants first.
    pub fn executor_pids(&self) -> Vec<u32> {
        self.inner.executors.links().iter().map(|link| link.pid).collect()
    }
}

impl Inner {
    fn runner(&self) -> Runner<'_> {
        Runner {
            store: &self.store,
            executors: &self.executors,
            jobs: &self.jobs,
            limits: &self.limits,
            trim: &self.trim,
        }
    }

    async fn install(
        self: &Arc<Self>,
        name: &ModuleName,
        wasm: Bytes,
        signature: Option<Bytes>,
        origin: &str,
    ) -> Result<Installed, InstallError> {
        let Ok(_place) = self.installs.try_acquire() else { return Err(InstallError::Busy(name.clone())) };
        let _alone = self.installing.lock().await;
        let before = self.store.get(name.as_str());
        if before
            .as_ref()
            .is_some_and(|before| before.module.size == wasm.len() as u64 && before.signature == signature)
            && before.as_ref().map(|before| before.module.sha256) == Some(crate::store::hash(&wasm).await)
        {
            return Ok(Installed::Unchanged);
        }
        self.store.may_be_installed(name)?;
        self.store.has_room_for(name)?;
        let entry = match self.store.prepare(name, wasm.clone(), signature, origin, false).await {
            Ok(entry) => Arc::new(entry),
            Err(error) => return Err(self.store.hold(name, error, origin)),
        };
        // The executor has the last word: what it does not take would fail every job.
        if let Some(link) = self.executors.plain() {
            let loaded = link.ensure(&entry, &self.store).await;
            loaded.map_err(|error| InstallError::failed(name, error))?;
        }
        if let Err(error) = self.store.persist(&entry, &wasm).await {
            self.unload(&entry).await;
            return Err(InstallError::failed(name, error));
        }
        self.store.switch_in(&entry);
        tracing::info!(module = %name, sha256 = %entry.module.sha256, origin, "installed");
        self.store.prune().await;
        match before {
            Some(before) => {
                // Owned by nobody, but it ends within a job's longest life.
                tokio::spawn(Arc::clone(self).retire(before));
                Ok(Installed::Updated)
            }
            None => Ok(Installed::New),
        }
    }

    async fn remove(self: &Arc<Self>, name: &ModuleName) -> Result<Removed, RemoveError> {
        let _alone = self.installing.lock().await;
        if !self.store.installed().contains_key(name) {
            return Ok(Removed::Absent);
        }
        let before = self.store.get(name.as_str());
        let failed = |error: &dyn std::fmt::Display| RemoveError::failed(name, error);
        let standard = match &before {
            // What was installed could not be used, and so did not take its place.
            Some(before) if before.standard => Some(Arc::clone(before)),
            _ => self.store.standard(name).await.map_err(|error| failed(&error))?.map(Arc::new),
        };
        if let Some(standard) = &standard
            && let Some(link) = self.executors.plain()
        {
            link.ensure(standard, &self.store).await.map_err(|error| failed(&error))?;
        }
        self.store.erase(name).await.map_err(|error| failed(&error))?;
        match &standard {
            Some(standard) => self.store.switch_in(standard),
            None => self.store.switch_out(name),
        }
        tracing::info!(module = %name, "removed");
        if let Some(before) = before.filter(|before| !before.standard) {
            // As after an update.
            tokio::spawn(Arc::clone(self).retire(before));
        }
        self.store.prune().await;
        Ok(if standard.is_some() { Removed::Standard } else { Removed::Gone })
    }

    /// Has the executors forget a module that was replaced, when the last job that was to call it has ended.
    async fn retire(self: Arc<Self>, entry: Arc<Entry>) {
        let longest = Duration::from_millis(self.limits.wall_ms) + LATE;
        let unused = async {
            while Arc::strong_count(&entry) > 1 {
                tokio::time::sleep(RETIRE_TICK).await;
            }
        };
        let _ = tokio::time::timeout(longest, unused).await;
        let _alone = self.installing.lock().await;
        self.unload(&entry).await;
    }

    /// Has the executors forget what no name leads to.
    async fn unload(&self, entry: &Entry) {
        let in_use = self.store.table().values().any(|other| other.key == entry.key);
        if !in_use {
            for link in self.executors.links() {
                link.unload(entry.key).await;
            }
        }
    }
}
