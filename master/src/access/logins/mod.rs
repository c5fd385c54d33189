//! Bounds the rate of password guesses, while right passwords still come through.
//!
//! A wrong password is answered after a second, as in Salt. For the log-ins of this host, and likewise for those of the
//! network, 64 may fail at once. Beyond that, each failed log-in keeps its place for that second, so at most four a
//! second fail, however many connections try. Callers of this host (salt-api among them) have places of their own, so
//! strangers cannot delay them.
//!
//! Failures are counted by address and by user, and forgotten at a steady rate ([`Failures`]):
//!
//! - An *address* with too many failures is refused at once, without a check of the password: after ten failures, one
//!   attempt each ten seconds. This host has no address, because all users of salt-api would share it, unless a front
//!   end sends the client's address ([`Address::Behind`]).
//! - A *user* with too many failures is not refused, because then any stranger could lock users out. Log-ins in such a
//!   name wait in a lane with one place, so all names under attack together get one wrong answer a second. Log-ins in a
//!   name that already has [`OF_USER_MAX`] of them use the same lane, so that a crowd in one name fills no other lane.
//! - A user who has logged in lately (over the network: from the same address) has places that strangers' names cannot
//!   fill. Log-ins from such an address do not use the lane for names under attack.
//! - In each lane the newest log-in is next ([`Lane`]), so that a right password is checked within a second after a
//!   crowd ends.
//!
//! The records are keyed hashes of a fixed size in a table of bounded length. A password is never checked out of turn:
//! a faster answer to a right one would allow unlimited guessing.

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

/// Delay of the answer to a wrong password.
const WRONG_TAKES: Duration = Duration::from_secs(1);
/// Log-ins that are checked concurrently, in each lane.
const PLACES: usize = 4;
/// Bound on the waiting log-ins in each lane; a further one displaces the oldest.
const WAITING_MAX: usize = 64;
/// Bound on the log-ins in one user's name, checked or waiting. Further ones are treated as under attack.
const OF_USER_MAX: usize = 8;

/// One log-in.
pub(super) struct Attempt<'a> {
    pub(super) from: Address,
    /// The system, and the user's name in it.
    pub(super) user: (&'a str, &'a str),
    /// Bytes of the request that waits for the log-in.
    pub(super) bytes: usize,
    /// Returns whether the client has gone.
    pub(super) is_gone: &'a (dyn Fn() -> bool + Sync),
}

/// A log-in that was not looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) why: &'static str,
    /// When another one is looked at.
    pub(super) wait: Duration,
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
    /// Number of log-ins in each user's name, except in the lane for suspects.
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

    /// Returns the number of waiting log-ins, for the log.
    pub(super) fn waiting(&self) -> usize {
        [&self.here, &self.network, &self.known_here, &self.known_network, &self.suspects]
            .into_iter()
            .map(|lane| lane.waiting())
            .sum()
    }

    /// Runs `check` when the log-in's turn comes and returns its result. The error is the reason for a refusal without
    /// a check.
    pub(super) async fn attempt(&self, attempt: Attempt<'_>, check: impl Future<Output = bool>) -> Result<bool, Held> {
        let refused = |from| {
            let wait = self.failures().refused_for(from, Instant::now());
            Held { why: "too many log-ins of this address failed; it has to wait", wait }
        };
        let Attempt { from, user, bytes, is_gone } = attempt;
        let standing = self.failures().standing(from, user, Instant::now());
        let of_user = self.begin(from, user);
        let (lane, of_user) = match (standing, of_user, from) {
            (LoginStanding::Refused, ..) => return Err(refused(from)),
            (LoginStanding::Suspect, ..) | (_, None, _) => (&self.suspects, None),
            (LoginStanding::Known, of_user, Address::Network(_)) => (&self.known_network, of_user),
            (LoginStanding::Known, of_user, _) => (&self.known_here, of_user),
            (LoginStanding::Good, of_user, Address::Network(_)) => (&self.network, of_user),
            (LoginStanding::Good, of_user, _) => (&self.here, of_user),
        };
        let full = Held { why: "too many log-ins wait already", wait: self.wrong_takes };
        let place = lane.place(bytes, is_gone).await.ok_or(full)?;
        // The address may have failed in another lane during the wait.
        if self.failures().standing(from, user, Instant::now()) == LoginStanding::Refused {
            return Err(refused(from));
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

    /// Counts a log-in in this user's name. Returns `None` if there are too many.
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

/// A counted log-in in a user's name, checked or waiting.
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
