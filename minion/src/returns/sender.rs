//! Sends what the spool holds, a few at a time, until the master acknowledges it.
//!
//! A return of a job that just ended goes out at once; one that could not be delivered waits its turn with backoff and
//! jitter, and all that wait are tried again as soon as the master is heard from.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use brine_protocol::value::{Value, ValueExt};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::{debug, error, info, warn};

use super::spool::{Entry, Spool, SpoolError, Unsynced};
use super::unkept::Unkept;
use crate::connection::{ChannelError, Masters};
use crate::events::Events;

/// Returns under way at once: enough that the master commits many at a time, few enough that one coming back is not stormed.
const SENDERS: usize = 8;
/// Loads kept in memory while they wait; more than these are read back from disk.
const MAX_LOADS_IN_MEMORY: usize = 64;
/// A master that is there has a return on its own disk after a few milliseconds; one that is not here by then is synced. Two syncs a
/// job cost more than the job does.
const SYNC_AFTER: Duration = Duration::from_millis(20);
/// The longest wait between two tries.
const MAX_BACKOFF: Duration = Duration::from_secs(60);
/// A master that answers a return with anything but an acknowledgement is asked again for as long as it keeps jobs by
/// default (`keep_jobs_seconds`); after that nobody could look the return up.
const MAX_REFUSED_AGE: Duration = Duration::from_secs(86_400);

/// The returns of this minion.
pub struct Returns {
    spool: Arc<Spool>,
    masters: Masters,
    queue: Mutex<VecDeque<Pending>>,
    /// Something to do: a return was queued, or the master is there again.
    work: Notify,
    /// All was delivered.
    empty: Notify,
    retry: (Duration, Duration),
    unkept: Arc<Unkept>,
    /// Returns that were written and are to be synced.
    unsynced: mpsc::UnboundedSender<Unsynced>,
}

/// A return in the spool that is not sent yet.
#[derive(Debug)]
pub struct Kept {
    entry: Entry,
    load: Value,
}

struct Pending {
    entry: Entry,
    /// While few wait; the spool has it in any case.
    load: Option<Value>,
    failures: u32,
    not_before: Instant,
    since: SystemTime,
}

impl Returns {
    /// Takes over an opened spool with what an earlier run left in it. `retry` is the first and the usual longest wait
    /// (`return_retry_timer`, `return_retry_timer_max`).
    pub fn new(
        spool: Spool,
        left: Vec<Entry>,
        masters: Masters,
        events: Arc<Events>,
        retry: (Duration, Duration),
    ) -> Arc<Self> {
        if !left.is_empty() {
            info!("{} returns of earlier jobs wait to be sent", left.len());
        }
        let now = Instant::now();
        let queue = left
            .into_iter()
            .map(|entry| Pending { entry, load: None, failures: 0, not_before: now, since: SystemTime::now() })
            .collect();
        let spool = Arc::new(spool);
        let unsynced = start_syncing(Arc::clone(&spool));
        let unkept = Unkept::new(masters.clone(), events);
        Arc::new(Self {
            spool,
            unsynced,
            masters,
            queue: Mutex::new(queue),
            work: Notify::new(),
            empty: Notify::new(),
            retry,
            unkept,
        })
    }

    /// Whether one more job may start beside `running` ones.
    pub fn has_room(&self, running: usize) -> bool {
        self.spool.has_room(running)
    }

    /// Writes a return into the spool. When this returns `Ok`, the end of this process does not lose the return. Where the master
    /// does not acknowledge it at once, the disk is told to keep it against the end of the machine too.
    pub fn keep(&self, jid: &str, mut load: Value) -> Result<Kept, (SpoolError, Value)> {
        match self.spool.put(jid, &mut load) {
            Ok((entry, unsynced)) => {
                // Bounded by the spool. Nobody takes it only while the process ends, which closes files as well.
                let _ = self.unsynced.send(unsynced);
                Ok(Kept { entry, load })
            }
            Err(e) => Err((e, load)),
        }
    }

    /// Hands a return to the senders; it goes out at once.
    pub fn deliver(&self, kept: Kept) {
        let Kept { entry, load } = kept;
        let mut queue = self.queue();
        let load = (queue.len() < MAX_LOADS_IN_MEMORY).then_some(load);
        let now = Instant::now();
        queue.push_front(Pending { entry, load, failures: 0, not_before: now, since: SystemTime::now() });
        drop(queue);
        self.work.notify_one();
    }

    /// Sends a return of so many bytes without keeping it: for refusals, when there is no room to keep anything. If it finds no room
    /// in memory either, the master is told that a job got no answer.
    pub fn send_unkept(&self, load: Value, bytes: usize) {
        self.unkept.send(load, bytes);
    }

    /// Tries everything that waits now: the master was just heard from.
    pub fn master_is_back(&self) {
        let now = Instant::now();
        self.queue().iter_mut().for_each(|p| p.not_before = now);
        self.work.notify_waiters();
        self.work.notify_one();
        self.unkept.master_is_back();
    }

    /// Returns in the spool that are not acknowledged yet.
    pub fn waiting(&self) -> usize {
        self.spool.held_now().0
    }

    /// Refusals that wait for their turn; no disk has them.
    pub fn refusals(&self) -> usize {
        self.unkept.waiting()
    }

    /// Waits until every return was acknowledged and every refusal sent.
    pub async fn drained(&self) {
        self.unkept.drained().await;
        loop {
            let emptied = self.empty.notified();
            if self.waiting() == 0 {
                return;
            }
            emptied.await;
        }
    }

    /// Sends for ever; ends when it is dropped.
    pub async fn run(self: Arc<Self>) {
        let mut senders = JoinSet::new();
        for _ in 0..SENDERS {
            senders.spawn(Arc::clone(&self).send_forever());
        }
        while senders.join_next().await.is_some() {}
    }

    async fn send_forever(self: Arc<Self>) {
        loop {
            let woken = self.work.notified();
            let (next, rest) = self.take_due();
            let Some(pending) = next else {
                match rest {
                    Some(due) => {
                        let _ = tokio::time::timeout_at(due, woken).await;
                    }
                    None => woken.await,
                }
                continue;
            };
            if rest.is_some() {
                self.work.notify_one(); // another sender can take the next one
            }
            self.send(pending).await;
        }
    }

    /// The first return that is due, and when another one will be.
    fn take_due(&self) -> (Option<Pending>, Option<Instant>) {
        let now = Instant::now();
        let mut queue = self.queue();
        let due = |queue: &VecDeque<Pending>| queue.iter().position(|p| p.not_before <= now);
        match due(&queue).and_then(|at| queue.remove(at)) {
            Some(taken) => (Some(taken), due(&queue).map(|_| now)),
            None => (None, queue.iter().map(|p| p.not_before).min()),
        }
    }

    async fn send(&self, mut pending: Pending) {
        let load = match pending.load.take() {
            Some(load) => load,
            None => {
                let (spool, entry) = (Arc::clone(&self.spool), pending.entry.clone());
                match tokio::task::spawn_blocking(move || spool.read(&entry)).await {
                    Ok(Some(load)) => load,
                    _ => return self.tell_if_empty(),
                }
            }
        };
        let jid = pending.entry.jid().to_owned();
        let answer = match self.masters.preferred() {
            Ok(channel) => channel.request(load).await,
            Err(e) => Err(e),
        };
        match answer {
            Ok(reply) if reply.is_nil() => {
                debug!(jid, "the master has the return");
                self.done(&pending.entry);
            }
            Ok(reply) => self.refused(pending, &format!("it answered {}", describe(&reply))),
            Err(e @ ChannelError::Refused(_)) => self.refused(pending, &e.to_string()),
            Err(e) => {
                warn!(jid, "the return could not be delivered and will be sent again: {e}");
                self.again(pending);
            }
        }
    }

    fn refused(&self, pending: Pending, why: &str) {
        let jid = pending.entry.jid().to_owned();
        if pending.since.elapsed().unwrap_or_default() > MAX_REFUSED_AGE {
            error!(jid, "the master has refused the return for a day; it is given up: {why}");
            self.done(&pending.entry);
        } else {
            warn!(jid, "the master did not take the return; it will be sent again: {why}");
            self.again(pending);
        }
    }

    fn done(&self, entry: &Entry) {
        self.spool.remove(entry);
        self.tell_if_empty();
    }

    fn again(&self, mut pending: Pending) {
        pending.failures = pending.failures.saturating_add(1);
        pending.not_before = Instant::now() + backoff(self.retry, pending.failures);
        self.queue().push_back(pending);
        self.work.notify_one();
    }

    fn tell_if_empty(&self) {
        if self.waiting() == 0 {
            self.empty.notify_waiters();
        }
    }

    fn queue(&self) -> std::sync::MutexGuard<'_, VecDeque<Pending>> {
        self.queue.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Has returns synced one after the other on a thread for that, which waits for nothing else, unless they are acknowledged and gone
/// before their turn.
fn start_syncing(spool: Arc<Spool>) -> mpsc::UnboundedSender<Unsynced> {
    let (sender, mut unsynced) = mpsc::unbounded_channel::<Unsynced>();
    tokio::task::spawn_blocking(move || {
        while let Some(next) = unsynced.blocking_recv() {
            std::thread::sleep(SYNC_AFTER.saturating_sub(next.age()));
            next.sync(&spool);
        }
    });
    sender
}

/// The wait after that many failures: doubling from the first bound, at most [`MAX_BACKOFF`] or the second bound,
/// anywhere in its upper half.
fn backoff((first, longest): (Duration, Duration), failures: u32) -> Duration {
    let longest = longest.max(first).max(MAX_BACKOFF.min(first * 8));
    let full = first.saturating_mul(1 << failures.saturating_sub(1).min(16)).min(longest);
    full.mul_f64(rand::random_range(0.5..=1.0))
}

fn describe(reply: &Value) -> String {
    match reply.text() {
        Some("") => "an empty text: its handler failed".to_owned(),
        Some(text) => format!("\"{}\"", text.chars().take(200).collect::<String>()),
        None => "something else than an acknowledgement".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_grows_is_spread_and_bounded() {
        let retry = (Duration::from_secs(5), Duration::from_secs(10));
        for (failures, low, high) in [(1, 2.5, 5.0), (2, 5.0, 10.0), (4, 20.0, 40.0), (40, 20.0, 40.0)] {
            for _ in 0..50 {
                let wait = backoff(retry, failures).as_secs_f64();
                assert!((low..=high).contains(&wait), "{failures}: {wait}");
            }
        }
        let spread: std::collections::HashSet<u128> = (0..20).map(|_| backoff(retry, 3).as_nanos()).collect();
        assert!(spread.len() > 1);
    }
}
