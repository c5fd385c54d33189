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

    /// The program has ended, and nobody has waited for it: ends what it left in its group, and takes no more signals. What is
    /// left of its session is for [`end_session`].
    pub(super) fn over(&self) {
        let mut state = self.state();
        if let State::Runs(pid) = *state {
            send(pid, Signal::KILL);
            *state = State::Over;
        }
    }
}

fn send(group: Pid, signal: Signal) {
    // Fails where nobody is left, or where what is left is root's and the minion is not.
    let _ = kill_process_group(group, signal);
}

/// Ends what is in other groups of the session of a program that nobody has waited for yet. Looks at all processes.
pub(super) fn end_session(session: Pid) {
    for _ in 0..ROUNDS {
        let Ok(processes) = std::fs::read_dir("/proc") else { return };
        let mut ended = 0;
        for process in processes.flatten().take(MAX_PROCESSES) {
            let Some(pid) = process.file_name().to_str().and_then(number) else { continue };
            if pid != session && belongs(pid, session) && end_process(pid, session) {
                ended += 1;
            }
        }
        if ended == 0 {
            return;
        }
    }
}

/// A process's number; the kernel says -1 for the session of one that is going.
fn number(text: &str) -> Option<Pid> {
    text.parse().ok().filter(|number| *number > 0).and_then(Pid::from_raw)
}

/// Whether the process is in the session and has not ended.
fn belongs(pid: Pid, session: Pid) -> bool {
    std::fs::read(format!("/proc/{pid}/stat")).is_ok_and(|stat| is_of(&stat, session))
}

/// `pid (name) state ppid pgrp session …`, where the name may have anything in it.
fn is_of(stat: &[u8], session: Pid) -> bool {
    let stat = String::from_utf8_lossy(stat);
    let Some((_, rest)) = stat.rsplit_once(')') else { return false };
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next();
    fields.nth(2).and_then(number) == Some(session) && !matches!(state, Some("Z" | "X"))
}

/// Ends a process through a handle, so that it is the one that was looked at.
fn end_process(pid: Pid, session: Pid) -> bool {
    let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return false };
    belongs(pid, session) && pidfd_send_signal(&handle, Signal::KILL).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_session_a_process_is_of() {
        let session = Pid::from_raw(7).unwrap();
        for (stat, expect) in [
            (&b"9 (sleep) S 1 8 7 0 -1"[..], true),
            (b"9 (a) b) S 1 8 (7) S 1 8 7 0", true),
            (b"9 (\xff\xfe\n) R 1 8 7 0", true),
            (b"9 (sleep) Z 1 8 7 0", false),
            (b"9 (sleep) X 1 8 7 0", false),
            (b"9 (sleep) S 7 7 8 0", false),
            (b"9 (S 1 8 7) S 1 8 6 0", false),
            (b"9 (sleep) S 1 -1 -1 0", false),
            (b"9 (sleep) S 1", false),
            (b"", false),
        ] {
            assert_eq!(is_of(stat, session), expect, "{}", String::from_utf8_lossy(stat));
        }
    }

    #[test]
    fn what_is_not_wanted_does_not_start() {
        let group = Group::default();
        assert!(group.wanted());
        group.end();
        assert!(!group.wanted());
        // Nothing to signal: not even by mistake all processes, or the minion's own group.
        group.signal(Signal::KILL);
        group.over();
        group.end();
    }
}
