//! The publications that some peers have not taken yet: one ring for all peers, so that a slow peer costs a cursor and
//! not a queue. When the ring is full, the oldest publication is removed, and the peers that had not taken it have lost
//! it.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use tokio::sync::watch;

use crate::{Frames, frame::encode_message};

/// Memory of an entry of [`Publication::Each`] besides its bytes.
const HEAD_OVERHEAD: usize = 96;

/// A message for the peers that subscribed to its topic, or one for each of many peers.
#[derive(Debug, Clone)]
pub(crate) enum Publication {
    /// An encoded message, and the part of it that subscriptions match.
    One { topic: Bytes, wire: Bytes },
    /// For each topic its own second frame, and one last frame for all. Only peers that subscribed to exactly such a topic
    /// get one.
    Each { heads: Arc<HashMap<Bytes, Bytes>>, body: Bytes, len: usize },
}

impl Default for Publication {
    fn default() -> Publication {
        Publication::One { topic: Bytes::new(), wire: Bytes::new() }
    }
}

impl Publication {
    pub(crate) fn new(message: &Frames) -> Publication {
        let wire = encode_message(message);
        let len = message.first().map_or(0, Bytes::len);
        // The topic is a slice of the same bytes, so that the message is held once.
        let start = if len <= usize::from(u8::MAX) { 2 } else { 9 };
        let topic = if wire.is_empty() { Bytes::new() } else { wire.slice(start..start + len) };
        Publication::One { topic, wire }
    }

    pub(crate) fn each(heads: HashMap<Bytes, Bytes>, body: Bytes) -> Publication {
        let len =
            heads.iter().map(|(topic, head)| topic.len() + head.len() + HEAD_OVERHEAD).sum::<usize>() + body.len();
        Publication::Each { heads: Arc::new(heads), body, len }
    }

    /// Bytes of memory.
    fn len(&self) -> usize {
        match self {
            Publication::One { wire, .. } => wire.len(),
            Publication::Each { len, .. } => *len,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Ring {
    inner: Mutex<Inner>,
    /// The number of the next publication; readers wait on it.
    head: watch::Sender<u64>,
}

#[derive(Debug)]
struct Inner {
    slots: VecDeque<Slot>,
    /// The number of `slots[0]`.
    first: u64,
    readers: usize,
    max_len: usize,
    max_bytes: usize,
    bytes: usize,
}

#[derive(Debug)]
struct Slot {
    publication: Publication,
    /// Number of readers that have not taken the publication. At 0 its content is dropped, even if older publications
    /// are still in the ring.
    awaited: usize,
}

/// The place of one peer in the ring.
#[derive(Debug)]
pub(crate) struct Reader {
    ring: Arc<Ring>,
    next: u64,
    head: watch::Receiver<u64>,
}

impl Ring {
    /// A ring of at most `max_len` publications and `max_bytes` bytes; a single publication may have more bytes.
    pub(crate) fn new(max_len: usize, max_bytes: usize) -> Arc<Ring> {
        let inner =
            Inner { slots: VecDeque::new(), first: 0, readers: 0, max_len: max_len.max(1), max_bytes, bytes: 0 };
        Arc::new(Ring { inner: Mutex::new(inner), head: watch::Sender::new(0) })
    }

    /// Adds a publication. Returns the number of publications that the readers lost, counted for each reader.
    pub(crate) fn push(&self, publication: Publication) -> u64 {
        let mut lost = 0;
        let head = {
            let mut inner = self.lock();
            let len = publication.len();
            while inner.slots.len() >= inner.max_len
                || (!inner.slots.is_empty() && inner.bytes.saturating_add(len) > inner.max_bytes)
            {
                lost += inner.pop() as u64;
            }
            if inner.readers == 0 {
                inner.first += 1;
            } else {
                inner.bytes += len;
                let awaited = inner.readers;
                inner.slots.push_back(Slot { publication, awaited });
            }
            inner.head()
        };
        self.head.send_replace(head);
        lost
    }

    /// Makes a reader of the publications pushed from now on.
    pub(crate) fn reader(self: &Arc<Ring>) -> Reader {
        let mut inner = self.lock();
        inner.readers += 1;
        Reader { ring: Arc::clone(self), next: inner.head(), head: self.head.subscribe() }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        // No panic is possible while the lock is held.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn head(&self) -> u64 {
        self.first + self.slots.len() as u64
    }

    /// Removes the oldest publication. Returns the number of readers that had not taken it.
    fn pop(&mut self) -> usize {
        let Some(slot) = self.slots.pop_front() else { return 0 };
        self.bytes -= slot.publication.len();
        self.first += 1;
        slot.awaited
    }

    /// Takes the publication at `index` for one reader.
    fn take(&mut self, index: usize) -> Publication {
        let slot = &mut self.slots[index];
        slot.awaited -= 1;
        if slot.awaited > 0 {
            return slot.publication.clone();
        }
        let publication = std::mem::take(&mut slot.publication);
        self.bytes -= publication.len();
        publication
    }

    fn drop_taken(&mut self) {
        while self.slots.front().is_some_and(|slot| slot.awaited == 0) {
            self.pop();
        }
    }
}

impl Reader {
    /// Takes the next publication, if there is one. Returns with it the number of publications that the reader has lost
    /// since the last call.
    pub(crate) fn read(&mut self) -> (u64, Option<Publication>) {
        let mut inner = self.ring.lock();
        let lost = inner.first.saturating_sub(self.next);
        self.next = self.next.max(inner.first);
        let index = usize::try_from(self.next - inner.first).unwrap_or(usize::MAX);
        if index >= inner.slots.len() {
            return (lost, None);
        }
        let publication = inner.take(index);
        self.next += 1;
        inner.drop_taken();
        (lost, Some(publication))
    }

    /// Waits for publications. Cancel-safe.
    pub(crate) async fn wait(&mut self) {
        let next = self.next;
        // The sender is in the ring, which this reader holds.
        let _ = self.head.wait_for(|head| *head > next).await;
    }

    /// Whether this reader has read everything.
    pub(crate) fn is_at_end(&self) -> bool {
        self.next >= self.ring.lock().head()
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut inner = self.ring.lock();
        inner.readers -= 1;
        let start = usize::try_from(self.next.saturating_sub(inner.first)).unwrap_or(usize::MAX);
        for index in start..inner.slots.len() {
            inner.take(index);
        }
        inner.drop_taken();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn publication(number: u8, len: usize) -> Publication {
        Publication::One { topic: Bytes::new(), wire: Bytes::from(vec![number; len]) }
    }

    fn read(reader: &mut Reader) -> (u64, Vec<u8>) {
        let (mut lost, mut numbers) = (0, Vec::new());
        loop {
            let (more, publication) = reader.read();
            lost += more;
            numbers.push(match publication {
                None => return (lost, numbers),
                Some(Publication::One { wire, .. }) => wire[0],
                Some(Publication::Each { body, .. }) => body[0],
            });
        }
    }

    /// The publications and bytes in the ring.
    fn held(ring: &Ring) -> (usize, usize) {
        let inner = ring.lock();
        (inner.slots.len(), inner.bytes)
    }

    #[test]
    fn the_topic_is_the_first_frame() {
        for len in [0, 1, 255, 256, 70_000] {
            let first = Bytes::from(vec![7; len]);
            let publication = Publication::new(&vec![first.clone(), Bytes::from("x")]);
            assert!(matches!(publication, Publication::One { topic, .. } if topic == first));
        }
        assert!(matches!(Publication::new(&Vec::new()), Publication::One { topic, .. } if topic.is_empty()));
    }

    #[test]
    fn the_slow_reader_loses_its_oldest_and_the_others_get_all() {
        let ring = Ring::new(3, usize::MAX);
        ring.push(publication(0, 1));
        let (mut fast, mut slow) = (ring.reader(), ring.reader());
        let mut lost = 0;
        for number in 1..=5 {
            lost += ring.push(publication(number, 1));
            assert_eq!(read(&mut fast), (0, vec![number]));
        }
        assert_eq!(lost, 2);
        assert_eq!(read(&mut slow), (2, vec![3, 4, 5]));
        assert_eq!(read(&mut slow), (0, vec![]));
        assert!(ring.lock().slots.is_empty());
    }

    #[test]
    fn one_for_each_counts_with_all_its_parts() {
        let ring = Ring::new(10, usize::MAX);
        let mut reader = ring.reader();
        let heads = HashMap::from([("a", "12"), ("b", "34")].map(|(topic, head)| (topic.into(), head.into())));
        ring.push(Publication::each(heads, Bytes::from("body")));
        assert_eq!(held(&ring), (1, 2 * (1 + 2 + HEAD_OVERHEAD) + 4));
        assert_eq!(read(&mut reader), (0, vec![b'b']));
        assert_eq!(held(&ring), (0, 0));
    }

    #[test]
    fn what_everybody_took_is_freed_at_once() {
        let ring = Ring::new(10, usize::MAX);
        let (mut one, two) = (ring.reader(), ring.reader());
        ring.push(publication(1, 100));
        let late = ring.reader();
        ring.push(publication(2, 100));
        assert_eq!(read(&mut one), (0, vec![1, 2]));
        drop(two);
        assert_eq!(held(&ring), (1, 100));
        drop(late);
        assert_eq!(held(&ring), (0, 0));
        drop(one);
        ring.push(publication(3, 100));
        assert_eq!(held(&ring), (0, 0));
        assert_eq!(ring.lock().head(), 3);
    }

    #[test]
    fn bytes_are_bounded_too() {
        let ring = Ring::new(10, 250);
        let mut reader = ring.reader();
        for number in 1..=4 {
            ring.push(publication(number, 100));
        }
        assert_eq!(ring.lock().bytes, 200);
        assert_eq!(read(&mut reader), (2, vec![3, 4]));
        ring.push(publication(5, 1000));
        assert_eq!(read(&mut reader), (0, vec![5]));
    }

    #[tokio::test]
    async fn waits_for_what_is_new() {
        let ring = Ring::new(10, usize::MAX);
        let mut reader = ring.reader();
        let waiting = tokio::spawn(async move {
            reader.wait().await;
            read(&mut reader)
        });
        ring.push(publication(1, 1));
        assert_eq!(waiting.await.unwrap(), (0, vec![1]));
    }
}
