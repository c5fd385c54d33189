//! What runs on this host: the tables `process-list` and `process-arguments`.

use std::collections::HashMap;
use std::io;
use std::os::unix::fs::DirEntryExt as _;

use brine_sandbox::{HostError, UsersOp};

use super::names::name;
use super::{MAX_TABLE, whole};
use crate::broker::MinionBroker;

/// Upper bound on the processes that are looked at.
const MAX_PROCESSES: usize = 100_000;
/// Upper bound on the users whose names are looked up for a table.
const MAX_USERS: usize = 1_000;

/// A process, but for the name of its user.
struct Process {
    pid: String,
    uid: u32,
    /// Memory, state and name, with tabs between them.
    rest: Vec<u8>,
}

impl MinionBroker {
    /// The table `process-list`, with the names of users as the system looks them up.
    pub(super) async fn process_list(&self) -> Result<Vec<u8>, HostError> {
        let failed = |error: io::Error| HostError::Failed(format!("process-list cannot be read: {error}"));
        let all = tokio::task::spawn_blocking(processes).await;
        let all = all.map_err(|_| HostError::Failed("the minion failed".to_owned()))?.map_err(failed)?;
        let mut users: HashMap<u32, String> = HashMap::new();
        let mut table = Vec::new();
        for process in all {
            if !users.contains_key(&process.uid) && users.len() < MAX_USERS {
                // A name that cannot be looked up is no reason to show no process.
                let named = self.users.answer(UsersOp::UserName { uid: process.uid }).await.ok();
                let named = named.and_then(|name| name.as_str().map(str::to_owned));
                users.insert(process.uid, named.unwrap_or_else(|| process.uid.to_string()));
            }
            let user = users.get(&process.uid).cloned().unwrap_or_else(|| process.uid.to_string());
            table.extend(format!("{}\t{}\t", process.pid, user.replace(['\t', '\0'], "?")).into_bytes());
            table.extend(process.rest);
            table.push(0);
            bounded(&table).map_err(failed)?;
        }
        Ok(table)
    }
}

fn bounded(table: &[u8]) -> io::Result<()> {
    match table.len() as u64 > MAX_TABLE {
        true => Err(io::Error::other(format!("it has more than {MAX_TABLE} bytes"))),
        false => Ok(()),
    }
}

fn processes() -> io::Result<Vec<Process>> {
    // What ended meanwhile is left out.
    Ok(pids()?.filter_map(|pid| process(pid).ok()).collect())
}

fn process(pid: String) -> io::Result<Process> {
    // The real user. The folder's owner is root's for a process that may not be traced.
    let status = String::from_utf8_lossy(&whole(&format!("/proc/{pid}/status"))?).into_owned();
    let uid = status.lines().find_map(|line| line.strip_prefix("Uid:")?.split_ascii_whitespace().next()?.parse().ok());
    let uid = uid.ok_or_else(|| io::Error::other("no user"))?;
    let page = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE).ok().flatten();
    let page = page.and_then(|page| u64::try_from(page).ok()).unwrap_or(4_096);
    let pages = String::from_utf8_lossy(&whole(&format!("/proc/{pid}/statm"))?).into_owned();
    let memory: Vec<String> = pages
        .split_ascii_whitespace()
        .map(|word| word.parse::<u64>().unwrap_or(0).saturating_mul(page).to_string())
        .collect();
    let stat = whole(&format!("/proc/{pid}/stat"))?;
    // A name may have anything in it: the last parenthesis ends it.
    let end = stat.iter().rposition(|byte| *byte == b')').ok_or_else(|| io::Error::other("no stat"))?;
    let state = String::from_utf8_lossy(&stat[end + 1..]).trim().to_owned();
    let mut rest = format!("{}\t{state}\t", memory.join(" ")).into_bytes();
    rest.extend(name(&pid)?);
    Ok(Process { pid, uid, rest })
}

/// The table `process-arguments`.
pub(super) fn arguments() -> io::Result<Vec<u8>> {
    let mut table = Vec::new();
    for pid in pids()? {
        let Ok(mut given) = whole(&format!("/proc/{pid}/cmdline")) else { continue };
        if given.last().is_some_and(|byte| *byte != 0) {
            given.push(0);
        }
        let count = given.iter().filter(|byte| **byte == 0).count();
        table.extend(format!("{pid}\0{count}\0").into_bytes());
        table.extend(given);
        bounded(&table)?;
    }
    Ok(table)
}

/// The numbers of all processes.
pub(super) fn pids() -> io::Result<impl Iterator<Item = String>> {
    Ok(pids_and_inodes()?.map(|(pid, _)| pid))
}

/// The numbers of all processes, and those of their folders: a later process of the same number has another folder.
pub(super) fn pids_and_inodes() -> io::Result<impl Iterator<Item = (String, u64)>> {
    let names = std::fs::read_dir("/proc")?
        .flatten()
        .take(MAX_PROCESSES)
        .filter_map(|item| Some((item.file_name().into_string().ok()?, item.ino())));
    Ok(names.filter(|(name, _)| name.bytes().all(|b| b.is_ascii_digit())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_its_number_and_its_memory() {
        let own = process(std::process::id().to_string()).unwrap();
        let rest = String::from_utf8_lossy(&own.rest).into_owned();
        let parts: Vec<&str> = rest.split('\t').collect();
        assert_eq!((parts.len(), own.uid), (3, nix::unistd::getuid().as_raw()));
        assert!(parts[0].split(' ').all(|bytes| bytes.parse::<u64>().is_ok_and(|bytes| bytes % 4_096 == 0)), "{rest}");
        // State, and the process that started it.
        assert_eq!(parts[1].split(' ').nth(1), Some(&*std::os::unix::process::parent_id().to_string()));
    }

    #[test]
    fn arguments_are_counted() {
        let table = arguments().unwrap();
        let mut words = table.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
        let own = std::process::id().to_string();
        let found = loop {
            let pid = words.next().expect("this process is in the table");
            let count: usize = words.next().expect("a count").parse().unwrap();
            let given: Vec<String> = words.by_ref().take(count).collect();
            if pid == own {
                break given;
            }
        };
        assert_eq!(found, std::env::args().collect::<Vec<_>>());
    }
}
