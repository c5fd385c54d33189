//! The set of modules: read at the start, installed later, and switched in atomically.
//!
//! - `files.rs`, `folder.rs` the modules' folders, and how several programs change the same folder
//! - `decisions.rs` the owner's decisions on this host; `held.rs` modules that wait for a decision
//! - `read.rs`      reads the folders, at the start and module by module
//! - `pending.rs`   standard modules that nobody has needed yet
//! - `prepare.rs`   from bytes to a callable module; `compiled.rs` the compiler's part of it
//! - `change.rs`    what an install, an approval, a rollback and a removal do on the disk
//! - `verified.rs`  standard modules that an earlier start has verified
//! - `outcome.rs`   results of installing and removing; `synced.rs` the records of syncs

mod change;
pub(crate) mod clock;
mod compiled;
mod decisions;
mod files;
mod folder;
mod held;
mod outcome;
mod pending;
mod prepare;
mod read;
mod synced;
mod verified;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use brine_component::ModuleInfo;
use brine_sandbox_wire::Sha256Hex;
use bytes::Bytes;

use crate::kernel::cache::{self, Cache};
use crate::kernel::compile::Compiler;
use crate::kernel::loadable::Loadable;
use crate::policy::{ModuleGrants, Policy, Refused, Subject};
use crate::signature::{KeyId, StandardKey};
use crate::{Lanes, ModuleName, OneEach};
pub(crate) use change::Install;
pub(crate) use decisions::{Decided, Decisions, FILE as DECISIONS};
use files::{LOCAL, MAX_MODULES};
pub(crate) use folder::{Files, Folder, Provenance, Shelf, was_overtaken};
pub use held::Held;
pub use outcome::{ApproveError, InstallError, Installed, RemoveError, RollbackError};
use pending::Pending;
pub(crate) use pending::WAIT;
pub(crate) use prepare::{Prepared, Rules};
pub use synced::{Synced, SyncedFrom};

/// Least number of compilers for small modules at once, beside the one for large modules. With two, a module that uses
/// up its limits does not delay the next one.
const SMALL_COMPILERS_MIN: usize = 2;
/// Largest number of them: each may use the memory of `sandbox:compile:memory`.
const SMALL_COMPILERS_MAX: usize = 4;

/// Returns the number of compilers for small modules at once: one a core, within bounds.
fn small_compilers() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    cores.clamp(SMALL_COMPILERS_MIN, SMALL_COMPILERS_MAX)
}

/// One module that jobs can call.
#[derive(Debug)]
pub struct Module {
    /// `test` in `test.ping`.
    pub name: String,
    /// Hash of the component.
    pub sha256: Sha256Hex,
    /// Size of the component in bytes.
    pub size: u64,
    /// `standard`, or the environment of the master's file server from which the module came.
    pub origin: String,
    /// The component's own description.
    pub info: ModuleInfo,
}

/// A module and its state in the sandbox.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The module as executors know it.
    pub(crate) loadable: Arc<Loadable>,
    pub(crate) module: Arc<Module>,
    pub(crate) grants: ModuleGrants,
    /// The keys named by the policy that signed it.
    pub(crate) signers: Vec<KeyId>,
    /// The newest signing time of these keys, in seconds since 1970.
    pub(crate) signed_time: Option<u64>,
    /// The signature as it came with the component.
    pub(crate) signature: Option<Bytes>,
}

impl Entry {
    pub(crate) fn name(&self) -> &ModuleName {
        &self.loadable.name
    }

    /// Returns the module's key in executors.
    pub(crate) fn key(&self) -> Sha256Hex {
        self.loadable.key
    }

    pub(crate) fn is_standard(&self) -> bool {
        self.loadable.standard
    }

    /// Returns the module's properties that the policy decides on.
    pub(crate) fn subject(&self) -> Subject<'_> {
        let signers = &self.signers;
        Subject { name: self.name(), standard: self.is_standard(), sha256: self.module.sha256, signers }
    }
}

pub(crate) type Table = BTreeMap<ModuleName, Arc<Entry>>;

/// A module on the disk that is not in the table.
pub(crate) struct LeftOut {
    pub(crate) why: String,
    /// None for a standard module.
    pub(crate) origin: Option<String>,
    /// The policy's refusal, if the check went that far.
    pub(crate) refused: Option<Box<Refused>>,
}

impl LeftOut {
    pub(crate) fn new(error: &InstallError, origin: Option<String>) -> Self {
        let refused = if let InstallError::Policy(refused) = error { Some(refused.clone()) } else { None };
        Self { why: error.to_string(), origin, refused }
    }
}

pub(crate) struct Store {
    compiler: Compiler,
    cache: Arc<Cache>,
    policy: ArcSwap<Policy>,
    /// The key that verifies the standard modules.
    standard_key: StandardKey,
    standard_dir: PathBuf,
    folder: Folder,
    table: ArcSwap<Table>,
    /// The decisions of this host, or the reason why they cannot be read. Without them nothing is installed.
    decisions: ArcSwap<Result<Decisions, String>>,
    /// Names of the standard modules, usable or not: a broken one must not be replaced either.
    standard: Mutex<BTreeSet<ModuleName>>,
    /// Those of them that are not prepared yet.
    pending: Pending,
    /// Why a module on the disk is not in the table, for the error of a call.
    left_out: Mutex<BTreeMap<ModuleName, LeftOut>>,
    /// Why a module or an update was refused, for reports.
    refused: Mutex<BTreeMap<ModuleName, LeftOut>>,
    /// The modules that wait for the owner's decision.
    held: Mutex<BTreeMap<ModuleName, Arc<Held>>>,
    /// The versions for a rollback.
    previous: Mutex<BTreeMap<ModuleName, Provenance>>,
    /// The queues for the compiler.
    compiling: Lanes,
    /// Locked while a module of that name is prepared and switched in, so that the checks still hold at the switch.
    pub(crate) installing: OneEach,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Store {
    pub(crate) fn new(
        compiler: Compiler,
        cache: Cache,
        policy: Policy,
        standard_dir: PathBuf,
        modules_dir: PathBuf,
    ) -> Self {
        Self {
            folder: Folder::new(modules_dir, compiler.limits.module),
            compiler,
            cache: Arc::new(cache),
            policy: ArcSwap::from_pointee(policy),
            standard_key: StandardKey::look(&standard_dir),
            standard_dir,
            table: ArcSwap::default(),
            decisions: ArcSwap::from_pointee(Ok(Decisions::default())),
            standard: Mutex::default(),
            pending: Pending::default(),
            left_out: Mutex::default(),
            refused: Mutex::default(),
            held: Mutex::default(),
            previous: Mutex::default(),
            compiling: Lanes::new(small_compilers()),
            installing: OneEach::default(),
        }
    }

    /// Returns the current policy.
    pub(crate) fn policy(&self) -> Arc<Policy> {
        self.policy.load_full()
    }

    /// Replaces the policy. Decisions made under the earlier one remain.
    pub(crate) fn replace_policy(&self, policy: Policy) {
        self.policy.store(Arc::new(policy));
    }

    /// Returns the names of all modules, usable or not.
    pub(crate) fn all_names(&self) -> BTreeSet<ModuleName> {
        let mut names: BTreeSet<ModuleName> = self.table.load().keys().cloned().collect();
        names.extend(locked(&self.standard).iter().cloned());
        names.extend(self.all_left_out().keys().cloned());
        names.extend(self.all_held().keys().cloned());
        names
    }

    pub(crate) fn table(&self) -> arc_swap::Guard<Arc<Table>> {
        self.table.load()
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<Entry>> {
        self.table.load().get(name).map(Arc::clone)
    }

    /// Returns the folder of installed modules.
    pub(crate) fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Returns why a module that is on the disk is not in the table.
    pub(crate) fn left_out(&self, name: &str) -> Option<String> {
        let left_out = self.all_left_out().get(name).map(|left_out| left_out.why.clone());
        let pending = || self.pending.name(name).map(|name| InstallError::Compiling(name).to_string());
        let left_out = left_out.or_else(pending).map(|why| format!("It was left out: {why}"));
        left_out.or_else(|| self.held(name).map(|held| format!("It waits for the owner of this host: {held}")))
    }

    /// Returns all modules that are left out.
    pub(crate) fn all_left_out(&self) -> MutexGuard<'_, BTreeMap<ModuleName, LeftOut>> {
        locked(&self.left_out)
    }

    /// Returns the refused modules and updates that do not wait for the owner.
    pub(crate) fn refused(&self) -> MutexGuard<'_, BTreeMap<ModuleName, LeftOut>> {
        locked(&self.refused)
    }

    /// Returns the policy's refusal of a module that is left out. None if that has another reason.
    pub(crate) fn refusal_of(&self, name: &str) -> Option<Box<Refused>> {
        let name: ModuleName = name.parse().ok()?;
        let of = |all: &BTreeMap<ModuleName, LeftOut>| all.get(&name)?.refused.clone();
        of(&self.refused()).or_else(|| of(&self.all_left_out()))
    }

    /// Returns the content of this module that there is: the one in use, else the one that the policy or the owner keeps out.
    pub(crate) fn content(&self, name: &str) -> Option<Sha256Hex> {
        let in_use = self.get(name).map(|entry| entry.module.sha256);
        let refused = || self.refusal_of(name).map(|refused| refused.sha256);
        in_use.or_else(refused).or_else(|| self.held(name).map(|held| held.sha256()))
    }

    /// Returns the modules that wait for the owner's decision.
    pub(crate) fn all_held(&self) -> MutexGuard<'_, BTreeMap<ModuleName, Arc<Held>>> {
        locked(&self.held)
    }

    pub(crate) fn held(&self, name: &str) -> Option<Arc<Held>> {
        self.all_held().get(name).map(Arc::clone)
    }

    /// Returns the version that a rollback would restore.
    pub(crate) fn previous(&self, name: &str) -> Option<Provenance> {
        locked(&self.previous).get(name).cloned()
    }

    /// Returns the decisions about a module. The error means that they cannot be read, and then nothing new is
    /// admitted.
    pub(crate) fn decided(&self, name: &ModuleName) -> Result<Decided, String> {
        match &**self.decisions.load() {
            Ok(decisions) => Ok(decisions.of(name)),
            Err(why) => Err(why.clone()),
        }
    }

    /// Checks that the decisions can be read.
    pub(crate) fn decided_at_all(&self) -> Result<(), String> {
        self.decisions.load().as_ref().as_ref().map(drop).map_err(String::clone)
    }

    /// Replaces the decisions. Returns the modules whose decisions changed.
    pub(crate) fn take_up(&self, decisions: Result<Decisions, String>) -> Vec<ModuleName> {
        let before = self.decisions.swap(Arc::new(decisions));
        let now = self.decisions.load();
        let none = Decisions::default();
        let (before, now) = (before.as_ref().as_ref().unwrap_or(&none), now.as_ref().as_ref().unwrap_or(&none));
        before.changed(now)
    }

    /// Replaces the decisions about one module. Returns whether they changed.
    pub(crate) fn take_up_of(&self, name: &ModuleName, decisions: &Decisions) -> bool {
        let decided = decisions.of(name);
        if self.decided(name).is_ok_and(|before| before == decided) {
            return false;
        }
        self.decisions.rcu(|known| {
            let mut known = known.as_ref().clone();
            if let Ok(known) = &mut known {
                known.put(name, decided.clone());
            }
            known
        });
        true
    }

    /// Records that a module was refused. Bounded by the number of modules.
    pub(crate) fn refuse(&self, name: &ModuleName, error: &InstallError, origin: &str) {
        let mut refused = self.refused();
        if refused.len() < MAX_MODULES || refused.contains_key(name) {
            refused.insert(name.clone(), LeftOut::new(error, Some(origin.to_owned())));
        }
    }

    /// Returns the installed modules, usable or not, and their origins, without those that were put into the folder by
    /// hand.
    pub(crate) fn installed(&self) -> BTreeMap<ModuleName, String> {
        let left_out = self.all_left_out();
        let left_out = left_out.iter().filter_map(|(name, left_out)| Some((name.clone(), left_out.origin.clone()?)));
        let mut installed: BTreeMap<ModuleName, String> = left_out.collect();
        // A module that is only held also counts, and is removed when the master no longer has it.
        installed.extend(self.all_held().iter().map(|(name, held)| (name.clone(), held.module.origin.clone())));
        let table = self.table.load();
        let usable = table.values().filter(|entry| !entry.is_standard());
        installed.extend(usable.map(|entry| (entry.name().clone(), entry.module.origin.clone())));
        installed.retain(|_, origin| origin != LOCAL);
        installed
    }

    /// Checks that the name does not belong to a standard module.
    pub(crate) fn may_be_installed(&self, name: &ModuleName) -> Result<(), InstallError> {
        let standard = locked(&self.standard).contains(name);
        if standard && !self.policy().replace_standard.contains(name) {
            return Err(InstallError::Standard(name.clone()));
        }
        Ok(())
    }

    /// Checks that one more module fits. The next start would not read a surplus module.
    pub(crate) fn has_room_for(&self, name: &ModuleName) -> Result<(), InstallError> {
        let installed = self.installed();
        if installed.len() >= MAX_MODULES && !installed.contains_key(name) {
            return Err(InstallError::failed(name, format!("there are {MAX_MODULES} modules already")));
        }
        Ok(())
    }

    /// Drops what is held of the module and its previous version.
    pub(crate) fn forget(&self, name: &ModuleName) {
        self.all_held().remove(name);
        locked(&self.previous).remove(name);
    }

    /// Removes a module from the table, so that no job calls it. Its files and the reason why it is left out remain.
    pub(crate) fn take_out(&self, name: &ModuleName) {
        self.table.rcu(|table| {
            let mut table = Table::clone(table);
            table.remove(name);
            table
        });
    }

    /// Removes everything that is known of a module of this name.
    pub(crate) fn switch_out(&self, name: &ModuleName) {
        self.all_left_out().remove(name);
        self.refused().remove(name);
        self.forget(name);
        self.take_out(name);
    }

    /// Puts a module into the table, so that jobs call it.
    pub(crate) fn switch_in(&self, entry: &Arc<Entry>) {
        self.all_left_out().remove(entry.name());
        self.refused().remove(entry.name());
        self.not_pending(entry.name());
        self.table.rcu(|table| {
            let mut table = Table::clone(table);
            table.insert(entry.name().clone(), Arc::clone(entry));
            table
        });
    }

    /// Removes compiled code that nothing uses. While the content of some modules is not known, nothing is removed.
    pub(crate) async fn prune(&self) {
        if self.has_pending() {
            return;
        }
        // Code that may soon be used is kept too, so that replacing a bad version needs no compiler.
        let mut in_use: HashSet<Sha256Hex> = self.table.load().values().map(|entry| entry.module.sha256).collect();
        in_use.extend(self.all_held().values().map(|held| held.module.sha256));
        in_use.extend(locked(&self.previous).values().filter_map(Provenance::sha256));
        let cache = Arc::clone(&self.cache);
        if let Err(error) = off_thread(move || cache.prune(&in_use)).await {
            tracing::warn!("old compiled code could not be removed: {error}");
        }
    }
}

/// Runs work that blocks, such as hashing and writing megabytes, on a thread that serves no connections.
async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

pub(crate) async fn hash(wasm: &Bytes) -> Sha256Hex {
    let wasm = wasm.clone();
    off_thread(move || cache::sha256(&wasm)).await
}
