//! Queues for `_auth` requests, because each one costs RSA operations: a bounded number is in work, the others wait and
//! take little memory. After a restart or a key rotation a whole fleet authenticates within a second, and a minion that
//! is refused then tries again only after `acceptance_wait_time`.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brine_daemon::profile::Timings;
use brine_protocol::ids::MinionId;
use brine_protocol::value::Value;
use brine_zmtp::Reply;
use tokio_util::task::TaskTracker;

use super::guarded;
use crate::access::Address;
use crate::auth::Authenticator;
use crate::fault::Fault;
use crate::refusals::Refusals;

/// Bound on concurrent requests of minions with an accepted key.
const TURNS: usize = 64;
/// Bound on concurrent requests of strangers: enough to use all processors, and few enough not to delay minions with an
/// accepted key.
const TURNS_OF_STRANGERS: usize = 16;
/// Bound on the places of one accepted key in that queue. Further requests of the key wait among those of strangers. A
/// host has one minion and some `salt-call`.
const PLACES_OF_ONE: usize = 8;
/// Bound on the bytes that wait in each queue: the request's own and [`BESIDE`]. A minion's request has 1 to 2 KB, so
/// ten thousand fit.
const WAITING_BYTES: usize = 32 << 20;
/// Memory of a request besides its bytes.
const BESIDE: usize = 1 << 10;

/// A decoded request.
pub(super) struct WaitingAuth {
    pub(super) load: Value,
    pub(super) version: u64,
    /// Length of the request in bytes.
    pub(super) len: usize,
    pub(super) reply: Reply,
}

/// The two queues. Minions with an accepted key wait only behind each other, whatever strangers send.
pub(crate) struct Auths {
    pub(crate) auth: Authenticator,
    refusals: Arc<Refusals>,
    timings: Arc<Timings>,
    known: Mutex<Line<InLine>>,
    strangers: Mutex<Line<InLine>>,
    ids: Arc<Mutex<HashMap<MinionId, usize>>>,
}

struct InLine {
    request: WaitingAuth,
    place: Option<Place>,
}

/// A place in the queue of minions with an accepted key. Such a key is not secret, so each id has at most
/// [`PLACES_OF_ONE`].
struct Place {
    ids: Arc<Mutex<HashMap<MinionId, usize>>>,
    id: MinionId,
}

impl Place {
    fn take(ids: &Arc<Mutex<HashMap<MinionId, usize>>>, id: MinionId) -> Option<Self> {
        let mut taken = ids.lock().unwrap_or_else(PoisonError::into_inner);
        let count = taken.entry(id.clone()).or_default();
        if *count >= PLACES_OF_ONE {
            return None;
        }
        *count += 1;
        Some(Self { ids: Arc::clone(ids), id })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = taken.get_mut(&self.id) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.id);
            }
        }
    }
}

impl Auths {
    /// Makes empty queues for `auth`.
    pub(crate) fn new(auth: Authenticator, refusals: Arc<Refusals>, timings: Arc<Timings>) -> Self {
        Self {
            auth,
            refusals,
            timings,
            known: Mutex::new(Line::new(TURNS)),
            strangers: Mutex::new(Line::new(TURNS_OF_STRANGERS)),
            ids: Arc::default(),
        }
    }

    /// Describes the requests in work and the waiting ones, for the log.
    pub(crate) fn line(&self) -> String {
        let (known, strangers) = (self.lock(true), self.lock(false));
        format!(
            "{} that authenticate of {TURNS} and {} that wait to; of strangers {} of {TURNS_OF_STRANGERS} and {}",
            known.in_work,
            known.waiting.len(),
            strangers.in_work,
            strangers.waiting.len()
        )
    }

    /// Answers a request when its turn comes. Refuses it at once if the queue is full.
    pub(super) async fn take(self: &Arc<Self>, tasks: &TaskTracker, new: WaitingAuth) {
        let size = new.len.saturating_add(BESIDE);
        let place = self.auth.known(&new.load).and_then(|id| Place::take(&self.ids, id));
        let known = place.is_some();
        let come = self.lock(known).come(InLine { request: new, place }, size);
        match come {
            Come::Now(first) => drop(tasks.spawn(work(Arc::clone(self), known, first))),
            Come::Later => {}
            Come::Full(refused) => {
                let no = async { Err::<Vec<u8>, _>(Fault::new("too many minions authenticate at once")) };
                let refused = refused.request;
                let answer = guarded(&self.refusals, || super::sender(&refused.reply), no).await;
                // Ignored: the peer may have gone.
                let _ = refused.reply.send(answer.map_or_else(|refusal| refusal, Into::into)).await;
            }
        }
    }

    fn lock(&self, known: bool) -> MutexGuard<'_, Line<InLine>> {
        let line = if known { &self.known } else { &self.strangers };
        line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Answers requests until the queue is empty.
async fn work(auths: Arc<Auths>, known: bool, first: InLine) {
    let mut next = Some(first);
    while let Some(InLine { request: WaitingAuth { load, version, reply, .. }, place }) = next {
        // A peer that has gone has sent its request again over another connection.
        if !reply.is_gone() {
            let _timed = auths.timings.during("_auth");
            let origin = reply.peer().address.and_then(|peer| Address::Network(peer.ip().to_canonical()).origin());
            let answer =
                guarded(&auths.refusals, || super::sender(&reply), auths.auth.answer(&load, version, origin)).await;
            let _ = reply.send(answer.map_or_else(|refusal| refusal, Into::into)).await;
        }
        drop(place);
        next = auths.lock(known).next();
    }
}

/// What the queue does with a new request.
enum Come<T> {
    Now(T),
    Later,
    Full(T),
}

/// A queue: the number of requests in work, and the waiting ones.
struct Line<T> {
    turns: usize,
    in_work: usize,
    waiting: VecDeque<(T, usize)>,
    bytes: usize,
}

impl<T> Line<T> {
    const fn new(turns: usize) -> Self {
        Self { turns, in_work: 0, waiting: VecDeque::new(), bytes: 0 }
    }

    fn come(&mut self, new: T, size: usize) -> Come<T> {
        if self.in_work < self.turns {
            self.in_work += 1;
            return Come::Now(new);
        }
        if self.bytes.saturating_add(size) > WAITING_BYTES {
            return Come::Full(new);
        }
        self.bytes += size;
        self.waiting.push_back((new, size));
        Come::Later
    }

    /// Returns the next waiting request for a task that has finished one. Frees the task's turn if nothing waits.
    fn next(&mut self) -> Option<T> {
        let Some((next, size)) = self.waiting.pop_front() else {
            self.in_work -= 1;
            // A new queue frees the memory that a storm of requests took.
            self.waiting = VecDeque::new();
            return None;
        };
        self.bytes -= size;
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_seen_a_minions_key_does_not_fill_the_line() {
        let (ids, one): (_, MinionId) = (Arc::default(), "web1".parse().unwrap());
        let places: Vec<Place> = (0..100).filter_map(|_| Place::take(&ids, one.clone())).collect();
        assert_eq!(places.len(), PLACES_OF_ONE);
        assert!(Place::take(&ids, "web2".parse().unwrap()).is_some());
        drop(places);
        assert!(Place::take(&ids, one).is_some() && ids.lock().unwrap().is_empty());
    }

    /// All of ten thousand concurrent requests, as after a key rotation, fit into the queue. Further ones are refused
    /// at once.
    #[test]
    fn a_fleet_fits_in_the_line_and_the_line_is_bounded() {
        let mut line = Line::new(TURNS);
        for number in 0..10_064_usize {
            let now = matches!(line.come(number, 2_000 + BESIDE), Come::Now(_));
            assert_eq!(now, number < TURNS, "{number}");
        }
        assert!(matches!(line.come(0, WAITING_BYTES), Come::Full(_)));
        let more = (0..WAITING_BYTES).take_while(|_| matches!(line.come(0, 2_000 + BESIDE), Come::Later)).count();
        assert!(line.bytes <= WAITING_BYTES && more < 2_000, "{more}");
        assert_eq!(line.next(), Some(TURNS), "the first that waited");
        assert!(matches!(line.come(7, 2_000 + BESIDE), Come::Later), "its room is free");
        while line.next().is_some() {}
        assert_eq!((line.in_work, line.bytes), (TURNS - 1, 0));
    }
}
