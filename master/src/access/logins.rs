//! How fast passwords can be tried.
//!
//! A wrong one is answered a second later, as in Salt, and keeps its place until then: so many a second are wrong at most, however many
//! connections try. Callers of this host (salt-api among them) have places of their own: strangers cannot keep them waiting.
//!
//! What failed is counted, by address and by user, and forgotten at a steady rate ([`Failures`]):
//!
//! - An *address* that failed too often is refused at once, unheard, right password or wrong: it is its own doing. Ten attempts, then one
//!   each ten seconds. This host has no address, for everybody who comes through salt-api would have the same.
//! - A *user* that failed too often is not refused, for then any stranger could lock anybody out. What is said in that user's name waits in
//!   a lane with one place: all names under attack get one wrong answer a second together. A right password is served when its turn comes,
//!   which is behind [`SUSPECTS_WAITING_MAX`] others at most.
//! - Nor can one address keep that lane full: it gets one attempt each ten seconds, a user forgets one failure each second, so it takes
//!   more than ten addresses to make anybody wait. An address from which the user came in lately is not sent there at all.
//!
//! Users of this host and of the network are counted apart. What is remembered are keyed hashes of a fixed size, in a table of fixed
//! length; failures come one by one at four a second at most, so that filling it takes longer than what it remembers is of use.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::hash::{BuildHasher as _, RandomState};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Instant;

/// A wrong password is answered so late.
const WRONG_TAKES: Duration = Duration::from_secs(1);
/// Log-ins that are looked at together, from this host and from the network each.
const PLACES: usize = 4;
/// Log-ins that wait for a place; who comes then is refused at once.
const WAITING_MAX: usize = 64;
/// Log-ins in the name of users under attack that wait for their one place.
const SUSPECTS_WAITING_MAX: usize = 16;
/// Failures of an address until it is refused, and how long one of them counts.
const ADDRESS: Allowance = Allowance { failures: 10, each: Duration::from_secs(10) };
/// Failures in a user's name until that user is suspect.
const USER: Allowance = Allowance { failures: 20, each: Duration::from_secs(1) };
/// How long an address from which a user came in is known as the user's.
const KNOWN_FOR: Duration = Duration::from_secs(86_400);
/// Users, addresses and known pairs that are remembered; some 40 bytes each.
const REMEMBERED_MAX: usize = 8_192;

/// Where a request came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum From {
    /// This host.
    Here,
    /// The network.
    Network(IpAddr),
}

impl fmt::Display for From {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Here => f.write_str("local"),
            Self::Network(address) => address.fmt(f),
        }
    }
}

impl From {
    /// What one host of the network has for itself: an address, or a /64 of IPv6, of which every host can have as many as it likes.
    pub(crate) fn origin(self) -> Option<u64> {
        match self {
            Self::Here => None,
            Self::Network(IpAddr::V4(address)) => Some(u64::from(address.to_bits())),
            Self::Network(IpAddr::V6(address)) => {
                Some(address.octets()[..8].iter().fold(0, |bits, byte| bits << 8 | u64::from(*byte)))
            }
        }
    }
}

#[derive(Debug)]
pub(super) struct Logins {
    wrong_takes: Duration,
    here: Lane,
    network: Lane,
    suspects: Lane,
    failures: Mutex<Failures>,
}

#[derive(Debug)]
struct Lane {
    places: Semaphore,
    waiting: Semaphore,
}

impl Lane {
    fn new(places: usize, waiting: usize) -> Self {
        Self { places: Semaphore::new(places), waiting: Semaphore::new(waiting) }
    }
}

impl Default for Logins {
    fn default() -> Self {
        Self::new(WRONG_TAKES)
    }
}

impl Logins {
    fn new(wrong_takes: Duration) -> Self {
        let lane = || Lane::new(PLACES, WAITING_MAX);
        let suspects = Lane::new(1, SUSPECTS_WAITING_MAX);
        Self { wrong_takes, here: lane(), network: lane(), suspects, failures: Mutex::default() }
    }

    /// What `check` says of `user` (of a system), in its turn; an error without asking it when there are too many.
    pub(super) async fn attempt(
        &self,
        from: From,
        user: (&str, &str),
        check: impl Future<Output = bool>,
    ) -> Result<bool, &'static str> {
        let lane = match (self.failures().standing(from, user, Instant::now()), from) {
            (Standing::Refused, _) => return Err("too many log-ins of this address failed; it has to wait"),
            (Standing::Suspect, _) => &self.suspects,
            (Standing::Good, From::Here) => &self.here,
            (Standing::Good, From::Network(_)) => &self.network,
        };
        let Ok(waiting) = lane.waiting.try_acquire() else { return Err("too many log-ins wait already") };
        let Ok(_place) = lane.places.acquire().await else { return Ok(false) };
        drop(waiting);
        // It may have failed elsewhere while it waited here.
        if self.failures().standing(from, user, Instant::now()) == Standing::Refused {
            return Err("too many log-ins of this address failed; it has to wait");
        }
        let answer_at = Instant::now() + self.wrong_takes;
        let right = check.await;
        self.failures().ended(from, user, right, Instant::now());
        if !right {
            tokio::time::sleep_until(answer_at).await;
        }
        Ok(right)
    }

    fn failures(&self) -> std::sync::MutexGuard<'_, Failures> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// So many failures are nothing, and each of them is forgotten after so long.
#[derive(Debug, Clone, Copy)]
struct Allowance {
    failures: u32,
    each: Duration,
}

/// What is thought of a log-in before its password is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Good,
    /// Of a user whose name is tried again and again.
    Suspect,
    /// From an address that tries again and again.
    Refused,
}

/// Who failed lately, and who did not. Each entry is the moment until which it is of use: a bucket that leaks by the clock.
#[derive(Debug, Default)]
struct Failures {
    hasher: RandomState,
    until: HashMap<u64, Instant>,
}

impl Failures {
    fn standing(&self, from: From, user: (&str, &str), now: Instant) -> Standing {
        let is_over = |key: u64, allowance: Allowance| self.left(key, now) > allowance.each * (allowance.failures - 1);
        if from.origin().is_some_and(|origin| is_over(self.address(origin), ADDRESS)) {
            return Standing::Refused;
        }
        let known = from.origin().is_some_and(|origin| !self.left(self.pair(origin, user), now).is_zero());
        if !known && is_over(self.user(from, user), USER) { Standing::Suspect } else { Standing::Good }
    }

    fn ended(&mut self, from: From, user: (&str, &str), right: bool, now: Instant) {
        match (right, from.origin()) {
            (true, Some(origin)) => {
                let pair = self.pair(origin, user);
                self.put(pair, now + KNOWN_FOR, now);
            }
            // Who is under attack stays so: the right one coming in does not mean that the others have gone.
            (true, None) => {}
            (false, origin) => {
                for (key, allowance) in
                    [origin.map(|o| (self.address(o), ADDRESS)), Some((self.user(from, user), USER))]
                        .into_iter()
                        .flatten()
                {
                    // Never more than is needed to be over: who stops is forgotten soon.
                    let left = (self.left(key, now) + allowance.each).min(allowance.each * allowance.failures);
                    self.put(key, now + left, now);
                }
            }
        }
    }

    fn left(&self, key: u64, now: Instant) -> Duration {
        self.until.get(&key).map(|until| until.saturating_duration_since(now)).unwrap_or_default()
    }

    fn put(&mut self, key: u64, until: Instant, now: Instant) {
        if self.until.len() >= REMEMBERED_MAX && !self.until.contains_key(&key) {
            self.until.retain(|_, until| *until > now);
            // What would be forgotten first; known pairs last. A look at all of them, at most at the rate of log-ins.
            if self.until.len() >= REMEMBERED_MAX
                && let Some(first) = self.until.iter().min_by_key(|(_, until)| **until).map(|(key, _)| *key)
            {
                self.until.remove(&first);
            }
        }
        self.until.insert(key, until);
    }

    fn address(&self, origin: u64) -> u64 {
        self.hasher.hash_one(("address", origin))
    }

    fn user(&self, from: From, user: (&str, &str)) -> u64 {
        self.hasher.hash_one(("user", from == From::Here, user))
    }

    fn pair(&self, origin: u64, user: (&str, &str)) -> u64 {
        self.hasher.hash_one(("known", origin, user))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    const FRED: (&str, &str) = ("file", "fred");

    fn net(last: u8) -> From {
        From::Network(IpAddr::from([192, 0, 2, last]))
    }

    #[tokio::test(start_paused = true)]
    async fn wrong_passwords_are_slow_however_many_try() {
        let logins = Arc::new(Logins::default());
        let began = Instant::now();
        let mut guesses = tokio::task::JoinSet::new();
        for n in 0..20 {
            let logins = Arc::clone(&logins);
            guesses.spawn(async move { logins.attempt(net(n), ("file", &n.to_string()), async { false }).await });
        }
        tokio::task::yield_now().await;
        assert_eq!(logins.attempt(From::Here, FRED, async { true }).await, Ok(true), "this host has places of its own");
        assert!(began.elapsed() < WRONG_TAKES);
        assert!(guesses.join_all().await.iter().all(|right| *right == Ok(false)));
        assert!(began.elapsed() >= WRONG_TAKES * 5, "four at a time");
    }

    #[tokio::test(start_paused = true)]
    async fn who_comes_when_too_many_wait_is_refused_at_once() {
        let logins = Arc::new(Logins::default());
        let mut guesses = tokio::task::JoinSet::new();
        for n in 0..PLACES + WAITING_MAX {
            let logins = Arc::clone(&logins);
            let from = net(u8::try_from(n).unwrap());
            guesses.spawn(async move { logins.attempt(from, ("file", &n.to_string()), async { false }).await });
        }
        while logins.network.waiting.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        let began = Instant::now();
        assert!(logins.attempt(net(200), FRED, async { true }).await.is_err());
        assert!(began.elapsed() < WRONG_TAKES);
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_that_goes_on_is_not_heard_for_a_while() {
        let logins = Logins::default();
        let mut heard = 0;
        while logins.attempt(net(1), ("file", &heard.to_string()), async { false }).await.is_ok() {
            heard += 1;
            assert!(heard < 20, "an address is heard for ever");
        }
        assert!(heard >= ADDRESS.failures, "{heard}");
        let asked = std::cell::Cell::new(false);
        let check = async {
            asked.set(true);
            true
        };
        assert!(logins.attempt(net(1), FRED, check).await.is_err(), "whatever the name");
        assert!(!asked.get(), "no password is looked at");
        assert_eq!(logins.attempt(net(2), FRED, async { true }).await, Ok(true), "others are heard");
        tokio::time::advance(ADDRESS.each).await;
        assert_eq!(logins.attempt(net(1), FRED, async { true }).await, Ok(true), "and it is heard again");
    }

    #[tokio::test(start_paused = true)]
    async fn a_user_under_attack_comes_in_all_the_same() {
        let logins = Arc::new(Logins::default());
        assert_eq!(logins.attempt(net(1), FRED, async { true }).await, Ok(true));
        let now = Instant::now();
        for n in 0..USER.failures {
            logins.failures().ended(net(100 + u8::try_from(n).unwrap()), FRED, false, now);
        }
        assert_eq!(logins.failures().standing(net(2), FRED, now), Standing::Suspect);
        assert_eq!(logins.failures().standing(From::Here, FRED, now), Standing::Good, "the network is not this host");
        assert_eq!(logins.failures().standing(net(2), ("file", "ann"), now), Standing::Good);
        assert_eq!(logins.failures().standing(net(1), FRED, now), Standing::Good, "where fred came from before");
        let mut guesses = tokio::task::JoinSet::new();
        for n in 0..SUSPECTS_WAITING_MAX - 1 {
            let (logins, from) = (Arc::clone(&logins), net(150 + u8::try_from(n).unwrap()));
            guesses.spawn(async move { logins.attempt(from, FRED, async { false }).await });
        }
        tokio::task::yield_now().await;
        let began = Instant::now();
        assert_eq!(logins.attempt(net(2), FRED, async { true }).await, Ok(true), "a new address of fred's");
        let waited = began.elapsed();
        assert!(
            waited >= WRONG_TAKES * 2 && waited <= WRONG_TAKES * 17,
            "{waited:?}: one wrong one a second before it"
        );
        assert!(guesses.join_all().await.iter().all(|right| *right == Ok(false)));
    }

    /// As fast as it can, for an hour: nobody else has to wait in fred's name.
    #[tokio::test(start_paused = true)]
    async fn one_address_locks_nobody_out() {
        let mut failures = Failures::default();
        let began = Instant::now();
        let mut heard = 0;
        for ms in (0..3_600_000).step_by(250) {
            let now = began + Duration::from_millis(ms);
            if failures.standing(net(66), FRED, now) != Standing::Refused {
                failures.ended(net(66), FRED, false, now);
                heard += 1;
            }
            assert_eq!(failures.standing(net(1), FRED, now), Standing::Good, "{ms} ms");
        }
        assert!((360..=371).contains(&heard), "{heard} guesses in an hour");
    }

    #[test]
    fn hosts_of_one_ipv6_network_are_one() {
        let six = |text: &str| From::Network(text.parse().unwrap()).origin();
        assert_eq!(six("2001:db8::1"), six("2001:db8::2:3"));
        assert_ne!(six("2001:db8::1"), six("2001:db8:0:1::1"));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_remembered_is_bounded_and_the_worst_stays() {
        let mut failures = Failures::default();
        let now = Instant::now();
        failures.ended(net(1), FRED, true, now);
        for _ in 0..USER.failures {
            failures.ended(net(2), FRED, false, now);
        }
        for n in 0..REMEMBERED_MAX + 200 {
            failures.ended(From::Here, ("file", &n.to_string()), false, now);
        }
        assert_eq!(failures.until.len(), REMEMBERED_MAX);
        assert_eq!(failures.standing(net(2), FRED, now), Standing::Refused);
        assert_eq!(failures.standing(net(3), FRED, now), Standing::Suspect);
        assert_eq!(failures.standing(net(1), FRED, now), Standing::Good);
    }
}
