//! Modules from the master's file server: `salt://_modules/NAME.wasm`, fetched by hash, verified and switched in whole.
//!
//! At start, when `saltutil.sync_modules` asks for it, and when a job names a module that is not there. What fails is
//! said, and the last good module stays.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use brine_protocol::ids::{SafePath, Saltenv};
use brine_sandbox::{Installed, MAX_SIGNATURE, ModuleName};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tracing::{debug, info, warn};

use crate::config::ModuleOpts;
use crate::fileclient::{FileClient, FileError, Sink};
use crate::runtime::Runtime;

/// The folder on the file server.
const FOLDER: &str = "_modules";
const SUFFIX: &str = ".wasm";
/// Beside a module, where somebody signed it with minisign.
const SIGNATURE_SUFFIX: &str = ".wasm.minisig";
/// More modules than Salt has.
const MAX_MODULES: usize = 2048;
/// A module that the master does not have is not asked for again for so long: a loop of jobs must not become a loop of
/// requests.
const ABSENT_FOR: Duration = Duration::from_secs(30);
const MAX_ABSENT: usize = 1024;
/// A job that names an unknown module waits for it at most so long.
const ENSURE_TIMEOUT: Duration = Duration::from_secs(50);

/// Fetches that are under way or wait for the one that is. They go on without the job that asked, so that jobs alone do
/// not bound them where the master is slow.
const MAX_FETCHES: usize = 32;
const TOO_MANY: &str = "many fetches of modules wait for the master already; try again later";

/// Fetches modules.
pub struct Modules {
    client: Option<FileClient>,
    runtime: OnceLock<Weak<dyn Runtime>>,
    saltenv: Saltenv,
    autoload: bool,
    clean: bool,
    /// One fetch at a time: who comes while one is under way waits for it and looks again.
    fetching: tokio::sync::Mutex<()>,
    places: Arc<Semaphore>,
    absent: Mutex<HashMap<String, (Instant, Option<String>)>>,
}

impl Modules {
    /// With a file server, or without one (`salt-call --local`).
    pub fn new(client: Option<FileClient>, opts: &ModuleOpts) -> Arc<Self> {
        Arc::new(Self {
            client,
            runtime: OnceLock::new(),
            saltenv: opts.saltenv.clone(),
            autoload: opts.autoload,
            clean: opts.clean,
            fetching: tokio::sync::Mutex::new(()),
            places: Arc::new(Semaphore::new(MAX_FETCHES)),
            absent: Mutex::new(HashMap::new()),
        })
    }

    /// Where modules go. Called once, when the sandbox is there.
    pub fn attach(&self, runtime: &Arc<dyn Runtime>) {
        let _ = self.runtime.set(Arc::downgrade(runtime));
    }

    fn runtime(&self) -> Result<Arc<dyn Runtime>, String> {
        self.runtime.get().and_then(Weak::upgrade).ok_or_else(|| "the sandbox is not running".to_owned())
    }

    /// Makes sure that a module is there if the master has it. The error says why it is not, in a sentence that can
    /// follow "... is not available."; a module that the master does not have is no error here.
    pub async fn ensure(self: &Arc<Self>, module: &str) -> Result<(), String> {
        let runtime = self.runtime()?;
        if runtime.describe(module).is_some() || !self.autoload || self.client.is_none() {
            return Ok(());
        }
        let Ok(name) = module.parse::<ModuleName>() else { return Ok(()) };
        if let Some(why) = self.remembered(module) {
            return why.map_or(Ok(()), Err);
        }
        // The job waits for a place; it is its own bound.
        let place = tokio::time::timeout(ENSURE_TIMEOUT, Arc::clone(&self.places).acquire_owned()).await;
        let Ok(Ok(place)) = place else { return Err(format!("It was not looked for at the master: {TOO_MANY}.")) };
        let this = Arc::clone(self);
        // In a task of its own: a job that is ended does not leave a fetch half done.
        let fetch = tokio::spawn(async move {
            let _place = place;
            this.fetch_missing(&name).await
        });
        match tokio::time::timeout(ENSURE_TIMEOUT, fetch).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err("Fetching it from the master failed.".to_owned()),
            Err(_) => Err(format!("Fetching it from the master takes longer than {ENSURE_TIMEOUT:?}; try again.")),
        }
    }

    async fn fetch_missing(&self, name: &ModuleName) -> Result<(), String> {
        let _one_at_a_time = self.fetching.lock().await;
        let runtime = self.runtime()?;
        if runtime.describe(name.as_str()).is_some() {
            return Ok(());
        }
        if let Some(why) = self.remembered(name.as_str()) {
            return why.map_or(Ok(()), Err);
        }
        let result = match self.fetch(&*runtime, name, &self.saltenv).await {
            Ok(Some(_)) => return Ok(()),
            Ok(None) => {
                debug!("the master has no module {name} in {}", self.saltenv);
                Ok(())
            }
            Err(e) => {
                warn!("the module {name} could not be had: {e}");
                Err(format!("The master's module {name} could not be had: {e}."))
            }
        };
        let mut absent = self.absent();
        if absent.len() >= MAX_ABSENT {
            absent.retain(|_, (at, _)| at.elapsed() < ABSENT_FOR);
        }
        if absent.len() < MAX_ABSENT {
            absent.insert(name.to_string(), (Instant::now(), result.clone().err()));
        }
        result
    }

    /// What is remembered of a module that could not be had: the reason, or none where the master just does not have it.
    fn remembered(&self, module: &str) -> Option<Option<String>> {
        self.absent().get(module).filter(|(at, _)| at.elapsed() < ABSENT_FOR).map(|(_, why)| why.clone())
    }

    fn absent(&self) -> std::sync::MutexGuard<'_, HashMap<String, (Instant, Option<String>)>> {
        self.absent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fetches what changed in these environments (none: the configured one), and removes what came from them and is not
    /// there any more. Returns the names that changed, as `modules.NAME`; the error names each module that was refused.
    pub async fn sync(self: &Arc<Self>, saltenvs: Vec<Saltenv>) -> Result<Vec<String>, String> {
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else { return Err(TOO_MANY.to_owned()) };
        let this = Arc::clone(self);
        let sync = tokio::spawn(async move {
            let _place = place;
            this.sync_all(saltenvs).await
        });
        sync.await.unwrap_or_else(|_| Err("fetching modules failed".to_owned()))
    }

    async fn sync_all(&self, mut saltenvs: Vec<Saltenv>) -> Result<Vec<String>, String> {
        let Some(client) = &self.client else {
            return Err("there is no master to fetch modules from (salt-call --local)".to_owned());
        };
        let _one_at_a_time = self.fetching.lock().await;
        let runtime = self.runtime()?;
        if saltenvs.is_empty() {
            saltenvs.push(self.saltenv.clone());
        }
        // First all lists, whole: with one that fails nothing is changed. Where two environments have a module, the later
        // one's counts.
        let mut wanted: BTreeMap<ModuleName, &Saltenv> = BTreeMap::new();
        let mut empty: Vec<&Saltenv> = Vec::new();
        for saltenv in &saltenvs {
            let files = client.list(saltenv, FOLDER).await.map_err(|e| e.to_string())?;
            let names: Vec<ModuleName> = files.iter().filter_map(module_name).collect();
            if names.len() > MAX_MODULES {
                return Err(format!("{saltenv} has {} modules, more than the {MAX_MODULES} there may be", names.len()));
            }
            if names.is_empty() {
                empty.push(saltenv);
            }
            wanted.extend(names.into_iter().map(|name| (name, saltenv)));
        }
        let (mut changed, mut refused) = (Vec::new(), Vec::new());
        for (name, saltenv) in &wanted {
            match self.fetch(&*runtime, name, saltenv).await {
                Ok(Some(Installed::New | Installed::Updated)) => changed.push(format!("modules.{name}")),
                Ok(Some(Installed::Unchanged) | None) => {}
                Err(e) => {
                    warn!("the module {name} of {saltenv} is not taken: {e}");
                    refused.push(format!("{name}: {e}"));
                }
            }
        }
        for (name, origin) in self.gone(&*runtime, &saltenvs, &wanted) {
            if let Some(saltenv) = empty.iter().find(|saltenv| saltenv.as_str() == origin)
                && !client.has_anything(saltenv).await.map_err(|e| e.to_string())?
            {
                // Rather a module too many than none because a disk of the master was not mounted.
                warn!("the master has nothing at all in {saltenv}; the module {name} that came from there stays");
                continue;
            }
            match runtime.remove(&name).await {
                Ok(false) => {}
                Ok(true) => {
                    info!("module {name} of {origin} is removed: the master does not have it any more");
                    changed.push(format!("modules.{name}"));
                }
                Err(e) => {
                    warn!("{e}");
                    refused.push(e);
                }
            }
        }
        self.absent().clear();
        changed.sort();
        changed.dedup();
        if !changed.is_empty() {
            info!("modules that changed: {}", changed.join(", "));
        }
        if refused.is_empty() {
            return Ok(changed);
        }
        let taken = if changed.is_empty() { String::new() } else { format!(" (taken: {})", changed.join(", ")) };
        Err(format!("modules that were not taken, the last good ones stay: {}{taken}", refused.join("; ")))
    }

    /// The modules that came from these environments and are in none of them now, with the environment.
    fn gone(
        &self,
        runtime: &dyn Runtime,
        saltenvs: &[Saltenv],
        wanted: &BTreeMap<ModuleName, &Saltenv>,
    ) -> Vec<(String, String)> {
        let mut gone = runtime.installed();
        gone.retain(|(name, origin)| {
            self.clean
                && !wanted.contains_key(name.as_str())
                && saltenvs.iter().any(|saltenv| saltenv.as_str() == origin)
        });
        gone
    }

    /// Fetches one module and its signature if they differ from what there is; none where the master does not have it.
    async fn fetch(
        &self,
        runtime: &dyn Runtime,
        name: &ModuleName,
        saltenv: &Saltenv,
    ) -> Result<Option<Installed>, String> {
        let Some(client) = &self.client else { return Ok(None) };
        let (path, beside) = (file(name, SUFFIX)?, file(name, SIGNATURE_SUFFIX)?);
        let Some(hash) = client.hash(&path, saltenv).await.map_err(|e| e.to_string())? else { return Ok(None) };
        let signed = client.hash(&beside, saltenv).await.map_err(|e| e.to_string())?;
        if let Some(have) = runtime.describe(name.as_str())
            && hash.is_sha256(have.sha256.bytes())
        {
            let same = match (&signed, runtime.signature(name.as_str())) {
                (None, None) => true,
                (Some(signed), Some(have)) => signed.matches(&have),
                _ => false,
            };
            if same {
                return Ok(Some(Installed::Unchanged));
            }
        }
        let wasm = match client.fetch(&path, saltenv, &hash).await {
            Ok(wasm) => wasm,
            Err(FileError::Missing(_)) => return Ok(None),
            Err(e) => return Err(e.to_string()),
        };
        let signature = match &signed {
            None => None,
            Some(signed) => {
                let mut signature = Signature(Vec::new());
                match client.fetch_into(&beside, saltenv, signed, &mut signature).await {
                    Ok(_) => Some(signature.0),
                    Err(FileError::Missing(_)) => None,
                    Err(e) => return Err(format!("its signature: {e}")),
                }
            }
        };
        let installed = runtime.install(name.as_str(), &wasm, signature.as_deref(), saltenv.as_str()).await?;
        info!("module {name} of {saltenv}: {installed:?}, {} bytes", wasm.len());
        Ok(Some(installed))
    }
}

/// A module's file, or one beside it.
fn file(name: &ModuleName, suffix: &str) -> Result<SafePath, String> {
    format!("{FOLDER}/{name}{suffix}").parse().map_err(|e| format!("{e}"))
}

/// A signature on its way: a few hundred bytes, and never many more.
struct Signature(Vec<u8>);

impl Sink for Signature {
    fn restart(&mut self) -> std::io::Result<()> {
        self.0.clear();
        Ok(())
    }

    fn write(&mut self, data: &[u8]) -> std::io::Result<()> {
        if self.0.len() + data.len() > MAX_SIGNATURE {
            return Err(std::io::Error::other(format!("it is larger than the {MAX_SIGNATURE} bytes of a signature")));
        }
        self.0.extend_from_slice(data);
        Ok(())
    }
}

/// `_modules/hello.wasm` → `hello`; files in folders below and others are not modules.
fn module_name(path: &SafePath) -> Option<ModuleName> {
    let stem = path.as_str().strip_prefix(FOLDER)?.strip_prefix('/')?.strip_suffix(SUFFIX)?;
    stem.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_in_the_folder_are_modules() {
        for (path, name) in [
            ("_modules/hello.wasm", Some("hello")),
            ("_modules/hello.py", None),
            ("_modules/sub/hello.wasm", None),
            ("_modules/.wasm", None),
            ("_modules/UPPER.wasm", None),
            ("_modulesx/hello.wasm", None),
            ("hello.wasm", None),
        ] {
            let found = module_name(&path.parse().unwrap());
            assert_eq!(found.as_ref().map(ModuleName::as_str), name, "{path}");
        }
    }
}
