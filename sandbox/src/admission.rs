//! Who runs, who waits and who is refused: turns of the minion and of single modules, memory, and calls within calls.
//!
//! A job waits for its turn. A call that a running job makes of another function must not: it could wait for what its own
//! job holds. So it gets what is free at that moment, or is refused.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brine_sandbox_wire::Usage;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit, watch};

use crate::ModuleName;
use crate::policy::Concurrency;

/// Turns kept for the standard modules `sys` and `saltutil`: who cannot ask what runs, or end it, cannot help a minion
/// whose turns are all taken.
pub(crate) const RESERVED: usize = 4;
/// Calls within calls, for each turn.
const NESTED_PER_TURN: usize = 4;
/// Calls of all kinds that one executor is told to expect: as many as it takes.
pub(crate) const MAX_CALLS: usize = 4_096;
/// Memory is counted in these: a page of WebAssembly.
const PAGE: u64 = 64 << 10;

/// The bounds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Jobs that run.
    pub(crate) max_running: usize,
    /// Jobs that wait.
    pub(crate) max_queued: usize,
    /// Bytes of memory that all instances may have together.
    pub(crate) memory: u64,
}

/// What is asked for a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) jid: &'a str,
    pub(crate) module: &'a ModuleName,
    pub(crate) concurrency: Concurrency,
    /// Whether the reserved turns are for it.
    pub(crate) reserved: bool,
    /// Bytes that its instance may have.
    pub(crate) memory: u64,
}

/// Who runs and who waits.
pub(crate) struct Jobs {
    bounds: Bounds,
    max_nested: usize,
    running: Semaphore,
    reserved: Semaphore,
    memory: Semaphore,
    /// In pages.
    all_memory: u32,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    /// All that were admitted, waiting ones too.
    calls: HashMap<u64, Admitted>,
    next: u64,
    /// Those of them that are calls of other calls.
    nested: usize,
    /// Of modules that have bounds of their own, while they have jobs.
    modules: HashMap<ModuleName, ModuleJobs>,
}

struct Admitted {
    jid: String,
    name: ModuleName,
    /// Whether another call made it.
    nested: bool,
    /// The module, if it has bounds of its own.
    module: Option<ModuleName>,
    /// What the calls that it made have used.
    spent: Option<Usage>,
    /// Why it is to end, once it is.
    end: watch::Sender<Option<Arc<str>>>,
}

struct ModuleJobs {
    admitted: usize,
    turns: Arc<Semaphore>,
}

/// An admitted call's place; given back when dropped.
pub(crate) struct Place<'a> {
    jobs: &'a Jobs,
    pub(crate) number: u64,
    /// The turns of its module, if those are bounded.
    pub(crate) turns: Option<Arc<Semaphore>>,
    pub(crate) end: End,
}

/// Why a call is to end, once it is.
#[derive(Clone)]
pub(crate) struct End(watch::Receiver<Option<Arc<str>>>);

/// What a call holds while it runs.
pub(crate) struct Turn<'a> {
    _of_module: Option<OwnedSemaphorePermit>,
    _turn: Option<SemaphorePermit<'a>>,
    _memory: Option<SemaphorePermit<'a>>,
}

impl Jobs {
    pub(crate) fn new(bounds: Bounds) -> Self {
        let turns = bounds.max_running.min(MAX_CALLS - RESERVED);
        let all_memory = pages(bounds.memory);
        Self {
            bounds,
            max_nested: (turns * NESTED_PER_TURN).min(MAX_CALLS - RESERVED - turns),
            running: Semaphore::new(turns),
            reserved: Semaphore::new(RESERVED),
            memory: Semaphore::new(usize::try_from(all_memory).unwrap_or(usize::MAX)),
            all_memory,
            table: Mutex::default(),
        }
    }

    /// Calls that an executor may have to run at once.
    pub(crate) fn max_calls(&self) -> usize {
        self.bounds.max_running.min(MAX_CALLS - RESERVED) + RESERVED + self.max_nested
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a job in, to run or to wait; an error says how busy the minion is.
    pub(crate) fn admit(&self, request: &Request<'_>) -> Result<Place<'_>, String> {
        let Bounds { max_running, max_queued, .. } = self.bounds;
        let mut table = self.table();
        let jobs = table.calls.len() - table.nested;
        let max = max_running.saturating_add(max_queued).saturating_add(if request.reserved { RESERVED } else { 0 });
        if jobs >= max {
            let running = max_running.min(jobs);
            let waiting = jobs - running;
            return Err(format!(
                "The minion is busy: {running} jobs run and {waiting} wait. Try again, or raise sandbox:max_queued."
            ));
        }
        let turns = self.admit_to_module(&mut table, request, false)?;
        Ok(self.enter(&mut table, request, false, turns))
    }

    /// Counts a call of a module that has bounds of its own; gives its turns. One within another does not wait for them.
    fn admit_to_module(
        &self,
        table: &mut Table,
        request: &Request<'_>,
        nested: bool,
    ) -> Result<Option<Arc<Semaphore>>, String> {
        let Some((max_running, max_queued)) = self.bounds_of(request.concurrency) else { return Ok(None) };
        let module = table.modules.entry(request.module.clone());
        let module = module.or_insert_with(|| ModuleJobs { admitted: 0, turns: Arc::new(Semaphore::new(max_running)) });
        if !nested && module.admitted >= max_running.saturating_add(max_queued) {
            let (running, name) = (max_running.min(module.admitted), request.module);
            let waiting = module.admitted - running;
            return Err(format!(
                "The minion is busy: {running} jobs of module {name} run and {waiting} wait. Try again, or raise \
                 sandbox:modules:{name}:max_queued."
            ));
        }
        module.admitted += 1;
        Ok(Some(Arc::clone(&module.turns)))
    }

    fn bounds_of(&self, concurrency: Concurrency) -> Option<(usize, usize)> {
        let Concurrency { max_running, max_queued } = concurrency;
        if max_running.is_none() && max_queued.is_none() {
            return None;
        }
        let max_running = max_running.unwrap_or(self.bounds.max_running).min(MAX_CALLS);
        Some((max_running, max_queued.unwrap_or(self.bounds.max_queued)))
    }

    fn enter(
        &self,
        table: &mut Table,
        request: &Request<'_>,
        nested: bool,
        turns: Option<Arc<Semaphore>>,
    ) -> Place<'_> {
        let number = table.next;
        table.next += 1;
        table.nested += usize::from(nested);
        let (sender, end) = watch::channel(None);
        let module = turns.is_some().then(|| request.module.clone());
        let admitted = Admitted {
            jid: request.jid.to_owned(),
            name: request.module.clone(),
            nested,
            module,
            spent: None,
            end: sender,
        };
        table.calls.insert(number, admitted);
        Place { jobs: self, number, turns, end: End(end) }
    }

    /// Waits for a turn, and for room in memory.
    pub(crate) async fn turn(&self, turns: Option<&Arc<Semaphore>>, request: &Request<'_>) -> Result<Turn<'_>, String> {
        let closed = |_| "The minion is stopping.".to_owned();
        let of_module = match turns {
            Some(turns) => Some(Arc::clone(turns).acquire_owned().await.map_err(closed)?),
            None => None,
        };
        let turn = match self.running.try_acquire() {
            Ok(turn) => turn,
            Err(_) if request.reserved => tokio::select! {
                turn = self.running.acquire() => turn.map_err(closed)?,
                turn = self.reserved.acquire() => turn.map_err(closed)?,
            },
            Err(_) => self.running.acquire().await.map_err(closed)?,
        };
        let pages = pages(request.memory).min(self.all_memory);
        let memory = match self.memory.try_acquire_many(pages) {
            Ok(memory) => Some(memory),
            // These few are the package's own, and small.
            Err(_) if request.reserved => None,
            Err(_) => Some(self.memory.acquire_many(pages).await.map_err(closed)?),
        };
        Ok(Turn { _of_module: of_module, _turn: Some(turn), _memory: memory })
    }

    /// Lets a call in that the call `parent` makes: at once or not at all.
    pub(crate) fn admit_nested(&self, parent: u64, request: &Request<'_>) -> Result<(Place<'_>, Turn<'_>), String> {
        let mut table = self.table();
        if !table.calls.contains_key(&parent) {
            return Err("The job has ended.".into());
        }
        if table.nested >= self.max_nested {
            return Err(format!(
                "The minion is busy: {} functions called by other functions run. Try again, or raise sandbox:max_running.",
                table.nested
            ));
        }
        let pages = pages(request.memory).min(self.all_memory);
        let Ok(memory) = self.memory.try_acquire_many(pages) else {
            return Err(format!(
                "The minion is busy: of the {} MiB of memory for all jobs too little is free. Try again, or raise \
                 sandbox:total_memory.",
                self.bounds.memory >> 20
            ));
        };
        let turns = self.admit_to_module(&mut table, request, true)?;
        // Given back by what is dropped, if there is no turn.
        let place = self.enter(&mut table, request, true, turns);
        drop(table);
        let of_module = match &place.turns {
            Some(turns) => Some(Arc::clone(turns).try_acquire_owned().map_err(|_| {
                let name = request.module;
                format!(
                    "The minion is busy: as many jobs of module {name} run as may. Try again, or raise \
                     sandbox:modules:{name}:max_running."
                )
            })?),
            None => None,
        };
        Ok((place, Turn { _of_module: of_module, _turn: None, _memory: Some(memory) }))
    }

    /// Adds to a call what one that it made has used.
    pub(crate) fn spend(&self, parent: u64, usage: &Usage) {
        if let Some(parent) = self.table().calls.get_mut(&parent) {
            let spent = parent.spent.get_or_insert_default();
            let peak = spent.memory_peak.max(usage.memory_peak);
            *spent = sum(spent, usage);
            // They were called one after the other.
            spent.memory_peak = peak;
        }
    }

    /// Tells the jobs, and what they called, to end; says how many jobs were told.
    pub(crate) fn end(&self, which: impl Fn(&str) -> bool, why: &str) -> usize {
        let why: Arc<str> = why.into();
        let table = self.table();
        let chosen = table.calls.values().filter(|call| which(&call.jid));
        let told = chosen.inspect(|call| drop(call.end.send_replace(Some(Arc::clone(&why)))));
        told.filter(|call| !call.nested).count()
    }

    /// Tells the calls of a module to end; says how many were told.
    pub(crate) fn end_module(&self, name: &ModuleName, why: &str) -> usize {
        let why: Arc<str> = why.into();
        let table = self.table();
        let chosen = table.calls.values().filter(|call| call.name == *name);
        chosen.inspect(|call| drop(call.end.send_replace(Some(Arc::clone(&why))))).count()
    }

    /// How many are running or waiting.
    pub(crate) fn count(&self) -> usize {
        self.table().calls.len()
    }

    fn leave(&self, number: u64) -> Option<Usage> {
        let mut table = self.table();
        let left = table.calls.remove(&number)?;
        table.nested -= usize::from(left.nested);
        if let Some(module) = &left.module
            && let Some(jobs) = table.modules.get_mut(module)
        {
            jobs.admitted -= 1;
            if jobs.admitted == 0 {
                table.modules.remove(module);
            }
        }
        left.spent
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.jobs.leave(self.number);
    }
}

impl End {
    /// Whether it is.
    pub(crate) fn is_told(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// Waits until the call is told to end; says why.
    pub(crate) async fn told(&mut self) -> Arc<str> {
        // The sender is in the table for as long as the place is.
        let why = self.0.wait_for(Option::is_some).await.map(|why| why.clone());
        why.ok().flatten().unwrap_or_else(|| "it was ended".into())
    }
}

impl Place<'_> {
    /// The end of a call that used so much itself: with what it called.
    pub(crate) fn leave(self, own: Usage) -> Usage {
        match self.jobs.leave(self.number) {
            Some(spent) => sum(&own, &spent),
            None => own,
        }
    }
}

/// Of a call and what it called while it ran, and so within its time.
fn sum(own: &Usage, called: &Usage) -> Usage {
    Usage {
        wall_us: own.wall_us,
        cpu_us: own.cpu_us.saturating_add(called.cpu_us),
        memory_peak: own.memory_peak.saturating_add(called.memory_peak),
        host_calls: own.host_calls.saturating_add(called.host_calls),
        bytes_in: own.bytes_in.saturating_add(called.bytes_in),
        bytes_out: own.bytes_out.saturating_add(called.bytes_out),
        log_dropped: own.log_dropped.saturating_add(called.log_dropped),
        written: own.written.saturating_add(called.written),
        new_files: own.new_files.saturating_add(called.new_files),
    }
}

/// At least one: what is counted is bounded.
fn pages(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(PAGE)).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn jobs(max_running: usize, max_queued: usize) -> Jobs {
        Jobs::new(Bounds { max_running, max_queued, memory: 100 * MIB })
    }

    fn module() -> ModuleName {
        "mine".parse().unwrap()
    }

    fn request<'a>(jid: &'a str, module: &'a ModuleName) -> Request<'a> {
        Request { jid, module, concurrency: Concurrency::default(), reserved: false, memory: MIB }
    }

    /// The error of what has to fail.
    fn refused<T>(result: Result<T, String>) -> String {
        result.err().expect("it is refused")
    }

    /// Whether what is waited for is there already.
    async fn at_once<T>(future: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            done = future => Some(done),
            () = std::future::ready(()) => None,
        }
    }

    #[test]
    fn admission_is_bounded() {
        let (jobs, module) = (jobs(2, 1), module());
        let places: Vec<_> = (0..3).map(|_| jobs.admit(&request("1", &module)).unwrap()).collect();
        assert_eq!(
            refused(jobs.admit(&request("4", &module))),
            "The minion is busy: 2 jobs run and 1 wait. Try again, or raise sandbox:max_queued."
        );
        // Who asks what runs is let in still.
        let control = Request { reserved: true, ..request("r", &module) };
        let reserved: Vec<_> = (0..RESERVED).map(|_| jobs.admit(&control).unwrap()).collect();
        refused(jobs.admit(&control));
        drop(reserved);
        drop(places);
        assert_eq!(jobs.count(), 0);
        assert!(jobs.admit(&request("5", &module)).is_ok());
    }

    #[tokio::test]
    async fn jobs_are_ended_by_their_id() {
        let (jobs, module) = (jobs(4, 0), module());
        let mut one = jobs.admit(&request("1", &module)).unwrap();
        let _two = jobs.admit(&request("2", &module)).unwrap();
        let _one_more = jobs.admit(&request("1", &module)).unwrap();
        let (mut called, _turn) = jobs.admit_nested(one.number, &request("1", &module)).unwrap();
        assert_eq!(jobs.end(|jid| jid == "1", "killed"), 2);
        assert_eq!(&*one.end.told().await, "killed");
        assert_eq!(&*called.end.told().await, "killed");
        assert_eq!(jobs.end(|jid| jid == "3", "killed"), 0);
    }

    #[tokio::test]
    async fn modules_have_bounds_of_their_own() {
        let (jobs, module, other) = (jobs(8, 8), module(), "other".parse().unwrap());
        let concurrency = Concurrency { max_running: Some(1), max_queued: Some(1) };
        let bounded = Request { concurrency, ..request("1", &module) };
        let (one, two) = (jobs.admit(&bounded).unwrap(), jobs.admit(&bounded).unwrap());
        assert_eq!(
            refused(jobs.admit(&bounded)),
            "The minion is busy: 1 jobs of module mine run and 1 wait. Try again, or raise sandbox:modules:mine:max_queued."
        );
        let turn = jobs.turn(one.turns.as_ref(), &bounded).await.unwrap();
        assert!(at_once(jobs.turn(two.turns.as_ref(), &bounded)).await.is_none());
        assert_eq!(
            refused(jobs.admit_nested(one.number, &bounded).map(drop)),
            "The minion is busy: as many jobs of module mine run as may. Try again, or raise sandbox:modules:mine:max_running."
        );
        // Others do not notice.
        let third = jobs.admit(&request("3", &other)).unwrap();
        assert!(at_once(jobs.turn(third.turns.as_ref(), &request("3", &other))).await.is_some());
        drop((turn, one));
        assert!(at_once(jobs.turn(two.turns.as_ref(), &bounded)).await.is_some());
        drop(two);
        assert!(jobs.table().modules.is_empty());
    }

    /// What a job calls does not wait for turns that are taken, its own module's among them.
    #[tokio::test]
    async fn calls_within_calls_do_not_wait() {
        let (jobs, module) = (jobs(1, 0), module());
        let concurrency = Concurrency { max_running: Some(1), max_queued: None };
        let bounded = Request { concurrency, ..request("1", &module) };
        let job = jobs.admit(&bounded).unwrap();
        let _turn = jobs.turn(job.turns.as_ref(), &bounded).await.unwrap();
        assert!(refused(jobs.admit_nested(job.number, &bounded).map(drop)).ends_with(":mine:max_running."));
        let free = request("1", &module);
        let called: Vec<_> = (0..NESTED_PER_TURN).map(|_| jobs.admit_nested(job.number, &free).unwrap()).collect();
        let text = refused(jobs.admit_nested(job.number, &free).map(drop));
        assert_eq!(
            text,
            "The minion is busy: 4 functions called by other functions run. Try again, or raise sandbox:max_running."
        );
        drop(called);
        assert!(jobs.admit_nested(job.number, &free).is_ok());
        let number = job.number;
        drop(job);
        assert_eq!(refused(jobs.admit_nested(number, &free).map(drop)), "The job has ended.");
        assert_eq!((jobs.count(), jobs.table().nested), (0, 0));
    }

    #[tokio::test]
    async fn jobs_wait_for_memory_and_what_they_call_does_not() {
        let (jobs, module) = (jobs(8, 8), module());
        let large = Request { memory: 60 * MIB, ..request("1", &module) };
        let first = jobs.admit(&large).unwrap();
        let turn = jobs.turn(None, &large).await.unwrap();
        assert!(at_once(jobs.turn(None, &large)).await.is_none());
        assert_eq!(
            refused(jobs.admit_nested(first.number, &large).map(drop)),
            "The minion is busy: of the 100 MiB of memory for all jobs too little is free. Try again, or raise \
             sandbox:total_memory."
        );
        assert!(jobs.admit_nested(first.number, &request("1", &module)).is_ok());
        assert!(at_once(jobs.turn(None, &request("2", &module))).await.is_some());
        // Those who can end jobs do not wait for what jobs hold.
        let control = Request { reserved: true, ..large };
        assert!(at_once(jobs.turn(None, &control)).await.is_some());
        drop(turn);
        assert!(at_once(jobs.turn(None, &large)).await.is_some());
        // More than there is gets all there is.
        let huge = Request { memory: u64::MAX, ..large };
        let all = at_once(jobs.turn(None, &huge)).await.unwrap();
        assert!(at_once(jobs.turn(None, &request("2", &module))).await.is_none());
        drop(all);
        assert!(at_once(jobs.turn(None, &request("2", &module))).await.is_some());
    }

    #[test]
    fn what_is_called_counts_for_who_called() {
        let (jobs, module) = (jobs(8, 8), module());
        let usage = |n| Usage {
            wall_us: n,
            cpu_us: n,
            memory_peak: n,
            host_calls: n,
            bytes_in: n,
            bytes_out: n,
            log_dropped: n,
            written: n,
            new_files: n,
        };
        let job = jobs.admit(&request("1", &module)).unwrap();
        for own in [10, 20] {
            let (called, _turn) = jobs.admit_nested(job.number, &request("1", &module)).unwrap();
            jobs.spend(called.number, &usage(1));
            let used = called.leave(usage(own));
            assert_eq!(used, Usage { wall_us: own, ..usage(own + 1) });
            jobs.spend(job.number, &used);
        }
        // One after the other: the largest counts, not the sum.
        assert_eq!(job.leave(usage(100)), Usage { wall_us: 100, memory_peak: 121, ..usage(132) });
        let other = jobs.admit(&request("1", &module)).unwrap();
        assert_eq!(other.leave(usage(7)), usage(7));
    }

    /// No executor is asked for more calls than it takes.
    #[test]
    fn all_calls_together_are_bounded() {
        for max_running in [1, 16, 1_000, 1_000_000] {
            let jobs = jobs(max_running, 0);
            assert!(jobs.max_calls() <= MAX_CALLS, "{max_running}");
            assert!(jobs.max_nested > 0 || max_running > MAX_CALLS, "{max_running}");
        }
    }
}
