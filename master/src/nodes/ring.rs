//! The last events of the bus, each with its place: what streams read, at their own pace. A stream that falls behind loses
//! events and learns how many; nothing waits for it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brine_protocol::nodes::Cursor;
use brine_protocol::value::{Value, ValueExt as _};
use bytes::Bytes;
use tokio::sync::watch;

use super::subject::Subject;
use crate::bus::{BusEvent, TRIMMED};

/// Upper bound on the events, as in the queues of the bus.
const EVENTS_MAX: usize = 10_000;
/// Upper bound on the bytes of the events. The last event is always there.
const BYTES_MAX: usize = 16 << 20;

/// An event in the ring.
#[derive(Debug)]
pub(super) struct RingEvent {
    /// Its number, from 1.
    pub(super) seq: u64,
    pub(super) tag: String,
    pub(super) subject: Subject,
    /// The encoded event.
    pub(super) packed: Bytes,
    /// Whether its return was too large for the bus.
    pub(super) is_trimmed: bool,
}

/// The ring.
#[derive(Debug)]
pub(super) struct Ring {
    epoch: u64,
    kept: Mutex<Kept>,
    /// The number of the last event.
    head: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Kept {
    events: VecDeque<Arc<RingEvent>>,
    bytes: usize,
    last: u64,
}

impl Default for Ring {
    fn default() -> Self {
        Self { epoch: rand::random(), kept: Mutex::default(), head: watch::Sender::new(0) }
    }
}

impl Ring {
    /// Returns the place of the last event.
    pub(super) fn head(&self) -> Cursor {
        Cursor { epoch: self.epoch, seq: self.lock().last }
    }

    /// Waits for events after the ones that this receiver has seen.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.head.subscribe()
    }

    /// Appends an event.
    pub(super) fn push(&self, event: &BusEvent) {
        let tag = event.event.tag.clone();
        let ret = event.event.data.get("return");
        let (subject, packed) = (Subject::of(&tag), event.body());
        self.append(|seq| RingEvent { seq, subject, packed, is_trimmed: ret.is_some_and(has_trimmed), tag });
    }

    fn append(&self, make: impl FnOnce(u64) -> RingEvent) {
        let mut kept = self.lock();
        kept.last += 1;
        let event = make(kept.last);
        kept.bytes += event.packed.len();
        kept.events.push_back(Arc::new(event));
        while (kept.events.len() > EVENTS_MAX || kept.bytes > BYTES_MAX) && kept.events.len() > 1 {
            if let Some(oldest) = kept.events.pop_front() {
                kept.bytes -= oldest.packed.len();
            }
        }
        let last = kept.last;
        drop(kept);
        self.head.send_replace(last);
    }

    /// Leaves out the numbers of events that never came.
    pub(super) fn lose(&self, count: u64) {
        let mut kept = self.lock();
        kept.last += count;
        let last = kept.last;
        drop(kept);
        self.head.send_replace(last);
    }

    /// Returns the first events after this number, at most so many, and the number of the last event. Numbers between them
    /// that are missing are lost events.
    pub(super) fn after(&self, seq: u64, most: usize) -> (Vec<Arc<RingEvent>>, u64) {
        let kept = self.lock();
        let from = kept.events.partition_point(|event| event.seq <= seq);
        (kept.events.range(from..).take(most).cloned().collect(), kept.last)
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a value has been trimmed, itself or within its maps.
fn has_trimmed(value: &Value) -> bool {
    match value {
        Value::Map(entries) => entries.iter().any(|(_, value)| has_trimmed(value)),
        value => value.as_str() == Some(TRIMMED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(ring: &Ring, size: usize) {
        let packed = Bytes::from(vec![0; size]);
        ring.append(|seq| RingEvent { seq, tag: String::new(), subject: Subject::Other, packed, is_trimmed: false });
    }

    fn numbers(ring: &Ring, after: u64, most: usize) -> Vec<u64> {
        ring.after(after, most).0.iter().map(|event| event.seq).collect()
    }

    #[test]
    fn it_is_bounded_in_events_and_in_bytes() {
        let ring = Ring::default();
        for _ in 0..EVENTS_MAX + 5 {
            push(&ring, 1);
        }
        assert_eq!(numbers(&ring, 0, 2), [6, 7]);
        assert_eq!(ring.after(0, usize::MAX).0.len(), EVENTS_MAX);
        push(&ring, BYTES_MAX + 1);
        let last = ring.head().seq;
        assert_eq!(numbers(&ring, 0, 9), [last], "the last is there, however large");
    }

    #[test]
    fn what_is_lost_leaves_a_gap() {
        let ring = Ring::default();
        push(&ring, 1);
        ring.lose(3);
        push(&ring, 1);
        assert_eq!(numbers(&ring, 0, 9), [1, 5]);
        assert_eq!(numbers(&ring, 1, 9), [5]);
        assert_eq!(numbers(&ring, 5, 9), [] as [u64; 0]);
        ring.lose(1);
        assert_eq!(ring.after(5, 9).1, 6);
    }

    #[test]
    fn each_start_is_an_epoch() {
        assert_ne!(Ring::default().head().epoch, Ring::default().head().epoch);
    }
}
