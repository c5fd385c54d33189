//! How fast passwords can be tried, and that right ones come through all the same.
//!
//! A wrong one is answered a second later, as in Salt. Of a host's side and the network's 64 may be wrong at once; beyond them each keeps its
//! place for that second: four a second are wrong then, however many connections try. Callers of this host (salt-api among them) have places
//! of their own: strangers cannot keep them waiting.
//!
//! What failed is counted, by address and by user, and forgotten at a steady rate ([`Failures`]):
//!
//! - An *address* that failed too often is refused at once, unheard, right password or wrong: it is its own doing. Ten attempts, then one
//!   each ten seconds. This host has no address, for everybody who comes through salt-api would have the same, unless a front end says for
//!   whom it asks ([`Address::Behind`]).
//! - A *user* that failed too often is not refused, for then any stranger could lock anybody out. What is said in that user's name waits in
//!   a lane with one place: all names under attack get one wrong answer a second together. So does what is said in a name of which
//!   [`OF_USER_MAX`] are being looked at already: a crowd in one name fills no other lane.
//! - A user who came in lately (over the network: from that address) has places that strangers' names cannot fill, and an address from which
//!   it came in is not sent to the lane of those under attack.
//! - In each lane who came last is next ([`Lane`]), so that a right password is looked at within a second of the end of any crowd.
//!
//! What is remembered are keyed hashes of a fixed size, in a table of fixed length. Whether a password is right is never asked out of turn:
//! a faster answer to a right one would be a way to guess without end.

mod failures;
mod lane;

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

pub(super) use super::address::Address;
use failures::{Failures, LoginStanding};
use lane::Lane;

/// A wrong password is answered so late.
const WRONG_TAKES: Duration = Duration::from_secs(1);
/// Log-ins that are looked at together, in each lane.
const PLACES: usize = 4;
/// Log-ins that wait for a place in each lane; when one more comes the oldest is refused.
const WAITING_MAX: usize = 64;
/// Log-ins in one user's name that are looked at or wait, beyond which it is treated as one under attack.
const OF_USER_MAX: usize = 8;

/// One log-in.
pub(super) struct Attempt<'a> {
    pub(super) from: Address,
    /// The system, and the name in it.
    pub(super) user: (&'a str, &'a str),
    /// Bytes of the request that waits for it.
    pub(super) bytes: usize,
    /// Whether nobody waits for the answer any more.
    pub(super) is_gone: &'a (dyn Fn() -> bool + Sync),
}

#[derive(Debug)]
pub(super) struct Logins {
    wrong_takes: Duration,
    here: Arc<Lane>,
    network: Arc<Lane>,
    known_here: Arc<Lane>,
    known_network: Arc<Lane>,
    suspects: Arc<Lane>,
    failures: Mutex<Failures>,
    /// How many of a user's name are in any lane but the suspects'.
    of_users: Mutex<HashMap<u64, usize>>,
}

impl Default for Logins {
    fn default() -> Self {
        Self::new(WRONG_TAKES)
    }
}

impl Logins {
    fn new(wrong_takes: Duration) -> Self {
        let lane = || Lane::new(PLACES, WAITING_MAX);
        Self {
            wrong_takes,
            here: lane(),
            network: lane(),
            known_here: lane(),
            known_network: lane(),
            suspects: Lane::new(1, WAITING_MAX),
            failures: Mutex::default(),
            of_users: Mutex::default(),
        }
    }

    /// How many wait, for the log.
    pub(super) fn waiting(&self) -> usize {
        [&self.here, &self.network, &self.known_here, &self.known_network, &self.suspects]
            .into_iter()
            .map(|lane| lane.waiting())
            .sum()
    }

    /// What `check` says of a user, in its turn; an error without asking it when there are too many.
    pub(super) async fn attempt(
        &self,
        attempt: Attempt<'_>,
        check: impl Future<Output = bool>,
    ) -> Result<bool, &'static str> {
        const REFUSED: &str = "too many log-ins of this address failed; it has to wait";
        let Attempt { from, user, bytes, is_gone } = attempt;
        let standing = self.failures().standing(from, user, Instant::now());
        let of_user = self.begin(from, user);
        let (lane, of_user) = match (standing, of_user, from) {
            (LoginStanding::Refused, ..) => return Err(REFUSED),
            (LoginStanding::Suspect, ..) | (_, None, _) => (&self.suspects, None),
            (LoginStanding::Known, of_user, Address::Network(_)) => (&self.known_network, of_user),
            (LoginStanding::Known, of_user, _) => (&self.known_here, of_user),
            (LoginStanding::Good, of_user, Address::Network(_)) => (&self.network, of_user),
            (LoginStanding::Good, of_user, _) => (&self.here, of_user),
        };
        let place = lane.place(bytes, is_gone).await.ok_or("too many log-ins wait already")?;
        // It may have failed elsewhere while it waited here.
        if self.failures().standing(from, user, Instant::now()) == LoginStanding::Refused {
            return Err(REFUSED);
        }
        let answer_at = Instant::now() + self.wrong_takes;
        let right = check.await;
        let takes_its_time = {
            let mut failures = self.failures();
            let many = failures.are_many(from, Instant::now());
            failures.ended(from, user, right, Instant::now());
            many || Arc::ptr_eq(lane, &self.suspects)
        };
        if !right {
            let kept = takes_its_time.then_some((place, of_user));
            tokio::time::sleep_until(answer_at).await;
            drop(kept);
        }
        Ok(right)
    }

    /// Counts one in this user's name; none if there are too many.
    fn begin(&self, from: Address, user: (&str, &str)) -> Option<OfUser<'_>> {
        let key = self.failures().user(from, user);
        let mut of_users = self.of_users();
        let count = of_users.entry(key).or_insert(0);
        if *count >= OF_USER_MAX {
            return None;
        }
        *count += 1;
        Some(OfUser { logins: self, key })
    }

    fn failures(&self) -> MutexGuard<'_, Failures> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of_users(&self) -> MutexGuard<'_, HashMap<u64, usize>> {
        self.of_users.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One in a user's name, while it is looked at or waits.
struct OfUser<'a> {
    logins: &'a Logins,
    key: u64,
}

impl Drop for OfUser<'_> {
    fn drop(&mut self) {
        let mut of_users = self.logins.of_users();
        if let Some(count) = of_users.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                of_users.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests;
