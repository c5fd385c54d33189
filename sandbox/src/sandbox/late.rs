//! Large modules that have to be compiled again at a start, as after an update of the engine: the start does not wait for them, the
//! jobs that name them do.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::task::JoinSet;

use super::Inner;
use crate::{InstallError, ModuleName};

/// A job that names one waits for it at most so long; then it is told to try again.
const WAIT: Duration = Duration::from_secs(50);

/// Those that are not there yet.
#[derive(Default)]
pub(super) struct Late(Mutex<BTreeSet<ModuleName>>);

impl Late {
    fn names(&self) -> MutexGuard<'_, BTreeSet<ModuleName>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gets them ready beside everything else.
pub(super) async fn start(inner: &Arc<Inner>, names: Vec<ModuleName>, tasks: &mut JoinSet<()>) {
    for name in names {
        inner.late.names().insert(name.clone());
        // Taken before there is a job that could wait for it.
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

    /// Where the module of a function is on its way: a wait for it.
    pub(super) fn settled(&self, fun: &str) -> Option<BoxFuture<'_, ()>> {
        let module = fun.split('.').next().unwrap_or_default();
        let name = self.late.names().get(module).cloned()?;
        Some(Box::pin(async move {
            let _ = tokio::time::timeout(WAIT, self.installing.enter(&name)).await;
        }))
    }
}
