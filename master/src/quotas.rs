//! Bounds on what one accepted minion can make the master store and announce: a rate for each kind of request, and a
//! quota for returns.
//!
//! A minion above its rate is slowed down: its request waits, which minions of every version tolerate without a loss. A
//! request is refused only if the minion has many waiting requests already, or if the wait would be too long. A request
//! above a quota is refused at once. A refused request is not acknowledged, so a minion that keeps its returns sends
//! them again later.
//!
//! Half of each bound is reserved for returns of jobs that this master sent to the minion, so that an operator can
//! still reach a minion that sends much unasked. Of those returns only the bytes count, because the jobs already bound
//! their number: a master that sends thousands of jobs a second gets as many returns.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use brine_protocol::config::settings;
use brine_protocol::ids::MinionId;
use brine_protocol::options;

use crate::bucket::{Bucket, Size};
use crate::jobs::ReturnerName;

/// Capacity of a rate's bucket, in seconds of the rate: a minion that reconnects sends all that it kept meanwhile.
const AT_ONCE_SECONDS: f64 = 16.0;
/// The longest wait of a request. A minion waits 60 s for an answer.
const PATIENCE: Duration = Duration::from_secs(15);
/// Bound on the waiting requests of one minion. A Brine minion sends eight returns at a time.
const WAITING_OF_ONE: usize = 32;
/// Bounds on the waiting requests of all minions and their bytes. They are in memory, and each occupies a place among
/// the requests in work.
const WAITING_MAX: usize = 512;
const WAITING_BYTES_MAX: u64 = 256 << 20;
/// Bounds on the waiting requests of unusual size or with many values, which take far more memory after decoding: of
/// all minions, and of one.
const HEAVY_WAITING_MAX: usize = 64;
const HEAVY_WAITING_OF_ONE: usize = 8;
/// Bound on the accounts in memory. An account with full buckets is forgotten. The bound is larger than the number of
/// accepted minions.
const REMEMBERED_MAX: usize = 1 << 18;
/// Interval between reports that a minion is slowed down.
const TELL_SLOW_EVERY: Duration = Duration::from_secs(60);
/// The time in which a quota refills without `keep_jobs_seconds`.
const DAY: Duration = Duration::from_secs(86_400);

options! {
    /// The settings; 0 is no bound. All are Brine's own.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) struct QuotaOpts from c {
        /// `minion_rate`: events, unasked returns and other requests of one minion in a second, each kind counted
        /// separately.
        pub(crate) rate: u64 = c.get(settings::MINION_RATE)?,
        /// `minion_rate_bytes`: the rate in bytes.
        pub(crate) rate_bytes: u64 = c.get(settings::MINION_RATE_BYTES)?,
        /// `minion_return_quota`: bytes of returns that a minion may add within `keep_jobs_seconds`.
        pub(crate) returns_bytes: u64 = c.get(settings::MINION_RETURN_QUOTA)?,
        /// `minion_return_quota_count`: number of returns that a minion may add within `keep_jobs_seconds`.
        pub(crate) returns: u64 = c.get(settings::MINION_RETURN_QUOTA_COUNT)?,
        /// Whether events are kept (`event_return`). They then have the same quota, counted separately.
        pub(crate) events_kept: bool = !ReturnerName::of_events(c)?.is_empty(),
    }
}

/// The kind of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QuotaKind {
    /// A return of a job that this master sent to the minion.
    Asked,
    /// Any other return.
    Unasked,
    /// Events.
    Event,
    /// Pieces of files.
    File,
    /// Changes of the mine, grains, and jobs that the minion publishes.
    Other,
}

/// A bound that a request exceeds. Its text names the setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Met {
    Rate,
    Returns,
    ReturnBytes,
}

impl Met {
    /// Returns the name of the setting.
    pub(crate) const fn setting(self) -> &'static str {
        match self {
            Self::Rate => "minion_rate or minion_rate_bytes",
            Self::Returns => "minion_return_quota_count",
            Self::ReturnBytes => "minion_return_quota",
        }
    }
}

impl fmt::Display for Met {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rate => {
                write!(f, "it sends more than the master takes ({}) and waits with too much already", self.setting())
            }
            Self::Returns | Self::ReturnBytes => {
                write!(f, "the quota of what this master keeps of one minion is used up ({})", self.setting())
            }
        }
    }
}

/// The accounts of all minions.
#[derive(Debug, Default)]
pub(crate) struct Quotas {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    accounts: HashMap<MinionId, Account>,
    waiting: usize,
    waiting_bytes: u64,
    heavy: usize,
}

/// A value for the number and a value for the bytes.
#[derive(Debug, Clone, Copy)]
struct Pair<T> {
    count: T,
    bytes: T,
}

#[derive(Debug)]
struct Account {
    /// The rates of returns, events, files and others.
    rates: [Pair<Bucket>; 4],
    /// The quotas of returns and events.
    kept: [Pair<Bucket>; 2],
    waiting: usize,
    heavy: usize,
    told_slow: Option<Instant>,
}

/// The sizes of all buckets.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    rate: Pair<Size>,
    kept: Pair<Size>,
    events_kept: bool,
}

impl Sizes {
    fn of(opts: QuotaOpts, keep: Option<Duration>) -> Self {
        // A bound of 0 is infinite.
        let amount = |n: u64| if n == 0 { f64::INFINITY } else { n as f64 };
        let rate = |n: u64| Size { most: amount(n) * AT_ONCE_SECONDS, each_second: amount(n) };
        let seconds = keep.unwrap_or(DAY).as_secs_f64().max(1.0);
        let quota = |n: u64| Size { most: amount(n), each_second: amount(n) / seconds };
        Self {
            rate: Pair { count: rate(opts.rate), bytes: rate(opts.rate_bytes) },
            kept: Pair { count: quota(opts.returns), bytes: quota(opts.returns_bytes) },
            events_kept: opts.events_kept,
        }
    }
}

impl Account {
    const fn new(sizes: &Sizes, now: Instant) -> Self {
        let rate = Pair { count: Bucket::full(sizes.rate.count, now), bytes: Bucket::full(sizes.rate.bytes, now) };
        let kept = Pair { count: Bucket::full(sizes.kept.count, now), bytes: Bucket::full(sizes.kept.bytes, now) };
        Self { rates: [rate; 4], kept: [kept; 2], waiting: 0, heavy: 0, told_slow: None }
    }

    fn is_unused(&mut self, sizes: &Sizes, now: Instant) -> bool {
        let full = |pair: &mut Pair<Bucket>, size: Pair<Size>| {
            (size.count.most.is_infinite() || pair.count.is_full(size.count, now))
                && (size.bytes.most.is_infinite() || pair.bytes.is_full(size.bytes, now))
        };
        self.waiting == 0
            && self.kept.iter_mut().all(|kept| full(kept, sizes.kept))
            && self.rates.iter_mut().all(|rate| full(rate, sizes.rate))
    }

    /// Takes from the quota of this kind.
    fn keep(&mut self, sizes: &Sizes, kind: QuotaKind, (count, bytes): (u64, u64), now: Instant) -> Result<(), Met> {
        let Some(kept) = kind.kept(sizes).map(|kept| &mut self.kept[kept]) else { return Ok(()) };
        let take = |bucket: &mut Bucket, size: Size, amount: u64| {
            size.most.is_infinite() || bucket.take(size, amount as f64, kind.rest(size), now)
        };
        if !take(&mut kept.count, sizes.kept.count, count) {
            return Err(Met::Returns);
        }
        if !take(&mut kept.bytes, sizes.kept.bytes, bytes) {
            kept.count.give(sizes.kept.count, count as f64);
            return Err(Met::ReturnBytes);
        }
        Ok(())
    }

    fn give_back(&mut self, sizes: &Sizes, kind: QuotaKind, (count, bytes): (u64, u64)) {
        if let Some(kept) = kind.kept(sizes).map(|kept| &mut self.kept[kept]) {
            kept.count.give(sizes.kept.count, count as f64);
            kept.bytes.give(sizes.kept.bytes, bytes as f64);
        }
    }

    /// Returns the wait of a request of this kind.
    fn wait(&mut self, sizes: &Sizes, kind: QuotaKind, count: u64, bytes: u64, now: Instant) -> Duration {
        let missing = |bucket: &mut Bucket, size: Size, amount: u64| {
            if size.most.is_infinite() {
                return Duration::ZERO;
            }
            // A request larger than a full bucket waits only until the bucket is full. Later requests then wait longer.
            bucket.missing(size, (amount as f64 + kind.rest(size)).min(size.most), 0.0, now)
        };
        let rate = &mut self.rates[kind.index()];
        missing(&mut rate.count, sizes.rate.count, count).max(missing(&mut rate.bytes, sizes.rate.bytes, bytes))
    }

    fn owe(&mut self, sizes: &Sizes, kind: QuotaKind, count: u64, bytes: u64) {
        let rate = &mut self.rates[kind.index()];
        if !sizes.rate.count.most.is_infinite() {
            rate.count.owe(count as f64);
        }
        if !sizes.rate.bytes.most.is_infinite() {
            rate.bytes.owe(bytes as f64);
        }
    }
}

impl QuotaKind {
    /// Returns what a request is charged. Returns of jobs that this master sent are not counted: the jobs bound their
    /// number, because each return is kept once.
    const fn charged(self, (count, bytes): (u64, u64)) -> (u64, u64) {
        if matches!(self, Self::Asked) { (0, bytes) } else { (count, bytes) }
    }

    const fn index(self) -> usize {
        match self {
            Self::Asked | Self::Unasked => 0,
            Self::Event => 1,
            Self::File => 2,
            Self::Other => 3,
        }
    }

    /// Returns the index of the quota that this kind takes from.
    const fn kept(self, sizes: &Sizes) -> Option<usize> {
        match self {
            Self::Asked | Self::Unasked => Some(0),
            Self::Event if sizes.events_kept => Some(1),
            Self::Event | Self::File | Self::Other => None,
        }
    }

    /// Returns the part of a bucket that this kind must leave for asked returns.
    fn rest(self, size: Size) -> f64 {
        if self == Self::Unasked { size.most / 2.0 } else { 0.0 }
    }
}

/// A request that was admitted.
#[derive(Debug)]
pub(crate) struct Admitted {
    /// The request had to wait, and a report of that is due.
    pub(crate) tell_slow: bool,
    sizes: Sizes,
    kind: QuotaKind,
    amount: (u64, u64),
}

/// A request's place among the waiting ones.
struct Turn<'a> {
    quotas: &'a Quotas,
    id: &'a MinionId,
    bytes: u64,
    heavy: usize,
}

impl Turn<'_> {
    /// Takes a place among the waiting heavy requests. Returns false if there is none.
    fn wait_heavily(&mut self) -> bool {
        let mut state = self.quotas.lock();
        let all = state.heavy;
        let Some(account) = state.accounts.get_mut(self.id) else { return false };
        if all >= HEAVY_WAITING_MAX || account.heavy >= HEAVY_WAITING_OF_ONE {
            return false;
        }
        account.heavy += 1;
        state.heavy += 1;
        self.heavy = 1;
        true
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.quotas.lock();
        state.waiting -= 1;
        state.waiting_bytes -= self.bytes;
        state.heavy -= self.heavy;
        if let Some(account) = state.accounts.get_mut(self.id) {
            account.waiting -= 1;
            account.heavy -= self.heavy;
        }
    }
}

impl Quotas {
    /// Waits until `id` may send this, or returns the bound that it exceeds. A `heavy` request takes far more memory
    /// than its bytes. `waits` is called before the wait.
    pub(crate) async fn admit(
        &self,
        id: &MinionId,
        kind: QuotaKind,
        amount: (u64, u64),
        (opts, keep): (QuotaOpts, Option<Duration>),
        (heavy, waits): (bool, impl FnOnce()),
    ) -> Result<Admitted, Met> {
        let sizes = Sizes::of(opts, keep);
        let (count, bytes) = kind.charged(amount);
        let (wait, tell_slow) = self.lock().admit(id, kind, (count, bytes), &sizes, PATIENCE, Instant::now())?;
        let admitted = Admitted { tell_slow, sizes, kind, amount: (count, bytes) };
        if !wait.is_zero() {
            let mut turn = Turn { quotas: self, id, bytes, heavy: 0 };
            if heavy && !turn.wait_heavily() {
                drop(turn);
                self.give_back(id, &admitted);
                return Err(Met::Rate);
            }
            waits();
            tokio::time::sleep(wait).await;
        }
        Ok(admitted)
    }

    /// Admits like [`Quotas::admit`], but refuses instead of waiting.
    pub(crate) fn admit_now(
        &self,
        id: &MinionId,
        kind: QuotaKind,
        amount: (u64, u64),
        opts: QuotaOpts,
    ) -> Result<(), Met> {
        let sizes = Sizes::of(opts, None);
        self.lock().admit(id, kind, amount, &sizes, Duration::ZERO, Instant::now()).map(drop)
    }

    /// Gives back the quota of a return that was not kept, because the store had it already.
    pub(crate) fn give_back(&self, id: &MinionId, admitted: &Admitted) {
        if let Some(account) = self.lock().accounts.get_mut(id) {
            account.give_back(&admitted.sizes, admitted.kind, admitted.amount);
        }
    }

    /// Forgets accounts with full buckets.
    pub(crate) fn upkeep(&self, opts: QuotaOpts, keep: Option<Duration>) {
        let (sizes, now) = (Sizes::of(opts, keep), Instant::now());
        self.lock().accounts.retain(|_, account| !account.is_unused(&sizes, now));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Returns the wait, and whether a report of it is due. A request that must wait has already got its place.
    fn admit(
        &mut self,
        id: &MinionId,
        kind: QuotaKind,
        (count, bytes): (u64, u64),
        sizes: &Sizes,
        patience: Duration,
        now: Instant,
    ) -> Result<(Duration, bool), Met> {
        if self.accounts.len() >= REMEMBERED_MAX && !self.accounts.contains_key(id) {
            return Err(Met::Rate);
        }
        let account = self.accounts.entry(id.clone()).or_insert_with(|| Account::new(sizes, now));
        account.keep(sizes, kind, (count, bytes), now)?;
        let wait = account.wait(sizes, kind, count, bytes, now);
        if !wait.is_zero() {
            let is_crowd = self.waiting >= WAITING_MAX
                || self.waiting_bytes.saturating_add(bytes) > WAITING_BYTES_MAX
                || account.waiting >= WAITING_OF_ONE;
            if is_crowd || wait > patience {
                account.give_back(sizes, kind, (count, bytes));
                return Err(Met::Rate);
            }
            self.waiting += 1;
            self.waiting_bytes += bytes;
            account.waiting += 1;
        }
        account.owe(sizes, kind, count, bytes);
        let tell =
            !wait.is_zero() && account.told_slow.is_none_or(|at| now.saturating_duration_since(at) >= TELL_SLOW_EVERY);
        if tell {
            account.told_slow = Some(now);
        }
        Ok((wait, tell))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTS: QuotaOpts =
        QuotaOpts { rate: 10, rate_bytes: 1 << 20, returns_bytes: 100 << 20, returns: 1_000, events_kept: true };

    fn id(n: usize) -> MinionId {
        format!("m{n}").parse().unwrap()
    }

    fn sizes() -> Sizes {
        Sizes::of(OPTS, Some(DAY))
    }

    fn ask(state: &mut State, kind: QuotaKind, amount: (u64, u64), now: Instant) -> Result<Duration, Met> {
        state.admit(&id(1), kind, amount, &sizes(), PATIENCE, now).map(|(wait, _)| wait)
    }

    #[test]
    fn who_is_too_fast_waits_and_who_has_much_waiting_is_refused() {
        let (mut state, now) = (State::default(), Instant::now());
        let mut waits = Vec::new();
        let refused = loop {
            match ask(&mut state, QuotaKind::Asked, (1, 100), now) {
                Ok(wait) => waits.push(wait.as_millis()),
                Err(met) => break met,
            }
        };
        assert_eq!(refused, Met::Rate);
        assert_eq!(waits.iter().filter(|wait| **wait == 0).count(), 160, "{waits:?}");
        assert_eq!(waits[160..], (1..=32).map(|n| n * 100).collect::<Vec<_>>(), "one after the other");
        assert_eq!((state.waiting, state.waiting_bytes), (WAITING_OF_ONE, 3_200));
        // Events have a rate of their own, and each minion has its own rates.
        assert_eq!(ask(&mut state, QuotaKind::Event, (1, 100), now), Ok(Duration::ZERO));
        let other = state.admit(&id(2), QuotaKind::Asked, (1, 100), &sizes(), PATIENCE, now);
        assert_eq!(other, Ok((Duration::ZERO, false)));
        // A request that would wait too long is refused. A request larger than a full bucket is admitted when the
        // bucket is full.
        let third =
            |state: &mut State, bytes: u64| state.admit(&id(3), QuotaKind::Event, (1, bytes), &sizes(), PATIENCE, now);
        assert_eq!(third(&mut state, 40 << 20), Ok((Duration::ZERO, false)));
        assert_eq!(third(&mut state, 1), Err(Met::Rate));
    }

    #[test]
    fn the_quota_is_used_up_and_half_of_it_is_for_what_was_asked() {
        let (mut state, now) = (State::default(), Instant::now());
        // Slow enough for the rate, so that only the quota counts.
        let at = |n: u64| now + Duration::from_secs(n);
        let of = |state: &mut State, kind: QuotaKind, from: u64| {
            (from..from + 1_000).take_while(|n| ask(state, kind, (1, 1 << 20), at(*n)).is_ok()).count()
        };
        let sent = of(&mut state, QuotaKind::Unasked, 0);
        assert!((50..55).contains(&sent), "{sent}");
        assert_eq!(ask(&mut state, QuotaKind::Unasked, (1, 1 << 20), at(100)), Err(Met::ReturnBytes));
        let sent = of(&mut state, QuotaKind::Asked, 200);
        assert!((50..55).contains(&sent), "{sent}");
        assert_eq!(ask(&mut state, QuotaKind::Asked, (1, 1 << 20), at(300)), Err(Met::ReturnBytes));
        // The quota refills within the time that jobs are kept.
        assert_eq!(ask(&mut state, QuotaKind::Asked, (1, 1 << 20), at(300 + 86_400)), Ok(Duration::ZERO));
        let mut state = State::default();
        let sent = (0..1_000).take_while(|n| ask(&mut state, QuotaKind::Unasked, (1, 10), at(*n)).is_ok()).count();
        assert!((500..520).contains(&sent), "{sent}");
        let sent = (0..2_000).take_while(|n| ask(&mut state, QuotaKind::Event, (1, 10), at(*n)).is_ok()).count();
        assert!((1_000..1_030).contains(&sent), "kept in a database: {sent}");
    }

    #[test]
    fn what_is_given_back_and_who_is_unused_leaves_nothing() {
        let now = Instant::now();
        let mut account = Account::new(&sizes(), now);
        for _ in 0..100 {
            assert_eq!(account.keep(&sizes(), QuotaKind::Unasked, (1, 40 << 20), now), Ok(()));
            account.give_back(&sizes(), QuotaKind::Unasked, (1, 40 << 20));
        }
        assert!(account.is_unused(&sizes(), now));
        account.owe(&sizes(), QuotaKind::Event, 1, 1);
        assert!(!account.is_unused(&sizes(), now) && account.is_unused(&sizes(), now + Duration::from_secs(1)));
        let mut state = State::default();
        let free = QuotaOpts { rate: 0, rate_bytes: 0, returns_bytes: 0, returns: 0, events_kept: true };
        let free = Sizes::of(free, None);
        for _ in 0..10_000 {
            let admitted = state.admit(&id(9), QuotaKind::Unasked, (1, 1 << 30), &free, PATIENCE, now);
            assert_eq!(admitted, Ok((Duration::ZERO, false)), "no bound");
        }
        assert!(state.accounts.get_mut(&id(9)).unwrap().is_unused(&free, now));
    }

    #[tokio::test(start_paused = true)]
    async fn heavy_requests_that_wait_have_a_bound_of_their_own() {
        let (quotas, opts) = (Quotas::default(), (OPTS, Some(DAY)));
        let first = id(1);
        // Empties the bucket.
        assert!(quotas.admit(&first, QuotaKind::Event, (160, 1), opts, (false, || ())).await.is_ok());
        let given_back = std::cell::Cell::new(0);
        let ask =
            || quotas.admit(&first, QuotaKind::Event, (1, 1), opts, (true, || given_back.set(given_back.get() + 1)));
        let done = futures_util::future::join_all((0..=HEAVY_WAITING_OF_ONE).map(|_| ask())).await;
        assert_eq!(done.iter().filter(|done| done.is_ok()).count(), HEAVY_WAITING_OF_ONE);
        assert_eq!(given_back.get(), HEAVY_WAITING_OF_ONE, "who waits keeps no large request waiting");
        let state = quotas.lock();
        assert_eq!((state.heavy, state.waiting, state.waiting_bytes), (0, 0, 0));
    }
}
