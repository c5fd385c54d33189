//! The names of processes, and the table `processes`. Beacons read it each second, and on most hosts there is nothing that takes them longer.

use std::collections::HashMap;
use std::io::{self, Read as _};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::processes::pids_and_inodes;
use super::whole;

/// The kernel keeps so many bytes of a process's name.
const KEPT: usize = 15;
/// Those of the kernel's own workers are longer, up to this with the end of the line.
const MAX_KEPT: usize = 128;
/// Age up to which a table is given to others: so those that look at the same time share one.
const SHARED: Duration = Duration::from_millis(100);
/// Age at which what is remembered of processes is read anew: for what was exchanged meanwhile for another whose name begins the same.
const MAX_AGE: Duration = Duration::from_secs(30);
/// The bit of a thread of the kernel in its flags (proc_pid_stat(5), `PF_KTHREAD` of linux/sched.h).
const KERNEL_THREAD: u32 = 0x0020_0000;
/// The place of the flags in `stat`, counted after the name.
const FLAGS: usize = 6;

/// The table `processes`, as it was last.
#[derive(Debug, Default)]
pub(in crate::broker) struct Names(Mutex<Last>);

#[derive(Debug, Default)]
struct Last {
    table: Vec<u8>,
    read: Option<Instant>,
    /// The whole names of the processes whose name the kernel may have cut off: by number, with what the kernel has of it. None: there was none
    /// at the first look. The numbers and names of the last table alone.
    whole: HashMap<(String, Vec<u8>), Option<Vec<u8>>>,
    /// By number and folder: the name of a thread of the kernel, which stays, or None of a program. Most processes of a host at rest are
    /// such threads.
    threads: HashMap<(String, u64), Option<Vec<u8>>>,
    read_whole: Option<Instant>,
}

impl Names {
    /// Returns the names of all processes, each ended by a NUL byte: as they are now, or were a moment ago.
    ///
    /// # Errors
    /// If `/proc` cannot be read.
    pub(super) fn table(&self) -> io::Result<Vec<u8>> {
        // Others wait for the reader, and share what it read.
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if last.read.is_none_or(|read| read.elapsed() > SHARED) {
            last.look()?;
        }
        Ok(last.table.clone())
    }
}

impl Last {
    fn look(&mut self) -> io::Result<()> {
        let (mut known, mut threads) = (std::mem::take(&mut self.whole), std::mem::take(&mut self.threads));
        if self.read_whole.is_none_or(|read| read.elapsed() > MAX_AGE) {
            known.clear();
            threads.clear();
            self.read_whole = Some(Instant::now());
        }
        self.table.clear();
        for process in pids_and_inodes()? {
            let before = threads.remove_entry(&process);
            if let Some((process, Some(name))) = before {
                self.table.extend(&name);
                self.table.push(0);
                self.threads.insert(process, Some(name));
                continue;
            }
            // One that ended meanwhile has no name.
            let Ok(kept) = kept_name(&process.0) else { continue };
            let is_thread = before.is_none() && is_kernels(&process.0);
            let pid = process.0.clone();
            let name = worker(&kept).unwrap_or(&kept);
            self.threads.insert(process, is_thread.then(|| name.to_owned()));
            if is_thread || name.len() < kept.len() {
                self.table.extend(name);
            } else if kept.len() < KEPT {
                self.table.extend(kept);
            } else {
                let key = (pid, kept);
                let before = known.remove(&key);
                let name = match &before {
                    Some(Some(name)) => Some(name.clone()),
                    // A program that has just begun has no arguments yet. What has none twice has none.
                    Some(None) => Some(whole_name(&key.0, &key.1).unwrap_or_else(|| key.1.clone())),
                    None => whole_name(&key.0, &key.1),
                };
                self.table.extend(name.as_ref().unwrap_or(&key.1));
                self.whole.insert(key, name);
            }
            self.table.push(0);
        }
        self.read = Some(Instant::now());
        Ok(())
    }
}

/// The name of one process.
///
/// # Errors
/// If there is no such process any more.
pub(super) fn name(pid: &str) -> io::Result<Vec<u8>> {
    let kept = kept_name(pid)?;
    Ok(if kept.len() < KEPT { kept } else { whole_name(pid, &kept).unwrap_or(kept) })
}

/// The name that the kernel keeps of a process. One read is enough, and there are many processes.
fn kept_name(pid: &str) -> io::Result<Vec<u8>> {
    let mut name = [0; MAX_KEPT];
    let length = std::fs::File::open(format!("/proc/{pid}/comm"))?.read(&mut name)?;
    let mut name = name[..length].to_vec();
    while name.last() == Some(&b'\n') {
        name.pop();
    }
    name.retain(|byte| *byte != 0);
    Ok(name)
}

/// Whether it is a thread of the kernel, which never becomes a program.
fn is_kernels(pid: &str) -> bool {
    let stat = whole(&format!("/proc/{pid}/stat")).unwrap_or_default();
    // A name may contain anything.
    let flags = stat.rsplit(|byte| *byte == b')').next().unwrap_or_default();
    let flags = flags.split(|byte| *byte == b' ').filter(|part| !part.is_empty()).nth(FLAGS);
    flags.and_then(|flags| std::str::from_utf8(flags).ok()?.parse::<u32>().ok()).is_some_and(|f| f & KERNEL_THREAD != 0)
}

/// The name of a worker of the kernel, `kworker/0:1` of `kworker/0:1-events`: behind it is what it last worked at, which is another thing each
/// moment.
fn worker(kept: &[u8]) -> Option<&[u8]> {
    let place = kept.strip_prefix(b"kworker/")?.iter().position(|byte| *byte == b':')?;
    let work = kept.iter().skip(b"kworker/".len() + place).position(|byte| matches!(byte, b'-' | b'+'));
    Some(work.map_or(kept, |work| &kept[..b"kworker/".len() + place + work]))
}

/// The name of the program, if the kernel's is its beginning. Of the arguments nothing else is given away.
fn whole_name(pid: &str, kept: &[u8]) -> Option<Vec<u8>> {
    let arguments = whole(&format!("/proc/{pid}/cmdline")).ok()?;
    let program = arguments.split(|byte| *byte == 0).next()?;
    let name = program.rsplit(|byte| *byte == b'/').next()?;
    name.starts_with(kept).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(table: &[u8], wanted: &[u8]) -> bool {
        table.split(|byte| *byte == 0).any(|name| name == wanted)
    }

    #[test]
    fn workers_of_the_kernel_have_names_that_stay() {
        for (kept, expect) in [
            ("kworker/0:1-events", Some("kworker/0:1")),
            ("kworker/u8:12+flush-252:0", Some("kworker/u8:12")),
            ("kworker/1:0H", Some("kworker/1:0H")),
            ("kworker/R-rcu_gp", None),
            ("kworker", None),
            ("sshd", None),
        ] {
            assert_eq!(worker(kept.as_bytes()), expect.map(str::as_bytes), "{kept}");
        }
    }

    #[test]
    fn processes_have_the_whole_names_of_their_programs() {
        let own = std::env::current_exe().unwrap();
        let own = own.file_name().unwrap().to_str().unwrap().as_bytes();
        let names = Names::default();
        // The second time the name is known.
        for _ in 0..2 {
            let table = names.table().unwrap();
            assert_eq!(table.last(), Some(&0));
            assert!(has(&table, own), "{}", String::from_utf8_lossy(&table));
            names.0.lock().unwrap().read = None;
        }
        let pid = std::process::id().to_string();
        assert_eq!(name(&pid).unwrap(), own);
        // This program's name is longer than what the kernel keeps.
        assert!(names.0.lock().unwrap().whole.keys().any(|(of, _)| *of == pid));
    }

    #[test]
    fn threads_of_the_kernel_are_read_once_and_programs_each_time() {
        let (own, kthreadd) = (std::process::id().to_string(), "2");
        assert!(!is_kernels(&own) && !is_kernels("no-number"));
        let names = Names::default();
        names.table().unwrap();
        let mut last = names.0.lock().unwrap();
        let of =
            |last: &Last, pid: &str| last.threads.iter().find(|((of, _), _)| of == pid).map(|(_, name)| name.clone());
        assert_eq!(of(&last, &own), Some(None));
        // Where the kernel's threads are seen: not in a container.
        if is_kernels(kthreadd) {
            assert_eq!(of(&last, kthreadd), Some(Some(b"kthreadd".to_vec())));
            let thread = last.threads.iter_mut().find(|((pid, _), _)| pid == kthreadd).unwrap();
            *thread.1 = Some(b"remembered".to_vec());
            last.look().unwrap();
            assert!(has(&last.table, b"remembered"));
            // Another process of this number.
            let key = last.threads.keys().find(|(pid, _)| pid == kthreadd).unwrap().clone();
            let ((pid, inode), name) = last.threads.remove_entry(&key).unwrap();
            last.threads.insert((pid, inode + 1), name);
            last.look().unwrap();
            assert!(has(&last.table, b"kthreadd") && !has(&last.table, b"remembered"));
        }
    }

    #[expect(clippy::disallowed_methods, reason = "a program to be seen")]
    #[test]
    fn a_table_is_shared_for_a_moment_and_then_read_anew() {
        let names = Names::default();
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join(format!("a-name-of-a-program-{}", std::process::id()));
        std::fs::copy("/bin/sleep", &program).unwrap();
        let wanted = program.file_name().unwrap().to_str().unwrap().as_bytes();
        assert!(!has(&names.table().unwrap(), wanted));
        let mut started = std::process::Command::new(&program).arg("60").spawn().unwrap();
        // The kernel sets its name a little after the start is over.
        let pid = started.id().to_string();
        while name(&pid).unwrap() != wanted {
            std::thread::sleep(Duration::from_millis(5));
        }
        // So that it does not depend on how busy this machine is.
        let read_at = |at: Option<Instant>| names.0.lock().unwrap().read = at;
        let old = || read_at(Instant::now().checked_sub(2 * SHARED));
        read_at(Instant::now().checked_add(Duration::from_secs(60)));
        let shared = has(&names.table().unwrap(), wanted);
        old();
        let read = has(&names.table().unwrap(), wanted);
        started.kill().unwrap();
        started.wait().unwrap();
        old();
        let gone = !has(&names.table().unwrap(), wanted);
        let kept = names.0.lock().unwrap().whole.values().flatten().any(|name| name == wanted);
        assert_eq!((shared, read, gone, kept), (false, true, true, false));
    }
}
