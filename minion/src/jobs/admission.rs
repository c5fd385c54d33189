//! Admission: bounds the jobs that run or wait, and recognises jobs that came before.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use brine_protocol::ids::Jid;
use brine_protocol::job::JobLoad;
use tokio::sync::{AcquireError, Semaphore, SemaphorePermit};

use super::seen_jids::SeenJids;

/// Upper bound on the bytes of the loads of all jobs that run or wait; `sandbox:max_queued` bounds their number.
const MAX_LOAD_BYTES: usize = 64 * 1024 * 1024;
/// The last bytes of [`MAX_LOAD_BYTES`] are reserved for short jobs and control jobs …
const RESERVED_BYTES: usize = MAX_LOAD_BYTES / 16;
/// … and so are this many places beyond the bound on all other jobs.
const RESERVED_PLACES: usize = 100;
/// Slots reserved for control jobs, so that a minion full of jobs still accepts an order to end one.
pub(crate) const CONTROL_SLOTS: usize = 4;
/// The functions of control jobs: they look up jobs and end them.
const CONTROL: &[&str] = &[
    "saltutil.find_job",
    "saltutil.running",
    "saltutil.kill_job",
    "saltutil.kill_all_jobs",
    "saltutil.term_job",
    "saltutil.term_all_jobs",
    "saltutil.signal_job",
    "saltutil.is_running",
];

/// Counts the jobs that run or wait.
pub(super) struct Admission {
    seen: Mutex<SeenJids>,
    /// `process_count_max`, where the owner has set it: all jobs at once, waiting ones included.
    slots: Option<Semaphore>,
    control: Semaphore,
    max_jobs: usize,
    jobs: AtomicUsize,
    bytes: AtomicUsize,
}

/// How many jobs there may be.
pub(crate) struct JobLimits {
    /// Jobs at once, from `process_count_max` or the sandbox's own bound.
    pub(crate) slots: usize,
    /// Whether `process_count_max` is set.
    pub(crate) owner_set_slots: bool,
    /// Jobs that may wait for something after they have begun, `sandbox:max_waiting`.
    pub(crate) max_waiting: usize,
    /// Jobs that may wait for their turn, `sandbox:max_queued`.
    pub(crate) max_queued: usize,
    /// Jids that are remembered, `minion_jid_queue_hwm`.
    pub(crate) seen_jids: usize,
}

impl Admission {
    pub(super) fn new(limits: &JobLimits) -> Arc<Self> {
        let JobLimits { slots, owner_set_slots, max_waiting, max_queued, seen_jids } = *limits;
        Arc::new(Self {
            seen: Mutex::new(SeenJids::new(seen_jids)),
            slots: owner_set_slots.then(|| Semaphore::new(slots.max(1))),
            control: Semaphore::new(CONTROL_SLOTS),
            max_jobs: slots.saturating_add(CONTROL_SLOTS).saturating_add(max_waiting).saturating_add(max_queued),
            jobs: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
        })
    }

    /// True the first time a jid comes.
    pub(super) fn is_new(&self, jid: &Jid) -> bool {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).is_new(jid)
    }

    /// Takes a place for a job whose load has this many bytes. `reserved` jobs may use the reserved places too.
    ///
    /// # Errors
    /// A sentence for the job's return when there is no place.
    pub(super) fn enter(self: &Arc<Self>, bytes: usize, reserved: bool) -> Result<Place, String> {
        let before = self.jobs.fetch_add(1, Ordering::Relaxed);
        let bytes_before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let place = Place { admission: Arc::clone(self), bytes, before };
        let (more_places, fewer_bytes) = if reserved { (RESERVED_PLACES, 0) } else { (0, RESERVED_BYTES) };
        if before >= self.max_jobs.saturating_add(more_places) || bytes_before + bytes > MAX_LOAD_BYTES - fewer_bytes {
            return Err(format!(
                "The minion is busy: {before} jobs run and wait. Try again, or raise sandbox:max_queued."
            ));
        }
        Ok(place)
    }

    /// Waits until a job may run. A short job waits only in the sandbox, and so does every job without `process_count_max`.
    ///
    /// # Errors
    /// When [`Admission::close`] was called.
    pub(super) async fn turn(&self, job: &JobLoad, short: bool) -> Result<Option<SemaphorePermit<'_>>, AcquireError> {
        let slots = match is_control(job) {
            true => Some(&self.control),
            false => self.slots.as_ref().filter(|_| !short),
        };
        match slots {
            Some(slots) => slots.acquire().await.map(Some),
            None => Ok(None),
        }
    }

    /// Ends the waiting of all jobs that wait for their turn.
    pub(super) fn close(&self) {
        self.slots.iter().for_each(Semaphore::close);
        self.control.close();
    }
}

/// Whether every function of the job looks up jobs or ends them.
pub(super) fn is_control(job: &JobLoad) -> bool {
    job.calls.iter().all(|call| CONTROL.contains(&call.fun.as_str()))
}

/// A job's place, given back on drop.
pub(super) struct Place {
    admission: Arc<Admission>,
    bytes: usize,
    /// Jobs that ran or waited when this one came.
    pub(super) before: usize,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.admission.jobs.fetch_sub(1, Ordering::Relaxed);
        self.admission.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
