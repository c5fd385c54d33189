//! The clock that interrupts running guests: a thread that advances the engine's epoch while calls compute, and sleeps
//! while none do, so that an idle minion does not wake up, also while calls wait. The thread also wakes calls at their
//! deadlines; with timers of the runtime, each request to the host would wake another thread.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use wasmtime::{Engine, EngineWeak};

use crate::activity::Activity;

/// Time that a guest runs before others get a turn, and the largest delay in noticing a deadline.
const TICK: Duration = Duration::from_millis(10);

/// The tick while a call is to be killed: each busy guest gets a turn before that call notices the kill.
const FAST_TICK: Duration = Duration::from_millis(1);

/// Time within which every guest gets a turn on one thread, as far as [`FAST_TICK`] permits. A limit is noticed at a
/// turn.
const ROUND: Duration = Duration::from_millis(40);

/// Ticks without a computing call before the thread sleeps. Calls in quick succession do not wake it each time; and a minion whose
/// beacons look each second does not tick in between, since a tick costs as much as waking it.
const LINGER: u32 = 2;

/// Counts calls and wakes the thread.
#[derive(Debug)]
pub struct Ticker {
    counts: Arc<Counts>,
    thread: Thread,
}

#[derive(Debug, Default)]
struct Counts {
    running: AtomicUsize,
    killed: AtomicUsize,
    /// 1 while the thread sleeps.
    asleep: AtomicUsize,
    /// The running calls. There are few, so scanning them is cheaper than keeping them sorted.
    calls: Mutex<Vec<Call>>,
}

#[derive(Debug)]
struct Call {
    deadline: Option<Instant>,
    changed: Arc<Notify>,
    activity: Arc<Activity>,
}

impl Counts {
    fn calls(&self) -> MutexGuard<'_, Vec<Call>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake_overdue(&self, now: Instant) {
        // A call stays overdue until it has ended, so a call that missed a notification while it computed gets another
        // one.
        let calls = self.calls();
        let overdue = calls.iter().filter(|call| call.deadline.is_some_and(|deadline| deadline <= now));
        overdue.for_each(|call| call.changed.notify_one());
    }

    /// Whether all calls wait for something outside their instances.
    fn all_wait(&self) -> bool {
        self.calls().iter().all(|call| call.activity.waits())
    }

    /// The time until the first deadline.
    fn sleep(&self, now: Instant) -> Option<Duration> {
        let first = self.calls().iter().filter_map(|call| call.deadline).min()?;
        Some(first.saturating_duration_since(now).max(TICK))
    }
}

impl Ticker {
    /// Starts the thread. The thread ends with the engine.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(engine: &Engine) -> std::io::Result<Self> {
        let counts = Arc::new(Counts::default());
        let (engine, shared) = (engine.weak(), Arc::clone(&counts));
        let handle = thread::Builder::new().name("epochs".into()).spawn(move || tick(&engine, &shared))?;
        Ok(Self { counts, thread: handle.thread().clone() })
    }

    /// Registers a call that runs until the result is dropped. The call is notified at most one tick after its
    /// deadline.
    #[must_use]
    pub fn running(&self, deadline: Option<Instant>, changed: &Arc<Notify>, activity: &Arc<Activity>) -> Running {
        let call = Call { deadline, changed: Arc::clone(changed), activity: Arc::clone(activity) };
        self.counts.calls().push(call);
        self.counts.running.fetch_add(1, Ordering::SeqCst);
        self.stir();
        Running { counts: Arc::clone(&self.counts), call: Arc::clone(changed) }
    }

    /// Wakes the thread: a call begins to compute, as its activity says already.
    pub fn stir(&self) {
        if self.counts.asleep.swap(0, Ordering::SeqCst) == 1 {
            self.thread.unpark();
        }
    }

    /// Makes the clock tick fast until the result is dropped.
    #[must_use]
    pub fn hurry(&self) -> Hurry {
        self.counts.killed.fetch_add(1, Ordering::SeqCst);
        self.counts.asleep.store(0, Ordering::SeqCst);
        self.thread.unpark();
        Hurry(Arc::clone(&self.counts))
    }
}

/// A running call.
#[derive(Debug)]
pub struct Running {
    counts: Arc<Counts>,
    call: Arc<Notify>,
}

/// A call that has to end now.
#[derive(Debug)]
pub struct Hurry(Arc<Counts>);

impl Drop for Hurry {
    fn drop(&mut self) {
        self.0.killed.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.counts.running.fetch_sub(1, Ordering::SeqCst);
        let mut calls = self.counts.calls();
        if let Some(index) = calls.iter().position(|call| Arc::ptr_eq(&call.changed, &self.call)) {
            calls.swap_remove(index);
        }
    }
}

/// Time that a guest may run, given the number of running calls and of calls to be killed.
fn turn(running: usize, killed: usize) -> Duration {
    let running = u32::try_from(running).unwrap_or(u32::MAX).max(1);
    if killed > 0 { FAST_TICK } else { (ROUND / running).clamp(FAST_TICK, TICK) }
}

fn tick(engine: &EngineWeak, counts: &Counts) {
    let mut idle = 0;
    loop {
        thread::park_timeout(turn(counts.running.load(Ordering::SeqCst), counts.killed.load(Ordering::SeqCst)));
        let Some(engine) = engine.upgrade() else { return };
        engine.increment_epoch();
        drop(engine);
        counts.wake_overdue(Instant::now());
        idle = if counts.all_wait() { idle + 1 } else { 0 };
        if idle > LINGER {
            counts.asleep.store(1, Ordering::SeqCst);
            // A call that begins to compute between the two checks is seen here. A later one finds `asleep` set and wakes
            // this thread.
            if counts.all_wait() {
                match counts.sleep(Instant::now()) {
                    Some(time) => thread::park_timeout(time),
                    None => thread::park(),
                }
            }
            counts.asleep.store(0, Ordering::SeqCst);
            idle = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_short_where_many_wait_for_theirs() {
        let ms = |running, killed| turn(running, killed).as_millis();
        assert_eq!([ms(0, 0), ms(1, 0), ms(4, 0), ms(8, 0), ms(40, 0), ms(4_000, 0)], [10, 10, 10, 5, 1, 1]);
        assert_eq!([ms(1, 1), ms(64, 2)], [1, 1]);
    }

    #[tokio::test]
    async fn a_call_is_woken_at_its_deadline_and_forgotten_at_its_end() {
        let engine = brine_engine::engine().unwrap();
        let ticker = Ticker::start(&engine).unwrap();
        let (soon, late) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (now, activity) = (Instant::now(), Arc::new(Activity::default()));
        let first = ticker.running(Some(now), &soon, &activity);
        let second = ticker.running(now.checked_add(Duration::from_secs(3_600)), &late, &activity);
        let unbounded = ticker.running(None, &Arc::new(Notify::new()), &activity);
        // The call is notified at each tick, because it may have missed one.
        soon.notified().await;
        soon.notified().await;
        assert!(tokio::time::timeout(Duration::ZERO, late.notified()).await.is_err());
        assert_eq!(ticker.counts.calls().len(), 3);
        drop(unbounded);
        drop((first, second));
        assert!(ticker.counts.calls().is_empty());
    }

    #[tokio::test]
    async fn it_sleeps_while_calls_wait_and_wakes_them_at_their_deadlines() {
        let engine = brine_engine::engine().unwrap();
        let ticker = Ticker::start(&engine).unwrap();
        let (soon, activity) = (Arc::new(Notify::new()), Arc::new(Activity::default()));
        activity.begin(std::task::Waker::noop());
        activity.end();
        let began = Instant::now();
        let deadline = began + Duration::from_millis(400);
        let _running = ticker.running(Some(deadline), &soon, &activity);
        let is_asleep = || ticker.counts.asleep.load(Ordering::SeqCst) == 1;
        while !is_asleep() {
            assert!(began.elapsed() < Duration::from_millis(300), "it does not sleep");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        soon.notified().await;
        assert!(Instant::now() >= deadline);
        // One that computes again has its turns: the thread ticks until it waits.
        activity.begin(std::task::Waker::noop());
        ticker.stir();
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(!is_asleep());
        activity.end();
        while !is_asleep() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}
