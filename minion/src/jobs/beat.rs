//! A timer that is always the next one while jobs come.
//!
//! Each job sets timers that nearly always are taken back before they expire. Tokio writes to a descriptor, and so wakes the thread that
//! waits for sockets, for each timer that is earlier than all others. With this one, no timer of a job is.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

/// Shorter than every timer of a job.
const BEAT: Duration = Duration::from_millis(50);

#[derive(Debug, Default)]
pub(super) struct Beat {
    /// Whether a job came since the last beat.
    busy: AtomicBool,
    began: Notify,
}

impl Beat {
    /// A job comes.
    pub(super) fn job(&self) {
        if !self.busy.swap(true, Ordering::Relaxed) {
            self.began.notify_one();
        }
    }

    /// Beats while jobs come. Never ends.
    pub(super) async fn run(&self) {
        loop {
            self.began.notified().await;
            while self.busy.swap(false, Ordering::Relaxed) {
                tokio::time::sleep(BEAT).await;
            }
        }
    }
}
