//! The rules by which a call that waits may start.
//!
//! - A *turn* is for computing: `max_running` of them. A job that has only waited since the last look at its executor (a sleep, a program,
//!   another server) does not hold it; up to `max_waiting` such jobs are there beside.
//! - The last of the turns are for who has few: a module, or all that one asked for, takes one only while it holds less than
//!   [`SHARE`] times what would be left.
//! - A *quick place* is for a call that has to wait for a turn otherwise, and is expected to be short: those before it were, or it is
//!   unknown and nothing else of its module runs. What is not over after a [`MOMENT`] counts as any other from
//!   then on and its place is free again, so that who lies about it delays others by no more than that.

use std::time::{Duration, Instant};

use super::history::Pace;
use super::memory::Lease;
use super::queue::{Look, same_asker};
use super::{Call, Jobs, RESERVED, State, Table};

/// Of the turns, an eighth is left for others by who has the most.
const SHARE: usize = 7;
/// Quick places. A core has its hands full with fewer, and with 8 a burst of thousands of short calls goes through at the rate at
/// which they are computed.
pub(super) const QUICK: usize = 8;
/// How long one holds its quick place. An ordinary call takes a hundredth of it; and 250 ms is what a short call may take beside
/// whatever others do.
pub(super) const MOMENT: Duration = Duration::from_millis(50);
/// Calls that may have a quick place may be there beyond `max_running` and `max_waiting`.
pub(super) const BEYOND: usize = 64;
/// Calls of one line that are looked at for one that needs less memory than those before it.
const LOOKS: usize = 32;

/// As what a call runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    Turn,
    Quick,
    Reserved,
    /// Another call made it; that one has a turn, or waits for this.
    Within,
}

/// A call that runs.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) lane: Lane,
    pub(super) since: Instant,
    /// Whether it has only waited since the look before the last.
    pub(super) waits: bool,
    /// Whether its job has, with all that it called, and holds no turn therefore.
    pub(super) parked: bool,
    /// Whether its function is known by now not to be short.
    pub(super) told: bool,
    pub(super) lease: Lease,
}

/// What was found out while calls were looked at.
pub(super) struct Seen {
    /// One before needs more memory than there is; others that need so much do not go by it.
    memory: bool,
    looks: usize,
}

impl Seen {
    /// `behind` is whether somebody waits for memory before all that are looked at.
    pub(super) fn behind(behind: bool) -> Self {
        Self { memory: behind, looks: 0 }
    }
}

impl Jobs {
    /// Whether the call may start now, and as what.
    pub(super) fn look(&self, table: &mut Table, number: u64, seen: &mut Seen) -> (Look, Option<(Lane, Lease)>) {
        let Some(call) = table.calls.get(&number) else { return (Look::NotThis, None) };
        let (name, max_running) = (&call.name, call.max_running);
        if max_running.is_some_and(|max| table.modules.get(name).is_some_and(|module| module.running >= max)) {
            return (Look::NotTheseOnes, None);
        }
        // What is known by now: those before it may have been otherwise than was thought when it came.
        let expect = call.history.expect(call.function);
        let Some(lane) = self.lane(table, call, expect.pace) else {
            let full = table.turns >= self.bounds.max_running && table.quick >= QUICK && table.reserved >= RESERVED;
            return (if full { Look::None } else { Look::NotTheseOnes }, None);
        };
        let short = expect.pace == Pace::Short;
        let (leases, reserved) = (leases(table, call, expect.small, seen.memory), call.reserved);
        let lent = leases.into_iter().flatten().find(|lease| table.memory.lend(*lease, short));
        // Those few are the package's own, and small.
        match lent.or(reserved.then_some(Lease::NONE)) {
            Some(lease) => (Look::Starts, Some((lane, lease))),
            None => {
                seen.memory = true;
                seen.looks += 1;
                (if seen.looks > LOOKS { Look::NotTheseOnes } else { Look::NotThis }, None)
            }
        }
    }

    fn lane(&self, table: &Table, call: &Call, pace: Pace) -> Option<Lane> {
        let turns = self.bounds.max_running;
        let is_let_by = match pace {
            Pace::Short => true,
            Pace::Unknown => is_alone(table, call),
            Pace::Long => false,
        };
        let beyond = if is_let_by { BEYOND } else { 0 };
        let room = table.live < turns.saturating_add(self.bounds.max_waiting).saturating_add(beyond);
        // However many short ones come, the others' turns are not for them.
        let leaves_turns = pace == Pace::Short && table.queue.len() > 0;
        if room && table.turns < turns && !leaves_turns && self.is_fair(table, call) {
            return Some(Lane::Turn);
        }
        if call.reserved && table.reserved < RESERVED {
            return Some(Lane::Reserved);
        }
        (is_let_by && room && table.quick < QUICK && leaves_quick(table, call)).then_some(Lane::Quick)
    }

    /// Whether enough turns are left for others if the call takes one.
    fn is_fair(&self, table: &Table, call: &Call) -> bool {
        let most = SHARE.saturating_mul(self.bounds.max_running - table.turns);
        // Nobody can have more than all.
        if call.reserved || table.turns < most {
            return true;
        }
        let holds =
            |other: &&Call| matches!(&other.state, State::Live(live) if live.lane == Lane::Turn && !live.parked);
        let (mut of_module, mut of_asker) = (0, 0);
        for other in table.calls.values().filter(holds) {
            of_module += usize::from(other.name == call.name);
            of_asker += usize::from(same_asker(&other.job, &call.job));
        }
        of_module < most && of_asker < most
    }
}

/// Whether the call's module leaves quick places to others if the call takes one.
fn leaves_quick(table: &Table, call: &Call) -> bool {
    let quick = |other: &&Call| matches!(&other.state, State::Live(live) if live.lane == Lane::Quick);
    let held = table.calls.values().filter(quick).filter(|other| other.name == call.name).count();
    held < QUICK - table.quick
}

/// Whether nothing else of its module runs.
fn is_alone(table: &Table, call: &Call) -> bool {
    !table.calls.values().any(|other| matches!(other.state, State::Live(_)) && other.name == call.name)
}

/// What the call may begin with, the first that there is room for. `behind` is whether another waits for memory before it.
pub(super) fn leases(table: &Table, call: &Call, small: Option<bool>, behind: bool) -> [Option<Lease>; 2] {
    let (whole, little) = (table.memory.whole(call.memory), table.memory.little(call.memory));
    if whole == little {
        return [Some(little), None];
    }
    let whole = (!behind).then_some(whole);
    match small {
        Some(true) => [Some(little), whole],
        Some(false) => [whole, None],
        None => [whole, is_alone(table, call).then_some(little)],
    }
}
