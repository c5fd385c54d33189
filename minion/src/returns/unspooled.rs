//! Returns that are not in the spool: refusals of jobs for which there is no room, and returns that the disk did not take.
//!
//! They wait in memory, within bounds, for a few senders. A return that finds no room here either, or that the master does not
//! acknowledge, is counted. The master then gets the event `salt/minion/<id>/jobs/unanswered` with the `number` of such jobs and the
//! first of their `jids`.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use brine_protocol::value::{Value, ValueExt, list, map};
use tokio::sync::Notify;
use tokio_util::task::TaskTracker;
use tracing::warn;

use crate::connection::{ChannelError, Masters};
use crate::events::Events;
use crate::lines::Lines;

/// Upper bound on waiting returns: more than a master publishes in a second.
const MAX_WAITING: usize = 16_384;
/// Upper bound on their bytes.
const MAX_WAITING_BYTES: usize = 16 << 20;
/// Returns under way at once, so that jobs that run have the other connections of the channel.
const SENDERS: usize = 6;
/// A return is given up after this many tries without a reply.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(500);
/// Upper bound on the jids in the event.
const MAX_JIDS: usize = 100;

/// Sends the returns that are not in the spool.
pub(super) struct Unspooled {
    masters: Masters,
    events: Arc<Events>,
    state: Mutex<State>,
    empty: Notify,
    tasks: TaskTracker,
    /// The lines about refusals that did not arrive.
    lines: Lines,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Waiting>,
    bytes: usize,
    senders: usize,
    /// The jobs without an answer that the master has not heard of.
    lost: Lost,
}

struct Waiting {
    master: Option<Arc<str>>,
    load: Value,
    bytes: usize,
    tries: u32,
}

/// Jobs without an answer.
#[derive(Debug, Default)]
struct Lost {
    number: u64,
    jids: Vec<String>,
}

impl Lost {
    fn add(&mut self, load: &Value) {
        self.number += 1;
        if self.jids.len() < MAX_JIDS {
            self.jids.extend(load.get_text("jid").map(str::to_owned));
        }
    }

    fn put_back(&mut self, other: Self) {
        self.number += other.number;
        self.jids.extend(other.jids);
        self.jids.truncate(MAX_JIDS);
    }
}

impl Unspooled {
    pub(super) fn new(masters: Masters, events: Arc<Events>) -> Arc<Self> {
        let (state, empty, tasks) = (Mutex::default(), Notify::new(), TaskTracker::new());
        let lines = Lines::about("refusals that were not taken");
        Arc::new(Self { masters, events, state, empty, tasks, lines })
    }

    /// Queues a return of this size.
    pub(super) fn send(self: &Arc<Self>, master: Option<Arc<str>>, load: Value, bytes: usize) {
        let mut state = self.state();
        // A single return may exceed the bound on bytes.
        let full = state.waiting.len() >= MAX_WAITING || state.bytes.saturating_add(bytes) > MAX_WAITING_BYTES;
        if full && !state.waiting.is_empty() {
            if state.lost.number == 0 {
                warn!("more jobs are refused than their answers have room; the master is told how many");
            }
            state.lost.add(&load);
        } else {
            state.bytes += bytes;
            state.waiting.push_back(Waiting { master, load, bytes, tries: TRIES });
        }
        self.start_sender(state);
    }

    /// Sends the event about lost returns, if it is due: the minion has just signed in at its master.
    pub(super) fn master_is_back(self: &Arc<Self>) {
        let state = self.state();
        if state.lost.number > 0 {
            self.start_sender(state);
        }
    }

    /// Waits until no return waits and none is under way.
    pub(super) async fn drained(&self) {
        loop {
            let emptied = self.empty.notified();
            if self.state().senders == 0 {
                return;
            }
            emptied.await;
        }
    }

    /// The number of returns that wait.
    pub(super) fn waiting(&self) -> usize {
        self.state().waiting.len()
    }

    fn start_sender(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        if state.senders >= SENDERS {
            return;
        }
        state.senders += 1;
        drop(state);
        let this = Arc::clone(self);
        self.tasks.spawn(async move { while this.send_next().await {} });
    }

    /// Sends one return and returns true if there may be another. The last sender reports the lost ones.
    async fn send_next(&self) -> bool {
        let next = {
            let mut state = self.state();
            let next = state.waiting.pop_front();
            match &next {
                Some(next) => state.bytes -= next.bytes,
                None if state.senders > 1 || state.lost.number == 0 => return self.end_sender(state),
                None => {}
            }
            next
        };
        let Some(mut next) = next else {
            let told = self.report_lost().await;
            let state = self.state();
            return if told || !state.waiting.is_empty() { true } else { self.end_sender(state) };
        };
        let answer = match self.masters.asker(next.master.as_deref()) {
            Ok(channel) => channel.request(next.load.clone()).await,
            Err(e) => Err(e),
        };
        match answer {
            Ok(_) => {}
            Err(e @ ChannelError::Refused(_)) => {
                if self.lines.may() {
                    warn!("the master did not take a refusal: {e}");
                }
            }
            Err(e) if next.tries > 1 => {
                if self.lines.may() {
                    warn!("a refusal could not be sent and will be sent again: {e}");
                }
                next.tries -= 1;
                tokio::time::sleep(PAUSE).await;
                let mut state = self.state();
                state.bytes += next.bytes;
                state.waiting.push_front(next);
            }
            Err(e) => {
                if self.lines.may() {
                    warn!("a refusal could not be sent and is given up: {e}");
                }
                self.state().lost.add(&next.load);
            }
        }
        true
    }

    fn end_sender(&self, mut state: MutexGuard<'_, State>) -> bool {
        state.senders -= 1;
        if state.senders == 0 {
            self.empty.notify_waiters();
        }
        false
    }

    /// Sends the event about lost returns. Returns false if the master did not get it.
    async fn report_lost(&self) -> bool {
        let lost = std::mem::take(&mut self.state().lost);
        let data = map([("number", Value::from(lost.number)), ("jids", list(lost.jids.iter().map(String::as_str)))]);
        warn!("{} jobs were refused without an answer", lost.number);
        match self.events.try_send_own("jobs/unanswered", data).await {
            Ok(()) => true,
            Err(e) => {
                warn!("the master could not be told how many jobs got no answer; it will be when it is back: {e}");
                self.state().lost.put_back(lost);
                false
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_is_counted_and_the_first_are_named() {
        let mut lost = Lost::default();
        for n in 0..150 {
            lost.add(&map([("jid", n.to_string())]));
        }
        let mut later = Lost::default();
        later.add(&map([("jid", "later")]));
        later.put_back(lost);
        assert_eq!((later.number, later.jids.len()), (151, MAX_JIDS));
    }
}
