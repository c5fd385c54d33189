//! Memory that jobs used goes back to the host when they have ended.
//!
//! glibc keeps what is freed in pieces below its threshold for `mmap`, which grows up to 32 MB: a thousand jobs with 100 KB of
//! arguments each left a process of 20 MB at 120 MB for good. So it is told, when much went through it and it has become quiet.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

/// Bytes that jobs bring and return; below, there is little to get back.
const ENOUGH: u64 = 16 << 20;
/// What a job counts for beside them: its messages, its return on its way to the master.
const JOB: u64 = 16 << 10;
/// For the returns of the last jobs to be sent.
const QUIET: Duration = Duration::from_secs(2);
/// Looks at whether it is quiet, before it is done all the same.
const LOOKS: usize = 30;

#[derive(Debug, Default)]
pub(crate) struct Trim {
    /// Since the last time.
    handled: AtomicU64,
    enough: Notify,
}

impl Trim {
    /// A job brought, or led to, so many bytes.
    pub(crate) fn handled(&self, bytes: u64) {
        let more = bytes.saturating_add(JOB);
        let before = self.handled.fetch_add(more, Ordering::Relaxed);
        if before < ENOUGH && before.saturating_add(more) >= ENOUGH {
            self.enough.notify_one();
        }
    }

    /// Sees to it for as long as it is polled. `quiet` tells whether no job runs.
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
            // It looks through all of the memory that was freed.
            let _ = tokio::task::spawn_blocking(give_back).await;
        }
    }
}

/// Other allocators give memory back by themselves.
fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it takes no pointer and touches only what is free; glibc takes its own locks.
    unsafe {
        libc::malloc_trim(0);
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
        // It starts from nothing again, and never more than so often.
        trim.handled(one);
        assert!(run(100 * QUIET).await.is_err());
        assert_eq!(looks.get(), 3);
        trim.handled(one);
        assert!(run(100 * QUIET).await.is_err());
        assert_eq!(looks.get(), 3 + LOOKS);
    }
}
