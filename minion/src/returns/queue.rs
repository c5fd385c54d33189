//! The returns that wait to be sent, and which of them go in one request.
//!
//! A Brine master takes several returns in one request (§6.2.1 of PROTOCOL.md). One that ends alone goes at once, alone. While two such
//! requests are under way, further returns wait for one of them, and go together: a request costs both sides more than a return.

use std::collections::VecDeque;
use std::time::SystemTime;

use brine_protocol::job::MAX_RETURNS;
use brine_protocol::value::Value;
use tokio::time::Instant;

use super::spool::SpooledReturn;

/// Loads kept in memory while they wait; all others are read back from disk.
const MAX_LOADS_IN_MEMORY: usize = 64;
/// Requests under way at once that have, or could have had, several returns.
const SHARED_MAX: usize = 2;
/// Upper bound on the bytes of the returns in one request: a master takes a request of up to 64 KiB like any small one.
const SHARED_BYTES: u64 = 48 << 10;

#[derive(Default)]
pub(super) struct Queue {
    waiting: VecDeque<Pending>,
    /// Returns for other masters, oldest first.
    set_aside: VecDeque<Pending>,
    /// Whether the log has already mentioned these returns.
    told: bool,
    /// Requests under way that count for [`SHARED_MAX`].
    shared: usize,
}

/// A return that waits.
pub(super) struct Pending {
    pub(super) entry: SpooledReturn,
    /// None while many returns wait; the spool has it in any case.
    pub(super) load: Option<Value>,
    pub(super) failures: u32,
    pub(super) not_before: Instant,
    pub(super) since: SystemTime,
}

impl Pending {
    pub(super) fn new(entry: SpooledReturn, load: Option<Value>) -> Self {
        Self { entry, load, failures: 0, not_before: Instant::now(), since: SystemTime::now() }
    }

    /// Whether it may go together with others. After a failure each goes alone, so that none fails because of another.
    fn is_shareable(&self) -> bool {
        self.failures == 0 && self.load.is_some() && self.entry.size() <= SHARED_BYTES
    }
}

/// What to do next.
#[derive(Default)]
pub(super) struct Due {
    /// The returns of one request, for one master. None are due if it is empty.
    pub(super) request: Vec<Pending>,
    /// Whether this request counts as one that could have several; [`Queue::shared_ended`] is owed.
    pub(super) is_shared: bool,
    /// The time when another one is due.
    pub(super) next: Option<Instant>,
}

impl Queue {
    pub(super) fn of(waiting: impl Iterator<Item = Pending>) -> Self {
        Self { waiting: waiting.collect(), ..Self::default() }
    }

    /// Adds the return of a job that just ended, which goes out first.
    pub(super) fn put_first(&mut self, entry: SpooledReturn, load: Value) {
        let load = (self.waiting.len() < MAX_LOADS_IN_MEMORY).then_some(load);
        self.waiting.push_front(Pending::new(entry, load));
    }

    pub(super) fn put_last(&mut self, pending: Pending) {
        self.waiting.push_back(pending);
    }

    /// Keeps a return for another master than the minion has. Returns true for the first one.
    pub(super) fn set_aside(&mut self, mut pending: Pending) -> bool {
        pending.load = None;
        self.set_aside.push_back(pending);
        !std::mem::replace(&mut self.told, true)
    }

    pub(super) fn oldest_set_aside(&mut self) -> Option<Pending> {
        self.set_aside.pop_front()
    }

    pub(super) fn count_set_aside(&self) -> usize {
        self.set_aside.len()
    }

    /// All are due now.
    pub(super) fn wake(&mut self) {
        let now = Instant::now();
        self.waiting.extend(std::mem::take(&mut self.set_aside));
        self.waiting.iter_mut().for_each(|pending| pending.not_before = now);
    }

    /// Takes the first return that is due, and if `shares` says that its master takes several, those that may go with it.
    pub(super) fn take_due(&mut self, shares: impl FnOnce(&SpooledReturn) -> bool) -> Due {
        let now = Instant::now();
        let Some(at) = self.waiting.iter().position(|pending| pending.not_before <= now) else {
            return Due { next: self.waiting.iter().map(|pending| pending.not_before).min(), ..Due::default() };
        };
        let first = &self.waiting[at];
        let is_shared = first.is_shareable() && shares(&first.entry);
        let at = match is_shared && self.shared >= SHARED_MAX {
            false => Some(at),
            // They wait for the end of a request, not for a time. What has to go alone need not wait with them.
            true => self.waiting.iter().position(|pending| pending.not_before <= now && !pending.is_shareable()),
        };
        let Some(first) = at.and_then(|at| self.waiting.remove(at)) else {
            let later = self.waiting.iter().map(|pending| pending.not_before).filter(|at| *at > now);
            return Due { next: later.min(), ..Due::default() };
        };
        let is_shared = is_shared && first.is_shareable();
        let mut request = vec![first];
        if is_shared {
            self.shared += 1;
            self.add_others(&mut request, now);
            // As they ended: so the master meets their receipts in order.
            request.sort_by(|a, b| a.entry.cmp(&b.entry));
        }
        let next = self.waiting.iter().any(|pending| pending.not_before <= now).then_some(now);
        Due { request, is_shared, next }
    }

    fn add_others(&mut self, request: &mut Vec<Pending>, now: Instant) {
        let mut bytes = request[0].entry.size();
        let mut at = 0;
        while at < self.waiting.len() && request.len() < MAX_RETURNS {
            let pending = &self.waiting[at];
            let goes = pending.not_before <= now
                && pending.is_shareable()
                && pending.entry.master() == request[0].entry.master()
                && bytes + pending.entry.size() <= SHARED_BYTES;
            if goes && let Some(pending) = self.waiting.remove(at) {
                bytes += pending.entry.size();
                request.push(pending);
            } else {
                at += 1;
            }
        }
    }

    /// A request that counted as shared is over.
    pub(super) fn shared_ended(&mut self) {
        self.shared = self.shared.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn entry(number: u64, size: u64, master: Option<&str>) -> SpooledReturn {
        SpooledReturn::for_tests(number, size, master)
    }

    fn numbers(due: &Due) -> Vec<String> {
        due.request.iter().map(|pending| pending.entry.jid().to_owned()).collect()
    }

    fn queue(all: impl IntoIterator<Item = (u64, u64, Option<&'static str>)>) -> Queue {
        let mut queue = Queue::default();
        for (number, size, master) in all {
            queue.put_first(entry(number, size, master), Value::Nil);
        }
        queue
    }

    #[test]
    fn those_for_one_master_go_together_within_the_bounds() {
        let mut queue = queue((1..=40).map(|n| (n, 100, Some(if n % 10 == 0 { "b" } else { "a" }))));
        let due = queue.take_due(|_| true);
        // The last that ended is for `b`.
        assert_eq!(numbers(&due), ["10", "20", "30", "40"]);
        assert!(due.is_shared && due.next.is_some());
        let due = queue.take_due(|_| true);
        assert_eq!((due.request.len(), due.next.is_some()), (MAX_RETURNS, true));
        assert!(due.request.is_sorted_by_key(|pending| &pending.entry));
        // Two are under way: the rest waits for one of them to end.
        let none = queue.take_due(|_| true);
        assert!(none.request.is_empty() && none.next.is_none());
        queue.shared_ended();
        assert_eq!(queue.take_due(|_| true).request.len(), 4);
    }

    #[test]
    fn large_ones_failed_ones_and_those_for_other_masters_go_alone_and_need_not_wait() {
        let size = SHARED_BYTES / 2;
        let mut queue = queue([(1, size, None), (2, size, None), (3, size, None), (4, SHARED_BYTES + 1, None)]);
        assert_eq!(numbers(&queue.take_due(|_| true)), ["4"]);
        assert_eq!(numbers(&queue.take_due(|_| true)), ["2", "3"], "as many bytes as fit");
        let mut failed = Pending::new(entry(5, 1, None), Some(Value::Nil));
        failed.failures = 1;
        queue.put_last(failed);
        assert_eq!(numbers(&queue.take_due(|_| true)), ["1"]);
        queue.put_first(entry(6, 1, None), Value::Nil);
        assert_eq!(numbers(&queue.take_due(|_| true)), ["5"], "6 waits");
        assert!(queue.take_due(|_| true).request.is_empty());
        assert_eq!(numbers(&queue.take_due(|_| false)), ["6"], "its master takes one at a time");
    }

    #[test]
    fn what_is_due_later_is_not_taken_along() {
        let mut queue = queue([(1, 1, None), (2, 1, None)]);
        let mut later = Pending::new(entry(3, 1, None), Some(Value::Nil));
        later.not_before += Duration::from_secs(60);
        let at = later.not_before;
        queue.put_last(later);
        let due = queue.take_due(|_| true);
        assert_eq!((numbers(&due).len(), due.next), (2, None));
        assert_eq!(queue.take_due(|_| true).next, Some(at));
        queue.wake();
        assert_eq!(numbers(&queue.take_due(|_| true)), ["3"]);
    }

    #[test]
    fn many_waiting_loads_are_left_in_the_spool_and_then_go_alone() {
        let mut queue = queue((0..100).map(|n| (n, 1, None)));
        let mut alone = 0;
        loop {
            let due = queue.take_due(|_| true);
            if due.request.is_empty() {
                break;
            }
            alone += usize::from(!due.is_shared);
            assert!(due.is_shared || due.request.len() == 1);
            if due.is_shared {
                queue.shared_ended();
            }
        }
        assert_eq!(alone, 100 - MAX_LOADS_IN_MEMORY);
    }
}
