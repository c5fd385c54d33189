//! Runs one function in a child process on a stack of its own in the memory of its parent. The parent is suspended
//! until the child executes another program or ends. No memory is copied, which is most of the cost of starting a
//! program.
#![allow(unsafe_code, reason = "a system call that returns twice")]

use std::ffi::{c_int, c_void};
use std::mem::size_of;
use std::ptr::null_mut;

use rustix::io::Errno;

use crate::child::last_error;

/// Bytes of the stack: it serves system calls and their arguments alone. Only used pages take memory.
const STACK: usize = 128 * 1024;
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// `struct clone_args` of linux/sched.h
#[repr(C)]
#[derive(Default)]
struct CloneArgs {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

/// Runs `run(told)` in a child process, in a control group if one is given and in these new namespaces. Returns the
/// child's pid.
///
/// # Safety
/// `run` must not return, and the caller must expect its changes to memory.
pub(crate) unsafe fn vfork(
    group: Option<c_int>,
    namespaces: c_int,
    run: extern "C" fn(*const c_void) -> !,
    told: *const c_void,
) -> Result<c_int, Errno> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK | libc::MAP_NORESERVE;
    // SAFETY: new memory at an address of the kernel's choice.
    let stack = unsafe { libc::mmap(null_mut(), STACK, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    if stack == libc::MAP_FAILED {
        return Err(last_error());
    }
    let args = CloneArgs {
        flags: (libc::CLONE_VM | libc::CLONE_VFORK | namespaces) as u64 | group.map_or(0, |_| CLONE_INTO_CGROUP),
        exit_signal: libc::SIGCHLD as u64,
        stack: stack as u64,
        stack_size: STACK as u64,
        cgroup: group.map_or(0, |group| group as u64),
        ..CloneArgs::default()
    };
    // SAFETY: the child runs `run` on its own stack and never comes back; the parent goes on when the child is gone.
    let pid = unsafe { clone3(&args, run, told) };
    // SAFETY: the child does not use the stack any more.
    unsafe { libc::munmap(stack, STACK) };
    match c_int::try_from(pid) {
        Ok(pid) if pid > 0 => Ok(pid),
        _ => Err(Errno::from_raw_os_error(pid.unsigned_abs() as c_int)),
    }
}

#[cfg(target_arch = "x86_64")]
unsafe fn clone3(args: &CloneArgs, run: extern "C" fn(*const c_void) -> !, told: *const c_void) -> isize {
    let result: isize;
    // SAFETY: only the child leaves this block by the call, on its own stack; the parent falls through to its end.
    unsafe {
        std::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r13",
            "call r12",
            "ud2",
            "2:",
            inlateout("rax") libc::SYS_clone3 as isize => result,
            in("rdi") args,
            in("rsi") size_of::<CloneArgs>(),
            in("r12") run,
            in("r13") told,
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    result
}

#[cfg(target_arch = "aarch64")]
unsafe fn clone3(args: &CloneArgs, run: extern "C" fn(*const c_void) -> !, told: *const c_void) -> isize {
    let result: isize;
    // SAFETY: as for the other architecture.
    unsafe {
        std::arch::asm!(
            "svc #0",
            "cbnz x0, 2f",
            "mov x29, xzr",
            "mov x0, x20",
            "blr x21",
            "brk #1",
            "2:",
            inlateout("x0") args as *const CloneArgs => result,
            in("x1") size_of::<CloneArgs>(),
            in("x8") libc::SYS_clone3,
            in("x20") told,
            in("x21") run,
        );
    }
    result
}

/// On other architectures the caller forks.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
unsafe fn clone3(_: &CloneArgs, _: extern "C" fn(*const c_void) -> !, _: *const c_void) -> isize {
    -(libc::ENOSYS as isize)
}

/// Whether a child can be started in a control group and ends by itself.
pub(crate) fn works(group: c_int) -> bool {
    extern "C" fn end(_: *const c_void) -> ! {
        // SAFETY: ends the child and runs nothing.
        unsafe { libc::_exit(0) }
    }
    // SAFETY: it touches no memory.
    let Ok(pid) = (unsafe { vfork(Some(group), 0, end, std::ptr::null()) }) else { return false };
    let pid = rustix::process::Pid::from_raw(pid);
    let ended = rustix::process::waitpid(pid, rustix::process::WaitOptions::empty());
    matches!(ended, Ok(Some((_, status))) if status.exit_status() == Some(0))
}
