//! Waiting for a task of one's own.

use tokio::task::JoinError;

/// The result of a task; none if it panicked. Where the runtime ends, its tasks are cancelled one after the other: what waits for a
/// cancelled one must not take that for an answer, and act on it. Then this never returns.
pub(crate) async fn joined<T>(task: impl Future<Output = Result<T, JoinError>>) -> Option<T> {
    match task.await {
        Ok(result) => Some(result),
        Err(error) if error.is_panic() => None,
        Err(_) => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_cancelled_task_is_no_answer() {
        assert_eq!(joined(tokio::spawn(async { 7 })).await, Some(7));
        assert_eq!(joined(tokio::spawn(async { panic!("for the test") })).await, None::<()>);
        let cancelled = tokio::spawn(std::future::pending::<()>());
        cancelled.abort();
        let waited = tokio::time::timeout(Duration::from_millis(20), joined(cancelled)).await;
        assert!(waited.is_err());
    }
}
