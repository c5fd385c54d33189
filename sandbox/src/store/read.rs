//! Reads the folders: standard modules, installed modules, held versions and previous versions.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use brine_sandbox_wire::Sha256Hex;

use super::files::{self, LOCAL};
use super::{
    DECISIONS, Decided, Entry, Files, Folder, InstallError, LeftOut, Rules, Shelf, Store, hash, locked, off_thread,
};
use crate::ModuleName;

/// Upper bound on repeated reads of a module because other programs decided about it meanwhile.
const OVERTAKEN: usize = 8;
/// The origin of standard modules.
pub(super) const STANDARD: &str = "standard";

impl Store {
    /// Returns the standard module of this name, if there is one.
    pub(crate) async fn standard(&self, name: &ModuleName) -> Result<Option<Entry>, InstallError> {
        let is_standard = locked(&self.standard).contains(name);
        if !is_standard {
            return Ok(None);
        }
        self.read_standard(name).await.map(Some)
    }

    async fn read_standard(&self, name: &ModuleName) -> Result<Entry, InstallError> {
        if let Some(entry) = self.as_verified(name).await {
            return Ok(entry);
        }
        let before = self.standard_folder().stamp(name);
        let read = self.standard_files(name).map_err(|error| InstallError::failed(name, error))?;
        let files = read.ok_or_else(|| InstallError::failed(name, "its file is gone"))?;
        let entry = self.prepare(name, &files, STANDARD, &Rules::standard(), &Decided::default()).await?.entry;
        if let Ok(Some((file, _))) = before {
            self.remember_verified(name, file, &entry).await;
        }
        Ok(entry)
    }

    pub(super) fn standard_folder(&self) -> Folder {
        Folder::new(self.standard_dir.clone(), self.compiler.limits.module)
    }

    pub(super) fn standard_files(&self, name: &ModuleName) -> io::Result<Option<Files>> {
        self.standard_folder().peek(name)
    }

    /// Finds the standard modules, which stay pending, and reads the installed ones and held versions. Unusable modules are logged and
    /// left out. `standard` names the standard modules that are used, if not all are. Returns the installed modules that compile slowly, so that the caller can skip waiting for them.
    pub(crate) async fn read_folders(&self, standard: Option<&BTreeSet<ModuleName>>) -> io::Result<Vec<ModuleName>> {
        self.cache.sweep()?;
        let found = files::component_files(&self.standard_dir)?.into_keys();
        let found: BTreeSet<ModuleName> =
            found.filter(|name| standard.is_none_or(|used| used.contains(name))).collect();
        self.pending.add(found.iter().cloned());
        *locked(&self.standard) = found;
        let decisions = self.folder.decisions().map_err(|error| {
            let why = format!("what was decided about modules cannot be read ({DECISIONS}: {error})");
            tracing::error!("{why}; nothing is installed until that file is put right or taken away");
            why
        });
        self.take_up(decisions);
        let mut late = Vec::new();
        for name in self.folder.names(Shelf::Current)?.into_keys() {
            self.recover(&name).await;
            if self.takes_long(&name).await {
                let why = LeftOut::new(&InstallError::Compiling(name.clone()), Some(self.folder.origin(&name)));
                self.all_left_out().insert(name.clone(), why);
                late.push(name);
                continue;
            }
            match self.read_installed(&name).await {
                Ok(None) => {}
                Ok(Some(entry)) => self.switch_in(&Arc::new(entry)),
                Err((error, origin)) => self.leave_out(name, &error, Some(origin)),
            }
        }
        for name in self.folder.names(Shelf::Previous)?.into_keys() {
            self.look_at_previous(&name);
        }
        for name in self.folder.names(Shelf::Held)?.into_keys() {
            self.look_at_held(&name).await;
        }
        self.prune().await;
        Ok(late)
    }

    async fn recover(&self, name: &ModuleName) {
        let (folder, of) = (self.folder.clone(), name.clone());
        match off_thread(move || folder.recover(&of)).await {
            Ok(false) => {}
            Ok(true) => tracing::warn!(module = %name, "its last change was cut off; the last good version is back"),
            Err(error) => {
                tracing::error!(module = %name, "whether its last change was cut off cannot be told: {error}")
            }
        }
    }

    pub(crate) fn leave_out(&self, name: ModuleName, error: &InstallError, origin: Option<String>) {
        tracing::error!(module = %name, "{error}");
        self.all_left_out().insert(name, LeftOut::new(error, origin));
    }

    /// Returns the installed module of this name as it is on the disk now. None if there is none. An error carries the
    /// module's origin.
    pub(crate) async fn read_installed(&self, name: &ModuleName) -> Result<Option<Entry>, (InstallError, String)> {
        for _ in 0..OVERTAKEN {
            match self.read_as_decided(name).await {
                // Another program may have put the module there with a decision that is not known here yet.
                Err(_) if self.decided_meanwhile(name).await => {}
                read => return read,
            }
        }
        self.read_as_decided(name).await
    }

    /// Reads the current decisions about a module. Returns whether they changed.
    async fn decided_meanwhile(&self, name: &ModuleName) -> bool {
        let folder = self.folder.clone();
        off_thread(move || folder.decisions()).await.is_ok_and(|decisions| self.take_up_of(name, &decisions))
    }

    async fn read_as_decided(&self, name: &ModuleName) -> Result<Option<Entry>, (InstallError, String)> {
        let failed = |error: &dyn std::fmt::Display| (InstallError::failed(name, error), LOCAL.to_owned());
        let Some(files) = self.shelf(Shelf::Current, name).await.map_err(|error| failed(&error))? else {
            return Ok(None);
        };
        let origin = files.origin();
        let read = async {
            self.may_be_installed(name)?;
            let decided = self.decided(name).unwrap_or_default();
            self.prepare(name, &files, &origin, &Rules::known(), &decided).await
        };
        read.await.map(|prepared| Some(prepared.entry)).map_err(|error| (error, origin))
    }

    /// Records the version to which a rollback would go back now.
    pub(crate) fn look_at_previous(&self, name: &ModuleName) {
        let is_there = self.folder.path_of(Shelf::Previous, name).exists();
        let mut previous = locked(&self.previous);
        match is_there {
            true => previous.insert(name.clone(), self.folder.provenance(Shelf::Previous, name).unwrap_or_default()),
            false => previous.remove(name),
        };
    }

    /// Records what is held now, and why. A version that would be admitted now waits for the next sync, which asks the
    /// master first.
    pub(crate) async fn look_at_held(&self, name: &ModuleName) {
        let held = match self.shelf(Shelf::Held, name).await {
            Ok(Some(files)) => self.held_as(name, &files).await,
            Ok(None) => None,
            Err(error) => {
                tracing::error!(module = %name, "what is held of it cannot be read: {error}");
                None
            }
        };
        let mut all = self.all_held();
        match held {
            Some(held) => all.insert(name.clone(), Arc::new(held)),
            None => all.remove(name),
        };
    }

    /// Returns the hash of the installed content, usable or not.
    pub(crate) async fn current_sha256(&self, name: &ModuleName) -> io::Result<Option<Sha256Hex>> {
        match self.shelf(Shelf::Current, name).await? {
            Some(files) => Ok(Some(hash(&files.wasm).await)),
            None => Ok(None),
        }
    }

    /// Reads a module from a shelf.
    pub(crate) async fn shelf(&self, shelf: Shelf, name: &ModuleName) -> io::Result<Option<Files>> {
        let (folder, name) = (self.folder.clone(), name.clone());
        off_thread(move || folder.read(shelf, &name)).await
    }
}
