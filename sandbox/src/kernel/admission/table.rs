//! The admitted calls, and what they hold.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use brine_sandbox_wire::{JobContext, Usage};
use tokio::sync::{oneshot, watch};

use super::Request;
use super::history::{Expect, History, Pace};
use super::memory::{Lease, Memory};
use super::places::{Lane, Live};
use super::queue::Queue;
use super::turn::End;
use crate::kernel::name::ModuleName;

pub(super) struct Table {
    /// All admitted calls, waiting ones included.
    pub(super) calls: HashMap<u64, Call>,
    pub(super) next: u64,
    /// How many of the calls are nested.
    pub(super) nested: usize,
    /// Number of jobs that have begun and not ended.
    pub(super) live: usize,
    /// Number of turns, quick places and reserved places in use.
    pub(super) turns: usize,
    pub(super) quick: usize,
    pub(super) reserved: usize,
    /// Number of jobs that hold no turn because they only wait.
    pub(super) parked: usize,
    pub(super) memory: Memory,
    /// Jobs that wait to begin: those expected to be short, and all others.
    pub(super) short: Queue,
    pub(super) queue: Queue,
    /// Running calls that wait for more memory.
    pub(super) growing: VecDeque<(u64, oneshot::Sender<()>)>,
    /// The modules with limits of their own, while they have jobs.
    pub(super) modules: HashMap<ModuleName, ModuleJobs>,
}

pub(super) struct Call {
    pub(super) job: Arc<JobContext>,
    pub(super) name: ModuleName,
    pub(super) history: Arc<History>,
    pub(super) function: usize,
    /// Whether it was expected to be short when it arrived. Selects its queue.
    pub(super) short: bool,
    /// The first call of the job: this one or one of its callers.
    pub(super) root: u64,
    /// The module's own limit, if any.
    pub(super) max_running: Option<usize>,
    pub(super) reserved: bool,
    pub(super) memory: u64,
    pub(super) state: State,
    /// Resources used by its nested calls.
    pub(super) spent: Option<Usage>,
    /// Number of nested calls of the job that have not ended. Counted in its first call.
    pub(super) nested: usize,
    /// Upper bound on that number.
    pub(super) max_nested: usize,
    /// Why the call is to end, once that is decided.
    pub(super) end: watch::Sender<Option<Arc<str>>>,
}

pub(super) enum State {
    Queued(Option<oneshot::Sender<Option<u64>>>),
    Live(Live),
}

#[derive(Default)]
pub(super) struct ModuleJobs {
    pub(super) admitted: usize,
    pub(super) running: usize,
}

impl Call {
    pub(super) fn is_nested(&self, number: u64) -> bool {
        self.root != number
    }
}

impl Table {
    /// Returns an empty table, with this many bytes of memory for all instances.
    pub(super) fn new(memory: u64) -> Self {
        Self {
            calls: HashMap::new(),
            next: 0,
            nested: 0,
            live: 0,
            turns: 0,
            quick: 0,
            reserved: 0,
            parked: 0,
            memory: Memory::new(memory),
            short: Queue::default(),
            queue: Queue::default(),
            growing: VecDeque::new(),
            modules: HashMap::new(),
        }
    }

    pub(super) fn queue_of(&mut self, short: bool) -> &mut Queue {
        if short { &mut self.short } else { &mut self.queue }
    }

    /// Returns the number of jobs that have not begun and of calls that wait for more memory.
    pub(super) fn waiting(&self) -> usize {
        self.short.len() + self.queue.len() + self.growing.len()
    }
}

/// Adds a call to the table; `start` lets it run.
pub(super) fn enter(
    table: &mut Table,
    request: &Request<'_>,
    expect: Expect,
    max_running: Option<usize>,
    root: Option<u64>,
) -> (u64, End) {
    let number = table.next;
    table.next += 1;
    table.nested += usize::from(root.is_some());
    if let Some(first) = root.and_then(|root| table.calls.get_mut(&root)) {
        first.nested += 1;
    }
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
        nested: 0,
        max_nested: request.nested,
        end: sender,
    };
    table.calls.insert(number, call);
    (number, End(end))
}

/// Marks a call as running in this lane. Returns the memory it has until it asks for more.
pub(super) fn start(table: &mut Table, number: u64, lane: Lane, lease: Lease) -> Option<u64> {
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
pub(super) fn take_out(table: &mut Table, number: u64) -> Option<Call> {
    let left = table.calls.remove(&number)?;
    if left.is_nested(number) {
        table.nested -= 1;
        // The first call may have ended before.
        if let Some(first) = table.calls.get_mut(&left.root) {
            first.nested -= 1;
        }
    }
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
pub(super) fn unpark(table: &mut Table, root: u64) {
    if let Some(State::Live(live)) = table.calls.get_mut(&root).map(|call| &mut call.state) {
        live.waits = false;
        if std::mem::take(&mut live.parked) {
            table.parked -= 1;
            table.turns += 1;
        }
    }
}
