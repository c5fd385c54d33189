//! The subscriptions of one peer: bounded, and matched in time that does not depend on their number.

use std::{
    collections::{BTreeMap, HashMap},
    ops::Bound,
};

use bytes::Bytes;

/// Bytes of one subscription besides its prefix: its node in the tree, and the allocator's overhead.
const BESIDE: usize = 96;

/// The effect of a subscription or a cancellation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// Only the count of an existing prefix changed.
    Same,
    /// The held bytes changed by this many.
    Bytes(usize),
    /// There are too many prefixes.
    TooMany,
}

/// The prefixes, with the number of subscriptions of each.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    prefixes: BTreeMap<Box<[u8]>, u32>,
}

impl Subscriptions {
    /// Adds a subscription unless there would be more than `max` different prefixes.
    #[must_use]
    pub(crate) fn subscribe(&mut self, prefix: &[u8], max: usize) -> Change {
        if let Some(count) = self.prefixes.get_mut(prefix) {
            *count = count.saturating_add(1);
            Change::Same
        } else if self.prefixes.len() >= max {
            Change::TooMany
        } else {
            self.prefixes.insert(prefix.into(), 1);
            Change::Bytes(prefix.len() + BESIDE)
        }
    }

    /// Removes a subscription; an unknown one is ignored.
    #[must_use]
    pub(crate) fn cancel(&mut self, prefix: &[u8]) -> Change {
        let Some(count) = self.prefixes.get_mut(prefix) else { return Change::Same };
        *count -= 1;
        if *count > 0 {
            return Change::Same;
        }
        self.prefixes.remove(prefix);
        Change::Bytes(prefix.len() + BESIDE)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.prefixes.is_empty()
    }

    /// The entries of `heads` whose topic is itself subscribed to, and not only a prefix of it.
    pub(crate) fn exact<'a>(&self, heads: &'a HashMap<Bytes, Bytes>) -> impl Iterator<Item = (&'a Bytes, &'a Bytes)> {
        self.prefixes.keys().filter_map(|prefix| heads.get_key_value(&**prefix))
    }

    /// Whether a subscribed prefix matches `topic`.
    ///
    /// The greatest prefix not above `topic` either matches or differs from it at some byte. Any matching prefix must
    /// then be a prefix of the part that both have in common. So the topic becomes shorter with every step.
    pub(crate) fn matches(&self, topic: &[u8]) -> bool {
        let mut topic = topic;
        loop {
            let below = (Bound::Unbounded, Bound::Included(topic));
            let Some((greatest, _)) = self.prefixes.range::<[u8], _>(below).next_back() else { return false };
            let common = greatest.iter().zip(topic).take_while(|(a, b)| a == b).count();
            if common == greatest.len() {
                return true;
            }
            topic = &topic[..common];
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn counts_and_bounds() {
        let mut subscriptions = Subscriptions::default();
        let one = Change::Bytes(1 + BESIDE);
        assert!(subscriptions.is_empty() && !subscriptions.matches(b"") && !subscriptions.matches(b"a"));
        assert_eq!([subscriptions.subscribe(b"a", 2), subscriptions.subscribe(b"a", 2)], [one, Change::Same]);
        assert_eq!([subscriptions.subscribe(b"b", 2), subscriptions.subscribe(b"c", 2)], [one, Change::TooMany]);
        assert_eq!(subscriptions.cancel(b"a"), Change::Same);
        assert!(subscriptions.matches(b"abc"));
        assert_eq!([subscriptions.cancel(b"a"), subscriptions.cancel(b"a")], [one, Change::Same]);
        assert!(!subscriptions.matches(b"abc") && subscriptions.matches(b"b"));
        assert_eq!(subscriptions.subscribe(b"", 2), Change::Bytes(BESIDE));
        assert!(subscriptions.matches(b"") && subscriptions.matches(b"x"));
    }

    proptest! {
        #[test]
        fn matches_as_a_linear_search_does(
            prefixes in prop::collection::vec(prop::collection::vec(0u8..3, 0..6), 0..20),
            topic in prop::collection::vec(0u8..3, 0..8),
        ) {
            let mut subscriptions = Subscriptions::default();
            for prefix in &prefixes {
                prop_assert!(subscriptions.subscribe(prefix, 100) != Change::TooMany);
            }
            let expected = prefixes.iter().any(|prefix| topic.starts_with(prefix));
            prop_assert_eq!(subscriptions.matches(&topic), expected);
        }
    }
}
