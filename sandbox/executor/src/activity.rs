//! Tracks whether a call computes or waits for something outside its instance: a sleep, a file, the minion's reply. The
//! sandbox can then give the slot of a waiting call to another call.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

/// The activity of one call. It is the waker of the call's guest and forwards each wake-up to the task that polls the
/// guest.
#[derive(Debug, Default)]
pub struct Activity {
    /// Whether the guest was polled since the last call of [`Activity::only_waits`].
    stirred: AtomicBool,
    polled: AtomicBool,
    /// Whether the guest has no reason to be polled: it has not been woken since the last poll began.
    idle: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Activity {
    fn waker(&self) -> MutexGuard<'_, Option<Waker>> {
        self.waker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a poll of the guest begins, with this waker.
    pub fn begin(&self, waker: &Waker) {
        {
            let mut known = self.waker();
            if !known.as_ref().is_some_and(|known| known.will_wake(waker)) {
                *known = Some(waker.clone());
            }
        }
        self.stirred.store(true, SeqCst);
        self.polled.store(true, SeqCst);
        // A wake-up during the poll clears this flag again.
        self.idle.store(true, SeqCst);
    }

    /// Records that the poll has ended.
    pub fn end(&self) {
        self.polled.store(false, SeqCst);
    }

    /// Whether the call waits now.
    pub fn waits(&self) -> bool {
        self.idle.load(SeqCst) && !self.polled.load(SeqCst)
    }

    /// Whether the call has only waited since the previous call of this method.
    pub fn only_waits(&self) -> bool {
        let waits = self.waits();
        !self.stirred.swap(false, SeqCst) && waits
    }
}

impl Wake for Activity {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.idle.store(false, SeqCst);
        let waker = self.waker().clone();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_computes_or_could_compute_does_not_wait() {
        let activity = Arc::new(Activity::default());
        assert!(!activity.only_waits(), "it has not begun");
        activity.begin(Waker::noop());
        assert!(!activity.only_waits() && !activity.only_waits(), "it computes");
        activity.end();
        assert!(activity.only_waits(), "it waits since the last look");
        Waker::from(Arc::clone(&activity)).wake();
        assert!(!activity.only_waits(), "it could go on");
        activity.begin(Waker::noop());
        Waker::from(Arc::clone(&activity)).wake_by_ref();
        activity.end();
        assert!(!activity.only_waits() && !activity.only_waits(), "it gave way to others only");
        activity.begin(Waker::noop());
        activity.end();
        assert!(!activity.only_waits(), "it has computed since the last look");
        assert!(activity.only_waits());
    }
}
