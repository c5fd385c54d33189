//! Finds the processes below one in /proc and kills them. It does not allocate, because it runs after a fork.
#![allow(unsafe_code, reason = "memory that is not the allocator's, after a fork")]

use std::ffi::{CStr, c_int};
use std::mem::{MaybeUninit, size_of};
use std::ptr::null_mut;

use rustix::fs::{Mode, OFlags, RawDir, open};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// The largest number of processes in Linux. Only as many pages are used as there are processes.
const MAX_PROCESSES: usize = 1 << 22;
/// A smaller number, for a smaller address space.
const FEW_PROCESSES: usize = 1 << 15;
/// Bytes of /proc that are read at once.
const CHUNK: usize = 8 * 1024;
/// Bytes of a process's `stat`: more than the longest name and the fields that are needed.
const STAT: usize = 512;

/// One process.
#[derive(Clone, Copy)]
struct Process {
    pid: c_int,
    parent: c_int,
    session: c_int,
    below: Below,
}

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Below {
    /// Not examined: the content of new memory.
    Unknown = 0,
    /// On the path that is being followed.
    Asked,
    Yes,
    No,
}

/// All processes, and which of them are below one.
pub(crate) struct Tree {
    memory: *mut Process,
    bytes: usize,
    length: usize,
    root: c_int,
}

impl Tree {
    /// Reads all processes and marks those below `root`; none if /proc cannot be read.
    pub(crate) fn below(root: c_int) -> Option<Self> {
        let map = |count: usize| {
            let bytes = count * size_of::<Process>();
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            // SAFETY: new memory at an address of the kernel's choice.
            let memory = unsafe { libc::mmap(null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
            (memory != libc::MAP_FAILED).then_some((memory.cast::<Process>(), bytes, count))
        };
        let (memory, bytes, most) = map(MAX_PROCESSES).or_else(|| map(FEW_PROCESSES))?;
        let mut tree = Self { memory, bytes, length: 0, root };
        each_process(|pid| {
            if tree.length < most
                && let Some((parent, _, session)) = look(pid)
            {
                let length = tree.length;
                tree.length += 1;
                if let Some(place) = tree.all().get_mut(length) {
                    *place = Process { pid, parent, session, below: Below::Unknown };
                }
            }
        })?;
        Some(tree)
    }

    fn all(&mut self) -> &mut [Process] {
        // SAFETY: `length` never exceeds the mapped memory; new memory is zero, which is a process of number 0.
        unsafe { std::slice::from_raw_parts_mut(self.memory, self.length) }
    }

    /// The kernel lists processes by number.
    fn find(&mut self, pid: c_int) -> Option<usize> {
        self.all().binary_search_by_key(&pid, |process| process.pid).ok()
    }

    fn is_below(&mut self, index: usize) -> bool {
        let mut at = index;
        let answer = loop {
            let Some(process) = self.all().get_mut(at) else { break Below::No };
            match process.below {
                Below::Unknown => process.below = Below::Asked,
                // A cycle: the processes changed while they were read.
                Below::Asked => break Below::No,
                known => break known,
            }
            let parent = process.parent;
            if parent == self.root {
                break Below::Yes;
            }
            match self.find(parent) {
                Some(parent) => at = parent,
                None => break Below::No,
            }
        };
        let mut at = Some(index);
        while let Some(process) = at.and_then(|at| self.all().get_mut(at)) {
            if process.below != Below::Asked {
                break;
            }
            process.below = answer;
            let parent = process.parent;
            at = self.find(parent);
        }
        answer == Below::Yes
    }

    /// Kills the processes, all or those of one session. Returns how many there were.
    pub(crate) fn kill(&mut self, session: Option<c_int>) -> usize {
        let mut killed = 0;
        for index in 0..self.length {
            let Some(process) = self.all().get(index).copied() else { break };
            if session.is_some_and(|session| session != process.session) || !self.is_below(index) {
                continue;
            }
            if let Some(group) = kill_one(&process, self.root) {
                killed += 1;
                if session.is_none() {
                    kill_group(group, process.session);
                }
            }
        }
        killed
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        // SAFETY: it is this memory, and nothing borrows it.
        unsafe { libc::munmap(self.memory.cast(), self.bytes) };
    }
}

/// Kills a process through a handle, only if it is still the same one. Returns its group.
fn kill_one(process: &Process, root: c_int) -> Option<c_int> {
    let pid = Pid::from_raw(process.pid)?;
    let handle = pidfd_open(pid, PidfdFlags::empty());
    let (parent, group, session) = look(process.pid)?;
    if !(parent == process.parent || parent == root) || session != process.session {
        return None;
    }
    let killed = match handle {
        Ok(handle) => pidfd_send_signal(handle, Signal::KILL),
        // Before Linux 5.3.
        Err(rustix::io::Errno::NOSYS) => rustix::process::kill_process(pid, Signal::KILL),
        Err(_) => return None,
    };
    killed.is_ok().then_some(group)
}

/// Kills a whole group at once, so that none of it forks meanwhile. A session that a program made has only processes that the program
/// started.
fn kill_group(group: c_int, session: c_int) {
    // SAFETY: touches no memory. Not `rustix`'s: the session of a process in a container may be 0, which is no `Pid`.
    let own = unsafe { libc::getsid(0) };
    if group > 1 && session != own {
        // SAFETY: touches no memory.
        unsafe { libc::kill(-group, libc::SIGKILL) };
    }
}

/// Kills the children of this process with their groups, as the kernel lists them. Returns how many it listed; 0 also if the kernel has
/// no such list (before Linux 3.5, or built without).
pub(crate) fn kill_children() -> usize {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let mut path = [0; 64];
    let (mut one, mut two) = ([0; 12], [0; 12]);
    let parts = [b"/proc/", digits(own, &mut one), b"/task/", digits(own, &mut two), b"/children"];
    let Some(path) = path_of(&mut path, &parts) else { return 0 };
    let Ok(file) = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) else { return 0 };
    let (mut number, mut found) = (0, 0);
    let mut bytes = [0_u8; 4_096];
    while let Ok(read @ 1..) = rustix::io::read(&file, &mut bytes) {
        for byte in bytes.iter().take(read) {
            match byte {
                b'0'..=b'9' => number = number * 10 + c_int::from(byte - b'0'),
                _ if number > 1 => {
                    found += 1;
                    kill_child(number, own);
                    number = 0;
                }
                _ => {}
            }
        }
    }
    found
}

/// Kills a child with its group. Only this process waits for its children, so a child's pid is not reused.
fn kill_child(pid: c_int, own: c_int) {
    // SAFETY: touches no memory.
    unsafe {
        let group = libc::getpgid(pid);
        if group > 1 && group != libc::getpgid(own) {
            libc::kill(-group, libc::SIGKILL);
        }
        libc::kill(pid, libc::SIGKILL);
    }
}

/// Calls `found` with the pid of each process. Returns none if /proc cannot be read.
fn each_process(mut found: impl FnMut(c_int)) -> Option<()> {
    let proc = open(c"/proc", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut chunk = [MaybeUninit::uninit(); CHUNK];
    let mut entries = RawDir::new(proc, &mut chunk);
    while let Some(Ok(entry)) = entries.next() {
        if let Some(pid) = number(entry.file_name().to_bytes()) {
            found(pid);
        }
    }
    Some(())
}

/// Reads the parent, the group and the session of a process.
fn look(pid: c_int) -> Option<(c_int, c_int, c_int)> {
    let mut path = [0; 64];
    let path = path_of(&mut path, &[b"/proc/", digits(pid, &mut [0; 12]), b"/stat"])?;
    let file = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut bytes = [0_u8; STAT];
    let read = rustix::io::read(&file, &mut bytes).ok()?;
    parse(bytes.get(..read)?)
}

/// Parses `pid (name) state ppid pgrp session …`; the name may have any characters. A parent, group or session outside of the PID
/// namespace is 0: that is what a container's processes have.
fn parse(stat: &[u8]) -> Option<(c_int, c_int, c_int)> {
    let name = stat.iter().rposition(|byte| *byte == b')')?;
    let mut fields = stat.get(name + 1..)?.split(|byte| *byte == b' ').filter(|field| !field.is_empty()).skip(1);
    let mut next = || number(fields.next()?);
    Some((next()?, next()?, next()?))
}

/// A number of digits alone.
fn number(text: &[u8]) -> Option<c_int> {
    let mut number: c_int = 0;
    for byte in text {
        match byte {
            b'0'..=b'9' => number = number.checked_mul(10)?.checked_add(c_int::from(byte - b'0'))?,
            _ => return None,
        }
    }
    (!text.is_empty()).then_some(number)
}

/// The number as text.
fn digits(number: c_int, bytes: &mut [u8; 12]) -> &[u8] {
    let mut left = number.unsigned_abs();
    let mut at = bytes.len();
    for (index, byte) in bytes.iter_mut().enumerate().rev() {
        *byte = b'0' + (left % 10) as u8;
        left /= 10;
        at = index;
        if left == 0 {
            break;
        }
    }
    bytes.get(at..).unwrap_or_default()
}

fn path_of<'a>(path: &'a mut [u8; 64], parts: &[&[u8]]) -> Option<&'a CStr> {
    let bytes = parts.iter().flat_map(|part| part.iter());
    for (to, from) in path.iter_mut().zip(bytes) {
        *to = *from;
    }
    CStr::from_bytes_until_nul(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_says_of_a_process() {
        for (stat, expect) in [
            (&b"9 (sleep) S 1 8 7 0 -1"[..], Some((1, 8, 7))),
            (b"9 (a) b) S 1 8 (7) S 1 8 7 0", Some((1, 8, 7))),
            (b"9 (\xff\xfe\n) R 1 8 7 0", Some((1, 8, 7))),
            (b"9 (S 2 2 2) S 1 8 7 0", Some((1, 8, 7))),
            (b"9 (sleep) S 1 -1 -1 0", None),
            (b"2 (kthreadd) S 0 0 0 0 -1", Some((0, 0, 0))),
            (b"9 (in a container) S 1 0 0 0 -1", Some((1, 0, 0))),
            (b"9 (sleep) S 1 8 ", None),
            (b"9 (sleep) S 1 8", None),
            (b"9 (sleep", None),
            (b"", None),
        ] {
            assert_eq!(parse(stat), expect, "{}", String::from_utf8_lossy(stat));
        }
        assert_eq!(digits(4_194_304, &mut [0; 12]), b"4194304");
        assert_eq!(digits(7, &mut [0; 12]), b"7");
        let own = c_int::try_from(std::process::id()).unwrap();
        let parent = c_int::try_from(std::os::unix::process::parent_id()).unwrap();
        assert_eq!(look(own).map(|(parent, ..)| parent), Some(parent));
    }

    #[test]
    fn who_is_below() {
        let own = c_int::try_from(std::process::id()).unwrap();
        let parent = c_int::try_from(std::os::unix::process::parent_id()).unwrap();
        let mut tree = Tree::below(parent).unwrap();
        let index = tree.find(own).unwrap();
        assert!(tree.is_below(index));
        assert_eq!(Tree::below(own).unwrap().kill(None), 0);
    }
}
