//! Signals to processes: an instance has no system calls, so that the program `kill` sends them, if the owner of the host
//! granted it.

use std::collections::{HashMap, HashSet};

use brine_guest::program::Program;

use crate::processes;

const KILL: &str = "/usr/bin/kill";
/// What Salt sends where none is named: SIGTERM.
const USUAL: i64 = 15;
/// The highest number of a signal on Linux.
const HIGHEST: i64 = 64;
/// Upper bound on the processes that one call sends a signal to: a program runs for each.
const MAX_PROCESSES: usize = 1000;

/// A signal by its number. 0 tests whether a process may be sent one.
pub(crate) fn number(signal: Option<i64>) -> Result<i64, String> {
    let signal = signal.unwrap_or(USUAL);
    if (0..=HIGHEST).contains(&signal) {
        Ok(signal)
    } else {
        Err(format!("[Errno 22] Invalid argument: signal {signal}"))
    }
}

/// The same processes, if one call may send a signal to so many.
pub(crate) fn bounded(pids: Vec<i64>) -> Result<Vec<i64>, String> {
    match pids.len() {
        0..=MAX_PROCESSES => Ok(pids),
        count => {
            Err(format!("{count} processes match, of which at most {MAX_PROCESSES} get a signal; nothing was sent"))
        }
    }
}

/// The name of the processes that calls of modules are in.
const EXECUTOR: &str = "brine-executor";
/// Upper bound on the processes around a process: more than any host has.
const MAX_DEPTH: usize = 64;

/// The processes that this call is in, which would end before it had ended others: minions and `salt-call`, with their
/// executors. With `full`, also those that they were started by, such as `sudo`: their command line may have the pattern in
/// it, because it asks for it.
pub(crate) fn own(all: &[(i64, i64, String)], full: bool) -> HashSet<i64> {
    let parents: HashMap<i64, i64> = all.iter().map(|(pid, parent, _)| (*pid, *parent)).collect();
    let depth = if full { MAX_DEPTH } else { 1 };
    let mut own = HashSet::new();
    for (pid, ..) in all.iter().filter(|(.., name)| name == EXECUTOR) {
        own.extend(std::iter::successors(Some(*pid), |pid| parents.get(pid).copied()).take(depth + 1));
    }
    own
}

/// Sends a signal; false if there is no such process.
pub(crate) fn send(pid: i64, signal: i64) -> Result<bool, String> {
    if pid < 0 {
        // To `kill`, these are groups of processes.
        return Err(format!("pid must be a positive integer (got {pid})"));
    }
    if pid == 0 {
        return Ok(false);
    }
    let output = Program::new([KILL.to_owned(), format!("-{signal}"), pid.to_string()]).run()?;
    if output.succeeded() {
        return Ok(true);
    }
    match processes::all()?.iter().any(|process| process.pid == pid) {
        true => output.ok().map(|_| true),
        false => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_numbers() {
        assert_eq!((number(None), number(Some(0)), number(Some(64))), (Ok(15), Ok(0), Ok(64)));
        assert!(number(Some(-1)).is_err() && number(Some(65)).is_err());
    }

    #[test]
    fn a_call_does_not_end_itself() {
        let all = [(1, 0, "systemd"), (5, 1, "sudo"), (6, 5, "salt-call"), (7, 6, EXECUTOR), (8, 1, "other")];
        let all = all.map(|(pid, parent, name)| (pid, parent, name.to_owned()));
        assert_eq!(own(&all, false), HashSet::from([6, 7]));
        assert_eq!(own(&all, true), HashSet::from([0, 1, 5, 6, 7]));
        assert!(own(&all[..3], true).is_empty());
    }

    #[test]
    fn no_group_of_processes_gets_a_signal() {
        assert_eq!(send(0, 15), Ok(false));
        assert!(send(-1, 9).unwrap_err().contains("positive"));
        assert!(bounded(vec![1; MAX_PROCESSES]).is_ok() && bounded(vec![1; MAX_PROCESSES + 1]).is_err());
    }
}
