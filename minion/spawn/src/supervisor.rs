//! The process between the minion and one program. When the program ends, it ends all processes that the program started.
//!
//! The supervisor is a child subreaper (prctl(2)): a process below the program that loses its parent becomes the supervisor's child. So
//! no process leaves the tree below the supervisor, however often it forks, and `wait` fails with ECHILD when none is left. A parent
//! that ends first, a session of its own and an ignored signal change nothing. With a control group of version 2, the kernel ends all
//! processes of the group at once, even if they fork faster than they can be found. The search below is for hosts without control
//! groups, and for processes that left the group.
//!
//! The minion holds the other end of `link`. When that end is closed or shut down, by the minion or by its death, the supervisor ends
//! all processes. Without a control group there are two supervisors, and the first guards the second: a program that may signal the
//! minion's user can kill its parent, and then only the guard holds the rest together.
//!
//! All of this runs in a copy of one thread of many, so nothing here allocates, locks or panics.
#![allow(unsafe_code, reason = "code between fork and exec is unsafe by nature")]

use std::cell::Cell;
use std::ffi::{c_int, c_uint, c_void};
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr::{null, null_mut};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::Step;
use crate::child::{Child, MAX_DESCRIPTOR, SIGNALS, last_error, step_number};
use crate::tree::{Tree, kill_children};
use crate::vfork::vfork;

/// Bytes of a record: its kind and two numbers.
pub(crate) const RECORD: usize = 12;
/// The program's pid, and whether it is in the control group.
pub(crate) const STARTED: i32 = 1;
/// The program's status as `wait` returns it, and one of the outcomes below.
pub(crate) const ENDED: i32 = 2;
/// The program did not start: the step, see [`crate::child`], and the error.
pub(crate) const FAILED: i32 = 3;
/// No process is left, and none was when the program ended.
pub(crate) const GONE: i32 = 0;
/// No process is left any more.
pub(crate) const SWEPT: i32 = 4;
/// A process cannot be ended (yet): it is inside the kernel, or another user's.
pub(crate) const STUCK: i32 = 1;
/// Processes with a session of their own go on, which was allowed.
pub(crate) const DETACHED: i32 = 2;
/// The supervisor was killed, and the guard ended the rest.
pub(crate) const KILLED: i32 = 3;
/// From the minion: send SIGTERM to the program's group.
pub(crate) const TERMINATE: u8 = b'T';

/// The kernel's SIG_DFL action: handler, flags, restorer, mask.
const DEFAULT_ACTION: [u64; 4] = [0; 4];
/// Bytes of the kernel's signal set.
const SIGNAL_SET: usize = 8;
/// Milliseconds without an ended process, and in all, after which the minion hears that a process cannot be ended. The supervisor keeps
/// trying.
const PATIENCE_MS: u64 = 2_000;
const LONGEST_MS: u64 = 10_000;
/// Milliseconds that a stopped supervisor gets to do its work before its guard takes over.
const GUARD_MS: u64 = 1_000;
/// Milliseconds between two rounds of killing: the first and the longest pause. The pause doubles every [`ROUNDS`] rounds. After a long
/// round it is a multiple of the round's length, because killed processes need the processor to end.
const FIRST_PAUSE_MS: u64 = 2;
const LAST_PAUSE_MS: u64 = 500;
const ROUNDS: u32 = 4;
const TIMES: u64 = 4;
/// With a control group, rounds that only the kernel kills in, before processes that left the group are searched.
const GROUP_ROUNDS: u32 = 3;
/// Rounds that look only at the children, before all processes are searched: that is fast enough for processes that fork and end at
/// once.
const QUICK_LOOKS: usize = 64;
/// A priority above any of the program's, so that a crowd of processes does not keep the supervisor from ending them.
const PRIORITY: c_int = -20;

/// The data of the supervisor, made before the fork.
pub(crate) struct Supervisor {
    pub(crate) link: c_int,
    /// The control group's folder and its `cgroup.kill`.
    pub(crate) group: Option<(c_int, c_int)>,
    pub(crate) detach: bool,
}

/// The data that the program's process reads and writes in the supervisor's memory before it executes the program.
struct Told<'a> {
    program: &'a Child,
    supervisor: c_int,
    /// The priority of the program.
    priority: c_int,
    failed: Cell<Option<(Step, Errno)>>,
}

/// The state of a running supervisor.
struct State {
    child: c_int,
    status: Option<c_int>,
    /// Whether the order to end all processes has come.
    told: bool,
    signals: c_int,
    /// When the ending began, and when a process last ended.
    since_ms: Option<u64>,
    last_ms: u64,
    /// The rounds of killing so far, and when the next one is due.
    rounds: u32,
    due_ms: u64,
    reported: bool,
}

impl Supervisor {
    /// Lets `command` start this supervisor, and `program` below it, instead of its own program.
    pub(crate) fn hook(self, program: Arc<Child>, command: &mut Command) {
        // SAFETY: `run` makes system calls only, see the module's description.
        unsafe {
            command.pre_exec(move || self.run(&program));
        }
    }

    /// Becomes the supervisor of `program`, in the child of the fork. Does not return: the standard library waits for the end of a pipe,
    /// which comes before the program can stop this process.
    fn run(&self, program: &Child) -> ! {
        let Err((step, errno)) = self.begin(program);
        self.say(FAILED, step_number(step), errno.raw_os_error());
        exit(0)
    }

    fn begin(&self, program: &Child) -> Result<std::convert::Infallible, (Step, Errno)> {
        let at = |step: Step| move |errno: Errno| (step, errno);
        // Signals to the minion's group are not for the supervisor. It stays in the minion's session: the kernel gives each session a
        // share of the processors, and another session would cost a turn.
        rustix::process::setpgid(None, None).map_err(at(Step::Session))?;
        default_signals();
        mask_signals(u64::MAX);
        let priority = rustix::process::getpriority_process(None).unwrap_or(0);
        let _ = rustix::process::setpriority_process(None, PRIORITY);
        let (folder, kill) = self.group.unwrap_or((-1, -1));
        // Closes the minion's descriptors and the standard library's pipe. The program's descriptors stay open until it runs.
        let probe = program.probe.as_ref().map_or(-1, crate::Probe::descriptor);
        close_others([0, 1, 2, self.link, folder, kill, probe]);
        if self.group.is_none() {
            become_subreaper().map_err(at(Step::Supervisor))?;
            let signals = signal_descriptor().map_err(at(Step::Supervisor))?;
            let supervisor = fork().map_err(at(Step::Fork))?;
            if supervisor != 0 {
                self.settle(signals);
                self.guard(State::new(supervisor, signals));
            }
        }
        become_subreaper().map_err(at(Step::Supervisor))?;
        let signals = signal_descriptor().map_err(at(Step::Supervisor))?;
        let told = Told { program, supervisor: own_pid(), priority, failed: Cell::new(None) };
        let (pid, grouped) = self.start(&told)?;
        if let Some(failed) = told.failed.get() {
            return Err(failed);
        }
        self.settle(signals);
        self.say(STARTED, pid, i32::from(grouped));
        self.supervise(State::new(pid, signals))
    }

    /// Starts the program's process. Returns its pid and whether it is in the group.
    fn start(&self, told: &Told<'_>) -> Result<(c_int, bool), (Step, Errno)> {
        let group = self.group.map(|(folder, _)| folder);
        let namespaces = told.program.probe.as_ref().map_or(0, |_| crate::probe::NAMESPACES);
        let mut refused = Errno::NOSYS;
        // This fails before Linux 5.7, or if the group refuses. The tree below the supervisor is enough then.
        for group in [group, None] {
            // SAFETY: only the program's process writes `failed`, while this process stands still.
            match unsafe { vfork(group, namespaces, become_program, std::ptr::from_ref(told).cast()) } {
                Ok(pid) => return Ok((pid, group.is_some())),
                Err(errno) => refused = errno,
            }
        }
        if namespaces != 0 {
            return Err((Step::Namespaces, refused));
        }
        match fork().map_err(|errno| (Step::Fork, errno))? {
            0 => Err(told.run()),
            pid => Ok((pid, false)),
        }
    }

    /// Closes the minion's descriptors.
    fn settle(&self, signals: c_int) {
        let kill = self.group.map_or(-1, |(_, kill)| kill);
        close_others([self.link, kill, signals]);
        let _ = rustix::process::chdir(c"/");
        let _ = rustix::thread::set_name(c"brine-program");
        // It has the minion's memory, which programs of the same user must not read.
        let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
    }

    fn say(&self, what: i32, a: i32, b: i32) {
        let mut record = [0_u8; RECORD];
        for (to, number) in record.chunks_exact_mut(4).zip([what, a, b]) {
            to.copy_from_slice(&number.to_ne_bytes());
        }
        // SAFETY: the bytes live during the call.
        unsafe { libc::send(self.link, record.as_ptr().cast(), RECORD, libc::MSG_NOSIGNAL) };
    }

    /// Runs until no process is left.
    fn supervise(&self, mut state: State) -> ! {
        loop {
            if !state.reap() {
                let how = if state.rounds == 0 { GONE } else { SWEPT };
                self.report(&mut state, how);
                exit(0);
            }
            if state.status == Some(0) && self.detach && !state.told && self.leave(&mut state) {
                self.report(&mut state, DETACHED);
                exit(0);
            }
            if state.told || state.status.is_some() {
                self.end(&mut state);
                if state.is_late() {
                    self.report(&mut state, STUCK);
                }
            }
            let pause = state.pause();
            match state.wait(self.link, PollFlags::IN, pause) {
                Event::Link => match self.read() {
                    Some(TERMINATE) if state.status.is_none() => terminate(state.child),
                    Some(_) => {}
                    None => state.told = true,
                },
                Event::Other => {}
            }
        }
    }

    /// Runs until the supervisor ends or has to be ended.
    fn guard(&self, mut state: State) -> ! {
        let mut told_at = None;
        loop {
            let left = state.reap();
            match state.status {
                // The supervisor has done its work. The remaining processes may stay.
                Some(0) => exit(0),
                Some(_) if !left => {
                    self.report(&mut state, KILLED);
                    exit(0);
                }
                Some(_) => {
                    self.end(&mut state);
                    if state.is_late() {
                        self.report(&mut state, STUCK);
                    }
                }
                None => {}
            }
            let pause = match (state.status, told_at) {
                (None, None) => None,
                (None, Some(_)) => Some(GUARD_MS),
                (Some(_), _) => state.pause(),
            };
            if told_at.is_some_and(|at| now_ms().saturating_sub(at) >= GUARD_MS) && state.status.is_none() {
                signal(state.child, libc::SIGKILL);
            }
            // The bytes are for the supervisor; the end of the link is for both.
            if matches!(state.wait(self.link, PollFlags::RDHUP, pause), Event::Link) && told_at.is_none() {
                told_at = Some(now_ms());
                state.told = true;
                signal(state.child, libc::SIGCONT);
            }
        }
    }

    /// Reads a byte of the minion's; none if the minion will send no more.
    fn read(&self) -> Option<u8> {
        let mut byte = 0_u8;
        // SAFETY: one byte, which lives during the call.
        let read = unsafe { libc::recv(self.link, (&raw mut byte).cast(), 1, libc::MSG_DONTWAIT) };
        match read {
            1 => Some(byte),
            -1 if matches!(last_error(), Errno::AGAIN | Errno::INTR) => Some(0),
            _ => None,
        }
    }

    fn report(&self, state: &mut State, how: i32) {
        if !state.reported {
            state.reported = true;
            self.say(ENDED, state.status.unwrap_or(libc::SIGKILL), how);
        }
    }

    /// Kills the processes below, if a round is due. Processes that start during the round are left to the next one.
    fn end(&self, state: &mut State) {
        let begin = now_ms();
        state.since_ms.get_or_insert(begin);
        if begin < state.due_ms {
            return;
        }
        state.rounds = state.rounds.saturating_add(1);
        self.kill(state);
        let now = now_ms();
        let pause = (FIRST_PAUSE_MS << (state.rounds / ROUNDS).min(8)).max(now.saturating_sub(begin) * TIMES);
        state.due_ms = now + pause.min(LAST_PAUSE_MS);
    }

    fn kill(&self, state: &mut State) {
        if let Some((_, kill)) = self.group {
            // SAFETY: one byte of a constant.
            unsafe { libc::write(kill, b"1".as_ptr().cast(), 1) };
            if state.rounds <= GROUP_ROUNDS {
                return;
            }
        }
        hurry();
        for _ in 0..QUICK_LOOKS {
            if kill_children() == 0 || !state.reap() {
                break;
            }
        }
        if let Some(mut tree) = Tree::below(own_pid()) {
            tree.kill(None);
        }
    }

    /// The program ended well, and processes with a session of their own may stay: ends the others. Returns whether that is done. If it
    /// takes too long, all processes are ended.
    fn leave(&self, state: &mut State) -> bool {
        let begin = now_ms();
        loop {
            let Some(mut tree) = Tree::below(own_pid()) else { return true };
            if tree.kill(Some(state.child)) == 0 {
                return true;
            }
            let _ = state.wait(self.link, PollFlags::RDHUP, Some(FIRST_PAUSE_MS));
            if !state.reap() || now_ms().saturating_sub(begin) > PATIENCE_MS {
                return false;
            }
        }
    }
}

impl Told<'_> {
    /// Reports that the program did not start.
    fn run(&self) -> (Step, Errno) {
        let _ = rustix::process::setpriority_process(None, self.priority);
        mask_signals(0);
        self.program.run(self.supervisor)
    }
}

extern "C" fn become_program(told: *const c_void) -> ! {
    // SAFETY: the supervisor made it and stands still while this runs.
    let told = unsafe { &*told.cast::<Told<'_>>() };
    told.failed.set(Some(told.run()));
    exit(1)
}

enum Event {
    Link,
    Other,
}

impl State {
    fn new(child: c_int, signals: c_int) -> Self {
        Self {
            child,
            status: None,
            told: false,
            signals,
            since_ms: None,
            last_ms: 0,
            rounds: 0,
            due_ms: 0,
            reported: false,
        }
    }

    /// Reaps the processes that have ended. Returns whether children are left.
    fn reap(&mut self) -> bool {
        loop {
            let mut status = 0;
            // SAFETY: the status lives during the call.
            let pid = unsafe { libc::wait4(-1, &raw mut status, libc::WNOHANG | libc::__WALL, null_mut()) };
            match pid {
                0 => return true,
                -1 if last_error() == Errno::INTR => {}
                -1 => return false,
                pid => {
                    self.last_ms = now_ms();
                    // The pid may be reused later.
                    if pid == self.child && self.status.is_none() {
                        self.status = Some(status);
                    }
                }
            }
        }
    }

    fn is_late(&self) -> bool {
        let now = now_ms();
        self.since_ms.is_some_and(|since| {
            now.saturating_sub(since.max(self.last_ms)) > PATIENCE_MS || now.saturating_sub(since) > LONGEST_MS
        })
    }

    /// Waits until the next round is due, or for an event if none is.
    fn pause(&self) -> Option<u64> {
        self.since_ms.map(|_| self.due_ms.saturating_sub(now_ms()))
    }

    /// Waits for a child's end or for the link.
    fn wait(&self, link: c_int, what: PollFlags, ms: Option<u64>) -> Event {
        // SAFETY: both are open as long as this process lives.
        let (link, signals) = unsafe { (BorrowedFd::borrow_raw(link), BorrowedFd::borrow_raw(self.signals)) };
        let mut both = [PollFd::new(&signals, PollFlags::IN), PollFd::new(&link, what)];
        // A closed link has no further events.
        let watched = if self.told { 1 } else { 2 };
        let timeout = ms.map(|ms| Timespec { tv_sec: (ms / 1_000) as _, tv_nsec: (ms % 1_000 * 1_000_000) as _ });
        let _ = poll(both.get_mut(..watched).unwrap_or_default(), timeout.as_ref());
        let mut drained = [0_u8; 256];
        while rustix::io::read(signals, &mut drained).is_ok_and(|read| read > 0) {}
        let end = PollFlags::HUP | PollFlags::ERR | PollFlags::RDHUP;
        match both.last() {
            Some(link) if watched == 2 && link.revents().intersects(what | end) => Event::Link,
            _ => Event::Other,
        }
    }
}

fn terminate(group: c_int) {
    for signal in [libc::SIGTERM, libc::SIGCONT] {
        // SAFETY: touches no memory. The program has not been waited for, so the number is its group's.
        unsafe { libc::kill(-group, signal) };
    }
}

fn signal(pid: c_int, signal: c_int) {
    // SAFETY: touches no memory.
    unsafe { libc::kill(pid, signal) };
}

fn exit(code: c_int) -> ! {
    // SAFETY: ends this process and runs nothing.
    unsafe { libc::_exit(code) }
}

fn own_pid() -> c_int {
    rustix::process::getpid().as_raw_nonzero().get()
}

fn become_subreaper() -> Result<(), Errno> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
}

pub(crate) fn now_ms() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000 + now.tv_nsec as u64 / 1_000_000
}

/// Runs before all other priorities, if that is permitted: a crowd that forks must not get all processors.
fn hurry() {
    let parameters = libc::sched_param { sched_priority: 1 };
    // SAFETY: the structure lives during the call.
    unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_FIFO, &raw const parameters) };
}

/// Resets the signals that the minion was started to ignore (nohup). SIGCHLD must be reset, or else no child can be
/// waited for. The kernel refuses SIGKILL and SIGSTOP, which are never ignored. The C library refuses the two signals
/// that it uses itself, so this is a system call.
fn default_signals() {
    for signal in 1..=SIGNALS {
        // SAFETY: the action is all zero: the default, and no handler.
        unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, DEFAULT_ACTION.as_ptr(), null::<u64>(), SIGNAL_SET) };
    }
}

fn mask_signals(mask: u64) {
    // SAFETY: the set lives during the call.
    unsafe {
        libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, &raw const mask, null_mut::<u64>(), SIGNAL_SET)
    };
}

fn signal_descriptor() -> Result<c_int, Errno> {
    let mask = 1_u64 << (libc::SIGCHLD - 1);
    let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
    // SAFETY: the set lives during the call.
    let made = unsafe { libc::syscall(libc::SYS_signalfd4, -1, &raw const mask, SIGNAL_SET, flags) };
    if made < 0 { Err(last_error()) } else { Ok(made as c_int) }
}

/// Forks by the system call, because the C library takes locks at a fork. Returns 0 in the child.
fn fork() -> Result<c_int, Errno> {
    // SAFETY: a plain fork; the child goes on with a copy of everything.
    let pid = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) };
    if pid < 0 { Err(last_error()) } else { Ok(pid as c_int) }
}

/// Closes all descriptors but these, so that no reader waits for the end of a pipe that is only open here.
fn close_others<const N: usize>(mut kept: [c_int; N]) {
    kept.sort_unstable();
    let mut from: c_int = 0;
    for keep in kept {
        if keep >= from {
            close_range(from, keep - 1);
            from = keep + 1;
        }
    }
    close_range(from, c_int::MAX);
}

fn close_range(first: c_int, last: c_int) {
    if first > last {
        return;
    }
    // SAFETY: closes descriptors of this process that nothing in it uses.
    let done = unsafe { libc::syscall(libc::SYS_close_range, first as c_uint, last as c_uint, 0) };
    if done != 0 {
        for descriptor in first..=last.min(MAX_DESCRIPTOR) {
            // SAFETY: as above.
            unsafe { libc::close(descriptor) };
        }
    }
}

/// Reads a record, in the minion.
pub(crate) fn decode(record: &[u8; RECORD]) -> [i32; 3] {
    let mut numbers = [0; 3];
    for (number, bytes) in numbers.iter_mut().zip(record.chunks_exact(4)) {
        *number = i32::from_ne_bytes(bytes.try_into().unwrap_or_default());
    }
    numbers
}

/// The error of a link that closed without a record of the program.
pub(crate) fn lost() -> io::Error {
    io::Error::other("its supervisor was killed from outside; what it had started was ended")
}
