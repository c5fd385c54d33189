//! Bounds the memory of all connections of a kind together.

use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::{sync::Notify, time::Instant};

/// A bound shared by many connections.
#[derive(Debug)]
pub(crate) struct Budget {
    max: usize,
    /// Bytes of each connection that do not count, so that messages of ordinary size always pass, however much other
    /// connections hold.
    free: usize,
    /// The bytes that the connections of one owner may take.
    max_per_owner: usize,
    /// Whether the connections whose message has been arriving for the longest time give way to others.
    gives_way: bool,
    taken: Mutex<Taken>,
}

/// Whose bytes a connection takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    /// A peer that has not proved who it is.
    Address(IpAddr),
    /// The key of a proved identity, wherever it connects from.
    Identity(u64),
}

/// What the connections have taken.
#[derive(Debug, Default)]
struct Taken {
    all: usize,
    by_owner: HashMap<Owner, usize>,
    /// The connections that may have to give way, by the time since which their message has been arriving.
    arriving: BTreeMap<(Instant, u64), Arriving>,
    shares: u64,
}

/// A connection whose message has not arrived whole.
#[derive(Debug)]
struct Arriving {
    owner: Option<Owner>,
    charged: usize,
    told: Arc<Notify>,
}

impl Budget {
    /// A budget of `max` bytes beyond the first `free` of each connection. One owner gets at most `max_per_owner`.
    pub(crate) fn new(max: usize, free: usize, max_per_owner: usize) -> Budget {
        Budget { max, free, max_per_owner, gives_way: false, taken: Mutex::default() }
    }

    /// When everything is taken, the connections whose message has been arriving for the longest time lose what they hold
    /// to the one that wants more, unless its own has been arriving for longer. So peers that never finish their
    /// messages do not keep others out.
    pub(crate) fn oldest_gives_way(self) -> Budget {
        Budget { gives_way: true, ..self }
    }

    /// The bytes that all connections have taken.
    pub(crate) fn used(&self) -> usize {
        self.taken().all
    }

    /// Makes the empty share of one connection; it counts for the owner if there is one.
    pub(crate) fn share(self: &Arc<Budget>, owner: Option<Owner>) -> Share {
        let mut taken = self.taken();
        taken.shares += 1;
        let id = taken.shares;
        Share { budget: Arc::clone(self), owner, id, charged: 0, arriving: None, told: Arc::default() }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        // No panic is possible while the lock is held.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    /// Takes `more` bytes for a connection whose message has been arriving `since` then.
    fn take(&mut self, budget: &Budget, owner: Option<Owner>, more: usize, since: Option<Instant>) -> bool {
        let has = owner.and_then(|owner| self.by_owner.get(&owner)).copied().unwrap_or(0);
        if owner.is_some() && has.saturating_add(more) > budget.max_per_owner {
            return false;
        }
        let lacks = self.all.saturating_add(more).saturating_sub(budget.max);
        if !self.make_room(lacks, since) {
            return false;
        }
        self.all += more;
        if let Some(owner) = owner {
            *self.by_owner.entry(owner).or_default() += more;
        }
        true
    }

    /// Makes the oldest give way until there is room for `lacks` bytes. Returns false, and changes nothing, if those that
    /// are older than `since` hold less.
    fn make_room(&mut self, lacks: usize, since: Option<Instant>) -> bool {
        let (mut room, mut leaving) = (0, Vec::new());
        for (&key, arriving) in &self.arriving {
            if room >= lacks || since.is_some_and(|since| key.0 >= since) {
                break;
            }
            room += arriving.charged;
            leaving.push(key);
        }
        if room < lacks {
            return false;
        }
        for key in leaving {
            if let Some(Arriving { owner, charged, told }) = self.arriving.remove(&key) {
                self.give_back(owner, charged);
                told.notify_one();
            }
        }
        true
    }

    fn give_back(&mut self, owner: Option<Owner>, less: usize) {
        self.all -= less;
        let Some(owner) = owner else { return };
        if let Some(has) = self.by_owner.get_mut(&owner) {
            *has -= less;
            if *has == 0 {
                self.by_owner.remove(&owner);
            }
        }
    }
}

/// The bytes that one connection has taken of a [`Budget`], given back on drop.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Arc<Budget>,
    owner: Option<Owner>,
    id: u64,
    charged: usize,
    /// The entry in [`Taken::arriving`]. If it is no longer there, the connection has to close and has no bytes.
    arriving: Option<Instant>,
    told: Arc<Notify>,
}

impl Share {
    /// Takes or gives back bytes to cover `held` bytes of a connection whose message has been `arriving` since then.
    /// Returns false, and takes nothing, if the budget is exhausted, or if the connection has to give way.
    #[must_use]
    pub(crate) fn cover(&mut self, held: usize, arriving: Option<Instant>) -> bool {
        let wanted = held.saturating_sub(self.budget.free);
        if wanted == 0 && self.charged == 0 && self.arriving.is_none() {
            // Ordinary messages need no lock.
            return true;
        }
        let budget = Arc::clone(&self.budget);
        let mut taken = budget.taken();
        if !self.stays(&mut taken) {
            return false;
        }
        if wanted > self.charged {
            if !taken.take(&budget, self.owner, wanted - self.charged, arriving) {
                return false;
            }
        } else {
            taken.give_back(self.owner, self.charged - wanted);
        }
        self.charged = wanted;
        if let Some(since) = arriving.filter(|_| budget.gives_way && wanted > 0) {
            let arriving = Arriving { owner: self.owner, charged: wanted, told: Arc::clone(&self.told) };
            taken.arriving.insert((since, self.id), arriving);
            self.arriving = Some(since);
        }
        true
    }

    /// Waits until the connection has to close to make room for others. Cancel-safe.
    pub(crate) async fn gives_way(&self) {
        self.told.notified().await;
    }

    /// Removes the entry among the arriving. Returns false if others have taken the bytes.
    fn stays(&mut self, taken: &mut Taken) -> bool {
        let Some(since) = self.arriving else { return true };
        if taken.arriving.remove(&(since, self.id)).is_none() {
            // The bytes are given back; the entry stays here, so that it stays so until the connection has closed.
            self.charged = 0;
            return false;
        }
        self.arriving = None;
        true
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if self.charged > 0 {
            let budget = Arc::clone(&self.budget);
            let mut taken = budget.taken();
            if self.stays(&mut taken) {
                taken.give_back(self.owner, self.charged);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FREE: usize = 1_000;

    #[test]
    fn small_holders_are_free_and_large_ones_share() {
        let budget = Arc::new(Budget::new(100, FREE, usize::MAX));
        let (mut one, mut two) = (budget.share(None), budget.share(None));
        assert!(one.cover(FREE + 80, None));
        assert!(!two.cover(FREE + 21, None));
        assert!(two.cover(FREE + 20, None));
        assert!(one.cover(0, None) && two.cover(FREE + 100, None));
        drop((one, two));
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn one_owner_does_not_take_all_of_it() {
        let budget = Arc::new(Budget::new(100, FREE, 40));
        let address = |last: u8| Some(Owner::Address(IpAddr::from([192, 0, 2, last])));
        let (mut one, mut two) = (budget.share(address(1)), budget.share(address(1)));
        assert!(one.cover(FREE + 30, None) && !two.cover(FREE + 11, None) && two.cover(FREE + 10, None));
        let mut other = budget.share(address(2));
        assert!(other.cover(FREE + 40, None));
        let mut local = budget.share(None);
        assert!(!local.cover(FREE + 21, None), "nor do all together");
        assert!(local.cover(FREE + 20, None));
        drop(one);
        assert!(two.cover(FREE + 40, None));
        drop((two, other, local));
        assert!(budget.used() == 0 && budget.taken().by_owner.is_empty());
    }

    #[tokio::test]
    async fn the_message_that_has_been_arriving_longest_gives_way() {
        let now = Instant::now();
        let since = |seconds: u64| Some(now + std::time::Duration::from_secs(seconds));
        let address = |last: u8| Some(Owner::Address(IpAddr::from([192, 0, 2, last])));
        let budget = Arc::new(Budget::new(100, FREE, 100).oldest_gives_way());
        let [mut whole, mut oldest, mut older, mut late] = [1, 2, 3, 4].map(|last| budget.share(address(last)));
        assert!(whole.cover(FREE + 10, since(0)) && whole.cover(FREE + 20, None), "it has arrived");
        assert!(oldest.cover(FREE + 30, since(1)) && older.cover(FREE + 50, since(2)));
        assert!(late.cover(FREE + 30, since(3)));
        oldest.gives_way().await;
        // Two parts of its message may still have arrived.
        assert!(!oldest.cover(FREE + 31, since(1)) && !oldest.cover(FREE, since(1)));
        assert_eq!(budget.used(), 100);
        assert!(!older.cover(FREE + 51, since(2)), "all others are younger, or have arrived");
        assert!(older.cover(FREE + 40, since(2)));
        assert!(!late.cover(FREE + 81, since(3)), "the older do not hold so much");
        drop((whole, oldest, older, late));
        assert!(budget.used() == 0 && budget.taken().by_owner.is_empty() && budget.taken().arriving.is_empty());
    }

    #[test]
    fn without_that_rule_nobody_gives_way() {
        let now = Some(Instant::now());
        let budget = Arc::new(Budget::new(100, FREE, 100));
        let (mut one, mut two) = (budget.share(None), budget.share(None));
        assert!(one.cover(FREE + 60, now) && !two.cover(FREE + 60, None) && one.cover(FREE + 60, now));
    }
}
