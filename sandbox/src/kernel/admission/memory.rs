//! Lends memory to instances. The sum of all leases never exceeds the total.
//!
//! A call has a lease of its whole limit or a small one. With a small lease it asks for the rest of its limit when it
//! needs more. There is nothing in between: a call that waits for more holds little, and a call that holds much waits
//! for nothing. So there is no deadlock.

/// Bytes of a small lease: enough for a module in a compiled language with some hundred KB of data. Interpreters use
/// more.
pub(crate) const SMALL: u64 = 4 << 20;
/// The unit of memory: a page of WebAssembly.
const PAGE: u64 = 64 << 10;
/// One part in so many of the memory is reserved for small leases, …
const KEPT: u32 = 8;
/// … one part in so many is the most that small leases may have together, …
const MAX_SMALL: u32 = 4;
/// … and of that, one part in so many is reserved for calls that are expected to be short.
const SHORT: u32 = 4;

/// The total memory in pages, and how much of it is lent.
#[derive(Debug)]
pub(super) struct Memory {
    all: u32,
    lent: u32,
    /// The part lent as small leases.
    small: u32,
}

/// The memory lent to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lease {
    pages: u32,
    /// Whether the call must ask when it needs more.
    pub(super) small: bool,
}

impl Lease {
    /// No memory, for calls that are admitted without any.
    pub(super) const NONE: Self = Self { pages: 0, small: false };

    pub(super) fn bytes(self) -> u64 {
        u64::from(self.pages) * PAGE
    }
}

impl Memory {
    pub(super) fn new(bytes: u64) -> Self {
        Self { all: pages(bytes), lent: 0, small: 0 }
    }

    /// Returns the lease of a whole limit.
    pub(super) fn whole(&self, limit: u64) -> Lease {
        Lease { pages: pages(limit).min(self.all), small: false }
    }

    /// Returns a small lease, or the whole one if the limit is small anyway.
    pub(super) fn little(&self, limit: u64) -> Lease {
        let (whole, small) = (self.whole(limit), pages(SMALL));
        if whole.pages <= small { whole } else { Lease { pages: small, small: true } }
    }

    fn is_little(lease: Lease) -> bool {
        lease.small || lease.pages <= pages(SMALL)
    }

    /// Checks whether a lease fits in place of another.
    fn has_room(&self, lease: Lease, instead_of: Lease, short: bool) -> bool {
        let lent = self.lent - instead_of.pages;
        let after = lent.saturating_add(lease.pages);
        if !Self::is_little(lease) {
            // A limit above this part gets all memory when nothing else is lent.
            return after <= self.all - self.all / KEPT || lent == 0;
        }
        let instead_of = if Self::is_little(instead_of) { instead_of.pages } else { 0 };
        let small = self.small - instead_of + lease.pages;
        let most = self.all / MAX_SMALL;
        let most = if short { most } else { most - most / SHORT };
        after <= self.all && (small <= most || lent == 0)
    }

    /// Returns how many small leases are left for calls that are expected to be short.
    pub(super) fn left(&self) -> usize {
        ((self.all / MAX_SMALL).saturating_sub(self.small) / pages(SMALL)) as usize
    }

    /// Lends memory if there is room.
    pub(super) fn lend(&mut self, lease: Lease, short: bool) -> bool {
        self.change(Lease::NONE, lease, short)
    }

    /// Replaces one lease by another if there is room.
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

/// Converts bytes to pages, at least one so that the count is bounded.
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
        // 224 MiB are available to large leases.
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
        // For a small limit both leases are the same.
        assert_eq!(memory.little(MIB), memory.whole(MIB));
        assert!(memory.lend(memory.little(MIB), true) && !memory.lend(whole, false));
    }
}
