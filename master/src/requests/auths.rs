//! `_auth` requests: so many at a time, since each takes some RSA, and the rest in line, in little memory. After a restart or a rotation of
//! the key a whole fleet asks within a second; whoever is turned away then comes back only after `acceptance_wait_time`.

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

/// Requests of minions with an accepted key that are looked at together.
const TURNS: usize = 64;
/// Requests of others: enough for the processors, few enough that they are no crowd for who waits for the same processors.
const TURNS_OF_STRANGERS: usize = 16;
/// Requests of one accepted key in that line; further ones wait with those of strangers. A host has a minion and some `salt-call`.
const PLACES_OF_ONE: usize = 8;
/// Bytes of requests that wait in each line, those of the network and [`BESIDE`] each. A minion's has 1 to 2 KB, so ten thousand of them fit.
const WAITING_BYTES: usize = 32 << 20;
/// What a request takes besides its bytes.
const BESIDE: usize = 1 << 10;

/// A request, decoded.
pub(super) struct WaitingAuth {
    pub(super) load: Value,
    pub(super) version: u64,
    /// Bytes that it had.
    pub(super) len: usize,
    pub(super) reply: Reply,
}

/// The lines. Whatever strangers do, minions whose key is accepted wait behind each other only.
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

/// A place in the line of minions whose key is accepted. Such a key is no secret, so one id has only [`PLACES_OF_ONE`].
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
    /// Empty lines before `auth`.
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

    /// What is in work and what waits, for the log.
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

    /// Answers a request when its turn comes, or says no at once where too many wait.
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
                let answer = guarded(&self.refusals, &refused.reply, no).await;
                // A peer that has gone needs no answer.
                let _ = refused.reply.send(answer.map_or_else(|refusal| refusal, Into::into)).await;
            }
        }
    }

    fn lock(&self, known: bool) -> MutexGuard<'_, Line<InLine>> {
        let line = if known { &self.known } else { &self.strangers };
        line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Answers one request after the other until none is left.
async fn work(auths: Arc<Auths>, known: bool, first: InLine) {
    let mut next = Some(first);
    while let Some(InLine { request: WaitingAuth { load, version, reply, .. }, place }) = next {
        // Who has not waited for its turn has asked again over another connection, and waits there.
        if !reply.is_gone() {
            let _timed = auths.timings.during("_auth");
            let origin = reply.peer().address.and_then(|peer| Address::Network(peer.ip().to_canonical()).origin());
            let answer = guarded(&auths.refusals, &reply, auths.auth.answer(&load, version, origin)).await;
            let _ = reply.send(answer.map_or_else(|refusal| refusal, Into::into)).await;
        }
        drop(place);
        next = auths.lock(known).next();
    }
}

/// What becomes of a newcomer.
enum Come<T> {
    Now(T),
    Later,
    Full(T),
}

/// Who is in work and who waits, apart from what they want.
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

    /// The next in line for who is done with one; without a next one its turn is free.
    fn next(&mut self) -> Option<T> {
        let Some((next, size)) = self.waiting.pop_front() else {
            self.in_work -= 1;
            // A storm leaves no room behind that it took.
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

    /// Ten thousand at once, which is what a rotated key brings, are all answered; strangers who are more than that are told at once.
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
