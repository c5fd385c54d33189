//! `brine:host/watches`: what happens to files, for beacons.
//!
//! Each beacon that watches has an inotify instance of its own, which a task reads between its looks, and a queue of what
//! happened. Both end with the beacon.
//!
//! - `set.rs` what one beacon watches · `queue.rs` what happened and was not taken yet · `bits.rs` the kernel's bits

mod bits;
mod queue;
mod set;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use brine_protocol::value::Value;
use brine_sandbox::{Caller, HostError, WatchesOp};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::{Notify, watch};
use tracing::error;

use self::queue::Happened;
use self::set::{Read, Set};
use super::changes::said;
use super::slow::Slow;
use super::{MinionBroker, Perform};

/// Upper bound on the beacons that watch. A user has 128 inotify instances.
const MAX_SETS: usize = 32;
/// Operations at once. Each takes a thread.
const AT_ONCE: usize = 8;
/// The time that one may take: a walk through a large directory.
const PATIENCE: Duration = Duration::from_secs(25);
/// The time between two reads of one instance. It bounds what a storm of events costs; the kernel keeps 16,384 meanwhile.
const PAUSE: Duration = Duration::from_millis(100);

/// The longest wait for something to happen.
const MAX_WAIT: Duration = Duration::from_secs(60);
/// The time after which the paths are found anew during a wait: what is there may be another file.
const RENEW: Duration = Duration::from_secs(2);

/// What all beacons watch.
pub(super) struct Watches {
    sets: Arc<Mutex<Sets>>,
    slow: Arc<Slow>,
    all: Arc<AtomicUsize>,
}

/// By the beacon's name.
type Sets = HashMap<String, One>;

struct One {
    /// The module that looks. Another one does not get what this one watched.
    module: String,
    set: Arc<Mutex<Set>>,
    /// Told when something was read.
    news: Arc<Notify>,
}

impl Perform<WatchesOp> for MinionBroker {
    async fn perform(&self, caller: &Caller, op: WatchesOp) -> Result<Value, HostError> {
        let WatchesOp::Take { watches: asked, after, wait_ms } = op;
        let Some(beacon) = self.beacons.looking(&caller.job.jid, &caller.chain) else {
            return Err(HostError::Denied(
                "files are watched for beacons alone, and this is no look of one".to_owned(),
            ));
        };
        let mut names = self.beacons.names();
        let (set, news) = self.watches.of(&beacon, caller.module.as_str(), names.clone())?;
        // Half of the call's time is for what the module makes of the events.
        let left = caller.ends.saturating_duration_since(Instant::now()) / 2;
        let until = Instant::now() + Duration::from_millis(wait_ms.into()).min(MAX_WAIT).min(left);
        loop {
            let (set, asked, finder) = (Arc::clone(&set), asked.clone(), self.changes.finder(caller));
            let take = move || lock(&set).take(finder, asked, after);
            let taken = self.watches.slow.ask("watching files", take).await?;
            let taken = said(caller, taken)?;
            let now = Instant::now();
            if !taken.is_empty() || now >= until {
                return Ok(Value::Array(taken.iter().map(Happened::value).collect()));
            }
            let gone = async { drop(names.wait_for(|names| !names.contains(&beacon)).await) };
            let news = async {
                news.notified().await;
                // What comes with it is taken with it.
                tokio::time::sleep(PAUSE).await;
            };
            tokio::select! {
                () = gone => return Ok(Value::Array(Vec::new())),
                () = news => {}
                () = tokio::time::sleep(RENEW.min(until - now)) => {}
            }
        }
    }
}

impl Watches {
    pub(super) fn new() -> Self {
        Self { sets: Arc::default(), slow: Arc::new(Slow::new(AT_ONCE, PATIENCE)), all: Arc::default() }
    }

    /// What a beacon watches: nothing at first.
    fn of(
        &self,
        beacon: &str,
        module: &str,
        names: watch::Receiver<BTreeSet<String>>,
    ) -> Result<(Arc<Mutex<Set>>, Arc<Notify>), HostError> {
        let mut sets = lock(&self.sets);
        if let Some(one) = sets.get(beacon).filter(|one| one.module == module) {
            return Ok((Arc::clone(&one.set), Arc::clone(&one.news)));
        }
        if !sets.contains_key(beacon) && sets.len() >= MAX_SETS {
            return Err(HostError::Failed(format!("{MAX_SETS} beacons watch files, and no more may")));
        }
        let failed = |why| HostError::Failed(format!("watching files: {why}"));
        let set = Set::new(beacon, Arc::clone(&self.all)).map_err(|e| failed(e.to_string()))?;
        #[expect(deprecated, reason = "sound for an OwnedFd; the other constructor is unsafe for all")]
        let inotify = AsyncFd::with_interest(set.inotify(), Interest::READABLE).map_err(|e| failed(e.to_string()))?;
        let (set, news) = (Arc::new(Mutex::new(set)), Arc::new(Notify::new()));
        let one = One { module: module.to_owned(), set: Arc::clone(&set), news: Arc::clone(&news) };
        sets.insert(beacon.to_owned(), one);
        let reading = Reading {
            beacon: beacon.to_owned(),
            set: Arc::downgrade(&set),
            sets: Arc::downgrade(&self.sets),
            slow: Arc::clone(&self.slow),
            news: Arc::clone(&news),
            names,
        };
        tokio::spawn(reading.run(inotify));
        Ok((set, news))
    }
}

/// Reads what happens, until the beacon is gone.
struct Reading {
    beacon: String,
    set: Weak<Mutex<Set>>,
    sets: Weak<Mutex<Sets>>,
    slow: Arc<Slow>,
    news: Arc<Notify>,
    names: watch::Receiver<BTreeSet<String>>,
}

impl Reading {
    async fn run(mut self, inotify: AsyncFd<Arc<std::os::fd::OwnedFd>>) {
        loop {
            let ready = tokio::select! {
                _ = self.names.wait_for(|names| !names.contains(&self.beacon)) => None,
                ready = inotify.readable() => Some(ready),
            };
            let mut ready = match ready {
                None => return self.end(),
                Some(Ok(ready)) => ready,
                Some(Err(why)) => return error!("beacon {}: inotify failed: {why}", self.beacon),
            };
            let Some(set) = self.set.upgrade() else { return };
            let read = move || lock(&set).read();
            // One that takes too long goes on in its thread.
            match self.slow.ask("watching files", read).await {
                Ok(Read::All) => ready.clear_ready(),
                Ok(Read::More) | Err(_) => {}
            }
            self.news.notify_one();
            tokio::time::sleep(PAUSE).await;
        }
    }

    fn end(&self) {
        if let (Some(sets), Some(set)) = (self.sets.upgrade(), self.set.upgrade()) {
            let mut sets = lock(&sets);
            if sets.get(&self.beacon).is_some_and(|one| Arc::ptr_eq(&one.set, &set)) {
                sets.remove(&self.beacon);
            }
        }
    }
}

fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}
