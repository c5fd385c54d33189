//! A line of log-ins: so many are looked at together, and so many wait.
//!
//! Who came last is next: who has waited long is the flood, or has gone. When the line is full who has waited longest is told so, and not
//! who comes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

/// A log-in waits no longer: a handler has 55 s, a client 60 s.
const WAIT_MAX: Duration = Duration::from_secs(40);
/// Bytes of requests that wait in one line; a log-in has some 200, a job for a long list of minions some 100 KB.
const WAITING_BYTES: usize = 4 << 20;

/// The line.
#[derive(Debug)]
pub(super) struct Lane {
    line: Mutex<Line>,
    waiting_max: usize,
}

#[derive(Debug)]
struct Line {
    free: usize,
    /// The newest last.
    waiting: VecDeque<Waiting>,
    bytes: usize,
}

#[derive(Debug)]
struct Waiting {
    turn: oneshot::Sender<LoginPlace>,
    bytes: usize,
}

/// A place among those that are looked at. Dropped, it is the next one's.
#[derive(Debug)]
pub(super) struct LoginPlace {
    lane: Option<Arc<Lane>>,
}

impl Lane {
    pub(super) fn new(places: usize, waiting_max: usize) -> Arc<Self> {
        let line = Line { free: places, waiting: VecDeque::new(), bytes: 0 };
        Arc::new(Self { line: Mutex::new(line), waiting_max })
    }

    /// A place for a request of `bytes` when its turn comes; none if others came after it and it had to give way, or if nobody waits for
    /// it any more.
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

    /// How many wait.
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
            // Its place in line is gone, which it is told by this.
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
                    // A storm leaves no room behind that it took.
                    line.waiting = VecDeque::new();
                    return;
                };
                line.bytes -= next.bytes;
                next
            };
            match next.turn.send(Self { lane: Some(Arc::clone(&lane)) }) {
                Ok(()) => return,
                // It waits no more.
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

    /// Places that are free, and bytes that wait.
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
