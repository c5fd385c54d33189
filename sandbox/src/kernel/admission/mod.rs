//! Decides which calls run, wait or are refused: turns of the minion and of single modules, memory, and nested calls.
//!
//! A job waits for its turn. A nested call must not wait: it could wait for something that its own job holds. So it
//! gets what is free at that moment, or is refused.
//!
//! - `places.rs`  the rules by which a waiting call may start
//! - `queue.rs`   the order of waiting jobs; `memory.rs` the shared memory; `history.rs` a function's past calls

mod history;
mod memory;
mod places;
mod queue;
#[cfg(test)]
mod tests;
mod waits;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use brine_sandbox_wire::{JobContext, Usage};
use tokio::sync::{oneshot, watch};

use crate::kernel::name::ModuleName;
pub(crate) use history::{Expect, History, Pace};
pub(crate) use memory::SMALL;
use memory::{Lease, Memory};
use places::{Lane, Live};
use queue::{Look, Queue};
pub(crate) use waits::PULSE;

/// Turns reserved for the standard modules `sys` and `saltutil`, so that jobs can be listed and killed on a minion
/// whose other turns are all taken.
pub(crate) const RESERVED: usize = 4;
/// Nested calls for each turn. A job that waits beside the turns may have one.
const NESTED_PER_TURN: usize = 4;
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

struct Table {
    /// All admitted calls, waiting ones included.
    calls: HashMap<u64, Call>,
    next: u64,
    /// How many of the calls are nested.
    nested: usize,
    /// Number of jobs that have begun and not ended.
    live: usize,
    /// Number of turns, quick places and reserved places in use.
    turns: usize,
    quick: usize,
    reserved: usize,
    /// Number of jobs that hold no turn because they only wait.
    parked: usize,
    memory: Memory,
    /// Jobs that wait to begin: those expected to be short, and all others.
    short: Queue,
    queue: Queue,
    /// Running calls that wait for more memory.
    growing: VecDeque<(u64, oneshot::Sender<()>)>,
    /// The modules with limits of their own, while they have jobs.
    modules: HashMap<ModuleName, ModuleJobs>,
}

struct Call {
    job: Arc<JobContext>,
    name: ModuleName,
    history: Arc<History>,
    function: usize,
    /// Whether it was expected to be short when it arrived. Selects its queue.
    short: bool,
    /// The first call of the job: this one or one of its callers.
    root: u64,
    /// The module's own limit, if any.
    max_running: Option<usize>,
    reserved: bool,
    memory: u64,
    state: State,
    /// Resources used by its nested calls.
    spent: Option<Usage>,
    /// Why the call is to end, once that is decided.
    end: watch::Sender<Option<Arc<str>>>,
}

enum State {
    Queued(Option<oneshot::Sender<Option<u64>>>),
    Live(Live),
}

#[derive(Default)]
struct ModuleJobs {
    admitted: usize,
    running: usize,
}

/// The place of an admitted call. Dropping it frees everything that the call holds.
pub(crate) struct Place<'a> {
    jobs: &'a Jobs,
    pub(crate) number: u64,
    turn: Turn,
    pub(crate) end: End,
}

/// Whether a call may begin.
enum Turn {
    /// The call may begin with this much memory until it asks for more. None: with all of its limit.
    Has(Option<u64>),
    Waits(oneshot::Receiver<Option<u64>>),
}

/// The request to end a call, with its reason.
#[derive(Clone)]
pub(crate) struct End(watch::Receiver<Option<Arc<str>>>);

impl Call {
    fn is_nested(&self, number: u64) -> bool {
        self.root != number
    }
}

impl Table {
    fn queue_of(&mut self, short: bool) -> &mut Queue {
        if short { &mut self.short } else { &mut self.queue }
    }

    /// Returns the number of jobs that have not begun and of calls that wait for more memory.
    fn waiting(&self) -> usize {
        self.short.len() + self.queue.len() + self.growing.len()
    }
}

impl Jobs {
    pub(crate) fn new(mut bounds: Bounds) -> Self {
        let left = MAX_CALLS - RESERVED - places::BEYOND;
        bounds.max_running = bounds.max_running.min(left);
        bounds.max_waiting = bounds.max_waiting.min(left - bounds.max_running);
        let left = left - bounds.max_running - bounds.max_waiting;
        let table = Table {
            calls: HashMap::new(),
            next: 0,
            nested: 0,
            live: 0,
            turns: 0,
            quick: 0,
            reserved: 0,
            parked: 0,
            memory: Memory::new(bounds.memory),
            short: Queue::default(),
            queue: Queue::default(),
            growing: VecDeque::new(),
            modules: HashMap::new(),
        };
        Self {
            max_nested: (bounds.max_running * NESTED_PER_TURN + bounds.max_waiting).min(left),
            bounds,
            table: Mutex::new(table),
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
    pub(crate) fn end(&self, which: impl Fn(&str) -> bool, why: &str) -> usize {
        let why: Arc<str> = why.into();
        let table = self.table();
        let chosen = table.calls.iter().filter(|(_, call)| which(&call.job.jid));
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

/// Adds a call to the table; `start` lets it run.
fn enter(
    table: &mut Table,
    request: &Request<'_>,
    expect: Expect,
    max_running: Option<usize>,
    root: Option<u64>,
) -> (u64, End) {
    let number = table.next;
    table.next += 1;
    table.nested += usize::from(root.is_some());
    let (sender, end) = watch::channel(None);
    let call = Call {
        job: Arc::clone(request.job),
        name: request.module.clone(),
        history: Arc::clone(request.history),
        function: request.function,
        short: expect.pace == Pace::Short,
        root: root.unwrap_or(number),
        max_running,
        reserved: request.reserved,
        memory: request.memory,
        state: State::Queued(None),
        spent: None,
        end: sender,
    };
    table.calls.insert(number, call);
    (number, End(end))
}

/// Marks a call as running in this lane. Returns the memory it has until it asks for more.
fn start(table: &mut Table, number: u64, lane: Lane, lease: Lease) -> Option<u64> {
    match lane {
        Lane::Turn => table.turns += 1,
        Lane::Quick => table.quick += 1,
        Lane::Reserved => table.reserved += 1,
        Lane::Within => {}
    }
    table.live += usize::from(lane != Lane::Within);
    if let Some(call) = table.calls.get_mut(&number) {
        call.state = State::Live(Live { lane, since: Instant::now(), waits: false, parked: false, told: false, lease });
        if call.max_running.is_some()
            && let Some(module) = table.modules.get_mut(&call.name)
        {
            module.running += 1;
        }
    }
    lease.small.then(|| lease.bytes())
}

/// Removes a call and frees everything it held.
fn take_out(table: &mut Table, number: u64) -> Option<Call> {
    let left = table.calls.remove(&number)?;
    table.nested -= usize::from(left.is_nested(number));
    let runs = match &left.state {
        State::Queued(_) => {
            table.queue_of(left.short).remove(&left.job, &left.name, number);
            false
        }
        State::Live(live) => {
            table.memory.give_back(live.lease);
            table.live -= usize::from(live.lane != Lane::Within);
            match live.lane {
                Lane::Turn if live.parked => table.parked -= 1,
                Lane::Turn => table.turns -= 1,
                Lane::Quick => table.quick -= 1,
                Lane::Reserved => table.reserved -= 1,
                Lane::Within => {}
            }
            table.growing.retain(|(growing, _)| *growing != number);
            true
        }
    };
    if left.max_running.is_some()
        && let Some(module) = table.modules.get_mut(&left.name)
    {
        module.admitted -= 1;
        module.running -= usize::from(runs);
        if module.admitted == 0 {
            table.modules.remove(&left.name);
        }
    }
    Some(left)
}

/// Marks the job as computing again.
fn unpark(table: &mut Table, root: u64) {
    if let Some(State::Live(live)) = table.calls.get_mut(&root).map(|call| &mut call.state) {
        live.waits = false;
        if std::mem::take(&mut live.parked) {
            table.parked -= 1;
            table.turns += 1;
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.jobs.leave(self.number);
    }
}

impl End {
    /// Checks whether the end was requested.
    pub(crate) fn is_told(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// Waits until the end is requested; returns the reason.
    pub(crate) async fn told(&mut self) -> Arc<str> {
        // The table holds the sender for as long as the place exists.
        let why = self.0.wait_for(Option::is_some).await.map(|why| why.clone());
        why.ok().flatten().unwrap_or_else(|| "it was ended".into())
    }
}

impl Place<'_> {
    /// Returns the memory with which the call may begin until it asks for more (inner None: all of its limit). Outer
    /// None: the call has to wait.
    pub(crate) fn lease(&self) -> Option<Option<u64>> {
        match self.turn {
            Turn::Has(lease) => Some(lease),
            Turn::Waits(_) => None,
        }
    }

    /// Waits until the call may begin.
    pub(crate) async fn turn(&mut self) -> Result<Option<u64>, String> {
        if let Turn::Waits(granted) = &mut self.turn {
            let lease = granted.await.map_err(|_| "The minion is stopping.".to_owned())?;
            self.turn = Turn::Has(lease);
        }
        match self.turn {
            Turn::Has(lease) => Ok(lease),
            Turn::Waits(_) => Ok(None),
        }
    }

    /// Removes a call that has used `own` itself. Returns its total usage with its nested calls.
    pub(crate) fn leave(self, own: Usage) -> Usage {
        match self.jobs.leave(self.number) {
            Some(spent) => sum(&own, &spent),
            None => own,
        }
    }
}

/// Returns the usage of a call with its nested calls, which ran within its wall-clock time.
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
