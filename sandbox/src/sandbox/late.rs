//! Modules for which a start does not wait: standard ones (`store/pending.rs`), and large ones that must be compiled again,
//! for example after an update of the engine. Jobs that call them wait.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::JoinSet;

use super::Inner;
use crate::resolve::alike;
use crate::store::WAIT;
use crate::{InstallError, ModuleName};

/// The modules that are not ready yet.
#[derive(Default)]
pub(super) struct Late(Mutex<BTreeSet<ModuleName>>);

impl Late {
    fn names(&self) -> MutexGuard<'_, BTreeSet<ModuleName>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Prepares these modules in background tasks.
pub(super) async fn start(inner: &Arc<Inner>, names: Vec<ModuleName>, tasks: &mut JoinSet<()>) {
    for name in names {
        inner.late.names().insert(name.clone());
        // Locked before any job could wait for the module.
        let alone = inner.store.installing.enter(&name).await;
        let inner = Arc::clone(inner);
        tasks.spawn(async move {
            inner.take_up_late(&name).await;
            inner.late.names().remove(&name);
            drop(alone);
        });
    }
}

impl Inner {
    async fn take_up_late(self: &Arc<Self>, name: &ModuleName) {
        let (error, origin) = match self.store.read_installed(name).await {
            Ok(None) => return self.store.switch_out(name),
            Ok(Some(entry)) => {
                let entry = Arc::new(entry);
                match self.load(&entry).await {
                    Ok(()) => return self.switch(&entry, None).await,
                    Err(error) => (InstallError::failed(name, error), entry.module.origin.clone()),
                }
            }
            Err(left_out) => left_out,
        };
        self.store.leave_out(name.clone(), &error, Some(origin));
    }

    /// Waits for a module that is still being prepared. The standard modules that a job waits for are prepared first.
    pub(super) async fn settle(&self, module: &str) {
        let late = self.late.names().get(module).cloned();
        let settled = async {
            match late {
                Some(name) => drop(self.store.installing.enter(&name).await),
                None => self.store.settle(module).await,
            }
        };
        let _ = tokio::time::timeout(WAIT, settled).await;
    }

    /// Waits for the module of a function. If there is none of its name, waits for the one that the error may name.
    pub(super) async fn settle_function(&self, fun: &str) {
        let module = fun.split('.').next().unwrap_or_default();
        if self.store.get(module).is_some() {
            return;
        }
        self.settle(module).await;
        if self.store.get(module).is_none() && self.store.left_out(module).is_none() {
            let pending = self.store.pending();
            if let Some(like) = alike(module, pending.iter().map(ModuleName::as_str)) {
                self.settle(like).await;
            }
        }
    }
}
