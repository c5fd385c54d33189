//! What led to an event: the entries of the reactor, as numbers, that started the work in which it is fired.

use std::sync::Arc;

tokio::task_local! {
    static CAUSE: Arc<[u64]>;
}

/// Does work that a reaction started.
pub(crate) async fn within<T>(chain: Arc<[u64]>, work: impl Future<Output = T>) -> T {
    CAUSE.scope(chain, work).await
}

/// Returns the entries of the reactor that led to the work of this task; `None` if no reaction did.
pub(crate) fn current() -> Option<Arc<[u64]>> {
    CAUSE.try_with(Arc::clone).ok()
}
