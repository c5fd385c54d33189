//! Whether a call computes or waits for something outside its instance: a sleep, a file, the minion's answer. Who waits does not hold a
//! turn that others need.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

/// Of one call. It is the waker of the call's guest, and wakes whoever polls that.
#[derive(Debug, Default)]
pub struct Activity {
    /// The guest was polled at least once since the last look.
    stirred: AtomicBool,
    polled: AtomicBool,
    /// It could go on, and does not for want of a thread.
    idle: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Activity {
    fn waker(&self) -> MutexGuard<'_, Option<Waker>> {
        self.waker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The guest is about to be polled, for this waker.
    pub fn begin(&self, waker: &Waker) {
        {
            let mut known = self.waker();
            if !known.as_ref().is_some_and(|known| known.will_wake(waker)) {
                *known = Some(waker.clone());
            }
        }
        self.stirred.store(true, SeqCst);
        self.polled.store(true, SeqCst);
        // Who is woken while it is polled is not idle afterwards.
        self.idle.store(true, SeqCst);
    }

    /// It was polled.
    pub fn end(&self) {
        self.polled.store(false, SeqCst);
    }

    /// Whether it has done nothing but wait since the last look. A look.
    pub fn only_waits(&self) -> bool {
        let waits = self.idle.load(SeqCst) && !self.polled.load(SeqCst);
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
