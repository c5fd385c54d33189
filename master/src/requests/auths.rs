//! `_auth` requests: so many at a time, since each takes some RSA, and the rest in line, in little memory. After a restart or a rotation of
//! the key a whole fleet asks within a second; whoever is turned away then comes back only after `acceptance_wait_time`.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brine_protocol::value::Value;
use brine_zmtp::Reply;
use tokio_util::task::TaskTracker;

use super::{Fault, guarded};
use crate::auth;
use crate::master::Master;

/// Requests that are looked at together.
const TURNS: usize = 64;
/// Bytes of requests that wait in line, those of the network and [`BESIDE`] each. A minion's has 1 to 2 KB, so ten thousand of them fit.
const WAITING_BYTES: usize = 32 << 20;
/// What a request takes besides its bytes.
const BESIDE: usize = 1 << 10;

/// A request, decoded.
pub(super) struct Waiting {
    pub(super) load: Value,
    pub(super) version: u64,
    /// Bytes that it had.
    pub(super) len: usize,
    pub(super) reply: Reply,
}

/// The line.
#[derive(Default)]
pub(crate) struct Auths {
    line: Mutex<Line<Waiting>>,
}

impl std::fmt::Debug for Auths {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.line())
    }
}

impl Auths {
    /// What is in work and what waits, for the log.
    pub(crate) fn line(&self) -> String {
        let line = self.lock();
        format!("{} that authenticate of {TURNS} and {} that wait to", line.in_work, line.waiting.len())
    }

    /// Answers a request when its turn comes, or says no at once where too many wait.
    pub(super) async fn take(master: &Arc<Master>, tasks: &TaskTracker, new: Waiting) {
        let size = new.len.saturating_add(BESIDE);
        let come = master.auths.lock().come(new, size);
        match come {
            Come::Now(first) => drop(tasks.spawn(work(Arc::clone(master), first))),
            Come::Later => {}
            Come::Full(refused) => {
                let no = async { Err::<Vec<u8>, _>(Fault::new("too many minions authenticate at once")) };
                let answer = guarded(master, &refused.reply, no).await;
                // A peer that has gone needs no answer.
                let _ = refused.reply.send(answer.map_or_else(|refusal| refusal, Into::into)).await;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Line<Waiting>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Answers one request after the other until none is left.
async fn work(master: Arc<Master>, first: Waiting) {
    let mut next = Some(first);
    while let Some(Waiting { load, version, reply, .. }) = next {
        // Who has not waited for its turn has asked again over another connection, and waits there.
        if !reply.is_gone() {
            let _timed = master.timings.during("_auth");
            let answer = guarded(&master, &reply, auth::answer(&master, &load, version)).await;
            let _ = reply.send(answer.map_or_else(|refusal| refusal, Into::into)).await;
        }
        next = master.auths.lock().next();
    }
}

/// What becomes of a newcomer.
enum Come<T> {
    Now(T),
    Later,
    Full(T),
}

/// Who is in work and who waits, apart from what they want.
struct Line<T> {
    in_work: usize,
    waiting: VecDeque<(T, usize)>,
    bytes: usize,
}

impl<T> Default for Line<T> {
    fn default() -> Self {
        Self { in_work: 0, waiting: VecDeque::new(), bytes: 0 }
    }
}

impl<T> Line<T> {
    fn come(&mut self, new: T, size: usize) -> Come<T> {
        if self.in_work < TURNS {
            self.in_work += 1;
            return Come::Now(new);
        }
        if self.bytes.saturating_add(size) > WAITING_BYTES {
            return Come::Full(new);
        }
        self.bytes += size;
        self.waiting.push_back((new, size));
        Come::Later
    }

    /// The next in line for who is done with one; without a next one its turn is free.
    fn next(&mut self) -> Option<T> {
        let Some((next, size)) = self.waiting.pop_front() else {
            self.in_work -= 1;
            // A storm leaves no room behind that it took.
            self.waiting = VecDeque::new();
            return None;
        };
        self.bytes -= size;
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten thousand at once, which is what a rotated key brings, are all answered; strangers who are more than that are told at once.
    #[test]
    fn a_fleet_fits_in_the_line_and_the_line_is_bounded() {
        let mut line = Line::default();
        for number in 0..10_064_usize {
            let now = matches!(line.come(number, 2_000 + BESIDE), Come::Now(_));
            assert_eq!(now, number < TURNS, "{number}");
        }
        assert!(matches!(line.come(0, WAITING_BYTES), Come::Full(_)));
        let more = (0..WAITING_BYTES).take_while(|_| matches!(line.come(0, 2_000 + BESIDE), Come::Later)).count();
        assert!(line.bytes <= WAITING_BYTES && more < 2_000, "{more}");
        assert_eq!(line.next(), Some(TURNS), "the first that waited");
        assert!(matches!(line.come(7, 2_000 + BESIDE), Come::Later), "its room is free");
        while line.next().is_some() {}
        assert_eq!((line.in_work, line.bytes), (TURNS - 1, 0));
    }
}
