//! Sends the records in the outbox to another returner, in order and in batches, and repeats that while the returner is
//! away.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::error::StoreError;
use super::outbox::Waiting;
use super::record::{Record, Saved};
use super::returner::{Returner, ReturnerName};
use super::store::JobStore;

/// The wait after the first failure. Each further failure doubles it.
const RETRY_FIRST: Duration = Duration::from_millis(500);
/// The longest wait.
const RETRY_LONGEST: Duration = Duration::from_secs(30);
/// Interval between log lines about a returner that stays away.
const TELL_EVERY: Duration = Duration::from_secs(600);
/// Bound on the refused records that the log names for each batch.
const NAMED_MAX: usize = 3;

/// The state of one returner.
struct Forwarder {
    store: JobStore,
    name: ReturnerName,
    returner: Arc<dyn Returner>,
    /// The time of the first failure, and the time of the last log line about it.
    failing: Option<(Instant, Instant)>,
}

/// Sends records until `stop`. Records that are not sent yet stay in the outbox.
pub(super) async fn run(store: JobStore, name: ReturnerName, returner: Arc<dyn Returner>, stop: CancellationToken) {
    let filled = store.outbox_filled(&name);
    let mut forwarder = Forwarder { store, name, returner, failing: None };
    let mut wait = RETRY_FIRST;
    let work = async {
        loop {
            match forwarder.batch().await {
                Ok(true) => wait = RETRY_FIRST,
                Ok(false) => filled.notified().await,
                Err(StoreError::Closed) => return,
                Err(error) => {
                    forwarder.tell(&error);
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(RETRY_LONGEST);
                }
            }
        }
    };
    tokio::select! {
        () = work => {}
        () = stop.cancelled() => {}
    }
}

impl Forwarder {
    /// Sends one batch. Returns false if nothing waits.
    async fn batch(&mut self) -> Result<bool, StoreError> {
        let batch = self.store.waiting(&self.name).await?;
        if batch.is_empty() {
            return Ok(false);
        }
        let ids: Vec<i64> = batch.iter().map(|waiting| waiting.id).collect();
        let damaged = batch.iter().filter(|waiting| waiting.record.is_none()).count();
        let records: Vec<Record> = batch.into_iter().filter_map(|Waiting { record, .. }| record).collect();
        let saved = if records.is_empty() { Vec::new() } else { self.returner.save(records.clone()).await? };
        self.tell_refused(&records, &saved, damaged);
        if let Some((since, _)) = self.failing.take() {
            let waiting = self.store.counts().of(&self.name.to_string()).rows;
            tracing::warn!(
                "the returner {} works again after {} s; {waiting} wait for it",
                self.name,
                since.elapsed().as_secs()
            );
        }
        // Removed only now: after a crash before this, the batch is sent again, and the returner ignores duplicates.
        self.store.settled(&self.name, ids).await?;
        Ok(true)
    }

    fn tell_refused(&self, records: &[Record], saved: &[Saved], damaged: usize) {
        let refused: Vec<(&Record, &str)> = records
            .iter()
            .zip(saved)
            .filter_map(|(record, saved)| match saved {
                Saved::Refused(why) => Some((record, why.as_str())),
                Saved::Kept(_) => None,
            })
            .collect();
        let lost = refused.len() + damaged;
        if lost == 0 {
            return;
        }
        let total = self.store.counts().lose(&self.name.to_string(), lost as u64);
        for (record, why) in refused.iter().take(NAMED_MAX) {
            let what = match record {
                Record::Job(job) => format!("the job {}", job.jid),
                Record::Return(new) => format!("the return of {} for {}", new.minion, new.jid),
            };
            tracing::error!("the returner {} does not take {what}: {why}", self.name);
        }
        tracing::error!("the returner {} lost {lost} jobs or returns, {total} since the start", self.name);
    }

    fn tell(&mut self, error: &StoreError) {
        let now = Instant::now();
        let (since, told) = match self.failing {
            Some(failing) => failing,
            None => (now, now.checked_sub(TELL_EVERY).unwrap_or(now)),
        };
        if self.failing.is_some() && told.elapsed() < TELL_EVERY {
            return;
        }
        self.failing = Some((since, now));
        let waiting = self.store.counts().of(&self.name.to_string()).rows;
        tracing::error!("{error}; {waiting} jobs and returns wait for it, and it is tried again");
    }
}
