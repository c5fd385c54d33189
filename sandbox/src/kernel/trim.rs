//! Returns freed memory to the host after many jobs have ended.
//!
//! glibc keeps freed pieces below its threshold for `mmap`, which grows up to 32 MB: a thousand jobs with 100 KB of
//! arguments each left a process of 20 MB at 120 MB for good. So `malloc_trim` runs when jobs have handled many bytes
//! and the process is quiet.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

/// Bytes of arguments and returns after which a trim is worthwhile.
const ENOUGH: u64 = 16 << 20;
/// Bytes added for each job: its messages, and its return on the way to the master.
const JOB: u64 = 16 << 10;
/// Time for the returns of the last jobs to be sent.
const QUIET: Duration = Duration::from_secs(2);
/// Checks for quiet before the trim runs regardless.
const LOOKS: usize = 30;

#[derive(Debug, Default)]
pub(crate) struct Trim {
    /// Bytes since the last trim.
    handled: AtomicU64,
    enough: Notify,
}

impl Trim {
    /// Counts the bytes of a job's arguments or of its return.
    pub(crate) fn handled(&self, bytes: u64) {
        let more = bytes.saturating_add(JOB);
        let before = self.handled.fetch_add(more, Ordering::Relaxed);
        if before < ENOUGH && before.saturating_add(more) >= ENOUGH {
            self.enough.notify_one();
        }
    }

    /// Trims whenever enough bytes were handled. Runs forever. `quiet` returns whether no job runs.
    pub(crate) async fn run(&self, quiet: impl Fn() -> bool) {
        loop {
            self.enough.notified().await;
            for _ in 0..LOOKS {
                tokio::time::sleep(QUIET).await;
                if quiet() {
                    break;
                }
            }
            self.handled.store(0, Ordering::Relaxed);
            // `malloc_trim` walks over all freed memory, which takes time.
            let _ = tokio::task::spawn_blocking(brine_trim::freed).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_waits_until_it_is_quiet_but_not_for_ever() {
        let (trim, looks) = (Trim::default(), std::cell::Cell::new(0));
        let look = || {
            looks.set(looks.get() + 1);
            looks.get() == 3
        };
        let one = ENOUGH - JOB - 1;
        trim.handled(one);
        let run = |time| tokio::time::timeout(time, trim.run(look));
        assert!(run(100 * QUIET).await.is_err());
        assert_eq!(looks.get(), 0);
        trim.handled(1);
        assert!(run(100 * QUIET).await.is_err());
        assert_eq!(looks.get(), 3);
        // The count starts at zero again, and the number of checks stays bounded.
        trim.handled(one);
        assert!(run(100 * QUIET).await.is_err());
        assert_eq!(looks.get(), 3);
        trim.handled(one);
        assert!(run(100 * QUIET).await.is_err());
        assert_eq!(looks.get(), 3 + LOOKS);
    }
}
