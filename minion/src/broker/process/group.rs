//! Ending a program with all that it started.
//!
//! A program runs in a session and a process group of its own, both with its pid as number. While nobody has waited for the
//! program that number is taken, even when the program has ended: signals go to the group under a lock that is let go only
//! before the waiting, so that they never reach another's processes that got the number later.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};

/// A shell with job control makes groups of its own within the session: they are looked for so often, until there are none.
const ROUNDS: usize = 8;
/// Processes that are looked at in one round.
const MAX_PROCESSES: usize = 100_000;

/// A program's group, from before its start to after its end.
#[derive(Debug, Default)]
pub(super) struct Group(Mutex<State>);

#[derive(Debug, Default, Clone, Copy)]
enum State {
    #[default]
    NotStarted,
    /// It is not wanted any more.
    Unwanted,
    Runs(Pid),
    Over,
}

impl Group {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it should still be started.
    pub(super) fn wanted(&self) -> bool {
        matches!(*self.state(), State::NotStarted)
    }

    /// It runs now. Ended at once where it is not wanted any more.
    pub(super) fn started(&self, pid: Pid) {
        let mut state = self.state();
        if matches!(*state, State::Unwanted) {
            send(pid, Signal::KILL);
        }
        *state = State::Runs(pid);
    }

    /// Signals all of the group.
    pub(super) fn signal(&self, signal: Signal) {
        if let State::Runs(pid) = *self.state() {
            send(pid, signal);
        }
    }

    /// Ends all of the group, or keeps the program from starting.
    pub(super) fn end(&self) {
        let mut state = self.state();
        match *state {
            State::NotStarted => *state = State::Unwanted,
            State::Runs(pid) => send(pid, Signal::KILL),
            State::Unwanted | State::Over => {}
        }
    }

    /// The program has ended, and nobody has waited for it: ends what it left in its session.
    pub(super) fn sweep(&self) {
        let mut state = self.state();
        if let State::Runs(pid) = *state {
            send(pid, Signal::KILL);
            *state = State::Over;
            drop(state);
            // The number is still taken.
            end_session(pid);
        }
    }
}

fn send(group: Pid, signal: Signal) {
    // Fails where nobody is left, or where what is left is root's and the minion is not.
    let _ = kill_process_group(group, signal);
}

fn end_session(session: Pid) {
    for _ in 0..ROUNDS {
        let Ok(processes) = std::fs::read_dir("/proc") else { return };
        let mut ended = 0;
        for process in processes.flatten().take(MAX_PROCESSES) {
            let Some(pid) = process.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw)
            else {
                continue;
            };
            if pid != session && belongs(pid, session) && end_process(pid, session) {
                ended += 1;
            }
        }
        if ended == 0 {
            return;
        }
    }
}

/// Whether the process is in the session and has not ended.
fn belongs(pid: Pid, session: Pid) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    // "pid (name) state ppid pgrp session …", where the name may have anything in it.
    let Some((_, rest)) = stat.rsplit_once(')') else { return false };
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next();
    let found = fields.nth(2).and_then(|session| session.parse().ok()).and_then(Pid::from_raw);
    found == Some(session) && !matches!(state, Some("Z" | "X"))
}

/// Ends a process through a handle, so that it is the one that was looked at.
fn end_process(pid: Pid, session: Pid) -> bool {
    let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return false };
    belongs(pid, session) && pidfd_send_signal(&handle, Signal::KILL).is_ok()
}
