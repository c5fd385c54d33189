//! Decides which calls run, wait or are refused: turns of the minion and of single modules, memory, and nested calls.
//!
//! A job waits for its turn. A nested call must not wait: it could wait for something that its own job holds. So it
//! gets what is free at that moment, or is refused.
//!
//! - `table.rs`   the admitted calls; `turn.rs` the place that one of them holds
//! - `places.rs`  the rules by which a waiting call may start; `waits.rs` running calls that only wait
//! - `queue.rs`   the order of waiting jobs; `memory.rs` the shared memory; `history.rs` a function's past calls

mod history;
mod memory;
mod places;
mod queue;
mod table;
#[cfg(test)]
mod tests;
mod turn;
mod waits;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brine_sandbox_wire::{JobContext, Usage};
use tokio::sync::{oneshot, watch};

use crate::kernel::name::ModuleName;
pub(crate) use history::{History, Pace};
pub(crate) use memory::SMALL;
use places::Lane;
use queue::Look;
use table::{State, Table, enter, start, take_out, unpark};
pub(crate) use turn::Place;
use turn::{Turn, sum};
pub(crate) use waits::PULSE;

/// Turns reserved for the standard modules `sys` and `saltutil`, so that jobs can be listed and killed on a minion
/// whose other turns are all taken.
pub(crate) const RESERVED: usize = 4;
/// Nested calls for each turn. A job that waits beside the turns may have one.
const NESTED_PER_TURN: usize = 4;
/// Nested calls of one job at once: as many as calls are deep. A guest waits for each function that it calls, so only an
/// executor that lies would have more, and leave other jobs without.
pub(crate) const NESTED_OF_ONE: usize = 7;
/// The same for a run of states, which starts states beside each other: ten of them, each with functions that it calls.
pub(crate) const NESTED_OF_RUN: usize = 32;
/// Upper bound on the calls of all kinds in one executor.
pub(crate) const MAX_CALLS: usize = 4_096;
/// Places beyond `max_queued` (at most `max_queued` more) for one job of each module and requester that has no other
/// job waiting …
const KEPT: usize = 32;
/// … and further places for jobs that are expected to be short. The next constant bounds them for each module and
/// requester.
const KEPT_SHORT: usize = 64;
const SHORT_OF_ONE: usize = 16;

/// The limits of admission.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Jobs that compute at the same time.
    pub(crate) max_running: usize,
    /// Jobs that have begun and wait for something, in addition to `max_running`.
    pub(crate) max_waiting: usize,
    /// Jobs that have not begun.
    pub(crate) max_queued: usize,
    /// Bytes of memory that all instances may have together.
    pub(crate) memory: u64,
}

/// Limits on one module's jobs. None: only the common limits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Concurrency {
    /// Limit on jobs that run.
    pub max_running: Option<usize>,
    /// Limit on jobs that wait.
    pub max_queued: Option<usize>,
}

/// A request to admit a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) job: &'a Arc<JobContext>,
    pub(crate) module: &'a ModuleName,
    /// Statistics of the module's functions, and the index of the called function.
    pub(crate) history: &'a Arc<History>,
    pub(crate) function: usize,
    pub(crate) concurrency: Concurrency,
    /// Whether the call may use the reserved turns.
    pub(crate) reserved: bool,
    /// Upper bound on the nested calls at once, if this is a job's first call.
    pub(crate) nested: usize,
    /// Upper bound on the bytes of its instance.
    pub(crate) memory: u64,
}

/// The calls that run and wait.
pub(crate) struct Jobs {
    bounds: Bounds,
    max_nested: usize,
    table: Mutex<Table>,
    /// Whether any call waits.
    contended: watch::Sender<bool>,
}

impl Jobs {
    pub(crate) fn new(mut bounds: Bounds) -> Self {
        let left = MAX_CALLS - RESERVED - places::BEYOND;
        bounds.max_running = bounds.max_running.min(left);
        bounds.max_waiting = bounds.max_waiting.min(left - bounds.max_running);
        let left = left - bounds.max_running - bounds.max_waiting;
        Self {
            max_nested: (bounds.max_running * NESTED_PER_TURN + bounds.max_waiting).min(left),
            bounds,
            table: Mutex::new(Table::new(bounds.memory)),
            contended: watch::Sender::new(false),
        }
    }

    /// Returns the bytes of memory for all instances together.
    pub(crate) fn memory(&self) -> u64 {
        self.bounds.memory
    }

    /// Returns the largest number of calls that compute at once, nested ones included.
    pub(crate) fn max_running(&self) -> usize {
        self.bounds.max_running + RESERVED + self.bounds.max_running * NESTED_PER_TURN
    }

    /// Returns the largest number of calls that one executor may have at once.
    pub(crate) fn max_calls(&self) -> usize {
        self.bounds.max_running + self.bounds.max_waiting + places::BEYOND + RESERVED + self.max_nested
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits a job, to run or to wait. The error says how busy the minion is.
    pub(crate) fn admit(&self, request: &Request<'_>) -> Result<Place<'_>, String> {
        let expect = request.history.expect(request.function);
        let mut table = self.table();
        let max_running = self.admit_to_module(&mut table, request, false)?;
        let (number, end) = enter(&mut table, request, expect, max_running, None);
        let waiting = table.waiting();
        let short = expect.pace == Pace::Short;
        if waiting == 0 || request.reserved || (short && table.short.len() == 0) {
            let mut seen = places::Seen::behind(waiting > 0);
            if let (Look::Starts, Some((lane, lease))) = self.look(&mut table, number, &mut seen) {
                let lease = start(&mut table, number, lane, lease);
                return Ok(Place { jobs: self, number, turn: Turn::Has(lease), end });
            }
        }
        if let Err(busy) = self.may_wait(&table, request, short) {
            take_out(&mut table, number);
            return Err(busy);
        }
        let (sender, granted) = oneshot::channel();
        if let Some(call) = table.calls.get_mut(&number) {
            call.state = State::Queued(Some(sender));
        }
        table.queue_of(short).push(request.job, request.module, number);
        self.dispatch(&mut table);
        Ok(Place { jobs: self, number, turn: Turn::Waits(granted), end })
    }

    /// Checks whether one more job may wait.
    fn may_wait(&self, table: &Table, request: &Request<'_>, short: bool) -> Result<(), String> {
        let Request { job, module, .. } = request;
        let waiting = table.short.len() + table.queue.len();
        let most = self.bounds.max_queued;
        // With `max_queued` 0 no job waits.
        let (kept, kept_short) = if most == 0 { (0, 0) } else { (KEPT.min(most), KEPT_SHORT) };
        let (beyond, far_beyond) = (most.saturating_add(kept), most.saturating_add(kept + kept_short));
        let may = waiting < most
            || (waiting < beyond && table.queue.of(job, module) + table.short.of(job, module) == 0)
            || (waiting < far_beyond && short && table.short.of(job, module) < SHORT_OF_ONE)
            || (waiting < far_beyond.saturating_add(RESERVED) && request.reserved);
        if may {
            return Ok(());
        }
        let running = table.live;
        Err(format!(
            "The minion is busy: {running} jobs run and {waiting} wait. Try again, or raise sandbox:max_queued."
        ))
    }

    /// Counts a call for a module with limits of its own. Returns the limit on running jobs. A nested call does not
    /// wait.
    fn admit_to_module(&self, table: &mut Table, request: &Request<'_>, nested: bool) -> Result<Option<usize>, String> {
        let Some((max_running, max_queued)) = self.bounds_of(request.concurrency) else { return Ok(None) };
        let module = table.modules.entry(request.module.clone()).or_default();
        let name = request.module;
        if !nested && module.admitted >= max_running.saturating_add(max_queued) {
            let running = max_running.min(module.admitted);
            let waiting = module.admitted - running;
            return Err(format!(
                "The minion is busy: {running} jobs of module {name} run and {waiting} wait. Try again, or raise \
                 sandbox:modules:{name}:max_queued."
            ));
        }
        if nested && module.running >= max_running {
            let error = format!(
                "The minion is busy: as many jobs of module {name} run as may. Try again, or raise \
                 sandbox:modules:{name}:max_running."
            );
            if module.admitted == 0 {
                table.modules.remove(name);
            }
            return Err(error);
        }
        module.admitted += 1;
        Ok(Some(max_running))
    }

    fn bounds_of(&self, concurrency: Concurrency) -> Option<(usize, usize)> {
        let Concurrency { max_running, max_queued } = concurrency;
        if max_running.is_none() && max_queued.is_none() {
            return None;
        }
        let max_running = max_running.unwrap_or(self.bounds.max_running).min(MAX_CALLS);
        Some((max_running, max_queued.unwrap_or(self.bounds.max_queued)))
    }

    /// Admits a nested call of `parent`, at once or not at all.
    pub(crate) fn admit_nested(&self, parent: u64, request: &Request<'_>) -> Result<Place<'_>, String> {
        let mut table = self.table();
        let Some(root) = table.calls.get(&parent).map(|parent| parent.root) else {
            return Err("The job has ended.".into());
        };
        if let Some(first) = table.calls.get(&root).filter(|first| first.nested >= first.max_nested) {
            return Err(format!("The job is busy: it runs {} functions that its functions called.", first.max_nested));
        }
        if table.nested >= self.max_nested {
            return Err(format!(
                "The minion is busy: {} functions called by other functions run. Try again, or raise sandbox:max_running.",
                table.nested
            ));
        }
        let expect = request.history.expect(request.function);
        let max_running = self.admit_to_module(&mut table, request, true)?;
        let (number, end) = enter(&mut table, request, expect, max_running, Some(root));
        let (leases, short) = match table.calls.get(&number) {
            Some(call) => (
                places::leases(&table, call, expect.small, !table.growing.is_empty()),
                expect.pace == Pace::Short && places::has_few(&table, call, table.memory.left()),
            ),
            None => ([None, None], false),
        };
        let Some(lease) = leases.into_iter().flatten().find(|lease| table.memory.lend(*lease, short)) else {
            take_out(&mut table, number);
            return Err(self.no_memory());
        };
        let lease = start(&mut table, number, Lane::Within, lease);
        // The job computes again, or waits for this call.
        unpark(&mut table, root);
        Ok(Place { jobs: self, number, turn: Turn::Has(lease), end })
    }

    fn no_memory(&self) -> String {
        format!(
            "The minion is busy: of the {} MiB of memory for all jobs too little is free. Try again, or raise \
             sandbox:total_memory.",
            self.bounds.memory >> 20
        )
    }

    /// Starts waiting calls for which there is room now.
    fn dispatch(&self, table: &mut Table) {
        self.lend(table);
        let mut seen = places::Seen::behind(!table.growing.is_empty());
        for short in [true, false] {
            let mut queue = std::mem::take(table.queue_of(short));
            let mut found = None;
            while let Some(number) = queue.look(|number| {
                let (look, how) = self.look(table, number, &mut seen);
                found = how;
                look
            }) {
                let Some((lane, lease)) = found.take() else { continue };
                let granted = match table.calls.get_mut(&number).map(|call| &mut call.state) {
                    Some(State::Queued(granted)) => granted.take(),
                    _ => None,
                };
                let lease = start(table, number, lane, lease);
                // Sending fails if the caller is leaving; its place is then freed.
                let _ = granted.map(|granted| granted.send(lease));
            }
            *table.queue_of(short) = queue;
        }
        self.tell(table);
    }

    /// Publishes whether any call waits.
    fn tell(&self, table: &Table) {
        let waits = table.waiting() > 0;
        self.contended.send_if_modified(|contended| std::mem::replace(contended, waits) != waits);
    }

    /// Adds a nested call's usage to its caller.
    pub(crate) fn spend(&self, parent: u64, usage: &Usage) {
        if let Some(parent) = self.table().calls.get_mut(&parent) {
            let spent = parent.spent.get_or_insert_default();
            let peak = spent.memory_peak.max(usage.memory_peak);
            *spent = sum(spent, usage);
            // Nested calls run one after the other, so their peaks do not add up.
            spent.memory_peak = peak;
        }
    }

    /// Requests the end of the matching jobs and their nested calls. Returns the number of jobs.
    pub(crate) fn end(&self, which: impl Fn(&JobContext) -> bool, why: &str) -> usize {
        let why: Arc<str> = why.into();
        let table = self.table();
        let chosen = table.calls.iter().filter(|(_, call)| which(&call.job));
        let told = chosen.inspect(|(_, call)| drop(call.end.send_replace(Some(Arc::clone(&why)))));
        told.filter(|(number, call)| !call.is_nested(**number)).count()
    }

    /// Requests the end of a module's calls. Returns their number.
    pub(crate) fn end_module(&self, name: &ModuleName, why: &str) -> usize {
        let why: Arc<str> = why.into();
        let table = self.table();
        let chosen = table.calls.values().filter(|call| call.name == *name);
        chosen.inspect(|call| drop(call.end.send_replace(Some(Arc::clone(&why))))).count()
    }

    /// Returns the number of calls that run or wait.
    pub(crate) fn count(&self) -> usize {
        self.table().calls.len()
    }

    fn leave(&self, number: u64) -> Option<Usage> {
        let mut table = self.table();
        let left = take_out(&mut table, number)?;
        if *self.contended.borrow() {
            self.dispatch(&mut table);
        }
        left.spent
    }
}
