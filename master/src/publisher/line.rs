//! The order in which publications leave: that of their serials, since minions take no serial below the last one.

use std::collections::VecDeque;

/// Publications that have a serial and were not sent, in order.
#[derive(Debug)]
pub(super) struct Line<T> {
    /// The place of the first one.
    first: u64,
    waiting: VecDeque<Waiting<T>>,
}

#[derive(Debug)]
enum Waiting<T> {
    /// It may not be sent yet.
    NotYet,
    Ready(T),
    /// It will not be sent.
    Left,
}

impl<T> Default for Line<T> {
    fn default() -> Self {
        Self { first: 0, waiting: VecDeque::new() }
    }
}

impl<T> Line<T> {
    /// Takes the last place.
    pub(super) fn enter(&mut self) -> u64 {
        self.waiting.push_back(Waiting::NotYet);
        self.first + self.waiting.len() as u64 - 1
    }

    /// The publication in this place may be sent.
    pub(super) fn ready(&mut self, place: u64, publication: T) {
        if let Some(waiting) = self.not_yet(place) {
            *waiting = Waiting::Ready(publication);
        }
    }

    /// The publication in this place will not be sent, unless it is ready already.
    pub(super) fn leave(&mut self, place: u64) {
        if let Some(waiting) = self.not_yet(place) {
            *waiting = Waiting::Left;
        }
    }

    /// Takes the next publication to be sent: one that is ready and has none before it.
    pub(super) fn next(&mut self) -> Option<T> {
        loop {
            match self.waiting.front()? {
                Waiting::NotYet => return None,
                Waiting::Ready(_) | Waiting::Left => self.first += 1,
            }
            if let Some(Waiting::Ready(publication)) = self.waiting.pop_front() {
                return Some(publication);
            }
        }
    }

    fn not_yet(&mut self, place: u64) -> Option<&mut Waiting<T>> {
        let index = usize::try_from(place.checked_sub(self.first)?).ok()?;
        self.waiting.get_mut(index).filter(|waiting| matches!(waiting, Waiting::NotYet))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn publications_leave_in_order_past_those_that_are_given_up() {
        let mut line = Line::default();
        let [one, two, three, four] = std::array::from_fn(|_| line.enter());
        line.ready(three, 3);
        line.ready(two, 2);
        assert_eq!(line.next(), None);
        line.leave(one);
        assert_eq!((line.next(), line.next(), line.next()), (Some(2), Some(3), None));
        let five = line.enter();
        line.ready(five, 5);
        line.ready(four, 4);
        // One that is ready is sent, and a place that is over changes nothing.
        line.leave(five);
        line.leave(two);
        assert_eq!((line.next(), line.next(), line.next()), (Some(4), Some(5), None));
        assert!(line.waiting.is_empty());
    }
}
