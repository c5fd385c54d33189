//! Publications of the master that the present publish key does not open: the first ones of a new key, or recordings of an old one.
//!
//! Anybody on the network can replay recordings, and only the master knows which key is in use, so the minion has to ask. One
//! authentication decides on all publications that came before it. Until then they are held, so that no publication of a new key is
//! lost. The rate of questions that show no new key is bounded. A publication that is known to be old is dropped at once: an earlier key
//! opens it, or an authentication has already decided on it.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use brine_protocol::crypticle::AesKey;
use brine_protocol::receiver::{EarlierKey, Received};
use tokio::time::Instant;

/// Authentications in a row that may show no new key ...
const VAIN_BURST: u32 = 3;
/// ... then one within this time. Recordings can delay the jobs of a new key by as much, which is less than `salt` waits for returns.
const VAIN_INTERVAL: Duration = Duration::from_secs(4);
/// Upper bound on held publications: more than a master publishes within [`VAIN_INTERVAL`].
const MAX_HELD: usize = 8192;
/// Upper bound on their bytes. One publication may have all of them.
const MAX_HELD_BYTES: usize = 32 << 20;
/// Earlier keys that are remembered. A master makes a new one each day.
const MAX_EARLIER: usize = 16;
/// Hashes of old publications that are remembered.
const MAX_OLD: usize = 32_768;

/// As [`Received::digest`].
type Digest = [u8; 16];

/// A publication that is held.
#[derive(Debug, Clone)]
pub(super) struct Held {
    pub(super) received: Received,
    digest: Digest,
    at: Instant,
}

/// What [`HeldPublications::take`] did with a publication.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// It is held until the master has been asked.
    Held,
    /// It is held, and this many older ones were dropped for it.
    HeldInsteadOf(usize),
    /// It is known to be old.
    Old,
    /// It is held already.
    Twice,
}

/// The held publications and the memory of old ones.
#[derive(Debug)]
pub(super) struct HeldPublications {
    held: VecDeque<Held>,
    bytes: usize,
    earlier: VecDeque<EarlierKey>,
    old: HashSet<Digest>,
    oldest: VecDeque<Digest>,
    /// Advances with each question that shows no new key; [`VAIN_BURST`] says how far it may be ahead.
    spent_until: Instant,
}

impl HeldPublications {
    pub(super) fn new() -> Self {
        Self {
            held: VecDeque::new(),
            bytes: 0,
            earlier: VecDeque::new(),
            old: HashSet::new(),
            oldest: VecDeque::new(),
            spent_until: Instant::now(),
        }
    }

    /// Takes a publication that the master signed and the present key does not open.
    pub(super) fn take(&mut self, received: Received, now: Instant) -> Taken {
        let digest = received.digest();
        if self.old.contains(&digest) {
            return Taken::Old;
        }
        if self.earlier.iter().any(|key| key.made(&received)) {
            self.remember(digest);
            return Taken::Old;
        }
        if self.held.iter().any(|held| held.digest == digest) {
            return Taken::Twice;
        }
        let mut pushed_out = 0;
        while !self.held.is_empty()
            && (self.held.len() >= MAX_HELD || self.bytes + received.size() > MAX_HELD_BYTES)
            && self.pop().is_some()
        {
            pushed_out += 1;
        }
        self.bytes += received.size();
        self.held.push_back(Held { received, digest, at: now });
        if pushed_out > 0 { Taken::HeldInsteadOf(pushed_out) } else { Taken::Held }
    }

    /// When the master may be asked about the held publications; none if nothing is held.
    pub(super) fn next_question_at(&self) -> Option<Instant> {
        // Shortly after boot, the clock has no instant that early.
        let credit = VAIN_INTERVAL * (VAIN_BURST - 1);
        self.held.front().map(|first| self.spent_until.checked_sub(credit).unwrap_or(first.at).max(first.at))
    }

    /// The master was asked, and its key is the same as before.
    pub(super) fn count_vain_question(&mut self, now: Instant) {
        self.spent_until = self.spent_until.max(now) + VAIN_INTERVAL;
    }

    /// Takes all held publications, oldest first. [`HeldPublications::put_back`] takes those that the new key does not open.
    pub(super) fn take_all(&mut self) -> VecDeque<Held> {
        self.bytes = 0;
        std::mem::take(&mut self.held)
    }

    /// Takes back a publication that the key of an authentication at `began` does not open. Returns true and drops it if it came before
    /// that authentication, because then it is old.
    pub(super) fn put_back(&mut self, held: Held, began: Instant) -> bool {
        if held.at < began {
            self.remember(held.digest);
            return true;
        }
        self.bytes += held.received.size();
        self.held.push_back(held);
        false
    }

    /// The publish key until now became an earlier one.
    pub(super) fn add_earlier_key(&mut self, key: EarlierKey) {
        self.earlier.push_front(key);
        self.earlier.truncate(MAX_EARLIER);
    }

    /// This is the publish key now. A master that was restored from a backup may use an earlier key again.
    pub(super) fn set_current_key(&mut self, key: &AesKey) {
        let before = self.earlier.len();
        self.earlier.retain(|earlier| !earlier.is(key));
        if self.earlier.len() < before {
            self.old.clear();
            self.oldest.clear();
        }
    }

    fn pop(&mut self) -> Option<Held> {
        let held = self.held.pop_front()?;
        self.bytes -= held.received.size();
        Some(held)
    }

    fn remember(&mut self, digest: Digest) {
        if !self.old.insert(digest) {
            return;
        }
        self.oldest.push_back(digest);
        if self.oldest.len() > MAX_OLD
            && let Some(oldest) = self.oldest.pop_front()
        {
            self.old.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_protocol::crypticle::Crypticle;
    use brine_protocol::msgpack;
    use brine_protocol::publication::Shared;
    use brine_protocol::value::{Value, map};

    fn sealed(key: &AesKey, n: u64) -> Received {
        blob(Crypticle::new(key).seal(&map([("serial", n)]), None))
    }

    fn blob(blob: Vec<u8>) -> Received {
        let envelope =
            map([("enc", Value::from("aes")), ("load", Value::Binary(blob)), ("sig", Value::Binary(vec![0]))]);
        Received::Shared(Shared::parse(&msgpack::encode_network(&envelope)).unwrap())
    }

    fn settle(held: &mut HeldPublications, began: Instant) -> usize {
        held.take_all().into_iter().filter(|one| held.put_back(one.clone(), began)).count()
    }

    #[test]
    fn one_question_decides_on_all_that_came_before_it() {
        let (mut held, key, now) = (HeldPublications::new(), AesKey::generate(), Instant::now());
        let second = Duration::from_secs(1);
        let first = sealed(&key, 0);
        assert_eq!(held.take(first.clone(), now), Taken::Held);
        for n in 1..300 {
            assert_eq!(held.take(sealed(&key, n), now), Taken::Held);
        }
        let last = sealed(&key, 300);
        held.take(last.clone(), now + second);
        assert_eq!(held.take(last, now + second), Taken::Twice);
        assert_eq!(settle(&mut held, now + second), 300);
        assert_eq!(held.take(first, now), Taken::Old);
        assert_eq!(held.held.len(), 1);
        assert_eq!(settle(&mut held, now + second * 2), 1);
        assert_eq!((held.bytes, held.next_question_at()), (0, None));
    }

    #[test]
    fn what_an_earlier_key_opens_is_old_at_once() {
        let (mut held, now) = (HeldPublications::new(), Instant::now());
        let keys: Vec<AesKey> = (0..=MAX_EARLIER).map(|_| AesKey::generate()).collect();
        for key in &keys {
            held.add_earlier_key(EarlierKey::new(key.clone()));
        }
        for key in &keys[1..] {
            assert_eq!(held.take(sealed(key, 1), now), Taken::Old);
        }
        assert_eq!(held.take(sealed(&keys[0], 1), now), Taken::Held, "forgotten");
        let again = sealed(&keys[3], 1);
        assert_eq!(held.take(again.clone(), now), Taken::Old);
        held.set_current_key(&keys[3]);
        assert_eq!(held.take(again, now), Taken::Held);
    }

    #[test]
    fn questions_in_vain_are_bounded_and_the_wait_does_not_grow() {
        let (mut held, key, start) = (HeldPublications::new(), AesKey::generate(), Instant::now());
        let (mut now, mut asked) = (start, 0);
        for n in 0.. {
            held.take(sealed(&key, n), now);
            let at = held.next_question_at().unwrap().max(now);
            assert!(at - now <= VAIN_INTERVAL, "{:?} after {asked}", at - now);
            now = at + Duration::from_millis(1);
            settle(&mut held, now);
            held.count_vain_question(now);
            asked += 1;
            if now - start >= Duration::from_secs(60) {
                break;
            }
        }
        assert!(asked <= VAIN_BURST + 60 / 4 + 1, "{asked}");
    }

    #[test]
    fn what_is_held_and_remembered_is_bounded() {
        let (mut held, now) = (HeldPublications::new(), Instant::now());
        for n in 0..4_u8 {
            assert_eq!(held.take(blob(vec![n; MAX_HELD_BYTES / 4]), now), Taken::Held);
        }
        assert_eq!(held.take(blob(vec![9; 2000]), now), Taken::HeldInsteadOf(1));
        // Nearly the whole bound on bytes.
        assert_eq!(held.take(blob(vec![8; MAX_HELD_BYTES - 1000]), now), Taken::HeldInsteadOf(4));
        let key = AesKey::generate();
        for n in 0..=MAX_HELD as u64 {
            held.take(sealed(&key, n), now);
        }
        assert!(held.held.len() <= MAX_HELD && held.bytes <= MAX_HELD_BYTES);
        for n in 0..=MAX_OLD as u128 {
            held.remember(n.to_be_bytes());
        }
        assert_eq!((held.old.len(), held.oldest.len()), (MAX_OLD, MAX_OLD));
    }
}
