//! Checks that an executor responds. A stopped or hanging executor is detected within a second of the first job that
//! waits for it.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use brine_sandbox_wire::ToExecutor;

use super::Link;

/// Interval between two pings.
const BEAT: Duration = Duration::from_millis(125);
/// Missed pings, with the main thread asleep all the time, after which the executor counts as hanging. Together with
/// [`super::PATIENCE`] this is less than a second.
const MISSED: u32 = 5;
/// The same limit for an executor that is busy all the time or waits for the disk: a large message takes time on a
/// Interval between two pings while the executor responds.
const AT_WORK: Duration = Duration::from_secs(5);
/// While it answers, between two rounds.
const REST: Duration = Duration::from_millis(250);
/// A ping delayed by more than this shows that the machine is overloaded for this program too.
const LATE: Duration = Duration::from_millis(60);

/// The state of an executor's main thread, according to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Thread {
    /// Stopped by a signal or a debugger.
    Stopped,
    Asleep,
    /// Running, ready to run, or waiting for a disk.
    AtWork,
}

impl Link {
    /// Requests a check of the executor, because a caller has waited longer than usual.
    pub(crate) fn doubt(&self) {
        self.doubted.notify_one();
    }

    pub(super) fn hears(&self, n: u64) {
        self.answered.fetch_max(n, Ordering::Relaxed);
    }

    pub(super) fn has_answered(&self) -> bool {
        self.answered.load(Ordering::Relaxed) >= self.asked.load(Ordering::Relaxed)
    }

    /// Returns the number of the next question.
    pub(super) fn next_question(&self) -> u64 {
        self.asked.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(super) async fn ask(&self, question: impl FnOnce(u64) -> ToExecutor) {
        let n = self.next_question();
        let _ = self.send(&question(n)).await;
    }

    /// Waits until the executor certainly does not respond any more; returns the reason. Checks only on request, and
    /// otherwise sleeps.
    pub(crate) async fn gone(&self) -> &'static str {
        loop {
            self.doubted.notified().await;
            if let Some(why) = self.look_closely().await {
                return why;
            }
        }
    }

    /// Checks the executor until no call needs it.
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
                // The executor may not even read the ping, so this has a timeout.
                let _ = tokio::time::timeout(BEAT, self.ask(|n| ToExecutor::Ping { n })).await;
            } else if thread == Thread::Asleep {
                missed += 1;
            }
            if missed > MISSED || since.elapsed() > AT_WORK {
                return Some("did not answer any more");
            }
            let (began, heard) = (Instant::now(), self.heard.load(Ordering::Relaxed));
            tokio::time::sleep(beat).await;
            // Loading has a timeout of its own. An executor that keeps sending is alive, even if this program is too
            // slow to read its messages.
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
    // The program's name is in parentheses and may contain some.
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
