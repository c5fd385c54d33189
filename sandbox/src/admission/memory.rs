//! Memory for all instances: who has how much of it lent. The sum of all leases never exceeds what there is.
//!
//! A call has a lease of its whole limit, or a small one; with a small one it asks for all of its limit when it needs more. There is
//! nothing between the two: whoever waits for more holds little, and whoever holds much waits for nothing, so that nobody waits in a
//! ring.

/// Bytes of a small lease: what a module of a compiled language uses with some hundred KB of data. Interpreters use more.
pub(crate) const SMALL: u64 = 4 << 20;
/// Memory is counted in these: a page of WebAssembly.
const PAGE: u64 = 64 << 10;
/// Of the memory this part is for small leases alone, …
const KEPT: u32 = 8;
/// … which may have this part together, …
const MAX_SMALL: u32 = 4;
/// … and of that, one in so many is for calls that are expected to be short.
const SHORT: u32 = 4;

/// All there is, in pages, and what is lent of it.
#[derive(Debug)]
pub(super) struct Memory {
    all: u32,
    lent: u32,
    /// Of that, small leases.
    small: u32,
}

/// What a call has lent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lease {
    pages: u32,
    /// It asks when it needs more.
    pub(super) small: bool,
}

impl Lease {
    /// None at all, for what is let in without.
    pub(super) const NONE: Self = Self { pages: 0, small: false };

    pub(super) fn bytes(self) -> u64 {
        u64::from(self.pages) * PAGE
    }
}

impl Memory {
    pub(super) fn new(bytes: u64) -> Self {
        Self { all: pages(bytes), lent: 0, small: 0 }
    }

    /// All that a call may hold which has this limit.
    pub(super) fn whole(&self, limit: u64) -> Lease {
        Lease { pages: pages(limit).min(self.all), small: false }
    }

    /// A small lease, if its limit is not as small anyway.
    pub(super) fn little(&self, limit: u64) -> Lease {
        let (whole, small) = (self.whole(limit), pages(SMALL));
        if whole.pages <= small { whole } else { Lease { pages: small, small: true } }
    }

    fn is_little(lease: Lease) -> bool {
        lease.small || lease.pages <= pages(SMALL)
    }

    /// Whether there is room for it beside what somebody has already, which it takes the place of.
    fn has_room(&self, lease: Lease, instead_of: Lease, short: bool) -> bool {
        let lent = self.lent - instead_of.pages;
        let after = lent.saturating_add(lease.pages);
        if !Self::is_little(lease) {
            // More than there is for such gets all there is, when nobody else has any.
            return after <= self.all - self.all / KEPT || lent == 0;
        }
        let instead_of = if Self::is_little(instead_of) { instead_of.pages } else { 0 };
        let small = self.small - instead_of + lease.pages;
        let most = self.all / MAX_SMALL;
        let most = if short { most } else { most - most / SHORT };
        after <= self.all && (small <= most || lent == 0)
    }

    /// Small leases that calls which are expected to be short can still have.
    pub(super) fn left(&self) -> usize {
        ((self.all / MAX_SMALL).saturating_sub(self.small) / pages(SMALL)) as usize
    }

    /// Lends it, if there is room.
    pub(super) fn lend(&mut self, lease: Lease, short: bool) -> bool {
        self.change(Lease::NONE, lease, short)
    }

    /// Lends it instead of another, if there is room.
    pub(super) fn change(&mut self, before: Lease, after: Lease, short: bool) -> bool {
        let room = self.has_room(after, before, short);
        if room {
            self.give_back(before);
            self.lent += after.pages;
            if Self::is_little(after) {
                self.small += after.pages;
            }
        }
        room
    }

    pub(super) fn give_back(&mut self, lease: Lease) {
        self.lent -= lease.pages;
        if Self::is_little(lease) {
            self.small -= lease.pages;
        }
    }

    #[cfg(test)]
    pub(super) fn lent(&self) -> u64 {
        u64::from(self.lent) * PAGE
    }
}

/// At least one: what is counted is bounded.
fn pages(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(PAGE)).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn what_is_large_leaves_room_for_what_is_small_and_the_sum_is_never_more_than_there_is() {
        let mut memory = Memory::new(256 * MIB);
        let (whole, little) = (memory.whole(60 * MIB), memory.little(60 * MIB));
        assert_eq!((whole.bytes(), little.bytes(), little.small), (60 * MIB, SMALL, true));
        // 224 MiB are for such.
        let large = (0..10).filter(|_| memory.lend(whole, true)).count();
        assert_eq!(large, 3);
        let small = (0..1_000).filter(|_| memory.lend(little, false)).count();
        assert_eq!(small, 12, "three quarters of a quarter");
        assert!(!memory.change(little, whole, false));
        let short = (0..1_000).filter(|_| memory.lend(little, true)).count();
        assert_eq!((short, memory.lent()), (4, 244 * MIB));
        (0..2).for_each(|_| memory.give_back(whole));
        assert!(memory.change(little, whole, false));
        assert_eq!(memory.lent(), 180 * MIB);
        assert!(memory.change(whole, little, true) && !memory.lend(little, true));
    }

    #[test]
    fn more_than_there_is_gets_all_there_is() {
        let mut memory = Memory::new(64 * MIB);
        let whole = memory.whole(u64::MAX);
        assert!(memory.lend(whole, false) && memory.lent() == 64 * MIB);
        assert!(!memory.lend(memory.little(MIB), true));
        memory.give_back(whole);
        // What is small anyway is not asked for twice.
        assert_eq!(memory.little(MIB), memory.whole(MIB));
        assert!(memory.lend(memory.little(MIB), true) && !memory.lend(whole, false));
    }
}
