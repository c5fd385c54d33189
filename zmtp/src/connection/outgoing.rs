//! What is to be written to one peer.

use std::{collections::VecDeque, io};

use bytes::Bytes;
use tokio::time::Instant;

/// Upper bound on the pieces of one vectored write.
const MAX_SLICES: usize = 64;

/// Encoded messages and commands that wait to be written, in their order.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    queue: VecDeque<Piece>,
    /// Bytes of the first piece that are already written.
    written: usize,
    /// Number of commands in the queue.
    commands: usize,
    /// The time since which there always was something to write, and the bytes that were queued since.
    backlog: Option<(Instant, usize)>,
}

#[derive(Debug)]
struct Piece {
    bytes: Bytes,
    kind: Kind,
    /// Bytes that the connection counts as held until the piece is written.
    held: usize,
}

/// What the bytes of a piece are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A message, or the last part of one.
    Message,
    /// A part of a message, of which more follows.
    Part,
    Command,
}

impl Outgoing {
    /// Queues bytes, unless there are none. They count as `held` by the connection until they are written.
    pub(super) fn push(&mut self, bytes: Bytes, kind: Kind, held: usize) {
        if bytes.is_empty() {
            return;
        }
        self.backlog.get_or_insert_with(|| (Instant::now(), 0)).1 += bytes.len();
        self.commands += usize::from(kind == Kind::Command);
        self.queue.push_back(Piece { bytes, kind, held });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Whether messages, or parts of them, are among what waits.
    pub(super) fn has_messages(&self) -> bool {
        self.queue.len() > self.commands
    }

    /// How many commands wait.
    pub(super) fn commands(&self) -> usize {
        self.commands
    }

    /// The time since which there always was something to write, and the bytes that were queued since; none if nothing waits.
    pub(super) fn backlog(&self) -> Option<(Instant, usize)> {
        self.backlog
    }

    /// Hands the first pieces to a vectored write.
    pub(super) fn with_slices<T>(&self, write: impl FnOnce(&[io::IoSlice<'_>]) -> T) -> T {
        let mut slices = [io::IoSlice::new(&[]); MAX_SLICES];
        let mut skip = self.written;
        for (slice, piece) in slices.iter_mut().zip(&self.queue) {
            *slice = io::IoSlice::new(&piece.bytes[skip..]);
            skip = 0;
        }
        write(&slices[..self.queue.len().min(MAX_SLICES)])
    }

    /// Removes this many bytes, which were written. Returns how many messages they completed, and how many bytes are not held any more.
    pub(super) fn advance(&mut self, mut wrote: usize) -> (usize, usize) {
        let (mut messages, mut held) = (0, 0);
        while let Some(first) = self.queue.front() {
            let rest = first.bytes.len() - self.written;
            if wrote < rest {
                self.written += wrote;
                return (messages, held);
            }
            wrote -= rest;
            self.written = 0;
            match first.kind {
                Kind::Message => messages += 1,
                Kind::Part => {}
                Kind::Command => self.commands -= 1,
            }
            held += first.held;
            self.queue.pop_front();
        }
        self.backlog = None;
        (messages, held)
    }

    /// Frees the memory of a queue that is empty: ten thousand idle connections keep none.
    pub(super) fn shrink(&mut self) {
        self.queue.shrink_to(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(outgoing: &Outgoing) -> Vec<usize> {
        outgoing.with_slices(|slices| slices.iter().map(|slice| slice.len()).collect())
    }

    #[test]
    fn what_was_written_is_counted_to_the_byte() {
        let mut outgoing = Outgoing::default();
        outgoing.push(Bytes::from("own"), Kind::Part, 3);
        outgoing.push(Bytes::from("shared"), Kind::Message, 0);
        outgoing.push(Bytes::from("ping"), Kind::Command, 0);
        outgoing.push(Bytes::new(), Kind::Message, 0);
        outgoing.push(Bytes::from("reply"), Kind::Message, 5);
        assert_eq!((lengths(&outgoing), outgoing.commands()), (vec![3, 6, 4, 5], 1));
        assert_eq!(outgoing.backlog().map(|(_, bytes)| bytes), Some(18));
        assert_eq!(outgoing.advance(2), (0, 0));
        assert_eq!(lengths(&outgoing), [1, 6, 4, 5]);
        assert_eq!(outgoing.advance(1), (0, 3), "the end of a part is no end of a message");
        assert_eq!(outgoing.advance(8), (1, 0));
        assert_eq!((lengths(&outgoing), outgoing.commands()), (vec![2, 5], 1));
        assert_eq!(outgoing.advance(2), (0, 0));
        assert!(outgoing.has_messages() && outgoing.commands() == 0 && outgoing.backlog().is_some());
        assert_eq!(outgoing.advance(5), (1, 5));
        assert!(outgoing.is_empty() && !outgoing.has_messages() && outgoing.backlog().is_none());
    }

    #[test]
    fn one_write_has_a_bounded_number_of_pieces() {
        let mut outgoing = Outgoing::default();
        (0..2 * MAX_SLICES).for_each(|_| outgoing.push(Bytes::from("x"), Kind::Message, 0));
        assert_eq!(lengths(&outgoing).len(), MAX_SLICES);
        assert_eq!(outgoing.advance(MAX_SLICES), (MAX_SLICES, 0));
        assert_eq!(lengths(&outgoing).len(), MAX_SLICES);
    }
}
