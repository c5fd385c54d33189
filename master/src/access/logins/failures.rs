//! Records failed and successful log-ins, and rates a log-in before its password is checked.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use tokio::time::Instant;

use super::Address;

/// Failed log-ins from an address until it is refused, and the time that one of them counts.
pub(super) const ADDRESS: Allowance = Allowance { failures: 10, most: 10, each: Duration::from_secs(10) };
/// Failed log-ins in a user's name until the user is suspect.
pub(super) const USER: Allowance = Allowance { failures: 20, most: 20, each: Duration::from_secs(1) };
/// Failed log-ins of one side until each further failure keeps its place for the delay. At that point failures are
/// forgotten as fast as they can occur, so the state lasts as long as the failures do.
pub(super) const TOGETHER: Allowance = Allowance { failures: 64, most: 128, each: Duration::from_millis(250) };
/// How long a user who logged in is known, together with the address.
const KNOWN_FOR: Duration = Duration::from_secs(86_400);
/// Bound on the entries for users, addresses and known pairs; each takes some 40 bytes.
pub(super) const REMEMBERED_MAX: usize = 8_192;

/// A number of tolerated failures, and the time after which one failure is forgotten.
#[derive(Debug, Clone, Copy)]
pub(super) struct Allowance {
    pub(super) failures: u32,
    /// Bound on the counted failures, so that the state ends soon after the last failure.
    pub(super) most: u32,
    pub(super) each: Duration,
}

/// The rating of a log-in before its password is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoginStanding {
    /// The user has logged in from this address lately.
    Known,
    Good,
    /// The user's name has too many failures.
    Suspect,
    /// The address has too many failures.
    Refused,
}

/// Failed and successful log-ins. Each entry is the time at which it expires, which makes it a leaky bucket.
#[derive(Debug, Default)]
pub(super) struct Failures {
    hasher: RandomState,
    until: HashMap<u64, Instant>,
}

impl Failures {
    pub(super) fn standing(&self, from: Address, user: (&str, &str), now: Instant) -> LoginStanding {
        if from.origin().is_some_and(|origin| self.is_over(self.address(from, origin), ADDRESS, now)) {
            return LoginStanding::Refused;
        }
        let known = !self.left(self.known(from, user), now).is_zero();
        // For this host there is no address, so anybody on the host may be using the name.
        let settled = known && from.origin().is_some();
        match (!settled && self.is_over(self.user(from, user), USER, now), known) {
            (true, _) => LoginStanding::Suspect,
            (false, true) => LoginStanding::Known,
            (false, false) => LoginStanding::Good,
        }
    }

    pub(super) fn ended(&mut self, from: Address, user: (&str, &str), right: bool, now: Instant) {
        if right {
            // A suspect name stays suspect: the attack may go on after the right user has logged in.
            let known = self.known(from, user);
            self.put(known, now + KNOWN_FOR, now);
            return;
        }
        let address = from.origin().map(|origin| (self.address(from, origin), ADDRESS));
        let counted = [Some((self.user(from, user), USER)), Some((self.together(from), TOGETHER)), address];
        for (key, allowance) in counted.into_iter().flatten() {
            let left = (self.left(key, now) + allowance.each).min(allowance.each * allowance.most);
            self.put(key, now + left, now);
        }
    }

    /// Returns whether failures are so many that each keeps its place for the delay.
    pub(super) fn are_many(&self, from: Address, now: Instant) -> bool {
        self.is_over(self.together(from), TOGETHER, now)
    }

    /// Returns how long log-ins from an address stay refused.
    pub(super) fn refused_for(&self, from: Address, now: Instant) -> Duration {
        let left = from.origin().map(|origin| self.left(self.address(from, origin), now)).unwrap_or_default();
        left.saturating_sub(ADDRESS.each * (ADDRESS.failures - 1))
    }

    fn is_over(&self, key: u64, allowance: Allowance, now: Instant) -> bool {
        self.left(key, now) > allowance.each * (allowance.failures - 1)
    }

    fn left(&self, key: u64, now: Instant) -> Duration {
        self.until.get(&key).map(|until| until.saturating_duration_since(now)).unwrap_or_default()
    }

    fn put(&mut self, key: u64, until: Instant, now: Instant) {
        if self.until.len() >= REMEMBERED_MAX && !self.until.contains_key(&key) {
            self.until.retain(|_, until| *until > now);
            // Removes the entry that expires first; known pairs expire last. The search takes linear time, at most once
            // for each log-in.
            if self.until.len() >= REMEMBERED_MAX
                && let Some(first) = self.until.iter().min_by_key(|(_, until)| **until).map(|(key, _)| *key)
            {
                self.until.remove(&first);
            }
        }
        self.until.insert(key, until);
    }

    fn address(&self, from: Address, origin: u64) -> u64 {
        self.hasher.hash_one(("address", from.side(), origin))
    }

    /// Returns the key of a user's name on one side.
    pub(super) fn user(&self, from: Address, user: (&str, &str)) -> u64 {
        self.hasher.hash_one(("user", from.side(), user))
    }

    fn known(&self, from: Address, user: (&str, &str)) -> u64 {
        self.hasher.hash_one(("known", from.side(), from.origin(), user))
    }

    fn together(&self, from: Address) -> u64 {
        self.hasher.hash_one(("together", from.side()))
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    const FRED: (&str, &str) = ("file", "fred");

    fn net(last: u8) -> Address {
        Address::Network(IpAddr::from([192, 0, 2, last]))
    }

    /// One address tries as fast as it can for an hour, and other addresses can still log in as fred.
    #[test]
    fn one_address_locks_nobody_out() {
        for at in [Address::Network, Address::Behind] {
            let address = |last: u8| at(IpAddr::from([192, 0, 2, last]));
            let mut failures = Failures::default();
            let began = Instant::now();
            let mut heard = 0;
            for ms in (0..3_600_000).step_by(250) {
                let now = began + Duration::from_millis(ms);
                if failures.standing(address(66), FRED, now) != LoginStanding::Refused {
                    failures.ended(address(66), FRED, false, now);
                    heard += 1;
                }
                assert_eq!(failures.standing(address(1), FRED, now), LoginStanding::Good, "{ms} ms");
                assert_eq!(failures.standing(Address::Here, FRED, now), LoginStanding::Good, "{ms} ms");
            }
            assert!((360..=371).contains(&heard), "{heard} guesses in an hour");
        }
    }

    #[test]
    fn what_is_remembered_is_bounded_and_the_worst_stays() {
        let mut failures = Failures::default();
        let now = Instant::now();
        failures.ended(net(1), FRED, true, now);
        for _ in 0..USER.failures {
            failures.ended(net(2), FRED, false, now);
        }
        for n in 0..REMEMBERED_MAX + 200 {
            failures.ended(Address::Here, ("file", &n.to_string()), false, now);
        }
        assert_eq!(failures.until.len(), REMEMBERED_MAX);
        assert_eq!(failures.standing(net(2), FRED, now), LoginStanding::Refused);
        assert_eq!(failures.standing(net(3), FRED, now), LoginStanding::Suspect);
        assert_eq!(failures.standing(net(1), FRED, now), LoginStanding::Known);
    }

    #[test]
    fn who_is_known_of_this_host_is_its_name_only() {
        let mut failures = Failures::default();
        let now = Instant::now();
        failures.ended(Address::Here, FRED, true, now);
        assert_eq!(failures.standing(Address::Here, FRED, now), LoginStanding::Known);
        for _ in 0..USER.failures {
            failures.ended(Address::Here, FRED, false, now);
        }
        assert_eq!(failures.standing(Address::Here, FRED, now), LoginStanding::Suspect, "it may be anybody");
        assert_eq!(failures.standing(Address::Here, FRED, now + USER.each * 2), LoginStanding::Known);
    }
}
