//! A queue of log-ins with a bounded number of places and of waiting log-ins.
//!
//! The newest log-in is next: in a flood, the old ones belong to the flood, or their clients have gone. A full queue
//! refuses the oldest log-in, and not the new one.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

/// The longest wait of a log-in. A handler has 55 s, a client 60 s.
const WAIT_MAX: Duration = Duration::from_secs(40);
/// Bound on the bytes of waiting requests in one queue. A log-in has some 200 bytes, a job for a long list of minions
/// some 100 KB.
const WAITING_BYTES: usize = 4 << 20;

/// The queue.
#[derive(Debug)]
pub(super) struct Lane {
    line: Mutex<Line>,
    waiting_max: usize,
}

#[derive(Debug)]
struct Line {
    free: usize,
    /// In order of arrival.
    waiting: VecDeque<Waiting>,
    bytes: usize,
}

#[derive(Debug)]
struct Waiting {
    turn: oneshot::Sender<LoginPlace>,
    bytes: usize,
}

/// A place among the log-ins that are being checked. Dropping it gives it to the next one.
#[derive(Debug)]
pub(super) struct LoginPlace {
    lane: Option<Arc<Lane>>,
}

impl Lane {
    pub(super) fn new(places: usize, waiting_max: usize) -> Arc<Self> {
        let line = Line { free: places, waiting: VecDeque::new(), bytes: 0 };
        Arc::new(Self { line: Mutex::new(line), waiting_max })
    }

    /// Waits for a place for a request of `bytes`. Returns `None` if newer log-ins displaced it, or if its client has
    /// gone.
    pub(super) async fn place(
        self: &Arc<Self>,
        bytes: usize,
        is_gone: &(dyn Fn() -> bool + Sync),
    ) -> Option<LoginPlace> {
        let waiting = {
            let mut line = self.lock();
            if line.free > 0 {
                line.free -= 1;
                return Some(LoginPlace { lane: Some(Arc::clone(self)) });
            }
            let (turn, waiting) = oneshot::channel();
            line.come(Waiting { turn, bytes }, self.waiting_max);
            waiting
        };
        let place = tokio::time::timeout(WAIT_MAX, waiting).await.ok()?.ok()?;
        (!is_gone()).then_some(place)
    }

    /// Returns the number of waiting log-ins.
    pub(super) fn waiting(&self) -> usize {
        self.lock().waiting.len()
    }

    fn lock(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line {
    fn come(&mut self, new: Waiting, max: usize) {
        self.bytes += new.bytes;
        self.waiting.push_back(new);
        while self.waiting.len() > max || self.bytes > WAITING_BYTES {
            let Some(oldest) = self.waiting.pop_front() else { return };
            // Dropping its sender tells the log-in that it was displaced.
            self.bytes -= oldest.bytes;
        }
    }
}

impl Drop for LoginPlace {
    fn drop(&mut self) {
        let Some(lane) = self.lane.take() else { return };
        loop {
            let next = {
                let mut line = lane.lock();
                let Some(next) = line.waiting.pop_back() else {
                    line.free += 1;
                    // A new queue frees the memory that a flood took.
                    line.waiting = VecDeque::new();
                    return;
                };
                line.bytes -= next.bytes;
                next
            };
            match next.turn.send(Self { lane: Some(Arc::clone(&lane)) }) {
                Ok(()) => return,
                // The log-in no longer waits.
                Err(mut place) => drop(place.lane.take()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here() -> bool {
        false
    }

    /// Returns the free places and the bytes that wait.
    fn free(lane: &Lane) -> (usize, usize) {
        let line = lane.lock();
        (line.free, line.bytes)
    }

    #[tokio::test]
    async fn the_newest_is_next_and_the_oldest_gives_way() {
        let lane = Lane::new(1, 2);
        let first = lane.place(10, &here).await.unwrap();
        let mut waiting: Vec<_> = Vec::new();
        for n in 1..=3_usize {
            let mut place = Box::pin(lane.place(10, &here));
            assert!(futures_util::poll!(&mut place).is_pending(), "{n}");
            waiting.push(place);
        }
        assert!(waiting.remove(0).await.is_none(), "two wait, and it came first");
        drop(first);
        let newest = waiting.pop().unwrap().await.unwrap();
        assert_eq!(lane.waiting(), 1);
        drop(newest);
        assert!(waiting.pop().unwrap().await.is_some());
        assert_eq!(free(&lane), (1, 0));
    }

    #[tokio::test]
    async fn who_has_gone_is_passed_over() {
        let lane = Lane::new(1, 8);
        let first = lane.place(10, &here).await.unwrap();
        let mut waits = Box::pin(lane.place(10, &here));
        assert!(futures_util::poll!(&mut waits).is_pending());
        let mut left = Box::pin(lane.place(10, &|| true));
        assert!(futures_util::poll!(&mut left).is_pending());
        let mut cancelled = Box::pin(lane.place(10, &here));
        assert!(futures_util::poll!(&mut cancelled).is_pending());
        drop(cancelled);
        drop(first);
        assert!(left.await.is_none());
        assert!(waits.await.is_some());
        assert_eq!(free(&lane), (1, 0));
    }

    #[tokio::test]
    async fn its_bytes_are_bounded() {
        let lane = Lane::new(1, 8);
        let _first = lane.place(0, &here).await.unwrap();
        let mut large = Box::pin(lane.place(WAITING_BYTES - 10, &here));
        assert!(futures_util::poll!(&mut large).is_pending());
        let mut small = Box::pin(lane.place(11, &here));
        assert!(futures_util::poll!(&mut small).is_pending());
        assert!(large.await.is_none());
        assert_eq!(lane.lock().bytes, 11);
        assert!(lane.place(WAITING_BYTES + 1, &here).await.is_none(), "larger than all there is");
    }
}
