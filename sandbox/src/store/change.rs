//! What an install, an approval, a rollback and a removal do to the folder of installed modules: each whole, or not at all.

use std::io;
use std::sync::Arc;

use brine_sandbox_wire::Sha256Hex;

use super::decisions::Seen;
use super::{Decided, Entry, Files, Held, Module, Provenance, Shelf, Store, locked, off_thread};
use crate::ModuleName;

/// What takes a module's place.
pub(crate) struct Install<'a> {
    pub(crate) entry: &'a Arc<Entry>,
    pub(crate) files: Files,
    /// What was in use, if it was good: it can be gone back to.
    pub(crate) before: Option<&'a Arc<Entry>>,
    /// What was decided, and what is decided with it.
    pub(crate) expected: Decided,
    pub(crate) decided: Decided,
}

impl Store {
    /// Puts a module in its place, keeps the one before it, and forgets what was held.
    pub(crate) async fn install_files(&self, install: Install<'_>) -> io::Result<()> {
        let Install { entry, files, before, expected, decided } = install;
        let files = Files { provenance: Some(provenance(&entry.module)), ..files };
        let name = entry.name.clone();
        // Only what could be called is worth going back to, and only what was installed can come back.
        let before = before.filter(|before| !before.standard).map(|before| provenance(&before.module));
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

    /// Keeps what was not let in, for the owner to decide on; a newer one takes the place of an older.
    pub(crate) async fn keep_held(&self, held: Held, files: Files, expected: Decided) -> io::Result<()> {
        let mut decided = expected.clone();
        decided.saw_if_signed(&held);
        let keep = match self.held(held.name.as_str()) {
            // What was left out because it is old is not put in the place of what is newer and waits.
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

    /// Puts the previous version back in its place; what it leaves is kept as held, unless something newer is.
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
        let name = entry.name.clone();
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

    /// Writes down that a content that is not here is approved, or one that is here anyway.
    pub(crate) async fn approve_only(&self, name: &ModuleName, expected: Decided, sha256: Sha256Hex) -> io::Result<()> {
        let mut decided = expected.clone();
        decided.approve(sha256, None);
        self.change(name, expected, move |_| Ok(decided)).await
    }

    /// Removes all of a module from the disk but what was decided about it: what was the newest is not forgotten with it.
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
        // Others' decisions about other modules are for who watches the folder: they lead to more than a note here.
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
