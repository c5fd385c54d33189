//! The modules there are: read at the start, installed later, switched in whole.

mod files;
mod outcome;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use brine_component::ModuleInfo;
use brine_sandbox_wire::Sha256Hex;
use bytes::Bytes;

use crate::ModuleName;
use crate::cache::{self, Cache, CacheError};
use crate::compile::{CompileError, Compiler};
use crate::policy::{ModuleGrants, Policy, Refused, Subject};
use crate::signature::{self, KeyId, SignatureError};
use files::{LOCAL, MAX_MODULES, Provenance, component_files, origin_of, read_signature, remove_file, signature_path};
pub use outcome::{InstallError, Installed, RemoveError};

/// The origin of the package's modules.
const STANDARD: &str = "standard";
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
    /// What executors know it by: its content under its name, for what they say of a module has its name in it.
    pub(crate) key: Sha256Hex,
    pub(crate) grants: ModuleGrants,
    pub(crate) standard: bool,
    /// The keys that signed it, of those that the policy names.
    pub(crate) signers: Vec<KeyId>,
    /// As it came with the component.
    pub(crate) signature: Option<Bytes>,
    /// Where the component is on the disk.
    source: PathBuf,
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
            key: executor_key(&name, module.sha256),
            name,
            module: Arc::new(module),
            grants,
            standard: false,
            signers: Vec::new(),
            signature: None,
            source: PathBuf::new(),
        }
    }
}

/// What executors know a module by.
fn executor_key(name: &ModuleName, sha256: Sha256Hex) -> Sha256Hex {
    cache::sha256(&[sha256.bytes(), name.as_str().as_bytes()].concat())
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
    policy: Policy,
    standard_dir: PathBuf,
    modules_dir: PathBuf,
    table: ArcSwap<Table>,
    /// Names of the package's modules, usable or not: what is broken must not be taken over either.
    standard: Mutex<BTreeSet<ModuleName>>,
    /// Why a module on the disk is not in the table, for who calls it.
    left_out: Mutex<BTreeMap<ModuleName, LeftOut>>,
    /// Why an update of a module that is there was not taken, for reports.
    held: Mutex<BTreeMap<ModuleName, LeftOut>>,
    /// One compiler at a time.
    compiling: tokio::sync::Mutex<()>,
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
            compiler,
            cache: Arc::new(cache),
            policy,
            standard_dir,
            modules_dir,
            table: ArcSwap::default(),
            standard: Mutex::default(),
            left_out: Mutex::default(),
            held: Mutex::default(),
            compiling: tokio::sync::Mutex::default(),
        }
    }

    pub(crate) fn policy(&self) -> &Policy {
        &self.policy
    }

    pub(crate) fn table(&self) -> arc_swap::Guard<Arc<Table>> {
        self.table.load()
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<Entry>> {
        self.table.load().get(name).map(Arc::clone)
    }

    /// Why there is no such module, where the disk has one.
    pub(crate) fn left_out(&self, name: &str) -> Option<String> {
        self.left_out_table().get(name).map(|left_out| left_out.why.clone())
    }

    /// All that were left out.
    pub(crate) fn all_left_out(&self) -> MutexGuard<'_, BTreeMap<ModuleName, LeftOut>> {
        self.left_out_table()
    }

    /// Updates that were not taken.
    pub(crate) fn held(&self) -> MutexGuard<'_, BTreeMap<ModuleName, LeftOut>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes down that a module was not taken, for as many as there may be modules. Gives the error back.
    pub(crate) fn hold(&self, name: &ModuleName, error: InstallError, origin: &str) -> InstallError {
        let mut held = self.held();
        if held.len() < MAX_MODULES || held.contains_key(name) {
            held.insert(name.clone(), LeftOut::new(&error, Some(origin.to_owned())));
        }
        error
    }

    fn left_out_table(&self) -> MutexGuard<'_, BTreeMap<ModuleName, LeftOut>> {
        self.left_out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The modules that were installed, usable or not, and where each is from; not those put into the folder by hand.
    pub(crate) fn installed(&self) -> BTreeMap<ModuleName, String> {
        let left_out = self.left_out_table();
        let left_out = left_out.iter().filter_map(|(name, left_out)| Some((name.clone(), left_out.origin.clone()?)));
        let mut installed: BTreeMap<ModuleName, String> = left_out.collect();
        let table = self.table.load();
        let usable = table.values().filter(|entry| !entry.standard);
        installed.extend(usable.map(|entry| (entry.name.clone(), entry.module.origin.clone())));
        installed.retain(|_, origin| origin != LOCAL);
        installed
    }

    /// The package's module of this name, where there is one.
    pub(crate) async fn standard(&self, name: &ModuleName) -> Result<Option<Entry>, InstallError> {
        let is_standard = self.standard.lock().unwrap_or_else(PoisonError::into_inner).contains(name);
        if !is_standard {
            return Ok(None);
        }
        let path = self.standard_dir.join(format!("{name}.wasm"));
        self.read_one(name, &path, STANDARD, true).await.map(Some)
    }

    /// Reads the modules of the package, then those installed. What cannot be used is logged and left out.
    pub(crate) async fn read_folders(&self) -> io::Result<()> {
        self.cache.sweep()?;
        for (standard, dir) in [(true, &self.standard_dir), (false, &self.modules_dir)] {
            for (name, path) in component_files(dir)? {
                let origin = if standard { STANDARD.to_owned() } else { origin_of(&path) };
                if standard {
                    self.standard.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone());
                }
                let read = self.read_one(&name, &path, &origin, standard).await;
                match read {
                    Ok(entry) => self.switch_in(&Arc::new(entry)),
                    Err(error) => {
                        tracing::error!(path = %path.display(), "{error}");
                        let left_out = LeftOut::new(&error, (!standard).then_some(origin));
                        self.left_out_table().insert(name, left_out);
                    }
                }
            }
        }
        self.prune().await;
        Ok(())
    }

    async fn read_one(
        &self,
        name: &ModuleName,
        path: &Path,
        origin: &str,
        standard: bool,
    ) -> Result<Entry, InstallError> {
        if !standard {
            self.may_be_installed(name)?;
        }
        let wasm = self.read_component(path).map_err(|error| InstallError::failed(name, error))?;
        let signature = read_signature(path).map_err(|error| InstallError::failed(name, error))?;
        self.prepare(name, wasm, signature, origin, standard).await
    }

    fn read_component(&self, path: &Path) -> io::Result<Bytes> {
        let mut wasm = Vec::new();
        File::open(path)?.take(self.compiler.limits.module + 1).read_to_end(&mut wasm)?;
        Ok(wasm.into())
    }

    /// Whether the name is free for modules that are not the package's.
    pub(crate) fn may_be_installed(&self, name: &ModuleName) -> Result<(), InstallError> {
        let standard = self.standard.lock().unwrap_or_else(PoisonError::into_inner).contains(name);
        if standard && !self.policy.replace_standard.contains(name) {
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

    /// Everything between bytes and a module that could be switched in: compiled, described, granted.
    pub(crate) async fn prepare(
        &self,
        name: &ModuleName,
        wasm: Bytes,
        signature: Option<Bytes>,
        origin: &str,
        standard: bool,
    ) -> Result<Entry, InstallError> {
        let size = wasm.len() as u64;
        let limit = self.compiler.limits.module;
        if size > limit {
            return Err(InstallError::TooLarge { name: name.clone(), size, limit });
        }
        let sha256 = hash(&wasm).await;
        let signers = self.signers(name, &wasm, signature.as_ref()).await?;
        let subject = Subject { name, standard, sha256, signers: &signers };
        // What is not signed as it has to be is not even compiled.
        self.policy.decide::<&str>(&subject, &[], &[])?;
        let info = self.compiled(name, sha256, &wasm).await?.info;
        let functions: Vec<&str> = info.functions.iter().map(|function| function.name.as_str()).collect();
        let grants = self.policy.decide(&subject, &info.imports, &functions)?;
        let source = if standard { &self.standard_dir } else { &self.modules_dir }.join(format!("{name}.wasm"));
        let module = Module { name: name.to_string(), sha256, size, origin: origin.to_owned(), info };
        let key = executor_key(name, sha256);
        Ok(Entry { name: name.clone(), module: Arc::new(module), key, grants, standard, signers, signature, source })
    }

    async fn signers(
        &self,
        name: &ModuleName,
        wasm: &Bytes,
        signature: Option<&Bytes>,
    ) -> Result<Vec<KeyId>, SignatureError> {
        let (Some(signature), false) = (signature, self.policy.keys.is_empty()) else { return Ok(Vec::new()) };
        let (name, wasm, signature, keys) = (name.clone(), wasm.clone(), signature.clone(), self.policy.keys.clone());
        off_thread(move || signature::signers(&name, &wasm, Some(&signature), &keys)).await
    }

    /// From the cache, or else from the compiler.
    async fn compiled(
        &self,
        name: &ModuleName,
        sha256: Sha256Hex,
        wasm: &Bytes,
    ) -> Result<cache::Compiled, InstallError> {
        if let Some(compiled) = self.cached(name, sha256).await {
            return Ok(compiled);
        }
        if let Some(reason) = self.cache.refusal(sha256, &self.compiler.limits_text()) {
            return Err(InstallError::Refused { name: name.clone(), reason, before: true });
        }
        let failed = |error: &dyn std::fmt::Display| InstallError::failed(name, error);
        let _one_at_a_time = self.compiling.lock().await;
        let stage = self.cache.stage().map_err(|error| failed(&error))?;
        let component = stage.component(wasm.clone()).await.map_err(|error| failed(&error))?;
        let started = std::time::Instant::now();
        match self.compiler.compile(component, &stage.code(), &stage.info()).await {
            Ok(()) => {
                tracing::debug!(module = %name, %sha256, ms = started.elapsed().as_millis() as u64, "compiled");
                let cache = Arc::clone(&self.cache);
                let taken = off_thread(move || {
                    cache.put(sha256, &stage)?;
                    cache.get(sha256)
                });
                taken.await.map_err(|error| failed(&error))
            }
            Err(CompileError::Refused(reason)) => {
                if let Err(error) = self.cache.refuse(sha256, &self.compiler.limits_text(), &reason) {
                    tracing::warn!(module = %name, "its refusal could not be written down: {error}");
                }
                Err(InstallError::Refused { name: name.clone(), reason, before: false })
            }
            Err(CompileError::Failed(reason)) => Err(failed(&reason)),
        }
    }

    async fn cached(&self, name: &ModuleName, sha256: Sha256Hex) -> Option<cache::Compiled> {
        let cache = Arc::clone(&self.cache);
        match off_thread(move || cache.get(sha256)).await {
            Ok(compiled) => Some(compiled),
            Err(CacheError::Missing) => None,
            Err(error) => {
                tracing::error!(module = %name, %sha256, "{error}; it is compiled again");
                // What could not be read now, for want of descriptors say, is good still.
                if matches!(error, CacheError::Tampered(_)) {
                    self.cache.discard(sha256);
                }
                None
            }
        }
    }

    /// The checked, open file of a module's compiled code; none where it has to be compiled again.
    pub(crate) async fn cached_code(&self, entry: &Entry) -> Option<File> {
        self.cached(&entry.name, entry.module.sha256).await.map(|compiled| compiled.code)
    }

    /// The same, compiled again from the component if need be.
    pub(crate) async fn code(&self, entry: &Entry) -> Result<File, String> {
        if let Some(code) = self.cached_code(entry).await {
            return Ok(code);
        }
        let wasm = self
            .read_component(&entry.source)
            .map_err(|error| format!("module {} cannot be read: {error}", entry.name))?;
        if hash(&wasm).await != entry.module.sha256 {
            return Err(format!("module {} changed on the disk", entry.name));
        }
        let compiled = self.compiled(&entry.name, entry.module.sha256, &wasm).await;
        compiled.map(|compiled| compiled.code).map_err(|error| error.to_string())
    }

    /// Writes an installed component and where it is from to the disk.
    pub(crate) async fn persist(&self, entry: &Entry, wasm: &Bytes) -> io::Result<()> {
        let provenance = serde_json::to_vec(&Provenance { origin: entry.module.origin.clone() })?;
        let (source, wasm, signature) = (entry.source.clone(), wasm.clone(), entry.signature.clone());
        off_thread(move || {
            match signature {
                Some(signature) => cache::write_whole(&signature_path(&source), &signature)?,
                None => remove_file(&signature_path(&source))?,
            }
            cache::write_whole(&source.with_extension("json"), &provenance)?;
            cache::write_whole(&source, &wasm)
        })
        .await
    }

    /// Removes an installed component from the disk.
    pub(crate) async fn erase(&self, name: &ModuleName) -> io::Result<()> {
        let dir = self.modules_dir.clone();
        let name = name.to_string();
        off_thread(move || {
            // The component first: what says where it is from means nothing without it.
            for extension in ["wasm", "wasm.minisig", "json"] {
                remove_file(&dir.join(format!("{name}.{extension}")))?;
            }
            File::open(dir)?.sync_all()
        })
        .await
    }

    /// From now on there is no module of this name.
    pub(crate) fn switch_out(&self, name: &ModuleName) {
        self.left_out_table().remove(name);
        self.held().remove(name);
        self.table.rcu(|table| {
            let mut table = Table::clone(table);
            table.remove(name);
            table
        });
    }

    /// From now on jobs call this one.
    pub(crate) fn switch_in(&self, entry: &Arc<Entry>) {
        self.left_out_table().remove(&entry.name);
        self.held().remove(&entry.name);
        self.table.rcu(|table| {
            let mut table = Table::clone(table);
            table.insert(entry.name.clone(), Arc::clone(entry));
            table
        });
    }

    /// Drops compiled code that nothing uses.
    pub(crate) async fn prune(&self) {
        let in_use: HashSet<Sha256Hex> = self.table.load().values().map(|entry| entry.module.sha256).collect();
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
