//! Changes the folder of installed modules for an install, an approval, a rollback or a removal: each completely or not
//! at all.

use std::io;
use std::sync::Arc;

use brine_sandbox_wire::Sha256Hex;

use super::decisions::Seen;
use super::{Decided, Entry, Files, Held, Module, Provenance, Shelf, Store, locked, off_thread};
use crate::ModuleName;

/// A module that replaces another.
pub(crate) struct Install<'a> {
    pub(crate) entry: &'a Arc<Entry>,
    pub(crate) files: Files,
    /// The version in use, if it was good; a rollback can restore it.
    pub(crate) before: Option<&'a Arc<Entry>>,
    /// The decisions on which this is based, and the new ones.
    pub(crate) expected: Decided,
    pub(crate) decided: Decided,
}

impl Store {
    /// Installs a module, keeps the version before it, and drops what was held.
    pub(crate) async fn install_files(&self, install: Install<'_>) -> io::Result<()> {
        let Install { entry, files, before, expected, decided } = install;
        let files = Files { provenance: Some(provenance(&entry.module)), ..files };
        let name = entry.name().clone();
        // Only a callable version is worth restoring, and only an installed one can be restored.
        let before = before.filter(|before| !before.is_standard()).map(|before| provenance(&before.module));
        let kept = before.clone();
        self.change(&name, expected, move |change| {
            if let (Some(provenance), Some(current)) = (kept, change.read(Shelf::Current)?) {
                change.put(Shelf::Previous, &Files { provenance: Some(provenance), ..current })?;
            }
            change.put(Shelf::Current, &files)?;
            change.remove(Shelf::Held)?;
            Ok(decided)
        })
        .await?;
        self.all_held().remove(&name);
        if let Some(provenance) = before {
            locked(&self.previous).insert(name, provenance);
        }
        Ok(())
    }

    /// Holds a version for the owner's decision. A newer one replaces an older one.
    pub(crate) async fn keep_held(&self, held: Held, files: Files, expected: Decided) -> io::Result<()> {
        let mut decided = expected.clone();
        decided.saw_if_signed(&held);
        let keep = match self.held(held.name.as_str()) {
            // A version that is held for its age does not replace a newer held one.
            Some(other) => other.sha256() == held.sha256() || held.why.older.is_none(),
            None => true,
        };
        if !keep && decided == expected {
            return Ok(());
        }
        let files = Files { provenance: Some(provenance(&held.module)), ..files };
        let name = held.name.clone();
        self.change(&name, expected, move |change| {
            if keep {
                change.put(Shelf::Held, &files)?;
            }
            Ok(decided)
        })
        .await?;
        if keep {
            self.refused().remove(&name);
            self.all_held().insert(name, Arc::new(held));
        }
        Ok(())
    }

    /// Restores the previous version. The version before the rollback becomes the held one, unless another is held.
    pub(crate) async fn roll_back_files(
        &self,
        entry: &Arc<Entry>,
        left: Option<Sha256Hex>,
        expected: Decided,
        previous: Files,
    ) -> io::Result<()> {
        let mut decided = expected.clone();
        if let Some(left) = left {
            decided.roll_back(left);
        }
        let previous = Files { provenance: Some(provenance(&entry.module)), ..previous };
        let name = entry.name().clone();
        let keep = self.held(name.as_str()).is_none();
        self.change(&name, expected, move |change| {
            if let (true, Some(current)) = (keep, change.read(Shelf::Current)?) {
                change.put(Shelf::Held, &current)?;
            }
            change.put(Shelf::Current, &previous)?;
            change.remove(Shelf::Previous)?;
            Ok(decided)
        })
        .await?;
        locked(&self.previous).remove(&name);
        Ok(())
    }

    /// Records an approval alone: of a content that is not on this host, or that is in use anyway.
    pub(crate) async fn approve_only(&self, name: &ModuleName, expected: Decided, sha256: Sha256Hex) -> io::Result<()> {
        let mut decided = expected.clone();
        decided.approve(sha256, None);
        self.change(name, expected, move |_| Ok(decided)).await
    }

    /// Removes a module's files. Its decisions remain, so that the newest version seen is not forgotten.
    pub(crate) async fn erase(&self, name: &ModuleName) -> io::Result<()> {
        let decided = self.decided(name).map_err(io::Error::other)?;
        let same = decided.clone();
        self.change(name, decided, move |change| {
            for shelf in [Shelf::Current, Shelf::Previous, Shelf::Held] {
                change.remove(shelf)?;
            }
            Ok(same)
        })
        .await
    }

    async fn change(
        &self,
        name: &ModuleName,
        expected: Decided,
        change: impl FnOnce(&super::folder::Change<'_>) -> io::Result<Decided> + Send + 'static,
    ) -> io::Result<()> {
        let (folder, name) = (self.folder.clone(), name.clone());
        let about = name.clone();
        let decisions = off_thread(move || folder.change(&name, &expected, change)).await?;
        // Decisions about other modules are left to the folder's watcher, because they need more than this record.
        self.take_up_of(&about, &decisions);
        Ok(())
    }
}

fn provenance(module: &Module) -> Provenance {
    Provenance {
        origin: module.origin.clone(),
        version: module.info.version.clone(),
        sha256: Some(module.sha256.to_string()),
    }
}

impl Decided {
    fn saw_if_signed(&mut self, held: &Held) {
        if super::prepare::is_signed(&held.signers) {
            self.saw(Seen::new(&held.module.info, held.time, held.module.sha256));
        }
    }
}
