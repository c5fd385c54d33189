//! Who failed lately, and who came in: what is thought of a log-in before its password is looked at.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use tokio::time::Instant;

use super::Address;

/// Failures of an address until it is refused, and how long one of them counts.
pub(super) const ADDRESS: Allowance = Allowance { failures: 10, most: 10, each: Duration::from_secs(10) };
/// Failures in a user's name until that user is suspect.
pub(super) const USER: Allowance = Allowance { failures: 20, most: 20, each: Duration::from_secs(1) };
/// Failures of all together until each of them takes its time. They are forgotten as fast as they come then, so that it stays so for as long
/// as they come.
pub(super) const TOGETHER: Allowance = Allowance { failures: 64, most: 128, each: Duration::from_millis(250) };
/// How long a user who came in is known, and an address from which it did.
const KNOWN_FOR: Duration = Duration::from_secs(86_400);
/// Users, addresses and known pairs that are remembered; some 40 bytes each.
pub(super) const REMEMBERED_MAX: usize = 8_192;

/// So many failures are nothing, and each of them is forgotten after so long.
#[derive(Debug, Clone, Copy)]
pub(super) struct Allowance {
    pub(super) failures: u32,
    /// So many are counted: who stops is forgotten soon.
    pub(super) most: u32,
    pub(super) each: Duration,
}

/// What is thought of a log-in before its password is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoginStanding {
    /// Of a user who came in from there lately.
    Known,
    Good,
    /// Of a user whose name is tried again and again.
    Suspect,
    /// From an address that tries again and again.
    Refused,
}

/// Who failed lately, and who did not. Each entry is the moment until which it is of use: a bucket that leaks by the clock.
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
        // Of this host nobody knows from where: who has the name may be anybody there.
        let settled = known && from.origin().is_some();
        match (!settled && self.is_over(self.user(from, user), USER, now), known) {
            (true, _) => LoginStanding::Suspect,
            (false, true) => LoginStanding::Known,
            (false, false) => LoginStanding::Good,
        }
    }

    pub(super) fn ended(&mut self, from: Address, user: (&str, &str), right: bool, now: Instant) {
        if right {
            // A name under attack stays so: the right one coming in does not mean that the others have gone.
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

    /// Whether so many fail that each of them has to take its time.
    pub(super) fn are_many(&self, from: Address, now: Instant) -> bool {
        self.is_over(self.together(from), TOGETHER, now)
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
            // What would be forgotten first; who is known last. A look at all of them, at most at the rate of log-ins.
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

    /// What stands for a user's name, as it is used from one side.
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

    /// As fast as it can, for an hour: nobody else has to wait in fred's name.
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
