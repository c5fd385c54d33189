//! A sync: fetches the modules that the master has in its environments and removes those that it no longer has.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

use brine_protocol::ids::{SafePath, Saltenv};
use brine_sandbox::{Installed, ModuleName, Removed, Sandbox};
use tracing::{info, warn};

use super::fetch::{SIGNATURE_SUFFIX, is_installed, module_path};
use super::{FOLDER, Modules, SUFFIX, TOO_MANY};
use crate::fileclient::{FileClient, FileHash};
use crate::joined::joined;

/// Upper bound on the modules of one environment: more than Salt has.
const MAX_MODULES: usize = 2048;
/// A sync that has taken this long begins no further fetch, so that another sync can run. It keeps what it fetched.
const MAX_TIME: Duration = Duration::from_secs(3600);

impl Modules {
    /// Fetches the modules that changed in these environments, or in the configured one if none is named, and removes the modules that
    /// are no longer there. Returns the names that changed, as `modules.NAME`.
    ///
    /// # Errors
    /// A sentence that names each module that was refused.
    pub async fn sync(self: &Arc<Self>, saltenvs: Vec<Saltenv>) -> Result<Vec<String>, String> {
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else { return Err(TOO_MANY.to_owned()) };
        let this = Arc::clone(self);
        let sync = tokio::spawn(async move {
            let _place = place;
            this.sync_all(saltenvs).await
        });
        joined(sync).await.unwrap_or_else(|| Err("fetching modules failed".to_owned()))
    }

    async fn sync_all(&self, mut saltenvs: Vec<Saltenv>) -> Result<Vec<String>, String> {
        // Without a master there is nothing to fetch, which is no failure: formulas sync before they use what they bring.
        let Some(client) = &self.client else { return Ok(Vec::new()) };
        let _one_at_a_time = self.syncing.lock().await;
        let sandbox = self.sandbox()?;
        let began = Instant::now();
        if saltenvs.is_empty() {
            saltenvs.push(self.saltenv.clone());
        }
        // All lists come first: if one fails, nothing is changed.
        let Listed { wanted, empty } = list_modules(client, &saltenvs).await?;
        let (mut changed, mut refused) = (Vec::new(), Vec::new());
        // A held module was fetched and waits for the owner. A module that could not be fetched makes the sync fail.
        let mut failed = false;
        sandbox.settle_those(|name| wanted.contains_key(name)).await;
        let unchanged = find_unchanged(client, &sandbox, &wanted).await;
        for (name, saltenv) in wanted.iter().filter(|(name, _)| !unchanged.contains(*name)) {
            if began.elapsed() > MAX_TIME {
                failed = true;
                refused.push(format!(
                    "{name} and later ones: the sync takes longer than {MAX_TIME:?}; sync again to go on"
                ));
                break;
            }
            let held_before = Self::held_version(&sandbox, name);
            let fetched = self.fetch(&sandbox, name, saltenv).await;
            self.notify_if_held(&sandbox, name, held_before).await;
            match fetched {
                Ok(Some(Installed::New | Installed::Updated)) => changed.push(format!("modules.{name}")),
                Ok(Some(Installed::Unchanged) | None) => {}
                Err(e) => {
                    if self.lines.may() {
                        warn!("the module {name} of {saltenv} is not taken: {e}");
                    }
                    failed |= sandbox.held(name.as_str()).is_none();
                    refused.push(format!("{name}: {e}"));
                }
            }
        }
        for (name, origin) in self.find_removed(&sandbox, &saltenvs, &wanted) {
            if let Some(saltenv) = empty.iter().find(|saltenv| saltenv.as_str() == origin)
                && !client.has_anything(saltenv).await.map_err(|e| e.to_string())?
            {
                // A module too many is better than none because a disk of the master was not mounted.
                if self.lines.may() {
                    warn!("the master has nothing at all in {saltenv}; the module {name} that came from there stays");
                }
                continue;
            }
            match sandbox.remove(&name).await {
                Ok(Removed::Absent) => {}
                Ok(Removed::Gone | Removed::Standard) => {
                    info!("module {name} of {origin} is removed: the master does not have it any more");
                    changed.push(format!("modules.{name}"));
                }
                Err(e) => {
                    warn!("{e}");
                    refused.push(e.to_string());
                }
            }
        }
        // Failures that are older than this sync are out of date.
        self.absent().retain(|_, (asked, _)| *asked > began);
        if !failed {
            let environments: Vec<&str> = saltenvs.iter().map(Saltenv::as_str).collect();
            let (master, something) = (client.master().unwrap_or_default(), !changed.is_empty());
            if let Err(e) = sandbox.synced(&environments, &master, something) {
                warn!("that modules were synced could not be written down: {e}");
            }
        }
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

    /// The modules that came from these environments and are in none of them now, each with its environment.
    fn find_removed(
        &self,
        sandbox: &Sandbox,
        saltenvs: &[Saltenv],
        wanted: &BTreeMap<ModuleName, &Saltenv>,
    ) -> Vec<(String, String)> {
        let mut gone = sandbox.installed();
        gone.retain(|(name, origin)| {
            self.clean
                && !wanted.contains_key(name.as_str())
                && saltenvs.iter().any(|saltenv| saltenv.as_str() == origin)
        });
        gone
    }
}

/// The modules that the master has in some environments.
struct Listed<'a> {
    /// Each module with its environment. If two environments have a module, the later one counts.
    wanted: BTreeMap<ModuleName, &'a Saltenv>,
    /// The environments without a module.
    empty: Vec<&'a Saltenv>,
}

/// The modules whose installed version the master has: what their hashes say, asked for together. Where they cannot be had so, each fetch
/// asks by itself, and tells what is wrong.
async fn find_unchanged(
    client: &FileClient,
    sandbox: &Sandbox,
    wanted: &BTreeMap<ModuleName, &Saltenv>,
) -> BTreeSet<ModuleName> {
    let mut unchanged = BTreeSet::new();
    let saltenvs: BTreeSet<&Saltenv> = wanted.values().copied().collect();
    for saltenv in saltenvs {
        let names: Vec<&ModuleName> =
            wanted.iter().filter(|(_, from)| **from == saltenv).map(|(name, _)| name).collect();
        let paths = names.iter().flat_map(|name| [module_path(name, SUFFIX), module_path(name, SIGNATURE_SUFFIX)]);
        let Ok(paths) = paths.collect::<Result<Vec<SafePath>, _>>() else { continue };
        let Ok(stated) = client.request_hashes_and_sizes(&paths, saltenv).await else { continue };
        for (name, pair) in names.into_iter().zip(stated.chunks_exact(2)) {
            let hashes: Result<Vec<Option<FileHash>>, _> =
                pair.iter().map(|stated| stated.clone().map(FileHash::try_from).transpose()).collect();
            if let Ok([Some(module), signature]) = hashes.as_deref()
                && is_installed(sandbox, name, module, signature.as_ref())
            {
                unchanged.insert(name.clone());
            }
        }
    }
    unchanged
}

async fn list_modules<'a>(client: &FileClient, saltenvs: &'a [Saltenv]) -> Result<Listed<'a>, String> {
    let mut listed = Listed { wanted: BTreeMap::new(), empty: Vec::new() };
    for saltenv in saltenvs {
        let files = client.list(saltenv, FOLDER).await.map_err(|e| e.to_string())?;
        let names: Vec<ModuleName> = files.iter().filter_map(module_name).collect();
        if names.len() > MAX_MODULES {
            return Err(format!("{saltenv} has {} modules, more than the {MAX_MODULES} there may be", names.len()));
        }
        if names.is_empty() {
            listed.empty.push(saltenv);
        }
        listed.wanted.extend(names.into_iter().map(|name| (name, saltenv)));
    }
    Ok(listed)
}

/// `_modules/hello.wasm` → `hello`. Other files and files in folders below are not modules.
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
