//! Finds, while jobs wait, which running calls only wait, which are not as short as expected, and which need more
//! memory or less.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::Jobs;
use super::history::SHORT_WALL;
use super::places::{Lane, MOMENT};
use super::table::{State, Table};

/// Interval between two checks of the executors while jobs wait.
pub(crate) const PULSE: Duration = Duration::from_millis(25);

impl Jobs {
    /// Waits until a job waits.
    pub(crate) async fn contended(&self) {
        // The sender is in this same struct, so it is never closed.
        let _ = self.contended.subscribe().wait_for(|contended| *contended).await;
    }

    /// Checks again which calls may begin, because time has passed.
    pub(crate) fn pulse(&self) {
        let mut table = self.table();
        settle(&mut table);
        self.dispatch(&mut table);
    }

    /// Processes an executor's report on its calls: for each call, whether it has only waited since the last report;
    /// and the calls that gave memory back and will ask before they hold more.
    pub(crate) fn looked(&self, calls: &[(u64, bool)], gave_back: &[u64]) {
        let mut table = self.table();
        for (number, waits) in calls {
            if let Some(State::Live(live)) = table.calls.get_mut(number).map(|call| &mut call.state) {
                live.waits = *waits;
            }
        }
        for number in gave_back {
            give_back(&mut table, *number);
        }
        self.park(&mut table);
        self.dispatch(&mut table);
    }

    /// Takes turns from jobs that only wait, and gives them back to jobs that continue.
    fn park(&self, table: &mut Table) {
        let live = |state: &State| matches!(state, State::Live(live) if !live.waits);
        let awake: HashSet<u64> = table.calls.values().filter(|call| live(&call.state)).map(|call| call.root).collect();
        let mut waiting = Vec::new();
        for (number, call) in &mut table.calls {
            let State::Live(live) = &mut call.state else { continue };
            if live.lane == Lane::Within {
                continue;
            }
            match (live.parked, awake.contains(number)) {
                // The job has already begun, so it continues even if all turns are taken.
                (true, true) => {
                    live.parked = false;
                    table.parked -= 1;
                    table.turns += 1;
                }
                (false, false) => waiting.push(*number),
                _ => {}
            }
        }
        for number in waiting {
            if table.parked >= self.bounds.max_waiting {
                break;
            }
            let Some(State::Live(live)) = table.calls.get_mut(&number).map(|call| &mut call.state) else { continue };
            match live.lane {
                Lane::Turn => table.turns -= 1,
                Lane::Quick => table.quick -= 1,
                Lane::Reserved => table.reserved -= 1,
                Lane::Within => continue,
            }
            live.lane = Lane::Turn;
            live.parked = true;
            table.parked += 1;
        }
    }

    /// Lends memory to the calls that wait for it, in their order.
    pub(super) fn lend(&self, table: &mut Table) {
        while let Some((number, _)) = table.growing.front() {
            let number = *number;
            if !grow(table, number) {
                break;
            }
            // Sending fails if the call has ended meanwhile.
            let _ = table.growing.pop_front().map(|(_, granted)| granted.send(()));
        }
    }

    /// Requests all the memory that a call may have. None: granted at once. Otherwise the call waits. A nested call
    /// gets an error at once, because its caller may hold the memory that it needs.
    pub(crate) fn grow(&self, number: u64) -> Result<Option<oneshot::Receiver<()>>, String> {
        let mut table = self.table();
        if table.growing.is_empty() && grow(&mut table, number) {
            return Ok(None);
        }
        if table.calls.get(&number).is_none_or(|call| call.is_nested(number)) {
            return Err(self.no_memory());
        }
        let (granted, waits) = oneshot::channel();
        table.growing.push_back((number, granted));
        self.tell(&table);
        Ok(Some(waits))
    }
}

/// Moves calls that ran too long from quick places to turns, and records functions that are not short.
fn settle(table: &mut Table) {
    let now = Instant::now();
    for call in table.calls.values_mut() {
        let State::Live(live) = &mut call.state else { continue };
        let ran = now.duration_since(live.since);
        if live.lane == Lane::Quick && ran >= MOMENT {
            live.lane = Lane::Turn;
            table.quick -= 1;
            table.turns += 1;
        }
        if ran >= SHORT_WALL && !std::mem::replace(&mut live.told, true) {
            call.history.is_long(call.function);
        }
    }
}

/// Lends a call the memory of its whole limit. Returns whether it has it now.
fn grow(table: &mut Table, number: u64) -> bool {
    let Some(call) = table.calls.get_mut(&number) else { return true };
    let State::Live(live) = &mut call.state else { return true };
    let whole = table.memory.whole(call.memory);
    let grown = !live.lease.small || table.memory.change(live.lease, whole, false);
    if grown && live.lease.small {
        live.lease = whole;
    }
    grown
}

/// Reduces a call to a small lease, if there is room for one more. Otherwise it keeps its memory.
fn give_back(table: &mut Table, number: u64) {
    let Some(call) = table.calls.get_mut(&number) else { return };
    let State::Live(live) = &mut call.state else { return };
    let little = table.memory.little(call.memory);
    if !live.lease.small && little.small && live.lease.bytes() > 0 && table.memory.change(live.lease, little, false) {
        live.lease = little;
    }
}
