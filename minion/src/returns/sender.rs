//! Sends the spooled returns, a few at a time, until the master acknowledges them.
//!
//! A return of a job that just ended goes out at once. One that could not be delivered waits with backoff and jitter, and is tried again
//! as soon as the minion hears from the master. A return for another master than the minion has is set aside: it stays in the spool, and
//! is the first to go when the spool has no room for the next job.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use brine_protocol::job::join_returns;
use brine_protocol::value::{Value, ValueExt};
use brine_receipts::Series;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::{debug, error, info, warn};

use super::queue::{Due, Pending, Queue};
use super::spool::{Spool, SpoolError, SpooledReturn, Unsynced};
use super::unspooled::Unspooled;
use crate::connection::{ChannelError, Masters};
use crate::events::Events;
use crate::lines::Lines;
use crate::receipts::{Draft, Receipts};

/// Returns under way at once: enough that the master commits many at a time, few enough not to storm a master that comes back.
const SENDERS: usize = 8;
/// A master that answers has a return on its own disk after a few milliseconds, so only returns that wait longer are synced here. Two
/// syncs a job would cost more than the job.
const SYNC_AFTER: Duration = Duration::from_millis(20);
/// The least time between two looks at what is to be synced: so many jobs a second wake that thread seldom, and more of their returns
/// are acknowledged first.
const SYNC_REST: Duration = Duration::from_millis(10);
/// A return that waits for so long gets its file in the spool: its master is away or slow, and the few slots are for those that answer.
const FILE_AFTER: Duration = Duration::from_millis(500);
/// The longest wait between two tries.
const MAX_BACKOFF: Duration = Duration::from_secs(60);
/// A refused return is sent again for as long as masters keep jobs by default (`keep_jobs_seconds`). After that, it could not
/// be looked up.
const MAX_REFUSED_AGE: Duration = Duration::from_secs(86_400);

/// Sends the returns of this minion.
pub struct ReturnSender {
    spool: Arc<Spool>,
    masters: Masters,
    queue: Mutex<Queue>,
    /// Notified when a return was queued or the master is there again.
    work: Notify,
    /// Notified when all returns are delivered or set aside.
    empty: Notify,
    retry: (Duration, Duration),
    /// The lines about returns that their master did not take.
    lines: Lines,
    unspooled: Arc<Unspooled>,
    receipts: Option<Arc<Receipts>>,
    /// Takes the returns that were written and are to be synced.
    unsynced: mpsc::UnboundedSender<Unsynced>,
}

/// A return in the spool that was not sent yet.
#[derive(Debug)]
pub struct Kept {
    entry: SpooledReturn,
    load: Value,
}

impl ReturnSender {
    /// Takes over an opened spool with the returns that an earlier run left. `retry` is the first and the usual longest wait
    /// (`return_retry_timer`, `return_retry_timer_max`). Without `receipts`, none are made.
    pub fn new(
        spool: Spool,
        left: Vec<SpooledReturn>,
        masters: Masters,
        events: Arc<Events>,
        retry: (Duration, Duration),
        receipts: Option<Arc<Receipts>>,
    ) -> Arc<Self> {
        if !left.is_empty() {
            info!("{} returns of earlier jobs wait to be sent", left.len());
        }
        let queue = Queue::of(left.into_iter().map(|entry| Pending::new(entry, None)));
        let spool = Arc::new(spool);
        let unsynced = start_syncing(Arc::clone(&spool), receipts.clone());
        let unspooled = Unspooled::new(masters.clone(), events);
        Arc::new(Self {
            spool,
            unsynced,
            masters,
            queue: Mutex::new(queue),
            work: Notify::new(),
            empty: Notify::new(),
            retry,
            lines: Lines::about("returns that were not taken"),
            unspooled,
            receipts,
        })
    }

    /// Whether one more job may start beside `running` ones. Returns for other masters make room for it.
    pub fn has_room(&self, running: usize) -> bool {
        while !self.spool.has_room(running) {
            let Some(oldest) = self.queue().oldest_set_aside() else { return false };
            error!(jid = oldest.entry.jid(), "the spool is full; a return for another master is given up");
            self.spool.remove(&oldest.entry);
        }
        true
    }

    /// Writes a return into the spool, for the master with this fingerprint or else the one that the minion has. When this returns
    /// `Ok`, the end of this process does not lose the return. If the master does not acknowledge it soon, it is synced as well.
    ///
    /// # Errors
    /// When the return cannot be written; the load comes back without a receipt.
    pub(crate) fn keep(
        &self,
        jid: &str,
        master: Option<Arc<str>>,
        mut load: Value,
        draft: Option<&Draft>,
    ) -> Result<Kept, (SpoolError, Value)> {
        let put = match self.receipts.as_ref().zip(draft) {
            None => self.spool.put(jid, master, &mut load, |_| ()),
            Some((receipts, draft)) => {
                let mut writing = receipts.begin();
                let put = self.spool.put(jid, master, &mut load, |load| writing.seal(draft, load, Series::Spooled));
                match put.is_ok() {
                    // The thread that syncs returns, which is told of this one, unlocks the folder.
                    true => writing.commit_for_now(),
                    // A return that is sent once has a receipt of another series, and one that is not sent has none.
                    false => writing.unseal(&mut load),
                }
                put
            }
        };
        match put {
            Ok((entry, unsynced)) => {
                // The spool bounds this queue. Sending fails only while the process ends, which closes the files as well.
                let _ = self.unsynced.send(unsynced);
                Ok(Kept { entry, load })
            }
            Err(e) => Err((e, load)),
        }
    }

    /// Hands a return to the senders; it goes out at once.
    pub fn deliver(&self, kept: Kept) {
        let Kept { entry, load } = kept;
        self.queue().put_first(entry, load);
        self.work.notify_one();
    }

    /// Sends a return of this size, with a receipt, without spooling it: a refusal, or a return that could not be written to the disk.
    /// It goes to the master with this fingerprint, or else to the minion's present master. If memory has no room
    /// either, the master gets an event that a job has no answer.
    pub(crate) fn send_once(&self, master: Option<Arc<str>>, mut load: Value, bytes: usize, draft: Option<&Draft>) {
        if let Some((receipts, draft)) = self.receipts.as_ref().zip(draft) {
            receipts.seal_direct(draft, &mut load);
        }
        let added = load.get_text("receipt").map_or(0, str::len);
        self.unspooled.send(master, as_sent(load), bytes + added);
    }

    /// Tries all returns now, because the minion has just signed in at its master.
    pub fn master_is_back(&self) {
        self.queue().wake();
        self.work.notify_waiters();
        self.work.notify_one();
        self.unspooled.master_is_back();
    }

    /// Returns in the spool that the minion's master has not acknowledged yet.
    pub fn waiting(&self) -> usize {
        let set_aside = self.queue().count_set_aside();
        self.spool.held_now().0.saturating_sub(set_aside)
    }

    /// Refusals that wait in memory for their turn.
    pub fn refusals(&self) -> usize {
        self.unspooled.waiting()
    }

    /// Waits until every return is acknowledged or set aside and every refusal is sent.
    pub async fn drained(&self) {
        self.unspooled.drained().await;
        loop {
            let emptied = self.empty.notified();
            if self.waiting() == 0 {
                return;
            }
            emptied.await;
        }
    }

    /// Sends returns until the future is dropped.
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
            let Due { request, is_shared, next } = self.queue().take_due(|entry| self.takes_several(entry));
            if request.is_empty() {
                match next {
                    Some(due) => {
                        let _ = tokio::time::timeout_at(due, woken).await;
                    }
                    None => woken.await,
                }
                continue;
            }
            if next.is_some() {
                self.work.notify_one(); // another sender can take the next one
            }
            self.send(request).await;
            if is_shared {
                self.queue().shared_ended();
                self.work.notify_one();
            }
        }
    }

    /// Whether the master of this return takes several in one request. A signature is over one.
    fn takes_several(&self, entry: &SpooledReturn) -> bool {
        let channel = self.masters.asker(entry.master());
        channel.is_ok_and(|channel| !channel.opts.auth.sign_messages && channel.is_brines())
    }

    /// Sends returns for one master in one request.
    async fn send(&self, mut request: Vec<Pending>) {
        let master = request.first().and_then(|pending| pending.entry.master());
        let Ok(channel) = self.masters.asker(master) else {
            return request.into_iter().for_each(|pending| self.set_aside(pending));
        };
        let mut loads = Vec::with_capacity(request.len());
        for pending in &mut request {
            let load = match pending.load.take() {
                Some(load) => load,
                None => {
                    let (spool, entry) = (Arc::clone(&self.spool), pending.entry.clone());
                    match tokio::task::spawn_blocking(move || spool.read(&entry)).await {
                        Ok(Some(load)) => load,
                        // Only a return that goes alone has no load here.
                        _ => return self.notify_if_empty(),
                    }
                }
            };
            loads.push(as_sent(load));
        }
        let Some(load) = join_returns(loads) else { return };
        match channel.request(load).await {
            Ok(Value::Array(replies)) if request.len() > 1 && replies.len() == request.len() => {
                request.into_iter().zip(replies).for_each(|(pending, reply)| self.replied(pending, &reply));
            }
            Ok(reply) => {
                let mut request = request.into_iter();
                request.next().into_iter().for_each(|pending| self.replied(pending, &reply));
                // A master that takes only one at a time.
                request.for_each(|pending| self.again(pending));
            }
            Err(e @ ChannelError::Refused(_)) => {
                request.into_iter().for_each(|pending| self.refused(pending, &e.to_string()));
            }
            Err(e) => {
                for pending in request {
                    if self.lines.may() {
                        warn!(
                            jid = pending.entry.jid(),
                            "the return could not be delivered and will be sent again: {e}"
                        );
                    }
                    self.again(pending);
                }
            }
        }
    }

    fn replied(&self, pending: Pending, reply: &Value) {
        if reply.is_nil() {
            debug!(jid = pending.entry.jid(), "the master has the return");
            self.done(&pending.entry);
        } else {
            self.refused(pending, &format!("it answered {}", describe(reply)));
        }
    }

    fn refused(&self, pending: Pending, why: &str) {
        let jid = pending.entry.jid().to_owned();
        if pending.since.elapsed().unwrap_or_default() > MAX_REFUSED_AGE {
            if self.lines.may() {
                error!(jid, "the master has refused the return for a day; it is given up: {why}");
            }
            self.done(&pending.entry);
        } else {
            if self.lines.may() {
                warn!(jid, "the master did not take the return; it will be sent again: {why}");
            }
            self.again(pending);
        }
    }

    fn done(&self, entry: &SpooledReturn) {
        self.spool.remove(entry);
        self.notify_if_empty();
    }

    /// Leaves a return for another master in the spool until the minion signs in again.
    fn set_aside(&self, pending: Pending) {
        let entry = pending.entry.clone();
        if self.queue().set_aside(pending) {
            let (jid, master) = (entry.jid(), entry.master().unwrap_or_default());
            warn!(
                jid,
                "a return is for another master, with the key {master}; it stays in the spool, as further ones do"
            );
        }
        self.notify_if_empty();
    }

    fn again(&self, mut pending: Pending) {
        pending.failures = pending.failures.saturating_add(1);
        pending.not_before = Instant::now() + backoff(self.retry, pending.failures);
        self.queue().put_last(pending);
        self.work.notify_one();
    }

    fn notify_if_empty(&self) {
        if self.waiting() == 0 {
            self.empty.notify_waiters();
        }
    }

    fn queue(&self) -> std::sync::MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// The jid that the master is to see in place of the job's own, by which the spool knows the return.
pub(crate) const AS_JID: &str = "as_jid";

fn as_sent(mut load: Value) -> Value {
    if let Some(jid) = load.remove(AS_JID) {
        load.insert("jid", jid);
    }
    load
}

/// Starts the thread that syncs returns, except those that are acknowledged and gone before their turn.
fn start_syncing(spool: Arc<Spool>, receipts: Option<Arc<Receipts>>) -> mpsc::UnboundedSender<Unsynced> {
    let (sender, mut unsynced) = mpsc::unbounded_channel::<Unsynced>();
    tokio::task::spawn_blocking(move || {
        // Returns to be synced, and those that were synced and have no file yet; each the oldest first.
        let (mut waiting, mut in_slots) = (VecDeque::<Unsynced>::new(), VecDeque::<Unsynced>::new());
        loop {
            if waiting.is_empty() && in_slots.is_empty() {
                let Some(next) = unsynced.blocking_recv() else { return };
                waiting.push_back(next);
            }
            let age = waiting.front().map_or(Duration::ZERO, Unsynced::age);
            std::thread::sleep(SYNC_AFTER.saturating_sub(age).max(SYNC_REST));
            waiting.extend(std::iter::from_fn(|| unsynced.try_recv().ok()));
            let due = |queue: &VecDeque<Unsynced>, age| queue.partition_point(|one: &Unsynced| one.age() >= age);
            let old = due(&in_slots, FILE_AFTER);
            spool.make_files(in_slots.drain(..old));
            let old = due(&waiting, SYNC_AFTER);
            in_slots.extend(spool.sync(waiting.drain(..old)));
            if let Some(receipts) = &receipts {
                receipts.rest();
            }
        }
    });
    sender
}

/// The wait after this many failures: it doubles from the first bound to [`MAX_BACKOFF`] or the second bound, and is a random time in
/// its upper half.
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
