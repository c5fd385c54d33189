//! The attacks of an escaped guest: one raw system call each, without a library.
#![allow(unsafe_code, reason = "attacks are raw system calls")]

use std::ffi::{CString, c_long};
use std::os::fd::{AsRawFd, OwnedFd};

use serde::{Deserialize, Serialize};

/// What the attacker knows.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Facts {
    /// The minion's process id.
    pub(crate) minion: i32,
    /// A file readable by every user, outside all grants.
    pub(crate) outside: String,
    /// A directory with `file` in it, granted for reading in some tests.
    pub(crate) ro: String,
    /// A directory with `file` in it, granted for writing in some tests.
    pub(crate) rw: String,
    /// Ports on which the test listens. The first is granted in some tests.
    pub(crate) port: u16,
    pub(crate) other_port: u16,
    /// A unix socket on which the test listens. Every user may connect.
    pub(crate) socket: String,
    /// The descriptor of a file that the minion left open without close-on-exec.
    pub(crate) inherited: i32,
}

/// An attack. Returns the result of its system call; negative numbers are errors.
pub(crate) type Attack = fn(&Facts, Option<&OwnedFd>) -> c_long;

/// Returns the name of a result.
pub(crate) fn name(result: c_long) -> String {
    let name = match -result {
        code if code <= 0 => "done",
        1 => "EPERM",
        9 => "EBADF",
        13 => "EACCES",
        18 => "EXDEV",
        22 => "EINVAL",
        38 => "ENOSYS",
        code => return std::io::Error::from_raw_os_error(i32::try_from(code).unwrap_or_default()).to_string(),
    };
    name.to_owned()
}

/// Makes a raw system call. The kernel checks the arguments, and none of these calls frees memory that is in use.
macro_rules! call {
    ($number:expr $(, $argument:expr)*) => {{
        // SAFETY: pointers among the arguments live to the end of the statement. A call that is not refused has no
        // effect on this process beyond its documented one.
        let answer = unsafe { libc::syscall($number $(, $argument)*) };
        if answer == -1 { -c_long::from(std::io::Error::last_os_error().raw_os_error().unwrap_or(0)) } else { answer }
    }};
}

fn c(text: impl Into<Vec<u8>>) -> CString {
    CString::new(text).unwrap()
}

const CWD: i32 = libc::AT_FDCWD;

fn open(path: &str, flags: i32) -> c_long {
    call!(libc::SYS_openat, CWD, c(path).as_ptr(), flags, 0o600)
}

/// Opens a path below a granted directory, if the directory can be opened.
fn below(dir: &str, path: &str, flags: i32) -> c_long {
    let dir = open(dir, libc::O_RDONLY | libc::O_DIRECTORY);
    let from = if dir < 0 { c_long::from(CWD) } else { dir };
    call!(libc::SYS_openat, from, c(path).as_ptr(), flags, 0o600)
}

fn connect(family: i32, kind: i32, protocol: i32, port: u16) -> c_long {
    let socket = call!(libc::SYS_socket, family, kind, protocol);
    if socket < 0 {
        return socket;
    }
    let address = libc::sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: port.to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_be_bytes([127, 0, 0, 1]).to_be() },
        sin_zero: [0; 8],
    };
    call!(libc::SYS_connect, socket, &raw const address, size_of_val(&address))
}

/// Calls `act` with a socket of a permitted kind.
fn with_socket(act: fn(c_long) -> c_long) -> c_long {
    let socket = call!(libc::SYS_socket, libc::AF_INET, libc::SOCK_STREAM, 0);
    act(if socket < 0 { 0 } else { socket })
}

/// The attacks by name. `call` returns the kernel's error.
pub(crate) const ALL: &[(&str, Attack)] = &[
    // Files.
    ("open outside", |facts, _| open(&facts.outside, libc::O_RDONLY)),
    ("open outside by open", |facts, _| {
        #[cfg(target_arch = "x86_64")]
        return call!(libc::SYS_open, c(facts.outside.as_str()).as_ptr(), libc::O_RDONLY);
        #[cfg(not(target_arch = "x86_64"))]
        open(&facts.outside, libc::O_RDONLY)
    }),
    ("read what was opened as a path", |facts, _| {
        let path = open(&facts.outside, libc::O_PATH);
        if path < 0 { path } else { open(&format!("/proc/self/fd/{path}"), libc::O_RDONLY) }
    }),
    ("open its own program", |_, _| open("/proc/self/exe", libc::O_RDONLY)),
    ("open its own memory", |_, _| open("/proc/self/mem", libc::O_RDWR)),
    ("open the minion's memory", |facts, _| open(&format!("/proc/{}/mem", facts.minion), libc::O_RDWR)),
    ("list the root", |_, _| open("/", libc::O_RDONLY | libc::O_DIRECTORY)),
    ("write outside", |facts, _| open(&format!("{}.new", facts.outside), libc::O_WRONLY | libc::O_CREAT)),
    ("write in /tmp", |_, _| open("/tmp/brine-escaped", libc::O_WRONLY | libc::O_CREAT)),
    ("leave a directory upwards", |facts, _| below(&facts.ro, "../../../../../../etc/passwd", libc::O_RDONLY)),
    ("openat2 outside", |facts, _| {
        let how = [libc::O_RDONLY as u64, 0, 0];
        call!(libc::SYS_openat2, CWD, c(facts.outside.as_str()).as_ptr(), how.as_ptr(), size_of_val(&how))
    }),
    ("open by handle", |_, _| call!(libc::SYS_open_by_handle_at, CWD, [0u64; 4].as_ptr(), libc::O_RDONLY)),
    ("read in the read-only one", |facts, _| below(&facts.ro, "file", libc::O_RDONLY)),
    ("write in the read-only one", |facts, _| below(&facts.ro, "file", libc::O_WRONLY)),
    ("empty in the read-only one", |facts, _| below(&facts.ro, "file", libc::O_RDONLY | libc::O_TRUNC)),
    ("make in the read-only one", |facts, _| below(&facts.ro, "new", libc::O_WRONLY | libc::O_CREAT)),
    ("remove in the read-only one", |facts, _| {
        call!(libc::SYS_unlinkat, CWD, c(format!("{}/file", facts.ro)).as_ptr(), 0)
    }),
    ("write in the read-write one", |facts, _| below(&facts.rw, "file", libc::O_WRONLY)),
    ("make in the read-write one", |facts, _| below(&facts.rw, "new", libc::O_WRONLY | libc::O_CREAT)),
    ("chmod in the read-write one", |facts, _| {
        call!(libc::SYS_fchmodat, CWD, c(format!("{}/file", facts.rw)).as_ptr(), 0o4777)
    }),
    ("chown in the read-write one", |facts, _| {
        call!(libc::SYS_fchownat, CWD, c(format!("{}/file", facts.rw)).as_ptr(), 0, 0, 0)
    }),
    ("make a device", |facts, _| {
        call!(libc::SYS_mknodat, CWD, c(format!("{}/null", facts.rw)).as_ptr(), libc::S_IFIFO | 0o666, 0)
    }),
    ("set the times of a path", |facts, _| {
        call!(libc::SYS_utimensat, CWD, c(facts.outside.as_str()).as_ptr(), std::ptr::null::<u8>(), 0)
    }),
    ("truncate a path", |facts, _| {
        #[cfg(target_arch = "x86_64")]
        return call!(libc::SYS_truncate, c(format!("{}/file", facts.ro)).as_ptr(), 0);
        #[cfg(not(target_arch = "x86_64"))]
        below(&facts.ro, "file", libc::O_WRONLY)
    }),
    ("move out of the read-only one", |facts, _| {
        let (from, to) = (c(format!("{}/file", facts.ro)), c(format!("{}/taken", facts.rw)));
        call!(libc::SYS_renameat2, CWD, from.as_ptr(), CWD, to.as_ptr(), 0)
    }),
    ("link from outside", |facts, _| {
        let (from, to) = (c(facts.outside.as_str()), c(format!("{}/linked", facts.rw)));
        call!(libc::SYS_linkat, CWD, from.as_ptr(), CWD, to.as_ptr(), 0)
    }),
    ("read through a symbolic link of its own", |facts, _| {
        let (to, at) = (c(facts.outside.as_str()), format!("{}/symlink", facts.rw));
        let made = call!(libc::SYS_symlinkat, to.as_ptr(), CWD, c(at.as_str()).as_ptr());
        if made < 0 { made } else { open(&at, libc::O_RDONLY) }
    }),
    ("look at a path", |facts, _| {
        let mut stat = [0u8; 512];
        call!(libc::SYS_statx, CWD, c(facts.outside.as_str()).as_ptr(), 0, 0x7ff, stat.as_mut_ptr())
    }),
    ("look at a path as if at an open file", |facts, _| {
        let mut stat = [0u8; 512];
        let path = c(facts.outside.as_str());
        call!(libc::SYS_newfstatat, CWD, path.as_ptr(), stat.as_mut_ptr(), libc::AT_EMPTY_PATH)
    }),
    ("change the root", |facts, _| call!(libc::SYS_chroot, c(facts.ro.as_str()).as_ptr())),
    ("change the directory", |facts, _| call!(libc::SYS_chdir, c(facts.ro.as_str()).as_ptr())),
    ("use what the minion had open", |facts, _| call!(libc::SYS_read, facts.inherited, [0u8; 8].as_mut_ptr(), 8)),
    ("watch files", |_, _| call!(libc::SYS_inotify_init1, 0)),
    ("watch all files", |_, _| call!(libc::SYS_fanotify_init, 0, 0)),
    // The network.
    ("connect to the granted port", |facts, _| connect(libc::AF_INET, libc::SOCK_STREAM, 0, facts.port)),
    ("connect to another port", |facts, _| connect(libc::AF_INET, libc::SOCK_STREAM, 0, facts.other_port)),
    ("connect by UDP", |facts, _| connect(libc::AF_INET, libc::SOCK_DGRAM, 0, facts.port)),
    ("connect by multipath TCP", |facts, _| connect(libc::AF_INET, libc::SOCK_STREAM, 262, facts.other_port)),
    ("a raw socket", |_, _| call!(libc::SYS_socket, libc::AF_INET, libc::SOCK_RAW, 1)),
    ("a packet socket", |_, _| call!(libc::SYS_socket, libc::AF_PACKET, libc::SOCK_RAW, 0)),
    ("a netlink socket", |_, _| call!(libc::SYS_socket, libc::AF_NETLINK, libc::SOCK_RAW, 0)),
    ("a vsock", |_, _| call!(libc::SYS_socket, libc::AF_VSOCK, libc::SOCK_STREAM, 0)),
    ("connect to a unix socket", |facts, _| {
        let socket = call!(libc::SYS_socket, libc::AF_UNIX, libc::SOCK_STREAM, 0);
        if socket < 0 {
            return socket;
        }
        let mut address = vec![1u8, 0];
        address.extend(facts.socket.as_bytes());
        address.push(0);
        call!(libc::SYS_connect, socket, address.as_ptr(), address.len())
    }),
    ("a pair of datagram sockets", |_, _| {
        call!(libc::SYS_socketpair, libc::AF_UNIX, libc::SOCK_DGRAM, 0, [0i32; 2].as_mut_ptr())
    }),
    ("send elsewhere", |_, _| call!(libc::SYS_sendto, 0, c("x").as_ptr(), 0, 0, [1u8, 0, b'x'].as_ptr(), 3)),
    ("ask a socket who is at its other end", |_, _| {
        let (mut who, mut length) = ([0u32; 3], 12u32);
        call!(libc::SYS_getsockopt, 0, libc::SOL_SOCKET, libc::SO_PEERCRED, who.as_mut_ptr(), &raw mut length)
    }),
    ("bind", |_, _| {
        with_socket(|socket| {
            let any = libc::sockaddr_in {
                sin_family: libc::AF_INET as u16,
                sin_port: 0,
                sin_addr: libc::in_addr { s_addr: 0 },
                sin_zero: [0; 8],
            };
            call!(libc::SYS_bind, socket, &raw const any, size_of_val(&any))
        })
    }),
    ("listen", |_, _| with_socket(|socket| call!(libc::SYS_listen, socket, 1))),
    ("set what it does not need of a socket", |_, _| {
        with_socket(|socket| {
            call!(libc::SYS_setsockopt, socket, libc::SOL_SOCKET, libc::SO_BROADCAST, [1i32].as_ptr(), 4)
        })
    }),
    ("filter packets", |_, _| {
        with_socket(|socket| {
            call!(libc::SYS_setsockopt, socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, [0u64; 2].as_ptr(), 16)
        })
    }),
    // Programs.
    ("exec a shell", |_, _| {
        let nothing = [std::ptr::null::<u8>()];
        call!(libc::SYS_execve, c("/bin/sh").as_ptr(), nothing.as_ptr(), nothing.as_ptr())
    }),
    ("exec an open file", |_, code| {
        let nothing = [std::ptr::null::<u8>()];
        let file = code.map_or(0, AsRawFd::as_raw_fd);
        call!(libc::SYS_execveat, file, c("").as_ptr(), nothing.as_ptr(), nothing.as_ptr(), libc::AT_EMPTY_PATH)
    }),
    ("fork", |_, _| child(call!(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0))),
    ("fork by fork", |_, _| {
        #[cfg(target_arch = "x86_64")]
        return child(call!(libc::SYS_fork));
        #[cfg(not(target_arch = "x86_64"))]
        child(call!(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0))
    }),
    ("fork by clone3", |_, _| {
        let args = [0u64; 11];
        child(call!(libc::SYS_clone3, args.as_ptr(), size_of_val(&args)))
    }),
    ("a thread in a namespace", |_, _| child(call!(libc::SYS_clone, 0x3d_0f00 | libc::CLONE_NEWUSER, 0, 0, 0, 0))),
    // Other processes.
    ("ptrace the minion", |facts, _| call!(libc::SYS_ptrace, libc::PTRACE_ATTACH, facts.minion, 0, 0)),
    ("read the minion's memory", |facts, _| {
        let here = [0u8; 8];
        let part = [here.as_ptr() as u64, 8];
        call!(libc::SYS_process_vm_readv, facts.minion, part.as_ptr(), 1, part.as_ptr(), 1, 0)
    }),
    ("write the minion's memory", |facts, _| {
        let here = [0u8; 8];
        let part = [here.as_ptr() as u64, 8];
        call!(libc::SYS_process_vm_writev, facts.minion, part.as_ptr(), 1, part.as_ptr(), 1, 0)
    }),
    ("signal the minion", |facts, _| call!(libc::SYS_kill, facts.minion, 0)),
    ("signal its group", |_, _| call!(libc::SYS_kill, 0, 0)),
    ("signal everybody", |_, _| call!(libc::SYS_kill, -1, 0)),
    ("signal a thread of the minion", |facts, _| call!(libc::SYS_tkill, facts.minion, 0)),
    ("signal the minion by its thread", |facts, _| call!(libc::SYS_tgkill, facts.minion, facts.minion, 0)),
    ("queue a signal", |facts, _| call!(libc::SYS_rt_sigqueueinfo, facts.minion, 0, [0u64; 16].as_ptr())),
    ("open the minion as a file", |facts, _| call!(libc::SYS_pidfd_open, facts.minion, 0)),
    ("signal by file", |_, _| call!(libc::SYS_pidfd_send_signal, 0, 0, 0, 0)),
    ("take the minion's files", |_, _| call!(libc::SYS_pidfd_getfd, 0, 0, 0)),
    ("have signals sent by a socket", |facts, _| call!(libc::SYS_fcntl, 0, libc::F_SETOWN, facts.minion)),
    ("be told by a socket", |_, _| call!(libc::SYS_ioctl, 0, libc::FIOASYNC, [1i32].as_ptr())),
    ("raise a limit of the minion", |facts, _| {
        call!(libc::SYS_prlimit64, facts.minion, libc::RLIMIT_NOFILE, [64u64; 2].as_ptr(), 0)
    }),
    ("raise a limit", |_, _| call!(libc::SYS_prlimit64, 0, libc::RLIMIT_NOFILE, [64u64; 2].as_ptr(), 0)),
    ("slow the minion down", |facts, _| call!(libc::SYS_setpriority, 0, facts.minion, 19)),
    ("place the minion", |facts, _| call!(libc::SYS_sched_setaffinity, facts.minion, 8, [1u64].as_ptr())),
    ("leave its session", |_, _| call!(libc::SYS_setsid)),
    ("live on without the minion", |_, _| call!(libc::SYS_prctl, libc::PR_SET_PDEATHSIG, 0, 0, 0, 0)),
    ("be looked into again", |_, _| call!(libc::SYS_prctl, libc::PR_SET_DUMPABLE, 1, 0, 0, 0)),
    // Privileges.
    ("become root", |_, _| call!(libc::SYS_setuid, 0)),
    ("become another user", |_, _| call!(libc::SYS_setresuid, 1, 1, 1)),
    ("join a group", |_, _| call!(libc::SYS_setgroups, 1, [0u32].as_ptr())),
    ("take capabilities", |_, _| call!(libc::SYS_capset, [0x2008_0522u32, 0].as_ptr(), [u32::MAX; 6].as_ptr())),
    ("a namespace", |_, _| call!(libc::SYS_unshare, libc::CLONE_NEWUSER)),
    ("another's namespace", |_, _| call!(libc::SYS_setns, 0, 0)),
    ("mount", |_, _| {
        let (none, tmpfs, at) = (c("none"), c("tmpfs"), c("/tmp"));
        call!(libc::SYS_mount, none.as_ptr(), at.as_ptr(), tmpfs.as_ptr(), 0, 0)
    }),
    ("mount the new way", |_, _| call!(libc::SYS_fsopen, c("tmpfs").as_ptr(), 0)),
    ("another personality", |_, _| call!(libc::SYS_personality, 0x004_0000)),
    ("another filter", |_, _| call!(libc::SYS_seccomp, 1, 0, 0)),
    ("another ruleset", |_, _| call!(libc::SYS_landlock_create_ruleset, 0, 0, 1)),
    ("set the clock", |_, _| call!(libc::SYS_clock_settime, 0, [0u64; 2].as_ptr())),
    ("name the host", |_, _| call!(libc::SYS_sethostname, c("x").as_ptr(), 1)),
    ("restart the host", |_, _| call!(libc::SYS_reboot, 0, 0, 0, 0)),
    // Other ways into the kernel.
    ("io_uring", |_, _| call!(libc::SYS_io_uring_setup, 1, [0u64; 15].as_mut_ptr())),
    ("aio", |_, _| call!(libc::SYS_io_setup, 1, [0u64].as_mut_ptr())),
    ("keys", |_, _| call!(libc::SYS_keyctl, 0, 0, 0, 0, 0)),
    ("add a key", |_, _| call!(libc::SYS_add_key, c("user").as_ptr(), c("x").as_ptr(), 0, 0, -3)),
    ("bpf", |_, _| call!(libc::SYS_bpf, 0, 0, 0)),
    ("userfaultfd", |_, _| call!(libc::SYS_userfaultfd, 1)),
    ("perf", |_, _| call!(libc::SYS_perf_event_open, 0, 0, -1, -1, 0)),
    ("shared memory", |_, _| call!(libc::SYS_shmget, 0, 4096, 0o600)),
    ("a message queue", |_, _| call!(libc::SYS_mq_open, c("x").as_ptr(), libc::O_CREAT, 0o600, 0)),
    ("the kernel's log", |_, _| call!(libc::SYS_syslog, 2, 0, 0)),
    ("push characters into a terminal", |_, _| call!(libc::SYS_ioctl, 2, libc::TIOCSTI, c("x").as_ptr())),
    // Memory.
    ("memory to write and execute", |_, _| map(libc::PROT_WRITE | libc::PROT_EXEC, libc::MAP_PRIVATE)),
    ("memory that nobody counts", |_, _| map(libc::PROT_WRITE, libc::MAP_SHARED)),
    ("code that can be changed", |_, _| {
        let page = map(libc::PROT_READ, libc::MAP_PRIVATE);
        call!(libc::SYS_mprotect, page, 4096, libc::PROT_WRITE | libc::PROT_EXEC)
    }),
    ("a file to execute in memory", |_, _| call!(libc::SYS_memfd_create, c("x").as_ptr(), libc::MFD_EXEC)),
    ("lock memory", |_, _| call!(libc::SYS_mlockall, libc::MCL_FUTURE)),
];

/// Calls that executors need and the compiler does not.
pub(crate) const COMPILER: &[(&str, Attack)] = &[
    ("a thread", |_, _| child(call!(libc::SYS_clone, 0x3d_0f00, 0, 0, 0, 0))),
    ("code", |_, _| map(libc::PROT_READ | libc::PROT_EXEC, libc::MAP_PRIVATE)),
    ("a file in memory", |_, _| call!(libc::SYS_memfd_create, c("x").as_ptr(), 3)),
    ("a socket pair", |_, _| call!(libc::SYS_socketpair, libc::AF_UNIX, libc::SOCK_STREAM, 0, [0i32; 2].as_mut_ptr())),
    ("send a file", |_, _| call!(libc::SYS_sendmsg, 0, [0u64; 7].as_ptr(), 0)),
];

fn map(protection: i32, flags: i32) -> c_long {
    call!(libc::SYS_mmap, 0, 4096, protection, flags | libc::MAP_ANONYMOUS, -1, 0)
}

/// A child process must end at once and not continue the test.
fn child(pid: c_long) -> c_long {
    if pid == 0 {
        call!(libc::SYS_exit_group, 0);
    }
    pid
}
