//! Detects requests of a session that were seen before (CVE-2022-22936, CVE-2024-38823).
//!
//! Salt checks a request's age only on demand (`request_server_ttl`), and compares two clocks. Here only the minion's
//! own clock counts: a request must not be much older than the newest one seen, and its nonce must be new. A minion
//! whose clock was set back gets a new session key, with which no old request can be replayed.

use std::collections::{HashSet, VecDeque};

/// Accepted delay of a request behind the newest one, in seconds, for slow connections and retries.
const WINDOW_SECONDS: i64 = 300;
/// Bound on the nonces of one session in memory. The window is shorter for a minion with more requests in it.
const NONCES_MAX: usize = 8_192;

/// The nonces and times of one session.
#[derive(Debug, Default)]
pub(crate) struct ReplayGuard {
    /// By the minion's clock; `None` before the first request.
    newest: Option<i64>,
    /// Requests from before this time are refused, because their nonces may be forgotten.
    floor: i64,
    in_order: VecDeque<(i64, u128)>,
    seen: HashSet<u128>,
}

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Freshness {
    /// Not seen before.
    New,
    /// Seen before.
    Replayed,
    /// Too old to decide: a replay, or the minion's clock was set back.
    TooOld,
}

impl ReplayGuard {
    /// Checks a request by its nonce and its time, and remembers it if it is new.
    pub(crate) fn check(&mut self, nonce: &str, ts: i64) -> Freshness {
        // A nonce has 32 hex digits. Other texts are mapped to a number too.
        let nonce = u128::from_str_radix(nonce, 16).unwrap_or_else(|_| {
            nonce.bytes().fold(0_u128, |all, byte| all.wrapping_mul(257).wrapping_add(u128::from(byte) + 1))
        });
        if self.seen.contains(&nonce) {
            return Freshness::Replayed;
        }
        let newest = self.newest.map_or(ts, |newest| newest.max(ts));
        self.floor = self.floor.max(newest.saturating_sub(WINDOW_SECONDS));
        if self.newest.is_none() {
            self.floor = newest.saturating_sub(WINDOW_SECONDS);
        }
        if ts < self.floor {
            return Freshness::TooOld;
        }
        self.newest = Some(newest);
        while self.in_order.front().is_some_and(|(at, _)| *at < self.floor) || self.in_order.len() >= NONCES_MAX {
            if let Some((at, old)) = self.in_order.pop_front() {
                self.seen.remove(&old);
                // Requests arrive nearly in order, so the forgotten request is nearly the oldest one.
                self.floor = self.floor.max(at);
            }
        }
        self.seen.insert(nonce);
        self.in_order.push_back((ts, nonce));
        Freshness::New
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nonce(n: u128) -> String {
        format!("{n:032x}")
    }

    #[test]
    fn a_request_counts_once() {
        let mut guard = ReplayGuard::default();
        assert_eq!(guard.check(&nonce(1), 1_000), Freshness::New);
        assert_eq!(guard.check(&nonce(1), 1_000), Freshness::Replayed);
        assert_eq!(guard.check(&nonce(1), 1_100), Freshness::Replayed);
        assert_eq!(guard.check(&nonce(2), 900), Freshness::New, "late, but not much");
        assert_eq!(guard.check(&nonce(3), 699), Freshness::TooOld);
        assert_eq!(guard.check(&nonce(4), 5_000), Freshness::New);
        assert_eq!(guard.check(&nonce(1), 1_000), Freshness::TooOld, "forgotten, and still refused");
        assert_eq!(guard.check("not hex, but of the same length.", 5_000), Freshness::New);
        assert_eq!(guard.check("not hex, but of the same length.", 5_000), Freshness::Replayed);
        assert_eq!(ReplayGuard::default().check(&nonce(1), -5), Freshness::New, "a clock before 1970");
        assert_eq!(ReplayGuard::default().check(&nonce(1), i64::MIN), Freshness::New);
    }

    #[test]
    fn its_memory_is_bounded() {
        let mut guard = ReplayGuard::default();
        for n in 0..20_000_u128 {
            assert_eq!(guard.check(&nonce(n), 1_000 + i64::try_from(n / 100).unwrap()), Freshness::New);
        }
        assert!(guard.seen.len() <= NONCES_MAX && guard.in_order.len() <= NONCES_MAX);
        assert_eq!(guard.check(&nonce(0), 1_000), Freshness::TooOld);
        assert_eq!(guard.check(&nonce(19_999), 1_199), Freshness::Replayed);
    }
}
