//! Large modules that must be compiled again at a start, for example after an update of the engine. The start does not
//! wait for them; jobs that call them do.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::task::JoinSet;

use super::Inner;
use crate::{InstallError, ModuleName};

/// How long a job waits for such a module. After that it fails with the advice to try again.
const WAIT: Duration = Duration::from_secs(50);

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
        let alone = inner.installing.enter(&name).await;
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

    /// Returns a wait for the function's module if that is still being prepared.
    pub(super) fn settled(&self, fun: &str) -> Option<BoxFuture<'_, ()>> {
        let module = fun.split('.').next().unwrap_or_default();
        let name = self.late.names().get(module).cloned()?;
        Some(Box::pin(async move {
            let _ = tokio::time::timeout(WAIT, self.installing.enter(&name)).await;
        }))
    }
}
