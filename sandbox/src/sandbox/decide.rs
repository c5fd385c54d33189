//! Carries out the owner's decisions about a module: to approve a content, or to restore the previous version.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use brine_sandbox_wire::Sha256Hex;
use rmpv::Value;

use super::Inner;
use crate::report;
use crate::store::{ApproveError, Files, Install, Prepared, RollbackError, Rules, Shelf, was_overtaken};
use crate::{InstallError, ModuleName};

/// Upper bound on attempts to make a decision while other programs on this host decide at the same moment. Each failed
/// attempt means that one of them succeeded, so this many may compete.
const TRIES: u32 = 64;
/// Pause between two attempts, multiplied by the attempts so far.
const PAUSE: Duration = Duration::from_millis(2);

/// Why a decision was not made, and whether the only cause is a concurrent decision.
struct Undone<E> {
    why: E,
    overtaken: bool,
}

impl<E> From<E> for Undone<E> {
    fn from(why: E) -> Self {
        Self { why, overtaken: false }
    }
}

impl Inner {
    pub(super) async fn approve(self: &Arc<Self>, name: &ModuleName, sha256: Sha256Hex) -> Result<Value, ApproveError> {
        let _alone = self.store.installing.enter(name).await;
        let mut tried = 1;
        loop {
            match self.try_to_approve(name, sha256).await {
                Err(Undone { overtaken: true, .. }) if tried < TRIES => tokio::time::sleep(PAUSE * tried).await,
                done => return done.map_err(|undone| undone.why),
            }
            tried += 1;
        }
    }

    async fn try_to_approve(
        self: &Arc<Self>,
        name: &ModuleName,
        sha256: Sha256Hex,
    ) -> Result<Value, Undone<ApproveError>> {
        self.store.settle_locked(name).await;
        self.catch_up(name).await;
        let failed = |error: &dyn std::fmt::Display| ApproveError::failed(name, error);
        let undone = |error: &io::Error| Undone { why: failed(error), overtaken: was_overtaken(error) };
        if self.store.may_be_installed(name).is_err() {
            return Err(ApproveError::Standard(name.clone()).into());
        }
        let expected = self.store.decided(name).map_err(|error| failed(&error))?;
        let before = self.store.get(name.as_str());
        let found = self.content(name, sha256).await.map_err(|error| failed(&error))?;
        let Some((shelf, files)) = found.filter(|(shelf, _)| *shelf != Shelf::Previous) else {
            self.store.approve_only(name, expected, sha256).await.map_err(|error| undone(&error))?;
            tracing::info!(module = %name, %sha256, "approved in advance");
            return Ok(report::approved_in_advance(name, sha256));
        };
        let mut decided = expected.clone();
        decided.approve(sha256, None);
        let origin = files.origin();
        let prepared = self.store.prepare(name, &files, &origin, &Rules::known(), &decided).await;
        let Prepared { entry, seen, .. } = prepared.map_err(|error| ApproveError::Refused(Box::new(error)))?;
        let entry = Arc::new(entry);
        self.load(&entry).await.map_err(|error| failed(&error))?;
        if let Some(seen) = seen {
            decided.saw(seen);
        }
        let done = if shelf == Shelf::Held {
            let install = Install { entry: &entry, files, before: before.as_ref(), expected, decided };
            self.store.install_files(install).await
        } else {
            self.store.approve_only(name, expected, sha256).await
        };
        if let Err(error) = done {
            self.unload(&entry).await;
            return Err(undone(&error));
        }
        tracing::info!(module = %name, %sha256, "approved");
        self.switch(&entry, before.as_ref().filter(|before| before.key() != entry.key())).await;
        Ok(report::approved(&self.store, &entry))
    }

    /// Finds a content of a module on the shelves.
    async fn content(&self, name: &ModuleName, sha256: Sha256Hex) -> std::io::Result<Option<(Shelf, Files)>> {
        for shelf in [Shelf::Held, Shelf::Current, Shelf::Previous] {
            if let Some(files) = self.store.shelf(shelf, name).await?
                && crate::store::hash(&files.wasm).await == sha256
            {
                return Ok(Some((shelf, files)));
            }
        }
        Ok(None)
    }

    pub(super) async fn roll_back(self: &Arc<Self>, name: &ModuleName, by_owner: bool) -> Result<Value, RollbackError> {
        let _alone = self.store.installing.enter(name).await;
        let mut tried = 1;
        loop {
            match self.try_to_roll_back(name, by_owner).await {
                Err(Undone { overtaken: true, .. }) if tried < TRIES => tokio::time::sleep(PAUSE * tried).await,
                done => return done.map_err(|undone| undone.why),
            }
            tried += 1;
        }
    }

    async fn try_to_roll_back(
        self: &Arc<Self>,
        name: &ModuleName,
        by_owner: bool,
    ) -> Result<Value, Undone<RollbackError>> {
        self.store.settle_locked(name).await;
        self.catch_up(name).await;
        let failed = |error: &dyn std::fmt::Display| RollbackError::failed(name, error);
        let files = self.store.shelf(Shelf::Previous, name).await.map_err(|error| failed(&error))?;
        let Some(files) = files else { return Err(RollbackError::Nothing(name.clone()).into()) };
        let expected = self.store.decided(name).map_err(|error| failed(&error))?;
        let refused = |why: InstallError| RollbackError::Refused { name: name.clone(), why: Box::new(why) };
        self.store.may_be_installed(name).map_err(refused)?;
        let rules = if by_owner { Rules::known() } else { Rules::fresh(None) };
        let prepared = self.store.prepare(name, &files, &files.origin(), &rules, &expected).await;
        let entry = match prepared {
            Ok(prepared) => Arc::new(prepared.entry),
            Err(InstallError::Held(held)) => {
                return Err(failed(&format!(
                    "{}; the owner of this host goes back with `salt-call --local sandbox.rollback {name}`, or allows it by `downgrade: \
                     true` in the entry {name} under sandbox: modules: in the minion's configuration",
                    held.reasons()
                ))
                .into());
            }
            Err(error) => return Err(refused(error).into()),
        };
        self.load(&entry).await.map_err(|error| failed(&error))?;
        let before = self.store.get(name.as_str()).filter(|before| !before.is_standard());
        let left = self.store.current_sha256(name).await.map_err(|error| failed(&error))?;
        let done = self.store.roll_back_files(&entry, left, expected, files).await;
        if let Err(error) = done {
            self.unload(&entry).await;
            return Err(Undone { why: failed(&error), overtaken: was_overtaken(&error) });
        }
        self.switch(&entry, before.as_ref()).await;
        self.store.look_at_held(name).await;
        tracing::warn!(module = %name, sha256 = %entry.module.sha256, by_owner, "went back to the version before");
        Ok(report::rolled_back(&entry, left, before.as_deref()))
    }
}
