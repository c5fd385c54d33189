//! Waits on the thread of an orchestration, no longer than the orchestration may take.

use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How an orchestration waits.
#[derive(Clone)]
pub(super) struct Patience {
    pub(super) runtime: Handle,
    /// Its caller does not wait any more, or the master stops.
    pub(super) stop: CancellationToken,
    pub(super) until: Instant,
    /// The time that it was given, for people.
    pub(super) time: Duration,
    /// The setting of that, for people: ` (orchestrate_timeout)`.
    pub(super) setting: &'static str,
}

impl Patience {
    /// Waits on this thread, which is none of the runtime.
    ///
    /// # Errors
    /// The orchestration has to end: why, as the end of a sentence.
    pub(super) fn wait<T>(&self, work: impl Future<Output = T>) -> Result<T, String> {
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                why = self.over() => Err(why),
                done = work => Ok(done),
            }
        })
    }

    /// Waits until the orchestration has to end.
    pub(super) async fn over(&self) -> String {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => "nobody waits for it any more".to_owned(),
            () = tokio::time::sleep_until(self.until) => {
                format!("it took longer than {} s{}", self.time.as_secs(), self.setting)
            }
        }
    }

    /// Returns why the orchestration has to end, if it has to.
    pub(super) fn is_over(&self) -> Option<String> {
        (self.stop.is_cancelled() || Instant::now() >= self.until).then(|| self.runtime.block_on(self.over()))
    }
}
