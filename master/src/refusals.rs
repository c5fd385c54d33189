//! Reports refusals to the operator, in the log and on the bus, at a readable rate.
//!
//! Each source has a budget of its own, so that no source can hide the refusals of another by causing more of them. The
//! source is the proved identity, never an address or an id that is only claimed: each accepted minion and each
//! logged-in user has a budget, and all strangers together have one budget for each [`Stranger`] kind. A further budget
//! bounds all minions and users together. Refusals beyond a budget are counted and reported as a sum
//! ([`Refusals::tell_sums`]): one line and one event.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use brine_protocol::ids::MinionId;
use brine_protocol::value::{Value, map};

use crate::bucket::{Bucket, Size};
use crate::bus::Bus;

/// The budget of one minion, one user or one kind of strangers: enough for somebody who tries something out, and small
/// enough for a log of days.
const OF_ONE: Size = Size { most: 50.0, each_second: 5.0 };
/// The budget of new keys: ten thousand minions come within a minute at their first start, and programs wait for the
/// event of each.
const OF_NEW_KEYS: Size = Size { most: 10_000.0, each_second: 50.0 };
/// The budget of all minions and users together.
const OF_ALL: Size = Size { most: 1_000.0, each_second: 100.0 };
/// Bound on the budgets of minions and users in memory. A full budget is forgotten, so these had refusals within the
/// last seconds.
const REMEMBERED_MAX: usize = 1 << 16;
/// A sum is reported after this time without another refusal,
const QUIET: Duration = Duration::from_secs(1);
/// or at the latest after this time.
const SUM_EVERY: Duration = Duration::from_secs(10);
/// Bound on the sums of single minions and users reported at a time. The others are reported together.
const SUMS_MAX: usize = 20;

/// Refusals that anybody can cause without a proved identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stranger {
    /// A refused authentication.
    Auth,
    /// A key that was not known before.
    NewKey,
    /// A request that failed or whose sender is not proved.
    Request,
    /// A request that seems to be a recording sent again, and so is not the minion's own.
    Replay,
    /// A log-in from the network.
    Login,
    /// A log-in from this host.
    LocalLogin,
    /// A connection to the port for nodes.
    Node,
}

impl Stranger {
    const ALL: [Self; 7] =
        [Self::Auth, Self::NewKey, Self::Request, Self::Replay, Self::Login, Self::LocalLogin, Self::Node];

    const fn size(self) -> Size {
        match self {
            Self::NewKey => OF_NEW_KEYS,
            _ => OF_ONE,
        }
    }
}

impl fmt::Display for Stranger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auth => "authentications of strangers",
            Self::NewKey => "new keys",
            Self::Request => "requests of strangers",
            Self::Replay => "replayed requests",
            Self::Login => "log-ins from the network",
            Self::LocalLogin => "log-ins from this host",
            Self::Node => "connections of unknown salt-apis",
        })
    }
}

/// The source of a refusal, as far as it is proved.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Who<'a> {
    /// Any stranger.
    Stranger(Stranger),
    /// An accepted minion, by its session and its token.
    Minion(&'a MinionId),
    /// A peer with the public key that is accepted for this id: the minion, or somebody who has seen the key.
    KeyOf(&'a MinionId),
    /// A user, by key, password or token.
    User(&'a str),
}

/// A source with a budget of its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum One {
    Minion(MinionId),
    KeyOf(MinionId),
    User(String),
}

impl fmt::Display for One {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Minion(id) => write!(f, "requests of {id}"),
            Self::KeyOf(id) => write!(f, "authentications of {id}"),
            Self::User(name) => write!(f, "requests of the user {name:?}"),
        }
    }
}

/// Reports and counts refusals.
pub(crate) struct Refusals {
    bus: Bus,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    strangers: [Budget; Stranger::ALL.len()],
    each: HashMap<One, Budget>,
    /// The budget of the sources that do not fit into `each`.
    others: Budget,
    all: Bucket,
}

/// A budget, and the refusals that exceeded it.
#[derive(Debug)]
struct Budget {
    left: Bucket,
    untold: Option<Untold>,
}

#[derive(Debug, Clone, Copy)]
struct Untold {
    count: u64,
    since: Instant,
    last: Instant,
}

/// Refusals that were not reported one by one.
#[derive(Debug, PartialEq, Eq)]
struct Sum {
    count: u64,
    seconds: u64,
    what: String,
    minion: Option<MinionId>,
}

impl Budget {
    const fn full(size: Size, now: Instant) -> Self {
        Self { left: Bucket::full(size, now), untold: None }
    }

    fn turn(&mut self, size: Size, all: Option<&mut Bucket>, now: Instant) -> bool {
        let told =
            self.left.missing(size, 1.0, 0.0, now).is_zero() && all.is_none_or(|all| all.take(OF_ALL, 1.0, 0.0, now));
        if told {
            self.left.owe(1.0);
        } else {
            let untold = self.untold.get_or_insert(Untold { count: 0, since: now, last: now });
            untold.count += 1;
            untold.last = now;
        }
        told
    }

    /// Returns the number of unreported refusals and the seconds that they took, if the sum is due.
    fn due(&mut self, now: Instant) -> Option<(u64, u64)> {
        let of = self.untold?;
        let (quiet, long) = (now.saturating_duration_since(of.last), now.saturating_duration_since(of.since));
        if quiet < QUIET && long < SUM_EVERY {
            return None;
        }
        self.untold = None;
        Some((of.count, long.as_secs_f64().ceil().max(1.0) as u64))
    }
}

impl Refusals {
    /// Makes the reporter of refusals, with events on this bus.
    pub(crate) fn new(bus: Bus) -> Self {
        Self { bus, state: Mutex::new(State::new(Instant::now())) }
    }

    /// Logs `why` and fires `tag` with `data`, unless the budget of `who` is used up.
    pub(crate) fn tell(&self, who: Who<'_>, why: &str, tag: impl Into<String>, data: Value) {
        if self.log(who, why) {
            self.bus.fire(tag, data);
        }
    }

    /// Logs `why`, unless the budget of `who` is used up. Returns whether the line was logged.
    pub(crate) fn log(&self, who: Who<'_>, why: &str) -> bool {
        let told = self.admits(who);
        if told {
            tracing::warn!("{why}");
        }
        told
    }

    /// Takes one report from the budget of `who`. Returns false if the budget is used up; the refusal is then counted.
    pub(crate) fn admits(&self, who: Who<'_>) -> bool {
        self.lock().turn(who, Instant::now())
    }

    /// Reports the sums that are due, and forgets full budgets. The caller calls this each second.
    pub(crate) fn tell_sums(&self) {
        let sums = self.lock().sums(Instant::now());
        for Sum { count, seconds, what, minion } in sums {
            tracing::warn!("{count} more refusals in the last {seconds} s, which are not told one by one: {what}");
            let tag = minion.as_ref().map_or("brine/refused/more".to_owned(), |id| format!("brine/refused/more/{id}"));
            let mut data = vec![("count", Value::from(count)), ("seconds", seconds.into()), ("what", what.into())];
            data.extend(minion.map(|id| ("id", Value::from(id))));
            self.bus.fire(tag, map(data));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn new(now: Instant) -> Self {
        Self {
            strangers: Stranger::ALL.map(|kind| Budget::full(kind.size(), now)),
            each: HashMap::new(),
            others: Budget::full(OF_ONE, now),
            all: Bucket::full(OF_ALL, now),
        }
    }

    fn turn(&mut self, who: Who<'_>, now: Instant) -> bool {
        let (one, all) = match who {
            Who::Stranger(kind) => return self.strangers[kind as usize].turn(kind.size(), None, now),
            Who::Minion(id) => (One::Minion(id.clone()), Some(&mut self.all)),
            // Not charged to the budget of all: when a whole fleet reconnects, each minion may be reported.
            Who::KeyOf(id) => (One::KeyOf(id.clone()), None),
            Who::User(name) => (One::User(name.chars().take(64).collect()), Some(&mut self.all)),
        };
        let budget = if self.each.len() < REMEMBERED_MAX || self.each.contains_key(&one) {
            self.each.entry(one).or_insert_with(|| Budget::full(OF_ONE, now))
        } else {
            &mut self.others
        };
        budget.turn(OF_ONE, all, now)
    }

    fn sums(&mut self, now: Instant) -> Vec<Sum> {
        let mut sums = Vec::new();
        for (kind, budget) in Stranger::ALL.into_iter().zip(&mut self.strangers) {
            if let Some((count, seconds)) = budget.due(now) {
                sums.push(Sum { count, seconds, what: kind.to_string(), minion: None });
            }
        }
        let (mut told, mut rest) = (0, None::<(u64, u64)>);
        let mut more = |due: (u64, u64)| {
            let (count, seconds) = rest.unwrap_or_default();
            rest = Some((count + due.0, seconds.max(due.1)));
        };
        self.others.due(now).into_iter().for_each(&mut more);
        self.each.retain(|one, budget| {
            match budget.due(now) {
                Some((count, seconds)) if told < SUMS_MAX => {
                    told += 1;
                    let minion = match one {
                        One::Minion(id) | One::KeyOf(id) => Some(id.clone()),
                        One::User(_) => None,
                    };
                    sums.push(Sum { count, seconds, what: one.to_string(), minion });
                }
                due => due.into_iter().for_each(&mut more),
            }
            budget.untold.is_some() || !budget.left.is_full(OF_ONE, now)
        });
        if let Some((count, seconds)) = rest {
            sums.push(Sum { count, seconds, what: "requests of further minions and users".to_owned(), minion: None });
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: usize) -> MinionId {
        format!("m{n}").parse().unwrap()
    }

    fn told(state: &mut State, who: Who<'_>, now: Instant) -> usize {
        (0..1_000).filter(|_| state.turn(who, now)).count()
    }

    #[test]
    fn a_flood_is_counted_and_its_sum_told() {
        let now = Instant::now();
        let mut state = State::new(now);
        assert_eq!(told(&mut state, Who::Stranger(Stranger::Auth), now), 50);
        assert!(state.sums(now).is_empty(), "there may be more");
        let sum =
            |count, seconds| Sum { count, seconds, what: "authentications of strangers".to_owned(), minion: None };
        assert_eq!(state.sums(now + QUIET), [sum(950, 1)]);
        assert!(state.sums(now + 2 * QUIET).is_empty(), "once");
        // Refusals that continue are reported as sums, and not one by one.
        let mut all = 0;
        for second in 10..70 {
            let at = now + Duration::from_secs(second);
            all += told(&mut state, Who::Stranger(Stranger::Auth), at);
            let sums = state.sums(at);
            assert!(sums.len() <= 1 && (sums.is_empty() || sums[0].seconds >= 10), "{sums:?}");
        }
        assert!(all <= 50 + 60 * 5, "{all}");
    }

    #[test]
    fn nobody_hides_what_others_do() {
        let now = Instant::now();
        let mut state = State::new(now);
        for kind in Stranger::ALL {
            told(&mut state, Who::Stranger(kind), now);
        }
        let (one, two) = (id(1), id(2));
        assert_eq!(told(&mut state, Who::Minion(&one), now), 50);
        assert_eq!(told(&mut state, Who::KeyOf(&two), now), 50, "who brings its key");
        assert_eq!(told(&mut state, Who::Minion(&two), now), 50, "is not the minion");
        assert_eq!(told(&mut state, Who::User("fred"), now), 50);
        let sums = state.sums(now + QUIET);
        assert_eq!(sums.len(), Stranger::ALL.len() - 1 + 4, "all but the new keys, of which more are told: {sums:?}");
        assert!(sums.iter().any(|sum| sum.minion == Some(two.clone()) && sum.count == 950));
    }

    /// Neither many ids nor many minions exceed the bounds.
    #[test]
    fn all_together_have_a_bound_too_and_so_has_the_table() {
        let now = Instant::now();
        let mut state = State::new(now);
        let all: usize = (0..1_500).filter(|n| state.turn(Who::Minion(&id(*n)), now)).count();
        assert_eq!(all, 1_000);
        let keys: usize = (0..70_000).filter(|n| state.turn(Who::KeyOf(&id(*n)), now)).count();
        assert!(keys < REMEMBERED_MAX + 100, "{keys}");
        assert!(state.each.len() <= REMEMBERED_MAX);
        let sums = state.sums(now + QUIET);
        assert!(sums.len() <= SUMS_MAX + 1, "{}", sums.len());
        assert_eq!(sums.iter().map(|sum| sum.count).sum::<u64>() as usize, 71_500 - all - keys);
        state.sums(now + Duration::from_secs(60));
        assert!(state.each.is_empty());
    }
}
