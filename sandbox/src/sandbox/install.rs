//! Installs, replaces and removes modules.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::{Inner, Removed};
use crate::store::{Entry, Files, Held, Install, Prepared, Rules, Shelf};
use crate::{InstallError, Installed, ModuleName, RemoveError};

/// Interval between two checks whether a replaced module still runs.
const RETIRE_TICK: Duration = Duration::from_millis(500);
/// Copies of a component in memory during an install: fetched, for the compiler, read back, kept.
const COPIES: u64 = 4;
/// How much later than its wall-clock limit a job may end.
const LATE: Duration = Duration::from_secs(10);

impl Inner {
    pub(super) async fn install(
        self: &Arc<Self>,
        name: &ModuleName,
        wasm: Bytes,
        signature: Option<Bytes>,
        origin: &str,
    ) -> Result<Installed, InstallError> {
        let Ok(_place) = self.installs.try_acquire() else { return Err(InstallError::Busy(name.clone())) };
        self.trim.handled(COPIES * wasm.len() as u64);
        let _alone = self.store.installing.enter(name).await;
        self.store.settle_locked(name).await;
        self.catch_up(name).await;
        let before = self.store.get(name.as_str());
        if before
            .as_ref()
            .is_some_and(|before| before.module.size == wasm.len() as u64 && before.signature == signature)
            && before.as_ref().map(|before| before.module.sha256) == Some(crate::store::hash(&wasm).await)
        {
            return Ok(Installed::Unchanged);
        }
        let files = Files { wasm, signature, provenance: None };
        self.install_files(name, files, origin, before).await
    }

    pub(super) async fn install_held(self: &Arc<Self>, name: &ModuleName) -> Result<Installed, InstallError> {
        let _alone = self.store.installing.enter(name).await;
        self.store.settle_locked(name).await;
        self.catch_up(name).await;
        let failed = |error: &dyn std::fmt::Display| InstallError::failed(name, error);
        let files = self.store.shelf(Shelf::Held, name).await.map_err(|error| failed(&error))?;
        let files = files.ok_or_else(|| failed(&"nothing of it is held"))?;
        let origin = files.origin();
        self.install_files(name, files, &origin, self.store.get(name.as_str())).await
    }

    /// Installs a module from a master, or holds it for the owner's decision.
    async fn install_files(
        self: &Arc<Self>,
        name: &ModuleName,
        files: Files,
        origin: &str,
        before: Option<Arc<Entry>>,
    ) -> Result<Installed, InstallError> {
        let failed = |error: &dyn std::fmt::Display| InstallError::failed(name, error);
        self.store.may_be_installed(name)?;
        self.store.has_room_for(name)?;
        let expected = self.store.decided(name).map_err(|error| failed(&error))?;
        let prepared = self.store.prepare(name, &files, origin, &Rules::fresh(before.as_deref()), &expected).await;
        let Prepared { entry, seen, carried } = match prepared {
            Ok(prepared) => prepared,
            Err(InstallError::Held(held)) => {
                tracing::debug!(module = %name, sha256 = %held.sha256(), "held");
                let kept = self.store.keep_held(Held::clone(&held), files, expected).await;
                kept.map_err(|error| failed(&error))?;
                return Err(InstallError::Held(held));
            }
            Err(error) => {
                self.store.refuse(name, &error, origin);
                return Err(error);
            }
        };
        let entry = Arc::new(entry);
        self.load(&entry).await.map_err(|error| failed(&error))?;
        let mut decided = expected.clone();
        if carried {
            decided.approve(entry.module.sha256, before.as_ref().map(|before| before.module.sha256));
        }
        // The same content with another signature is no other version.
        let other = before.as_ref().filter(|before| before.module.sha256 != entry.module.sha256);
        if other.is_some() || before.is_none() {
            decided.forgive();
        }
        if let Some(seen) = seen {
            decided.saw(seen);
        }
        let install = Install { entry: &entry, files, before: other, expected, decided };
        let switching = self.switching.lock().await;
        let installed = match self.store.has_room_for(name) {
            Ok(()) => self.store.install_files(install).await.map_err(|error| failed(&error)),
            Err(full) => Err(full),
        };
        if let Err(error) = installed {
            self.unload(&entry).await;
            return Err(error);
        }
        self.store.switch_in(&entry);
        drop(switching);
        tracing::info!(module = %name, sha256 = %entry.module.sha256, origin, "installed");
        self.clean_up_after(before.as_ref()).await;
        Ok(if before.is_some() { Installed::Updated } else { Installed::New })
    }

    /// Loads the module in the executor before it is switched in: a module that does not load would fail every job.
    pub(super) async fn load(&self, entry: &Arc<Entry>) -> Result<(), String> {
        match self.executors.plain() {
            Some(link) => link.ensure(&entry.loadable, &*self.store).await,
            None => Ok(()),
        }
    }

    /// Switches a module in. Running jobs finish with the version before it.
    pub(super) async fn switch(self: &Arc<Self>, entry: &Arc<Entry>, before: Option<&Arc<Entry>>) {
        self.store.switch_in(entry);
        self.clean_up_after(before).await;
    }

    /// Cleans up after a replaced module, when its jobs have ended.
    async fn clean_up_after(self: &Arc<Self>, before: Option<&Arc<Entry>>) {
        self.store.prune().await;
        if let Some(before) = before {
            // No one awaits the task, but it ends within a job's longest life.
            tokio::spawn(Arc::clone(self).retire(Arc::clone(before)));
        }
    }

    pub(super) async fn remove(self: &Arc<Self>, name: &ModuleName) -> Result<Removed, RemoveError> {
        let _alone = self.store.installing.enter(name).await;
        self.store.settle_locked(name).await;
        self.catch_up(name).await;
        if !self.store.installed().contains_key(name) {
            return Ok(Removed::Absent);
        }
        let before = self.store.get(name.as_str());
        // A held version alone was never available to jobs.
        let was_there =
            before.as_ref().is_some_and(|before| !before.is_standard()) || self.store.all_left_out().contains_key(name);
        let failed = |error: &dyn std::fmt::Display| RemoveError::failed(name, error);
        let standard = match &before {
            // The installed version was unusable, so the standard one is already in use.
            Some(before) if before.is_standard() => Some(Arc::clone(before)),
            _ => self.store.standard(name).await.map_err(|error| failed(&error))?.map(Arc::new),
        };
        if let Some(standard) = &standard {
            self.load(standard).await.map_err(|error| failed(&error))?;
        }
        self.store.erase(name).await.map_err(|error| failed(&error))?;
        match &standard {
            Some(standard) => self.store.switch_in(standard),
            None => self.store.switch_out(name),
        }
        tracing::info!(module = %name, "removed");
        if let Some(before) = before.filter(|before| !before.is_standard()) {
            // As after an update.
            tokio::spawn(Arc::clone(self).retire(before));
        }
        self.store.forget(name);
        self.store.prune().await;
        if !was_there {
            return Ok(Removed::Absent);
        }
        Ok(if standard.is_some() { Removed::Standard } else { Removed::Gone })
    }

    /// Unloads a replaced module from the executors when the last job that may call it has ended.
    pub(super) async fn retire(self: Arc<Self>, entry: Arc<Entry>) {
        let longest = Duration::from_millis(self.limits.load().wall_ms) + LATE;
        let unused = async {
            while Arc::strong_count(&entry) > 1 || Arc::strong_count(&entry.loadable) > 1 {
                tokio::time::sleep(RETIRE_TICK).await;
            }
        };
        let _ = tokio::time::timeout(longest, unused).await;
        let _alone = self.store.installing.enter(entry.name()).await;
        self.unload(&entry).await;
    }

    /// Unloads a module from the executors if no name refers to it.
    pub(super) async fn unload(&self, entry: &Entry) {
        let in_use = self.store.table().values().any(|other| other.key() == entry.key());
        if !in_use {
            for link in self.executors.links() {
                link.unload(entry.key()).await;
            }
        }
    }
}
