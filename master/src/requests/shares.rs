//! A bound on the requests of one minion in work. Without it one minion could have all places (`crate::lanes`), with requests that take
//! long, and the others would wait for it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brine_protocol::ids::MinionId;
use tokio::sync::oneshot;

/// Requests of one minion in work. A Brine minion has 29 connections, with a request on each.
const IN_WORK_OF_ONE: usize = 64;
/// Requests of one minion that wait for these. A minion of Python's has a connection for each job that ends.
const WAITING_OF_ONE: usize = 256;

/// The requests in work, by minion.
#[derive(Debug, Default)]
pub(crate) struct Shares(Mutex<HashMap<MinionId, Share>>);

#[derive(Debug, Default)]
struct Share {
    in_work: usize,
    waiting: VecDeque<oneshot::Sender<Within>>,
}

/// A place within the share of a minion, free when dropped.
#[derive(Debug)]
pub(crate) struct Within {
    shares: Arc<Shares>,
    id: MinionId,
}

/// What a minion's share says to one more request.
#[derive(Debug)]
pub(crate) enum Entry {
    /// It may begin.
    Now(Within),
    /// It has to wait for others of the same minion.
    Later(oneshot::Receiver<Within>),
    /// There are too many already.
    Full,
}

impl Shares {
    /// Asks for a place for one more request of a minion.
    pub(crate) fn enter(self: &Arc<Self>, id: &MinionId) -> Entry {
        let mut shares = self.lock();
        let share = shares.entry(id.clone()).or_default();
        if share.in_work < IN_WORK_OF_ONE {
            share.in_work += 1;
            return Entry::Now(Within { shares: Arc::clone(self), id: id.clone() });
        }
        // Some of these may have been given up.
        share.waiting.retain(|waiting| !waiting.is_closed());
        if share.waiting.len() >= WAITING_OF_ONE {
            return Entry::Full;
        }
        let (give, given) = oneshot::channel();
        share.waiting.push_back(give);
        Entry::Later(given)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<MinionId, Share>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Within {
    fn drop(&mut self) {
        let mut shares = self.shares.lock();
        let Some(share) = shares.get_mut(&self.id) else { return };
        let Some(next) = share.waiting.pop_front() else {
            share.in_work -= 1;
            if share.in_work == 0 {
                shares.remove(&self.id);
            }
            return;
        };
        drop(shares);
        // One who gave up meanwhile drops what he is sent, and so it goes on to the next.
        let _ = next.send(Self { shares: Arc::clone(&self.shares), id: self.id.clone() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> MinionId {
        MinionId::try_from(text).unwrap()
    }

    fn now(shares: &Arc<Shares>, name: &str) -> Within {
        match shares.enter(&id(name)) {
            Entry::Now(within) => within,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn one_minion_has_its_share_and_others_have_theirs() {
        let shares = Arc::<Shares>::default();
        let mut within: Vec<Within> = (0..IN_WORK_OF_ONE).map(|_| now(&shares, "a")).collect();
        let mut later: VecDeque<_> = (0..WAITING_OF_ONE)
            .map(|_| match shares.enter(&id("a")) {
                Entry::Later(given) => given,
                other => panic!("{other:?}"),
            })
            .collect();
        assert!(matches!(shares.enter(&id("a")), Entry::Full));
        drop(now(&shares, "b"));
        // In the order in which they came; who gave up is left out, and makes room.
        drop(later.pop_front());
        assert!(matches!(shares.enter(&id("a")), Entry::Later(_)));
        drop(within.pop());
        let mut first = later.pop_front().unwrap();
        let taken = first.try_recv().unwrap();
        assert!(later.front_mut().unwrap().try_recv().is_err());
        drop((taken, within, later));
        assert!(shares.lock().is_empty(), "{shares:?}");
    }
}
