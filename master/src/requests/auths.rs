//! Queues for `_auth` requests, because each one costs RSA operations: a bounded number is in work, the others wait and
//! take little memory. After a restart or a key rotation a whole fleet authenticates within a second, and a minion that
//! is refused then tries again only after `acceptance_wait_time`. The addresses of strangers take turns, so that none of
//! them keeps the minions of all others from asking for acceptance.

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
            known.len(),
            strangers.in_work,
            strangers.len()
        )
    }

    /// Answers a request when its turn comes. Refuses it at once if the queue is full.
    pub(super) async fn take(self: &Arc<Self>, tasks: &TaskTracker, new: WaitingAuth) {
        let size = new.len.saturating_add(BESIDE);
        let place = self.auth.known(&new.load).and_then(|id| Place::take(&self.ids, id));
        let known = place.is_some();
        let from = if known { None } else { origin(&new.reply) };
        let come = self.lock(known).come(InLine { request: new, place }, size, from);
        match come {
            Come::Now(first) => drop(tasks.spawn(work(Arc::clone(self), known, first))),
            Come::Later(refused) => {
                for InLine { request: refused, .. } in refused {
                    let no = async { Err::<Vec<u8>, _>(Fault::new("too many minions authenticate at once")) };
                    let answer = guarded(&self.refusals, || super::sender(&refused.reply), no).await;
                    // Ignored: the peer may have gone.
                    let _ = refused.reply.send(answer.map_or_else(|refusal| refusal, Into::into)).await;
                }
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
            let answer = auths.auth.answer(&load, version, origin(&reply));
            let answer = guarded(&auths.refusals, || super::sender(&reply), answer).await;
            let _ = reply.send(answer.map_or_else(|refusal| refusal, Into::into)).await;
        }
        drop(place);
        next = auths.lock(known).next();
    }
}

/// The address that a request counts for; none if it is of this host.
fn origin(reply: &Reply) -> Option<u64> {
    Address::Network(reply.peer().address?.ip().to_canonical()).origin()
}

/// What the queue does with a new request.
enum Come<T> {
    Now(T),
    /// These are refused: the new one, or some that waited and give their room to it.
    Later(Vec<T>),
}

/// A queue: the number of requests in work, and the waiting ones by where they are from.
struct Line<T> {
    turns: usize,
    in_work: usize,
    waiting: HashMap<Option<u64>, Waiting<T>>,
    /// Where those who wait are from, in the order of their turns.
    order: VecDeque<Option<u64>>,
    bytes: usize,
}

/// The waiting requests of one address, with their sizes.
struct Waiting<T> {
    requests: VecDeque<(T, usize)>,
    bytes: usize,
}

impl<T> Line<T> {
    fn new(turns: usize) -> Self {
        Self { turns, in_work: 0, waiting: HashMap::new(), order: VecDeque::new(), bytes: 0 }
    }

    fn len(&self) -> usize {
        self.waiting.values().map(|waiting| waiting.requests.len()).sum()
    }

    fn come(&mut self, new: T, size: usize, from: Option<u64>) -> Come<T> {
        if self.in_work < self.turns {
            self.in_work += 1;
            return Come::Now(new);
        }
        let own = self.waiting.get(&from).map_or(0, |waiting| waiting.bytes).saturating_add(size);
        let mut refused = Vec::new();
        while self.bytes.saturating_add(size) > WAITING_BYTES {
            let Some(newest) = self.newest_of_who_has_more(own) else {
                refused.push(new);
                return Come::Later(refused);
            };
            refused.push(newest);
        }
        let waiting = self.waiting.entry(from).or_insert_with(|| Waiting { requests: VecDeque::new(), bytes: 0 });
        if waiting.requests.is_empty() {
            self.order.push_back(from);
        }
        waiting.requests.push_back((new, size));
        waiting.bytes += size;
        self.bytes += size;
        Come::Later(refused)
    }

    /// Takes out the newest request of the address with the most waiting bytes, if these are more than `bytes`.
    fn newest_of_who_has_more(&mut self, bytes: usize) -> Option<T> {
        let (&from, most) = self.waiting.iter_mut().max_by_key(|(_, waiting)| waiting.bytes)?;
        if most.bytes <= bytes {
            return None;
        }
        let (newest, size) = most.requests.pop_back()?;
        most.bytes -= size;
        if most.requests.is_empty() {
            self.waiting.remove(&from);
            self.order.retain(|one| *one != from);
        }
        self.bytes -= size;
        Some(newest)
    }

    /// Returns the next waiting request for a task that has finished one. Frees the task's turn if nothing waits.
    fn next(&mut self) -> Option<T> {
        while let Some(from) = self.order.pop_front() {
            let Some(waiting) = self.waiting.get_mut(&from) else { continue };
            let Some((next, size)) = waiting.requests.pop_front() else { continue };
            waiting.bytes -= size;
            if waiting.requests.is_empty() {
                self.waiting.remove(&from);
            } else {
                self.order.push_back(from);
            }
            self.bytes -= size;
            return Some(next);
        }
        self.in_work -= 1;
        // A new queue frees the memory that a storm of requests took.
        self.waiting = HashMap::new();
        self.order = VecDeque::new();
        None
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
            let now = matches!(line.come(number, 2_000 + BESIDE, None), Come::Now(_));
            assert_eq!(now, number < TURNS, "{number}");
        }
        let waits = |come: Come<usize>| matches!(come, Come::Later(refused) if refused.is_empty());
        assert!(matches!(line.come(7, WAITING_BYTES, None), Come::Later(refused) if refused == [7]));
        let more = (0..WAITING_BYTES).take_while(|_| waits(line.come(0, 2_000 + BESIDE, None))).count();
        assert!(line.bytes <= WAITING_BYTES && more < 2_000, "{more}");
        assert_eq!(line.next(), Some(TURNS), "the first that waited");
        assert!(waits(line.come(7, 2_000 + BESIDE, None)), "its room is free");
        while line.next().is_some() {}
        assert_eq!((line.in_work, line.bytes, line.len()), (TURNS - 1, 0, 0));
    }

    #[test]
    fn the_addresses_of_strangers_take_turns_and_share_the_room() {
        let mut line = Line::new(1);
        assert!(matches!(line.come(0, 1, Some(1)), Come::Now(0)));
        let flood = WAITING_BYTES / 1_000;
        for number in 1..=flood {
            assert!(matches!(line.come(number, 1_000, Some(1)), Come::Later(refused) if refused.is_empty()));
        }
        assert!(matches!(line.come(9, 1_000, Some(1)), Come::Later(refused) if refused == [9]), "not for its own");
        assert!(matches!(line.come(10_001, 1_500, Some(2)), Come::Later(refused) if refused == [flood, flood - 1]));
        assert!(matches!(line.come(10_002, 500, Some(2)), Come::Later(_)));
        assert!(line.bytes <= WAITING_BYTES);
        let order: Vec<usize> = (0..5).filter_map(|_| line.next()).collect();
        assert_eq!(order, [1, 10_001, 2, 10_002, 3]);
        while line.next().is_some() {}
        assert_eq!((line.in_work, line.bytes, line.len()), (0, 0, 0));
    }
}
