//! The list of allowed system calls, in groups, with the reason for each. All others fail with EPERM: starting programs
//! (execve, fork, vfork), other processes (ptrace, process_vm_*, kill, tkill, pidfd_*, setsid), names and devices
//! (mount, chroot, mknod, chmod, chown, xattr), other ways to the same effects (io_uring, bpf, userfaultfd,
//! open_by_handle_at, keyctl, perf_event_open, memory by shmget), other identities (set*id, capset, unshare, setns,
//! personality), and the host's clock, names and modules.
//!
//! A filter sees numbers and no memory, so landlock checks paths, socket addresses and the structures of openat2.

use seccompiler::{SeccompCmpArgLen as Len, SeccompCmpOp as Op, SeccompCondition, SeccompRule};

use super::Rules;
use crate::{Spec, WalledProgram};

/// `PR_GET_AUXV`, since Linux 6.4.
const PR_GET_AUXV: libc::c_int = 0x4155_5856;

/// The rules for a process of this kind.
pub(super) fn rules(spec: &Spec) -> Result<Rules, String> {
    let mut list = List::default();
    process(&mut list);
    memory(&mut list, spec.kind);
    descriptors(&mut list);
    if spec.kind == WalledProgram::Executor {
        threads(&mut list);
        waiting(&mut list);
        minion(&mut list);
    }
    if !spec.directories.is_empty() {
        read_files(&mut list);
    }
    if spec.writes() {
        write_files(&mut list);
    }
    if !spec.connect.is_empty() {
        network(&mut list);
    }
    list.finish()
}

/// The process itself: its signals, the clock, random numbers. A process aborts by tgkill, which reaches its own
/// threads only.
fn process(list: &mut List) {
    list.any(&[
        libc::SYS_exit,
        libc::SYS_exit_group,
        libc::SYS_restart_syscall,
        libc::SYS_getpid,
        libc::SYS_gettid,
        libc::SYS_getppid,
        libc::SYS_getuid,
        libc::SYS_geteuid,
        libc::SYS_getgid,
        libc::SYS_getegid,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_sigaltstack,
        libc::SYS_clock_gettime,
        libc::SYS_clock_getres,
        libc::SYS_clock_nanosleep,
        libc::SYS_nanosleep,
        libc::SYS_gettimeofday,
        libc::SYS_getrandom,
        libc::SYS_getrusage,
        libc::SYS_sched_yield,
        libc::SYS_sched_getaffinity,
        libc::SYS_getcpu,
        libc::SYS_futex,
    ]);
    let own = u64::from(std::process::id());
    list.when(libc::SYS_tgkill, &[int(0, Op::Eq, own)]);
    // The process may read its own limits; glibc reads that of the stack.
    list.when(libc::SYS_prlimit64, &[int(0, Op::Eq, 0), long(2, Op::Eq, 0)]);
}

/// Memory: only private memory, so that RLIMIT_DATA counts it. Machine code is written first and made executable
/// afterwards, as wasmtime does, and never both at once. The compiler executes none of its output.
fn memory(list: &mut List, kind: WalledProgram) {
    const EXEC: u64 = libc::PROT_EXEC as u64;
    const WRITE: u64 = libc::PROT_WRITE as u64;
    const MAP_TYPE: u64 = 0xf;
    list.any(&[libc::SYS_brk, libc::SYS_munmap, libc::SYS_mremap, libc::SYS_madvise]);
    let private = int(3, Op::MaskedEq(MAP_TYPE), libc::MAP_PRIVATE as u64);
    let not_executable = int(2, Op::MaskedEq(EXEC), 0);
    list.when(libc::SYS_mmap, &[private.clone(), not_executable.clone()]);
    list.when(libc::SYS_mprotect, &[not_executable]);
    if kind == WalledProgram::Executor {
        let not_writable = int(2, Op::MaskedEq(EXEC | WRITE), EXEC);
        list.when(libc::SYS_mmap, &[private, not_writable.clone()]);
        list.when(libc::SYS_mprotect, &[not_writable]);
        // Some processors (aarch64) need a barrier before new code runs.
        list.any(&[libc::SYS_membarrier]);
        // The memory image of a module, which each instance copies on write; it is sealed after it is written.
        let flags = u64::from(libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING);
        list.when(libc::SYS_memfd_create, &[int(1, Op::Eq, flags)]);
        list.any(&[libc::SYS_ftruncate]);
    }
}

/// Open descriptors. No call in this group opens a file or changes the relation of a descriptor to the process: no
/// signals, no locks, no leases.
fn descriptors(list: &mut List) {
    list.any(&[
        libc::SYS_read,
        libc::SYS_readv,
        libc::SYS_pread64,
        libc::SYS_preadv,
        libc::SYS_write,
        libc::SYS_writev,
        libc::SYS_pwrite64,
        libc::SYS_pwritev,
        libc::SYS_lseek,
        libc::SYS_close,
        libc::SYS_fstat,
        libc::SYS_fsync,
        libc::SYS_fdatasync,
        libc::SYS_recvmsg,
    ]);
    for command in [
        libc::F_DUPFD_CLOEXEC,
        libc::F_GETFD,
        libc::F_SETFD,
        libc::F_GETFL,
        libc::F_SETFL,
        libc::F_ADD_SEALS,
        libc::F_GET_SEALS,
    ] {
        list.when(libc::SYS_fcntl, &[int(1, Op::Eq, command.unsigned_abs().into())]);
    }
    for request in [libc::FIONBIO, libc::FIONREAD] {
        list.when(libc::SYS_ioctl, &[int(1, Op::Eq, request)]);
    }
}

/// Threads: those of tokio, the epoch clock, and glibc's way to make them. No new process, no namespace, no other
/// tracer.
fn threads(list: &mut List) {
    // The flags of pthread_create; musl adds CLONE_DETACHED, which has no effect.
    let thread = libc::CLONE_VM
        | libc::CLONE_FS
        | libc::CLONE_FILES
        | libc::CLONE_SIGHAND
        | libc::CLONE_THREAD
        | libc::CLONE_SYSVSEM
        | libc::CLONE_SETTLS
        | libc::CLONE_PARENT_SETTID
        | libc::CLONE_CHILD_CLEARTID;
    let any = !u64::from(libc::CLONE_DETACHED.unsigned_abs());
    list.when(libc::SYS_clone, &[long(0, Op::MaskedEq(any), thread.unsigned_abs().into())]);
    // The other filter answers clone3.
    list.any(&[libc::SYS_clone3]);
    list.any(&[libc::SYS_set_robust_list, libc::SYS_rseq]);
    // The name of a thread; and the auxiliary vector, which rustix reads this way if it cannot read it in /proc.
    for option in [libc::PR_SET_NAME, PR_GET_AUXV] {
        list.when(libc::SYS_prctl, &[int(0, Op::Eq, option.unsigned_abs().into())]);
    }
    // A guest thread may lower its own priority but not that of another process.
    list.when(libc::SYS_setpriority, &[int(0, Op::Eq, 0), int(1, Op::Eq, 0)]);
}

/// tokio's calls for waiting and waking. tokio makes a pair of sockets for signals. Only stream sockets are allowed,
/// because a pair of datagram sockets can be reconnected to any other socket.
fn waiting(list: &mut List) {
    list.any(&[
        libc::SYS_epoll_create1,
        libc::SYS_epoll_ctl,
        libc::SYS_epoll_pwait,
        libc::SYS_eventfd2,
        libc::SYS_ppoll,
    ]);
    #[cfg(target_arch = "x86_64")]
    list.any(&[libc::SYS_epoll_wait, libc::SYS_poll]);
    list.when(libc::SYS_socketpair, &[int(0, Op::Eq, libc::AF_UNIX as u64), stream()]);
}

/// The socket to the minion.
fn minion(list: &mut List) {
    list.any(&[libc::SYS_sendmsg, libc::SYS_getpeername]);
    for option in [libc::SO_DOMAIN, libc::SO_TYPE, libc::SO_ERROR] {
        list.when(libc::SYS_getsockopt, &socket_option(libc::SOL_SOCKET, option));
    }
    // std writes to a socket with send and reads with recv, always to and from its peer.
    list.when(libc::SYS_sendto, &[long(4, Op::Eq, 0)]);
    list.any(&[libc::SYS_recvfrom]);
}

/// Directories, as cap-std walks them; landlock decides which ones. Neither hides the metadata of a path outside: that
/// a file exists and how large it is.
fn read_files(list: &mut List) {
    list.any(&[
        libc::SYS_openat,
        libc::SYS_openat2,
        libc::SYS_newfstatat,
        libc::SYS_statx,
        libc::SYS_readlinkat,
        libc::SYS_getdents64,
        libc::SYS_fadvise64,
        libc::SYS_fstatfs,
    ]);
    list.when(libc::SYS_fcntl, &[int(1, Op::Eq, libc::F_DUPFD.unsigned_abs().into())]);
}

/// Changes in directories. Times can be set only through open files, because landlock does not restrict paths there.
/// Modes and owners cannot be set.
fn write_files(list: &mut List) {
    list.any(&[
        libc::SYS_mkdirat,
        libc::SYS_unlinkat,
        libc::SYS_renameat,
        libc::SYS_renameat2,
        libc::SYS_linkat,
        libc::SYS_symlinkat,
        libc::SYS_fallocate,
        // Appending to a file that others may have extended.
        libc::SYS_pwritev2,
    ]);
    list.when(libc::SYS_utimensat, &[long(1, Op::Eq, 0)]);
}

/// Outgoing TCP. Landlock restricts the ports, and only the instance's own wall restricts the hosts. No other protocol
/// is allowed, because landlock knows TCP only (MPTCP is another protocol), and no listening. The options are those of
/// `wasi:sockets` and some that report the state of a connection.
fn network(list: &mut List) {
    for family in [libc::AF_INET, libc::AF_INET6] {
        for protocol in [0, libc::IPPROTO_TCP] {
            let protocol = int(2, Op::Eq, protocol.unsigned_abs().into());
            list.when(libc::SYS_socket, &[int(0, Op::Eq, family as u64), stream(), protocol]);
        }
    }
    list.any(&[libc::SYS_connect, libc::SYS_shutdown, libc::SYS_getsockname]);
    let options: [(libc::c_int, &[libc::c_int]); 4] = [
        (libc::SOL_SOCKET, &[libc::SO_KEEPALIVE, libc::SO_RCVBUF, libc::SO_SNDBUF]),
        (libc::IPPROTO_IP, &[libc::IP_TTL]),
        (libc::IPPROTO_IPV6, &[libc::IPV6_UNICAST_HOPS, libc::IPV6_V6ONLY]),
        (libc::IPPROTO_TCP, &[libc::TCP_NODELAY, libc::TCP_KEEPIDLE, libc::TCP_KEEPINTVL, libc::TCP_KEEPCNT]),
    ];
    for (level, names) in options {
        for name in names {
            list.when(libc::SYS_getsockopt, &socket_option(level, *name));
            list.when(libc::SYS_setsockopt, &socket_option(level, *name));
        }
    }
}

/// A condition on a 32-bit argument.
fn int(index: u8, op: Op, value: u64) -> Condition {
    (index, Len::Dword, op, value)
}

/// A condition on a whole register: a pointer or flags.
fn long(index: u8, op: Op, value: u64) -> Condition {
    (index, Len::Qword, op, value)
}

/// The type of a stream socket, with any further flags (SOCK_CLOEXEC, SOCK_NONBLOCK).
fn stream() -> Condition {
    int(1, Op::MaskedEq(0xf), libc::SOCK_STREAM as u64)
}

fn socket_option(level: libc::c_int, name: libc::c_int) -> [Condition; 2] {
    [int(1, Op::Eq, level.unsigned_abs().into()), int(2, Op::Eq, name.unsigned_abs().into())]
}

/// The index of an argument, its width, and its comparison with a number.
type Condition = (u8, Len, Op, u64);

/// The rules collected so far.
#[derive(Default)]
struct List {
    calls: std::collections::BTreeMap<i64, Vec<Vec<Condition>>>,
}

impl List {
    /// Allows calls with any arguments.
    fn any(&mut self, calls: &[libc::c_long]) {
        for call in calls {
            self.calls.entry(*call).or_default();
        }
    }

    /// Allows a call with these arguments; further conditions for the same call are alternatives.
    fn when(&mut self, call: libc::c_long, conditions: &[Condition]) {
        self.calls.entry(call).or_default().push(conditions.to_vec());
    }

    fn finish(self) -> Result<Rules, String> {
        let rule = |conditions: Vec<Condition>| {
            let conditions = conditions
                .into_iter()
                .map(|(index, len, op, value)| SeccompCondition::new(index, len, op, value))
                .collect::<Result<_, _>>()
                .map_err(|error| error.to_string())?;
            SeccompRule::new(conditions).map_err(|error| error.to_string())
        };
        let calls = self.calls.into_iter();
        calls.map(|(call, rules)| Ok((call, rules.into_iter().map(rule).collect::<Result<_, String>>()?))).collect()
    }
}
