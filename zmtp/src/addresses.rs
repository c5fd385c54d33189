//! Limits the connections of one address to a socket, and chooses which of them are closed.
//!
//! A connection is *silent* as long as it has done nothing: during its handshake; on a PUB until it subscribes; on a
//! ROUTER while it has no request under way and is not authenticated. Silent connections cost little except their
//! number, so silence alone does not close them. The oldest ones are closed when their own address has too many of them,
//! or when there is no place for a new connection.
//!
//! If no connection is silent, the address with the most connections of unproved peers loses its newest, so that a few
//! addresses do not keep all others out. Connections of authenticated peers stay.

use std::{
    collections::{BTreeMap, HashMap},
    net::{IpAddr, Ipv6Addr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;
use tracing::warn;

use crate::{SocketLimits, throttle::Throttle};

/// The connections of all addresses.
#[derive(Debug, Clone)]
pub(crate) struct Addresses {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    who: fn(IpAddr) -> Option<IpAddr>,
    max_half_open: usize,
    max_silent: usize,
    max_connections: usize,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// Those that are exempt from the limits count together, as `None`.
    by_address: HashMap<Option<IpAddr>, Address>,
    complaints: Throttle,
}

/// The connections of an address, by number, so that the oldest comes first.
#[derive(Debug, Default)]
struct Address {
    connections: usize,
    half_open: BTreeMap<u64, Arc<Notify>>,
    silent: BTreeMap<u64, Arc<Notify>>,
    /// Those that did something and did not prove who they are.
    busy: BTreeMap<u64, Arc<Notify>>,
}

/// How a connection counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    HalfOpen,
    Silent,
    Busy,
    Proved,
}

/// One connection. It counts until it is dropped.
#[derive(Debug)]
pub(crate) struct Visit {
    addresses: Addresses,
    /// The address for which it counts; `None` if it is exempt.
    pub(crate) address: Option<IpAddr>,
    connection: u64,
    state: State,
    /// Notified when the connection has to close.
    told: Arc<Notify>,
}

impl Addresses {
    pub(crate) fn new(limits: &SocketLimits, who: fn(IpAddr) -> Option<IpAddr>) -> Addresses {
        Addresses {
            inner: Arc::new(Inner {
                who,
                max_half_open: limits.max_half_open_per_address,
                max_silent: limits.max_silent_per_address.max(1),
                max_connections: limits.max_connections_per_address,
                known: Mutex::default(),
            }),
        }
    }

    /// Counts a new connection whose handshake begins. The error says why it is refused.
    pub(crate) fn enter(&self, address: Option<SocketAddr>, connection: u64) -> Result<Visit, &'static str> {
        let address = self.key(address);
        let mut known = self.known();
        if let Some(has) = known.by_address.get(&address).filter(|_| address.is_some()) {
            if has.connections >= self.inner.max_connections {
                return Err("its address has as many connections as its limit allows");
            }
            if has.half_open.len() >= self.inner.max_half_open {
                return Err("its address has too many unfinished handshakes");
            }
        }
        let told = Arc::default();
        let has = known.by_address.entry(address).or_default();
        has.connections += 1;
        has.half_open.insert(connection, Arc::clone(&told));
        Ok(Visit { addresses: self.clone(), address, connection, state: State::HalfOpen, told })
    }

    /// Closes a connection to make room for one of this address. Returns false if none has to give way.
    pub(crate) fn make_room(&self, address: Option<SocketAddr>) -> bool {
        let key = self.key(address);
        let mut known = self.known();
        let most = known.by_address.iter_mut().max_by_key(|(address, has)| (has.idle(), **address == key));
        if let Some((_, most)) = most
            && most.oldest_gives_way()
        {
            return true;
        }
        let own = known.by_address.get(&key).map_or(0, |has| has.busy.len());
        let most = known.by_address.values_mut().max_by_key(|has| has.busy.len());
        match most.filter(|most| most.busy.len() > own.saturating_add(1)) {
            Some(most) => most.newest_gives_way(),
            None => false,
        }
    }

    fn key(&self, address: Option<SocketAddr>) -> Option<IpAddr> {
        address.and_then(|address| (self.inner.who)(address.ip()))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // No panic is possible while the lock is held.
        self.inner.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Address {
    /// The connections that have done nothing.
    fn idle(&self) -> usize {
        self.half_open.len() + self.silent.len()
    }

    /// The oldest connection that has done nothing gives way.
    fn oldest_gives_way(&mut self) -> bool {
        let oldest = |some: &BTreeMap<u64, Arc<Notify>>| some.first_key_value().map_or(u64::MAX, |(number, _)| *number);
        let from = if oldest(&self.half_open) < oldest(&self.silent) { &mut self.half_open } else { &mut self.silent };
        tell(from.pop_first())
    }

    fn newest_gives_way(&mut self) -> bool {
        tell(self.busy.pop_last())
    }

    fn list(&mut self, state: State) -> Option<&mut BTreeMap<u64, Arc<Notify>>> {
        match state {
            State::HalfOpen => Some(&mut self.half_open),
            State::Silent => Some(&mut self.silent),
            State::Busy => Some(&mut self.busy),
            State::Proved => None,
        }
    }
}

fn tell(connection: Option<(u64, Arc<Notify>)>) -> bool {
    let Some((_, told)) = connection else { return false };
    told.notify_one();
    true
}

impl Visit {
    /// The handshake is complete.
    pub(crate) fn is_through(&mut self) {
        self.becomes(State::Busy);
    }

    /// Marks the connection as silent.
    pub(crate) fn is_silent(&mut self) {
        self.becomes(State::Silent);
        let Some(key) = self.address else { return };
        let mut known = self.addresses.known();
        let max = self.addresses.inner.max_silent;
        let Some(has) = known.by_address.get_mut(&self.address) else { return };
        if has.silent.len() > max {
            tell(has.silent.pop_first());
            if let Some(more) = known.complaints.pass() {
                warn!("{key} has more than {max} silent connections: its oldest are closed (and {more} more)");
            }
        }
    }

    /// Marks the connection as not silent.
    pub(crate) fn is_busy(&mut self) {
        self.becomes(State::Busy);
    }

    /// Marks the connection as one whose peer proved who it is.
    pub(crate) fn is_proved(&mut self) {
        self.becomes(State::Proved);
    }

    fn becomes(&mut self, state: State) {
        let mut known = self.addresses.known();
        let Some(has) = known.by_address.get_mut(&self.address) else { return };
        if let Some(before) = has.list(self.state) {
            before.remove(&self.connection);
        }
        if let Some(now) = has.list(state) {
            now.insert(self.connection, Arc::clone(&self.told));
        }
        self.state = state;
    }

    /// Waits until the connection has to close. Cancel-safe.
    pub(crate) async fn gives_way(&self) {
        self.told.notified().await;
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let mut known = self.addresses.known();
        if let Some(has) = known.by_address.get_mut(&self.address) {
            has.connections -= 1;
            if let Some(list) = has.list(self.state) {
                list.remove(&self.connection);
            }
            if has.connections == 0 {
                known.by_address.remove(&self.address);
            }
        }
    }
}

/// The unit that counts as one address: of IPv6 a whole /64, because one host can use all of it; none for loopback.
pub(crate) fn site(address: IpAddr) -> Option<IpAddr> {
    let address = address.to_canonical();
    if address.is_loopback() {
        return None;
    }
    Some(match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => {
            let mut segments = address.segments();
            segments[4..].fill(0);
            IpAddr::V6(Ipv6Addr::from(segments))
        }
    })
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use super::*;

    fn address(text: &str) -> Option<SocketAddr> {
        Some(SocketAddr::new(text.parse().unwrap(), 1))
    }

    fn addresses(half_open: usize, silent: usize, connections: usize) -> Addresses {
        let limits = SocketLimits {
            max_half_open_per_address: half_open,
            max_silent_per_address: silent,
            max_connections_per_address: connections,
            ..SocketLimits::default()
        };
        Addresses::new(&limits, site)
    }

    fn silent(addresses: &Addresses, from: &str, connection: u64) -> Visit {
        let mut visit = addresses.enter(address(from), connection).unwrap();
        visit.is_through();
        visit.is_silent();
        visit
    }

    fn is_told(visit: &Visit) -> bool {
        let mut told = std::pin::pin!(visit.gives_way());
        told.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn unfinished_handshakes_are_capped_by_address() {
        let addresses = addresses(2, 10, 10);
        let one = addresses.enter(address("192.0.2.1"), 1).unwrap();
        let mut two = addresses.enter(address("::ffff:192.0.2.1"), 2).unwrap();
        assert!(addresses.enter(address("192.0.2.1"), 3).is_err());
        assert!(addresses.enter(address("192.0.2.2"), 3).is_ok());
        drop(one);
        let three = addresses.enter(address("192.0.2.1"), 4).unwrap();
        assert!(addresses.enter(address("192.0.2.1"), 5).is_err());
        two.is_through();
        let four = addresses.enter(address("192.0.2.1"), 6).unwrap();
        drop((two, three, four));
        assert!(addresses.known().by_address.is_empty());
    }

    #[test]
    fn connections_are_capped_by_address() {
        let addresses = addresses(10, 10, 2);
        let visits = [silent(&addresses, "192.0.2.1", 1), silent(&addresses, "192.0.2.1", 2)];
        assert!(addresses.enter(address("192.0.2.1"), 3).is_err());
        assert!(addresses.enter(address("192.0.2.2"), 3).is_ok());
        drop(visits);
        assert!(addresses.enter(address("192.0.2.1"), 4).is_ok());
    }

    #[test]
    fn the_oldest_silent_one_of_an_address_gives_way() {
        let addresses = addresses(10, 2, 10);
        let (mut one, two) = (silent(&addresses, "192.0.2.1", 1), silent(&addresses, "192.0.2.1", 2));
        let other = silent(&addresses, "192.0.2.2", 3);
        one.is_busy();
        let three = silent(&addresses, "192.0.2.1", 4);
        assert!(![&one, &two, &other, &three].into_iter().any(is_told), "two are silent");
        let four = silent(&addresses, "192.0.2.1", 5);
        assert!(is_told(&two) && ![&one, &other, &three, &four].into_iter().any(is_told));
        one.is_silent();
        assert!(is_told(&one), "it is the oldest of those that are silent");
    }

    #[test]
    fn when_there_is_no_place_the_address_with_most_silent_ones_gives_way() {
        let addresses = addresses(100, 100, 100);
        let flood: Vec<_> = (0..10).map(|n| silent(&addresses, "192.0.2.1", n)).collect();
        let _few: Vec<_> = (10..12).map(|n| silent(&addresses, "192.0.2.2", n)).collect();
        assert!(addresses.make_room(address("192.0.2.3")) && is_told(&flood[0]));
        assert!(addresses.make_room(None) && is_told(&flood[1]));
        assert!(addresses.make_room(address("192.0.2.1")) && is_told(&flood[2]), "also for one of its own");
    }

    #[test]
    fn who_never_finishes_the_handshake_gives_way_too() {
        let addresses = addresses(100, 100, 100);
        // Those of the host itself are not limited by address, and so have to give way here.
        let local: Vec<_> = (0..3).map(|n| addresses.enter(None, n).unwrap()).collect();
        let quiet = silent(&addresses, "127.0.0.1", 3);
        for visit in &local {
            assert!(addresses.make_room(None) && is_told(visit));
        }
        assert!(addresses.make_room(None) && is_told(&quiet));
        assert!(!addresses.make_room(None));
    }

    #[test]
    fn an_address_with_many_busy_ones_leaves_places_to_others() {
        let addresses = addresses(100, 100, 100);
        let busy = |from, n| {
            let mut visit = silent(&addresses, from, n);
            visit.is_busy();
            visit
        };
        let mut proved: Vec<_> = (0..10).map(|n| busy("192.0.2.1", n)).collect();
        proved.iter_mut().for_each(Visit::is_proved);
        let flood: Vec<_> = (10..14).map(|n| busy("192.0.2.2", n)).collect();
        let few: Vec<_> = (14..16).map(|n| busy("192.0.2.3", n)).collect();
        assert!(!addresses.make_room(address("192.0.2.2")), "not for one more of its own");
        assert!(addresses.make_room(address("192.0.2.3")) && is_told(&flood[3]), "the newest");
        assert!(addresses.make_room(address("192.0.2.4")) && is_told(&flood[2]));
        assert!(!few.iter().chain(&proved).chain(&flood[..2]).any(is_told));
    }

    #[test]
    fn one_ipv6_network_counts_as_one_address() {
        let addresses = addresses(1, 1, 10);
        let _one = addresses.enter(address("2001:db8::1"), 1).unwrap();
        assert!(addresses.enter(address("2001:db8::ffff:2"), 2).is_err());
        assert!(addresses.enter(address("2001:db8:0:1::1"), 3).is_ok());
    }

    #[test]
    fn loopback_and_unix_peers_are_exempt() {
        let addresses = addresses(0, 1, 0);
        for address in [address("127.0.0.1"), address("127.9.9.9"), address("::1"), address("::ffff:127.0.0.1"), None] {
            let mut visits: Vec<_> = (0..5).map(|n| addresses.enter(address, n).unwrap()).collect();
            for visit in &mut visits {
                visit.is_through();
                visit.is_silent();
            }
            assert!(!visits.iter().any(is_told));
        }
        assert!(addresses.known().by_address.is_empty());
    }
}
