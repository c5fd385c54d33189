//! The rules by which a waiting call may start.
//!
//! - A *turn* is for computing; there are `max_running` of them. A job that has only waited since the last check of its
//!   executor (for a sleep, a program, another server) holds no turn. Up to `max_waiting` such jobs may exist in
//!   addition.
//! - The last turns go to modules and requesters that hold few: each may take a turn only while it holds fewer than
//!   [`SHARE`] times the turns that would be left.
//! - Further places, and the last memory for small calls, are for calls that are expected to be short. A module gets
//!   such a place only while it runs fewer calls than there are places left. A module whose calls then hang leaves as
//!   many places to others.
//! - A *quick place* is for a call that would otherwise wait for a turn and is expected to be short: its past calls
//!   were, or it is unknown and nothing else of its module runs. After a [`MOMENT`] the call counts as any other and
//!   its place is free again, so a wrong expectation delays others by no more than that.

use std::time::{Duration, Instant};

use super::history::Pace;
use super::memory::Lease;
use super::queue::{Look, same_asker};
use super::table::{Call, State, Table};
use super::{Jobs, RESERVED};

/// The largest holder leaves an eighth of the turns to others.
const SHARE: usize = 7;
/// Number of quick places. Fewer would keep a core busy; with 8, a burst of thousands of short calls runs at the rate
/// at which they compute.
pub(super) const QUICK: usize = 8;
/// How long a call keeps its quick place. An ordinary call takes a hundredth of this, and a short call may take 250 ms
/// under load from others.
pub(super) const MOMENT: Duration = Duration::from_millis(50);
/// Additional calls beyond `max_running` and `max_waiting`, for calls that may have a quick place.
pub(super) const BEYOND: usize = 64;
/// Upper bound on the calls of one line examined in search of one that needs less memory than those before it.
const LOOKS: usize = 32;

/// The kind of place on which a call runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    Turn,
    Quick,
    Reserved,
    /// A nested call. Its caller has a turn or waits for it.
    Within,
}

/// A running call.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) lane: Lane,
    pub(super) since: Instant,
    /// Whether it has only waited between the last two checks.
    pub(super) waits: bool,
    /// Whether its job and all nested calls only wait, so that it holds no turn.
    pub(super) parked: bool,
    /// Whether its function was already recorded as not short.
    pub(super) told: bool,
    pub(super) lease: Lease,
}

/// Findings during one pass over the waiting calls.
pub(super) struct Seen {
    /// A call before these needs more memory than is free. Calls that need as much may not overtake it.
    memory: bool,
    looks: usize,
}

impl Seen {
    /// `behind`: a call waits for memory before all examined ones.
    pub(super) fn behind(behind: bool) -> Self {
        Self { memory: behind, looks: 0 }
    }
}

impl Jobs {
    /// Decides whether the call may start now, and on which place.
    pub(super) fn look(&self, table: &mut Table, number: u64, seen: &mut Seen) -> (Look, Option<(Lane, Lease)>) {
        let Some(call) = table.calls.get(&number) else { return (Look::NotThis, None) };
        let (name, max_running) = (&call.name, call.max_running);
        if max_running.is_some_and(|max| table.modules.get(name).is_some_and(|module| module.running >= max)) {
            return (Look::NotTheseOnes, None);
        }
        // Uses the current knowledge, which may have changed since the call arrived.
        let expect = call.history.expect(call.function);
        let Some(lane) = self.lane(table, call, expect.pace) else {
            let full = table.turns >= self.bounds.max_running && table.quick >= QUICK && table.reserved >= RESERVED;
            return (if full { Look::None } else { Look::NotTheseOnes }, None);
        };
        let short = expect.pace == Pace::Short && has_few(table, call, table.memory.left());
        let (leases, reserved) = (leases(table, call, expect.small, seen.memory), call.reserved);
        let lent = leases.into_iter().flatten().find(|lease| table.memory.lend(*lease, short));
        // Reserved calls belong to standard modules and are few and small.
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
        let inside = turns.saturating_add(self.bounds.max_waiting);
        let left = inside.saturating_add(BEYOND).saturating_sub(table.live);
        let room = table.live < inside
            || match pace {
                Pace::Short => has_few(table, call, left),
                // However many unknown calls come, calls that are known to be short find places.
                Pace::Unknown => is_let_by && left > BEYOND / 2,
                Pace::Long => false,
            };
        // However many short calls come, turns are left for the others.
        let leaves_turns = pace == Pace::Short && table.queue.len() > 0;
        if room && table.turns < turns && !leaves_turns && self.is_fair(table, call) {
            return Some(Lane::Turn);
        }
        if call.reserved && table.reserved < RESERVED {
            return Some(Lane::Reserved);
        }
        (is_let_by && room && table.quick < QUICK && leaves_quick(table, call)).then_some(Lane::Quick)
    }

    /// Checks whether the call, if it takes a turn, leaves enough turns to others.
    fn is_fair(&self, table: &Table, call: &Call) -> bool {
        let most = SHARE.saturating_mul(self.bounds.max_running - table.turns);
        // No holder can have more turns than are in use.
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

/// Checks whether the call's module, if the call takes a quick place, leaves some to others.
fn leaves_quick(table: &Table, call: &Call) -> bool {
    let quick = |other: &&Call| matches!(&other.state, State::Live(live) if live.lane == Lane::Quick);
    let held = table.calls.values().filter(quick).filter(|other| other.name == call.name).count();
    held < QUICK - table.quick
}

/// Checks whether fewer than `most` calls of its module run.
pub(super) fn has_few(table: &Table, call: &Call, most: usize) -> bool {
    let live = |other: &&Call| matches!(other.state, State::Live(_)) && other.name == call.name;
    table.live < most || table.calls.values().filter(live).take(most).count() < most
}

/// Checks whether nothing else of its module runs.
fn is_alone(table: &Table, call: &Call) -> bool {
    !table.calls.values().any(|other| matches!(other.state, State::Live(_)) && other.name == call.name)
}

/// Returns the leases with which the call may begin, in order of preference. `behind`: another call waits for memory
/// before it.
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
