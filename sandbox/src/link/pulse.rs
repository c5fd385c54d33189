//! Whether an executor is still there: one that is stopped or hangs is found within a second of the first job that waits for it.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use brine_sandbox_wire::ToExecutor;

use super::Link;

/// Between two questions.
const BEAT: Duration = Duration::from_millis(125);
/// So many without an answer, and its thread asleep all the time: it will not answer any more. With [`super::PATIENCE`] that is less
/// than a second.
const MISSED: u32 = 5;
/// One that is at work all the time, or waits for the disk, gets this long: a large message takes its time on a small machine.
const AT_WORK: Duration = Duration::from_secs(5);
/// While it answers, between two rounds.
const REST: Duration = Duration::from_millis(250);
/// A beat that is later than this says that the machine has no time for this program either.
const LATE: Duration = Duration::from_millis(60);

/// What the kernel says of an executor's main thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Thread {
    /// Somebody stopped it by a signal or a debugger.
    Stopped,
    Asleep,
    /// It runs, could run, or waits for a disk.
    AtWork,
}

impl Link {
    /// Somebody waits for it longer than usual: it is looked at.
    pub(crate) fn doubt(&self) {
        self.doubted.notify_one();
    }

    pub(super) fn hears(&self, n: u64) {
        self.answered.fetch_max(n, Ordering::Relaxed);
    }

    pub(super) fn has_answered(&self) -> bool {
        self.answered.load(Ordering::Relaxed) >= self.asked.load(Ordering::Relaxed)
    }

    pub(super) async fn ask(&self, question: impl FnOnce(u64) -> ToExecutor) {
        let n = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        let _ = self.send(&question(n)).await;
    }

    /// Waits until there is no doubt that it does not answer any more; says why. It is looked at while somebody doubts it, and
    /// otherwise nothing wakes.
    pub(crate) async fn gone(&self) -> &'static str {
        loop {
            self.doubted.notified().await;
            if let Some(why) = self.look_closely().await {
                return why;
            }
        }
    }

    /// Until nobody waits for it.
    async fn look_closely(&self) -> Option<&'static str> {
        let (mut missed, mut since) = (0, Instant::now());
        while self.is_needed() {
            let thread = thread(self.pid);
            if thread == Thread::Stopped {
                return Some("was stopped");
            }
            let mut beat = BEAT;
            if self.has_answered() {
                if missed == 0 && since.elapsed() >= BEAT {
                    beat = REST;
                }
                (missed, since) = (0, Instant::now());
                // It may not even read this; the beat goes on.
                let _ = tokio::time::timeout(BEAT, self.ask(|n| ToExecutor::Ping { n })).await;
            } else if thread == Thread::Asleep {
                missed += 1;
            }
            if missed > MISSED || since.elapsed() > AT_WORK {
                return Some("did not answer any more");
            }
            let (began, heard) = (Instant::now(), self.heard.load(Ordering::Relaxed));
            tokio::time::sleep(beat).await;
            // What it loads has a limit of its own, and who says something all the time is there, also where it is this program that
            // does not come to read it.
            let says = heard != self.heard.load(Ordering::Relaxed) || self.inbox.has_some();
            if began.elapsed() > beat + LATE || self.loads() || (says && !self.has_answered()) {
                (missed, since) = (0, Instant::now());
            }
        }
        None
    }

    fn loads(&self) -> bool {
        !self.state().sent.is_empty()
    }

    fn is_needed(&self) -> bool {
        let state = self.state();
        !state.calls.is_empty() || !state.sent.is_empty()
    }
}

fn thread(pid: u32) -> Thread {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).map_or(Thread::AtWork, |stat| of_stat(&stat))
}

fn of_stat(stat: &str) -> Thread {
    // The program's name is in parentheses, and may have some in it.
    match stat.rsplit(')').next().and_then(|rest| rest.trim_start().chars().next()) {
        Some('T' | 't') => Thread::Stopped,
        Some('S' | 'I') => Thread::Asleep,
        _ => Thread::AtWork,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_of_threads() {
        let of = |state: &str| of_stat(&format!("17 (a) T (b) {state} 1 17 17 0 -1"));
        assert_eq!(["T", "t"].map(of), [Thread::Stopped; 2]);
        assert_eq!(of("S"), Thread::Asleep);
        assert_eq!(["R", "D", "Z", ""].map(of), [Thread::AtWork; 4]);
    }
}
