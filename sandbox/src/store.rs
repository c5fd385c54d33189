//! The modules there are: read at the start, installed later, switched in whole.
//!
//! - `files.rs`, `folder.rs`  the folders they lie in, and how several programs change one of them
//! - `decisions.rs` what was decided on this host; `held.rs` what waits for a decision
//! - `read.rs`      the folders, at the start and one by one
//! - `prepare.rs`   from bytes to a module that may be called; `compiled.rs` the compiler's part in it
//! - `change.rs`    what an install, an approval, a rollback and a removal do to the disk
//! - `outcome.rs`   what installing and removing come to; `synced.rs` when was fetched from where

mod change;
pub(crate) mod clock;
mod compiled;
mod decisions;
mod files;
mod folder;
mod held;
mod outcome;
mod prepare;
mod read;
mod synced;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use brine_component::ModuleInfo;
use brine_sandbox_wire::Sha256Hex;
use bytes::Bytes;

use crate::admission::History;
use crate::cache::{self, Cache};
use crate::compile::Compiler;
use crate::policy::{ModuleGrants, Policy, Refused, Subject};
use crate::signature::{KeyId, StandardKey};
use crate::{Lanes, ModuleName};
pub(crate) use change::Install;
pub(crate) use decisions::{Decided, Decisions, FILE as DECISIONS};
use files::{LOCAL, MAX_MODULES};
pub(crate) use folder::{Files, Folder, Provenance, Shelf, was_overtaken};
pub use held::Held;
pub use outcome::{ApproveError, InstallError, Installed, RemoveError, RollbackError};
pub(crate) use prepare::{Prepared, Rules};
pub use synced::{Synced, SyncedFrom};

/// Compilers for small modules at once, beside the one for large ones: what makes one of them take all that its limits let it keeps
/// the next one from waiting. Each may have the memory that `sandbox:compile:memory` says.
const SMALL_COMPILERS: usize = 2;

/// One module that jobs can call.
#[derive(Debug)]
pub struct Module {
    /// As in `test.ping`: `test`.
    pub name: String,
    /// Of the component.
    pub sha256: Sha256Hex,
    /// Bytes of the component.
    pub size: u64,
    /// `standard`, or the environment of the master's file server it came from.
    pub origin: String,
    /// What the component says about itself.
    pub info: ModuleInfo,
}

/// A module and what the sandbox has to know of it.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: ModuleName,
    pub(crate) module: Arc<Module>,
    /// What executors know it by: its content under its name, for what they say of a module has its name in it, with what they link.
    pub(crate) key: Sha256Hex,
    pub(crate) grants: ModuleGrants,
    pub(crate) standard: bool,
    /// The keys that signed it, of those that the policy names.
    pub(crate) signers: Vec<KeyId>,
    /// The newest time that one of these signed, in seconds since 1970.
    pub(crate) signed_time: Option<u64>,
    /// As it came with the component.
    pub(crate) signature: Option<Bytes>,
    /// What its functions were like so far.
    pub(crate) history: Arc<History>,
}

impl Entry {
    /// What the policy decides on.
    pub(crate) fn subject(&self) -> Subject<'_> {
        let signers = &self.signers;
        Subject { name: &self.name, standard: self.standard, sha256: self.module.sha256, signers }
    }
}

#[cfg(test)]
impl Entry {
    /// One that is on no disk.
    pub(crate) fn for_tests(name: ModuleName, module: Module, grants: ModuleGrants) -> Self {
        Self {
            key: executor_key(&name, module.sha256, &grants),
            name,
            history: Arc::new(History::new(module.info.functions.len())),
            module: Arc::new(module),
            grants,
            standard: false,
            signers: Vec::new(),
            signed_time: None,
            signature: None,
        }
    }
}

/// What executors know a module by: they link what it was granted when they load it.
fn executor_key(name: &ModuleName, sha256: Sha256Hex, grants: &ModuleGrants) -> Sha256Hex {
    let mut text = [sha256.bytes(), name.as_str().as_bytes()].concat();
    for interface in grants.interfaces() {
        text.push(0);
        text.extend_from_slice(interface.as_bytes());
    }
    cache::sha256(&text)
}

pub(crate) type Table = BTreeMap<ModuleName, Arc<Entry>>;

/// A module on the disk that cannot be used.
pub(crate) struct LeftOut {
    pub(crate) why: String,
    /// None for one of the package's.
    pub(crate) origin: Option<String>,
    /// What was decided, if it came that far.
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
    /// What the package's modules are signed with.
    standard_key: StandardKey,
    standard_dir: PathBuf,
    folder: Folder,
    table: ArcSwap<Table>,
    /// What was decided on this host; or why that cannot be read, and then nothing is installed.
    decisions: ArcSwap<Result<Decisions, String>>,
    /// Names of the package's modules, usable or not: what is broken must not be taken over either.
    standard: Mutex<BTreeSet<ModuleName>>,
    /// Why a module on the disk is not in the table, for who calls it.
    left_out: Mutex<BTreeMap<ModuleName, LeftOut>>,
    /// Why a module or an update of one was not taken, for reports.
    refused: Mutex<BTreeMap<ModuleName, LeftOut>>,
    /// What waits for the owner.
    held: Mutex<BTreeMap<ModuleName, Arc<Held>>>,
    /// What there is to go back to.
    previous: Mutex<BTreeMap<ModuleName, Provenance>>,
    /// Compilers at a time.
    compiling: Lanes,
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
            left_out: Mutex::default(),
            refused: Mutex::default(),
            held: Mutex::default(),
            previous: Mutex::default(),
            compiling: Lanes::new(SMALL_COMPILERS),
        }
    }

    /// The owner's word as it is now.
    pub(crate) fn policy(&self) -> Arc<Policy> {
        self.policy.load_full()
    }

    /// From now on this is the owner's word; what was decided by the one before stays as it is.
    pub(crate) fn replace_policy(&self, policy: Policy) {
        self.policy.store(Arc::new(policy));
    }

    /// Every name under which there is a module, usable or not.
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

    /// The folder of installed modules.
    pub(crate) fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Why there is no such module, where the disk has one.
    pub(crate) fn left_out(&self, name: &str) -> Option<String> {
        let left_out = self.all_left_out().get(name).map(|left_out| format!("It was left out: {}", left_out.why));
        left_out.or_else(|| self.held(name).map(|held| format!("It waits for the owner of this host: {held}")))
    }

    /// All that were left out.
    pub(crate) fn all_left_out(&self) -> MutexGuard<'_, BTreeMap<ModuleName, LeftOut>> {
        locked(&self.left_out)
    }

    /// Modules and updates that were not taken and do not wait for the owner's word.
    pub(crate) fn refused(&self) -> MutexGuard<'_, BTreeMap<ModuleName, LeftOut>> {
        locked(&self.refused)
    }

    /// What waits for the owner's word.
    pub(crate) fn all_held(&self) -> MutexGuard<'_, BTreeMap<ModuleName, Arc<Held>>> {
        locked(&self.held)
    }

    pub(crate) fn held(&self, name: &str) -> Option<Arc<Held>> {
        self.all_held().get(name).map(Arc::clone)
    }

    /// What a rollback would go back to.
    pub(crate) fn previous(&self, name: &str) -> Option<Provenance> {
        locked(&self.previous).get(name).cloned()
    }

    /// What was decided about a module. An error where that cannot be read: then nothing new is let in.
    pub(crate) fn decided(&self, name: &ModuleName) -> Result<Decided, String> {
        match &**self.decisions.load() {
            Ok(decisions) => Ok(decisions.of(name)),
            Err(why) => Err(why.clone()),
        }
    }

    /// Whether what was decided can be read.
    pub(crate) fn decided_at_all(&self) -> Result<(), String> {
        self.decisions.load().as_ref().as_ref().map(drop).map_err(String::clone)
    }

    /// Takes up what is decided now; says about which modules that is something else than before.
    pub(crate) fn take_up(&self, decisions: Result<Decisions, String>) -> Vec<ModuleName> {
        let before = self.decisions.swap(Arc::new(decisions));
        let now = self.decisions.load();
        let none = Decisions::default();
        let (before, now) = (before.as_ref().as_ref().unwrap_or(&none), now.as_ref().as_ref().unwrap_or(&none));
        before.changed(now)
    }

    /// The same of one module; says whether something else is decided about it than before.
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

    /// Writes down that a module was not taken, for as many as there may be modules.
    pub(crate) fn refuse(&self, name: &ModuleName, error: &InstallError, origin: &str) {
        let mut refused = self.refused();
        if refused.len() < MAX_MODULES || refused.contains_key(name) {
            refused.insert(name.clone(), LeftOut::new(error, Some(origin.to_owned())));
        }
    }

    /// The modules that were installed, usable or not, and where each is from; not those put into the folder by hand.
    pub(crate) fn installed(&self) -> BTreeMap<ModuleName, String> {
        let left_out = self.all_left_out();
        let left_out = left_out.iter().filter_map(|(name, left_out)| Some((name.clone(), left_out.origin.clone()?)));
        let mut installed: BTreeMap<ModuleName, String> = left_out.collect();
        // What is held only has a place too, and goes when the master does not have it any more.
        installed.extend(self.all_held().iter().map(|(name, held)| (name.clone(), held.module.origin.clone())));
        let table = self.table.load();
        let usable = table.values().filter(|entry| !entry.standard);
        installed.extend(usable.map(|entry| (entry.name.clone(), entry.module.origin.clone())));
        installed.retain(|_, origin| origin != LOCAL);
        installed
    }

    /// Whether the name is free for modules that are not the package's.
    pub(crate) fn may_be_installed(&self, name: &ModuleName) -> Result<(), InstallError> {
        let standard = locked(&self.standard).contains(name);
        if standard && !self.policy().replace_standard.contains(name) {
            return Err(InstallError::Standard(name.clone()));
        }
        Ok(())
    }

    /// Whether one more module fits: the next start would not read it.
    pub(crate) fn has_room_for(&self, name: &ModuleName) -> Result<(), InstallError> {
        let installed = self.installed();
        if installed.len() >= MAX_MODULES && !installed.contains_key(name) {
            return Err(InstallError::failed(name, format!("there are {MAX_MODULES} modules already")));
        }
        Ok(())
    }

    /// Nothing of it waits, and there is nothing to go back to.
    pub(crate) fn forget(&self, name: &ModuleName) {
        self.all_held().remove(name);
        locked(&self.previous).remove(name);
    }

    /// From now on no job calls a module of this name. What lies on the disk and why it is left out stays.
    pub(crate) fn take_out(&self, name: &ModuleName) {
        self.table.rcu(|table| {
            let mut table = Table::clone(table);
            table.remove(name);
            table
        });
    }

    /// From now on there is no module of this name.
    pub(crate) fn switch_out(&self, name: &ModuleName) {
        self.all_left_out().remove(name);
        self.refused().remove(name);
        self.forget(name);
        self.take_out(name);
    }

    /// From now on jobs call this one.
    pub(crate) fn switch_in(&self, entry: &Arc<Entry>) {
        self.all_left_out().remove(&entry.name);
        self.refused().remove(&entry.name);
        self.table.rcu(|table| {
            let mut table = Table::clone(table);
            table.insert(entry.name.clone(), Arc::clone(entry));
            table
        });
    }

    /// Drops compiled code that nothing uses.
    pub(crate) async fn prune(&self) {
        // What may be in use the next moment is kept too: nobody waits for a compiler when a bad version has to go.
        let mut in_use: HashSet<Sha256Hex> = self.table.load().values().map(|entry| entry.module.sha256).collect();
        in_use.extend(self.all_held().values().map(|held| held.module.sha256));
        in_use.extend(locked(&self.previous).values().filter_map(Provenance::sha256));
        let cache = Arc::clone(&self.cache);
        if let Err(error) = off_thread(move || cache.prune(&in_use)).await {
            tracing::warn!("old compiled code could not be removed: {error}");
        }
    }
}

/// Hashing and writing megabytes is not for threads that have connections to serve.
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
