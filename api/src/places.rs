//! Places: how many of something there may be at once, in all and for one address.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::address::Networks;

/// The bits of an IPv6 address that tell one network from another: within it, one host has as many addresses as it wants.
const NETWORK_BITS: u128 = !0 << 64;

/// A number of places.
#[derive(Debug)]
pub struct Places {
    all: usize,
    each: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    /// Only addresses that have a place.
    by: HashMap<IpAddr, usize>,
}

/// A place, free again when dropped.
#[derive(Debug)]
pub struct Place {
    places: Arc<Places>,
    key: Option<IpAddr>,
}

impl Places {
    /// So many places in all, and so many for one address.
    pub fn new(all: usize, each: usize) -> Arc<Self> {
        Arc::new(Self { all, each, taken: Mutex::default() })
    }

    /// Takes a place for an address; for none, only the number in all counts. None, if there is no free one.
    pub fn take(self: &Arc<Self>, address: Option<IpAddr>) -> Option<Place> {
        let key = address.map(network);
        let mut taken = self.taken();
        let own = key.and_then(|key| taken.by.get(&key).copied()).unwrap_or_default();
        if taken.all >= self.all || own >= self.each {
            return None;
        }
        taken.all += 1;
        if let Some(key) = key {
            taken.by.insert(key, own + 1);
        }
        drop(taken);
        Some(Place { places: Arc::clone(self), key })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken();
        taken.all -= 1;
        let Some(key) = self.key else { return };
        match taken.by.get_mut(&key) {
            Some(own) if *own > 1 => *own -= 1,
            _ => drop(taken.by.remove(&key)),
        }
    }
}

/// Returns the address that bounds for one address count. None for those that many callers share: this host's own, where
/// proxies are, and trusted proxies. (Of loopback only the two addresses that programs use unless told otherwise.)
pub fn counted(address: IpAddr, proxies: &Networks) -> Option<IpAddr> {
    let own = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
    (!own.contains(&address) && !proxies.contains(address)).then_some(address)
}

fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & NETWORK_BITS).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> Option<IpAddr> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn an_address_has_its_share_and_no_more() {
        let places = Places::new(5, 2);
        let first = places.take(ip("192.0.2.1")).unwrap();
        let _second = places.take(ip("::ffff:192.0.2.1")).unwrap();
        assert!(places.take(ip("192.0.2.1")).is_none(), "its third");
        let _third = places.take(ip("2001:db8::1")).unwrap();
        let _fourth = places.take(ip("2001:db8::2:1")).unwrap();
        assert!(places.take(ip("2001:db8::3")).is_none(), "the same network");
        let last = places.take(None).unwrap();
        assert!(places.take(None).is_none() && places.take(ip("192.0.2.9")).is_none(), "no place is left");
        drop((first, last));
        assert!(places.take(ip("192.0.2.1")).is_some());
    }

    /// Refused or gone, an address leaves nothing behind.
    #[test]
    fn addresses_that_are_gone_take_no_memory() {
        let places = Places::new(1, 1);
        for n in 0..100_000_u32 {
            let address = Some(IpAddr::V4(Ipv4Addr::from_bits(n)));
            let place = places.take(address).unwrap();
            assert!(places.take(address).is_none());
            drop(place);
        }
        let taken = places.taken();
        assert_eq!((taken.by.len(), taken.all), (0, 0));
    }

    #[test]
    fn shared_addresses_are_not_counted() {
        let proxies = Networks::parse(["10.0.0.0/8"]).unwrap();
        for (address, is_counted) in
            [("127.0.0.1", false), ("::1", false), ("10.1.2.3", false), ("127.0.0.2", true), ("192.0.2.1", true)]
        {
            assert_eq!(counted(ip(address).unwrap(), &proxies).is_some(), is_counted, "{address}");
        }
    }
}
