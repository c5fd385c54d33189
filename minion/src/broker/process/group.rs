//! Ending a program with all that it started.
//!
//! A program runs in a session and a process group of its own, both with its pid as number. While nobody has waited for the
//! program that number is taken, even when the program has ended: signals go to the group under a lock that is let go only
//! before the waiting, so that they never reach another's processes that got the number later.

use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};

/// A shell with job control makes groups of its own within the session, and a program may leave that too: they are looked for
/// so often, until there are none.
const ROUNDS: usize = 8;
/// A thread that reads /proc.
const STACK: usize = 256 * 1024;
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

    /// Ends the program with all that it started, or keeps it from starting. Returns at once: the group stands still then, and is
    /// ended by a thread that looks first for what left the group.
    pub(super) fn end(self: &Arc<Self>) {
        let mut state = self.state();
        match *state {
            State::NotStarted => *state = State::Unwanted,
            State::Runs(pid) => {
                send(pid, Signal::STOP);
                let this = Arc::clone(self);
                let thread = std::thread::Builder::new().name("end of a program".to_owned()).stack_size(STACK);
                if thread.spawn(move || this.end_tree()).is_err() {
                    send(pid, Signal::KILL);
                }
            }
            State::Unwanted | State::Over => {}
        }
    }

    fn end_tree(&self) {
        if let State::Runs(pid) = *self.state() {
            end_strays(pid);
            send(pid, Signal::KILL);
        }
    }

    /// Ends what the program started and what left its group since. Looks at all processes.
    pub(super) fn end_strays(&self) {
        if let State::Runs(pid) = *self.state() {
            end_strays(pid);
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

/// Ends descendants of a running program that are not in its group: each is stopped before the next look, so that the tree
/// holds still while it is looked through. What has lost its parent before is a child of init by now, and is not found.
fn end_strays(program: Pid) {
    let mut stopped: HashMap<Pid, OwnedFd> = HashMap::new();
    for _ in 0..ROUNDS {
        let all: Vec<Process> = processes().collect();
        let mut children: HashMap<Pid, Vec<&Process>> = HashMap::new();
        for process in &all {
            children.entry(process.parent).or_default().push(process);
        }
        let mut left = vec![program];
        let mut seen = HashSet::from([program]);
        let before = stopped.len();
        while let Some(parent) = left.pop() {
            for child in children.get(&parent).into_iter().flatten().filter(|child| seen.insert(child.pid)) {
                left.push(child.pid);
                if child.group == program || stopped.contains_key(&child.pid) {
                    continue;
                }
                let same = |now: &Process| now.parent == parent;
                if let Some(handle) = signal_one(child.pid, Signal::STOP, same) {
                    stopped.insert(child.pid, handle);
                }
            }
        }
        if stopped.len() == before {
            break;
        }
    }
    for handle in stopped.values() {
        let _ = pidfd_send_signal(handle, Signal::KILL);
    }
}

/// Ends what is in other groups of the session of a program that nobody has waited for yet. Looks at all processes.
pub(super) fn end_session(session: Pid) {
    for _ in 0..ROUNDS {
        let of_session = |process: &Process| process.session == session && !process.over;
        let left = processes().filter(|process| process.pid != session && of_session(process));
        if left.filter(|process| signal_one(process.pid, Signal::KILL, of_session).is_some()).count() == 0 {
            return;
        }
    }
}

/// Signals a process through a handle, if it is still the one that was meant.
fn signal_one(pid: Pid, signal: Signal, meant: impl Fn(&Process) -> bool) -> Option<OwnedFd> {
    let handle = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    let now = Process::look(pid)?;
    (meant(&now) && pidfd_send_signal(&handle, signal).is_ok()).then_some(handle)
}

/// What is known of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Process {
    pid: Pid,
    parent: Pid,
    group: Pid,
    session: Pid,
    /// It has ended.
    over: bool,
}

impl Process {
    fn look(pid: Pid) -> Option<Self> {
        Self::read(pid, &std::fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    /// From `pid (name) state ppid pgrp session …`, where the name may have anything in it.
    fn read(pid: Pid, stat: &[u8]) -> Option<Self> {
        let stat = String::from_utf8_lossy(stat);
        let (_, rest) = stat.rsplit_once(')')?;
        let mut fields = rest.split_ascii_whitespace();
        let over = matches!(fields.next()?, "Z" | "X");
        let mut next = || number(fields.next()?);
        Some(Self { pid, parent: next()?, group: next()?, session: next()?, over })
    }
}

/// Those there are, but for the kernel's own and those that are going.
fn processes() -> impl Iterator<Item = Process> {
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten().take(MAX_PROCESSES);
    all.filter_map(|entry| Process::look(entry.file_name().to_str().and_then(number)?))
}

/// A process's number; the kernel says 0 for none, and -1 for the session of one that is going.
fn number(text: &str) -> Option<Pid> {
    text.parse().ok().filter(|number| *number > 0).and_then(Pid::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_says_of_a_process() {
        let pid = |number| Pid::from_raw(number).unwrap();
        let some = |over| Some(Process { pid: pid(9), parent: pid(1), group: pid(8), session: pid(7), over });
        for (stat, expect) in [
            (&b"9 (sleep) S 1 8 7 0 -1"[..], some(false)),
            (b"9 (a) b) S 1 8 (7) S 1 8 7 0", some(false)),
            (b"9 (\xff\xfe\n) R 1 8 7 0", some(false)),
            (b"9 (S 2 2 2) S 1 8 7 0", some(false)),
            (b"9 (sleep) Z 1 8 7 0", some(true)),
            (b"9 (sleep) X 1 8 7 0", some(true)),
            (b"9 (sleep) S 1 -1 -1 0", None),
            (b"9 (kthreadd) S 0 0 0 0", None),
            (b"9 (sleep) S 1 8", None),
            (b"9 (sleep", None),
            (b"", None),
        ] {
            assert_eq!(Process::read(pid(9), stat), expect, "{}", String::from_utf8_lossy(stat));
        }
    }

    #[test]
    fn what_is_not_wanted_does_not_start() {
        let group = Arc::new(Group::default());
        assert!(group.wanted());
        group.end();
        assert!(!group.wanted());
        // Nothing to signal: not even by mistake all processes, or the minion's own group.
        group.signal(Signal::KILL);
        group.end_strays();
        group.over();
        group.end();
    }
}
