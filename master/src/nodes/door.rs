//! Strangers at the port for nodes: connections that have not proved an accepted key yet.
//!
//! Each handshake costs the master a signature, so their rate has a bound, of one address and of all. Those that draw it out make room
//! for new ones. Addresses from which a node has come lately are not kept out by strangers elsewhere; that is all that an address is
//! good for here.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::bucket::{Bucket, Size};

/// Upper bound on the handshakes at once. The oldest makes room: an honest one takes some milliseconds.
const OPEN_MAX: usize = 64;
/// Upper bound on those of one address.
const OPEN_OF_ONE: usize = 8;
/// Handshakes of one address. A node that is refused tries every few seconds.
const OF_ONE: Size = Size { most: 20.0, each_second: 2.0 };
/// Handshakes of all addresses together: a signature takes less than a millisecond.
const OF_ALL: Size = Size { most: 200.0, each_second: 50.0 };
/// Addresses of which the rate is remembered before full ones are forgotten. Of strangers, `OF_ALL` bounds the others.
const RATES_MAX: usize = 1_024;
/// Addresses of nodes that are remembered, and how long.
const KNOWN_MAX: usize = 256;
const KNOWN_FOR: Duration = Duration::from_secs(86_400);

/// The strangers.
#[derive(Debug)]
pub(super) struct Door(Mutex<State>);

#[derive(Debug)]
struct State {
    next: u64,
    /// By age: the oldest has the lowest number.
    open: BTreeMap<u64, (u64, CancellationToken)>,
    rates: HashMap<u64, Bucket>,
    all: Bucket,
    known: HashMap<u64, Instant>,
}

/// A stranger's connection. Dropping it ends its place.
#[derive(Debug)]
pub(super) struct Visit {
    door: Arc<Door>,
    number: u64,
    origin: u64,
    over: CancellationToken,
}

impl Door {
    pub(super) fn new(now: Instant) -> Arc<Self> {
        let all = Bucket::full(OF_ALL, now);
        let (open, rates, known) = (BTreeMap::new(), HashMap::new(), HashMap::new());
        Arc::new(Self(Mutex::new(State { next: 0, open, rates, all, known })))
    }

    /// Takes in a connection from this origin; none if there were too many.
    pub(super) fn enter(self: &Arc<Self>, origin: u64, now: Instant) -> Option<Visit> {
        let mut state = self.lock();
        if !state.takes(origin, now) {
            return None;
        }
        let of_one = state.open.iter().filter(|(_, (of, _))| *of == origin);
        let in_the_way = match (of_one.clone().count() >= OPEN_OF_ONE, state.open.len() >= OPEN_MAX) {
            (true, _) => of_one.map(|(number, _)| *number).next(),
            (false, true) => state.open.keys().next().copied(),
            (false, false) => None,
        };
        if let Some((_, oldest)) = in_the_way.and_then(|number| state.open.remove(&number)) {
            oldest.cancel();
        }
        let (number, over) = (state.next, CancellationToken::new());
        state.next += 1;
        state.open.insert(number, (origin, over.clone()));
        drop(state);
        Some(Visit { door: Arc::clone(self), number, origin, over })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Counts a handshake.
    fn takes(&mut self, origin: u64, now: Instant) -> bool {
        // Who has used up its own allowance takes nothing of the others'.
        if self.rates.get_mut(&origin).is_some_and(|rate| !rate.missing(OF_ONE, 1.0, 0.0, now).is_zero()) {
            return false;
        }
        let is_known = self.known.get(&origin).is_some_and(|since| now.saturating_duration_since(*since) < KNOWN_FOR);
        if !is_known && !self.all.take(OF_ALL, 1.0, 0.0, now) {
            return false;
        }
        if self.rates.len() >= RATES_MAX {
            self.rates.retain(|_, rate| !rate.is_full(OF_ONE, now));
        }
        self.rates.entry(origin).or_insert_with(|| Bucket::full(OF_ONE, now)).take(OF_ONE, 1.0, 0.0, now)
    }
}

impl Visit {
    /// Waits until the place is needed for others.
    pub(super) async fn over(&self) {
        self.over.cancelled().await;
    }

    /// A node has proved an accepted key.
    pub(super) fn prove(self, now: Instant) {
        let mut state = self.door.lock();
        if state.known.len() >= KNOWN_MAX
            && !state.known.contains_key(&self.origin)
            && let Some(oldest) = state.known.iter().min_by_key(|(_, since)| **since).map(|(origin, _)| *origin)
        {
            state.known.remove(&oldest);
        }
        state.known.insert(self.origin, now);
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.door.lock().open.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_over(visit: &Visit) -> bool {
        visit.over.is_cancelled()
    }

    #[test]
    fn who_draws_it_out_makes_room() {
        let now = Instant::now();
        let door = Door::new(now);
        let of_one: Vec<_> = (0..=OPEN_OF_ONE).map(|_| door.enter(7, now).unwrap()).collect();
        assert!(is_over(&of_one[0]) && of_one[1..].iter().all(|visit| !is_over(visit)), "of one address");
        let others: Vec<_> = (0..OPEN_MAX as u64).map(|n| door.enter(100 + n, now).unwrap()).collect();
        assert!(of_one.iter().all(is_over) && others.iter().all(|visit| !is_over(visit)), "of all");
        drop(others);
        drop(of_one);
        assert!(door.lock().open.is_empty());
    }

    #[test]
    fn handshakes_have_a_rate() {
        let now = Instant::now();
        let door = Door::new(now);
        let count = |origin: u64, now| (0..100).filter(|_| door.enter(origin, now).is_some()).count();
        assert_eq!(count(1, now), 20, "of one address");
        assert_eq!(count(1, now + Duration::from_secs(3)), 6);
        // A node has come from there.
        door.enter(2, now).unwrap().prove(now);
        let later = now + Duration::from_secs(60);
        let of_all: usize = (1_000..1_100).map(|origin| count(origin, later)).sum();
        assert_eq!(of_all, 200, "of all");
        assert_eq!((count(5, later), count(2, later)), (0, 20), "strangers do not keep a node out");
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut now = Instant::now();
        let door = Door::new(now);
        for origin in 0..5_000 {
            now += Duration::from_millis(50);
            if let Some(visit) = door.enter(origin, now) {
                visit.prove(now);
            }
        }
        let state = door.lock();
        assert!(state.rates.len() <= RATES_MAX && state.known.len() <= KNOWN_MAX, "{state:?}");
    }
}
