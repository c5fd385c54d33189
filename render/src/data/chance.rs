//! Numbers and items by chance, or as Python's `random` chooses them for a seed: stock Salt and Brine give a minion the same.

use rand_mt::Mt;
use sha2::{Digest, Sha512};

/// Where random bits come from.
pub enum Source {
    /// The host's.
    Host(fn() -> u64),
    /// Python's generator (MT19937).
    Seeded(Box<Mt>),
}

impl Source {
    /// As Python's `seed` of a text, version 2: the text and its SHA-512 are one number.
    pub fn of_text(text: &str) -> Self {
        let mut bytes = text.as_bytes().to_vec();
        bytes.extend_from_slice(&Sha512::digest(text.as_bytes()));
        let words = bytes.rchunks(4).map(|chunk| chunk.iter().fold(0, |word, byte| (word << 8) | u32::from(*byte)));
        Self::of_words(words.collect())
    }

    /// As Salt's samples: the seed is the SHA-512 of a text, in hex.
    pub fn of_hash(text: &str) -> Self {
        Self::of_text(&super::hash::hex(&Sha512::digest(text.as_bytes())))
    }

    /// As Python's `seed` of an integer.
    pub fn of_integer(integer: i64) -> Self {
        let size = integer.unsigned_abs();
        Self::of_words(vec![(size & 0xffff_ffff) as u32, (size >> 32) as u32])
    }

    /// Words of 32 bits, the lowest first. Zeros above the highest do not count.
    fn of_words(mut words: Vec<u32>) -> Self {
        while words.len() > 1 && words.last() == Some(&0) {
            words.pop();
        }
        Self::Seeded(Box::new(Mt::new_with_key(words)))
    }

    /// So many bits, at most 64.
    fn bits(&mut self, count: u32) -> u64 {
        match self {
            _ if count == 0 => 0,
            Self::Host(random) => random() >> (64 - count),
            Self::Seeded(twister) => {
                let low = count.min(32);
                let word = u64::from(twister.next_u32() >> (32 - low));
                match count - low {
                    0 => word,
                    more => word | (u64::from(twister.next_u32() >> (32 - more)) << 32),
                }
            }
        }
    }

    /// An integer below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        let count = u64::BITS - bound.leading_zeros();
        loop {
            let chosen = self.bits(count);
            if chosen < bound {
                return chosen;
            }
        }
    }

    fn place(&mut self, places: usize) -> usize {
        usize::try_from(self.below(places as u64)).unwrap_or_default()
    }

    /// So many items, in the order in which they were chosen. `size` is not more than there are.
    pub fn sample<T: Clone>(&mut self, mut items: Vec<T>, size: usize) -> Vec<T> {
        let all = items.len();
        if all <= set_size(size) {
            let take = |at: usize| {
                let place = self.place(all - at);
                let chosen = items[place].clone();
                items[place] = items[all - at - 1].clone();
                chosen
            };
            return (0..size).map(take).collect();
        }
        let mut places: Vec<usize> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        while places.len() < size {
            let place = self.place(all);
            if seen.insert(place) {
                places.push(place);
            }
        }
        places.into_iter().map(|place| items[place].clone()).collect()
    }
}

/// Up to how many items Python copies the list, where a set of places would take more: 21, and 4 to the power of log4(3 × size),
/// rounded up.
fn set_size(size: usize) -> usize {
    let (mut power, wanted) = (1_usize, size.saturating_mul(3));
    if size <= 5 {
        return 21;
    }
    while power < wanted {
        power = power.saturating_mul(4);
    }
    power.saturating_add(21)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By Python 3.11: `random.seed(x); random.randrange(n)`.
    #[test]
    fn seeds_choose_as_in_python() {
        let text = |seed: &str, bounds: &[u64]| -> Vec<u64> {
            bounds.iter().map(|bound| Source::of_text(seed).below(*bound)).collect()
        };
        assert_eq!(
            text("web1", &[10, 60, 1000, 8589934592, 1152921504606846976]),
            [5, 52, 840, 7818791154, 754434133170145522]
        );
        assert_eq!(
            text("", &[10, 60, 1000, 8589934592, 1152921504606846976]),
            [7, 29, 983, 8419105056, 1047965594782095648]
        );
        assert_eq!(
            text("minion.example", &[10, 60, 1000, 8589934592, 1152921504606846976]),
            [0, 43, 696, 2919757506, 112901159689647810]
        );
        assert_eq!(
            text("ünï", &[10, 60, 1000, 8589934592, 1152921504606846976]),
            [8, 35, 560, 7900361338, 1005890587098215034]
        );
        let number = |seed: i64, bound: u64| Source::of_integer(seed).below(bound);
        assert_eq!(number(0, 100), 49);
        assert_eq!(number(1, 100), 17);
        assert_eq!(number(-1, 100), 17);
        assert_eq!(number(1099511627779, 1099511627776), 134087964622);
        assert_eq!(number(10, 60), 36);
    }

    /// By Python 3.11: `random.Random("some").sample(range(n), k)`.
    #[test]
    fn samples_are_pythons() {
        let sample = |all: u32, size: usize| Source::of_text("some").sample((0..all).collect(), size);
        assert_eq!(sample(3, 2), [0, 1]);
        assert_eq!(sample(30, 6), [26, 4, 8, 18, 12, 16]);
        assert_eq!(sample(100, 3), [18, 32, 74]);
        assert_eq!(sample(100, 10), [18, 32, 74, 51, 66, 6, 15, 30, 34, 2]);
        assert_eq!(
            sample(500, 20),
            [419, 75, 129, 297, 207, 429, 266, 27, 60, 123, 136, 10, 355, 63, 471, 367, 220, 280, 388, 37]
        );
    }

    #[test]
    fn chance_is_within_its_bounds() {
        let mut host = Source::Host(|| u64::MAX >> 1);
        assert_eq!((host.below(1), host.bits(0)), (0, 0));
        let mut seeded = Source::of_text("x");
        assert!((0..1_000).all(|_| seeded.below(7) < 7));
        let mut all = seeded.sample((0..100).collect::<Vec<u32>>(), 100);
        all.sort_unstable();
        assert_eq!(all, (0..100).collect::<Vec<_>>());
    }
}
