//! The clock by which running guests are interrupted: a thread that advances the engine's epoch while calls run and sleeps
//! while none do, so that an idle minion wakes for nothing. It wakes calls at their deadlines too: a timer of the runtime would
//! have another thread woken for each call that asks the host for something.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use wasmtime::{Engine, EngineWeak};

/// How long a guest runs before others get their turn, and how late a deadline can be noticed.
const TICK: Duration = Duration::from_millis(10);

/// While a call is to be killed: with many busy guests each has to have its turn before the call comes to know.
const FAST_TICK: Duration = Duration::from_millis(1);

/// In which all guests have had a turn, with one thread for them, while [`FAST_TICK`] lets it: a limit is noticed at a turn.
const ROUND: Duration = Duration::from_millis(40);

/// Ticks without a call before the thread sleeps. Calls that follow one another closely do not pay for waking it.
const LINGER: u32 = 100;

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
    /// 1 while the thread sleeps until it is woken.
    asleep: AtomicUsize,
    /// Of the calls that run; few, so that looking through them costs less than an order of them.
    deadlines: Mutex<Vec<(Instant, Arc<Notify>)>>,
}

impl Counts {
    fn deadlines(&self) -> MutexGuard<'_, Vec<(Instant, Arc<Notify>)>> {
        self.deadlines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake_overdue(&self, now: Instant) {
        // It stays overdue until it has ended: whoever was told while it computed is told again.
        self.deadlines().iter().filter(|(deadline, _)| *deadline <= now).for_each(|(_, call)| call.notify_one());
    }
}

impl Ticker {
    /// Starts the thread; it ends with the engine.
    ///
    /// # Errors
    /// Where the thread cannot be made.
    pub fn start(engine: &Engine) -> std::io::Result<Self> {
        let counts = Arc::new(Counts::default());
        let (engine, shared) = (engine.weak(), Arc::clone(&counts));
        let handle = thread::Builder::new().name("epochs".into()).spawn(move || tick(&engine, &shared))?;
        Ok(Self { counts, thread: handle.thread().clone() })
    }

    /// A call runs until this is dropped. It is notified when its deadline is over, and may be up to a tick late.
    #[must_use]
    pub fn running(&self, deadline: Option<Instant>, call: &Arc<Notify>) -> Running {
        if let Some(deadline) = deadline {
            self.counts.deadlines().push((deadline, Arc::clone(call)));
        }
        self.counts.running.fetch_add(1, Ordering::SeqCst);
        if self.counts.asleep.swap(0, Ordering::SeqCst) == 1 {
            self.thread.unpark();
        }
        Running { counts: Arc::clone(&self.counts), call: Arc::clone(call) }
    }

    /// Ticks fast until this is dropped.
    #[must_use]
    pub fn hurry(&self) -> Hurry {
        self.counts.killed.fetch_add(1, Ordering::SeqCst);
        self.counts.asleep.store(0, Ordering::SeqCst);
        self.thread.unpark();
        Hurry(Arc::clone(&self.counts))
    }
}

/// One running call.
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
        let mut deadlines = self.counts.deadlines();
        if let Some(index) = deadlines.iter().position(|(_, call)| Arc::ptr_eq(call, &self.call)) {
            deadlines.swap_remove(index);
        }
    }
}

/// How long a guest may run with so many running, and so many that are to end.
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
        idle = if counts.running.load(Ordering::SeqCst) > 0 { 0 } else { idle + 1 };
        if idle > LINGER {
            counts.asleep.store(1, Ordering::SeqCst);
            // A call that came between the two is seen here; one that comes later finds us asleep and wakes us.
            if counts.running.load(Ordering::SeqCst) == 0 {
                thread::park();
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
        let now = Instant::now();
        let first = ticker.running(Some(now), &soon);
        let second = ticker.running(now.checked_add(Duration::from_secs(3_600)), &late);
        let _unbounded = ticker.running(None, &Arc::new(Notify::new()));
        // Each tick again, for it may have missed one.
        soon.notified().await;
        soon.notified().await;
        assert!(tokio::time::timeout(Duration::ZERO, late.notified()).await.is_err());
        assert_eq!(ticker.counts.deadlines().len(), 2);
        drop((first, second));
        assert!(ticker.counts.deadlines().is_empty());
    }
}
