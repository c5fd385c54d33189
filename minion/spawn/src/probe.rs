//! A program that is to look, and is kept from changing anything.
//!
//! Each way to change something has its own lock, and most have two:
//! - Files: all mounts are read-only, and landlock allows no write but to /dev/null and its like. Landlock also holds where
//!   a path leads to other mounts (`/proc/PID/root`), and for FIFOs and devices, which a read-only mount does not stop.
//! - Other processes: a namespace of processes, in which no process of the host has a number. The host's /proc stays in
//!   sight, so that `pgrep` finds what runs.
//! - Other hosts and daemons: a network without interfaces, an empty /run, and no sockets (seccomp): a socket in a
//!   directory can be connected to on a read-only mount too. Pairs of sockets are for streams alone: one for datagrams can
//!   send to any name.
//! - The kernel: no capabilities, now and later (`no_new_privs`, an empty bounding set), but one of root's: to read what
//!   file modes would keep from it, since the check of a state looks into other users' directories. No devices, no new
//!   namespaces.
//!
//! The parts that allocate are made before the fork.
#![allow(unsafe_code, reason = "code between fork and exec is unsafe by nature")]

use std::collections::BTreeMap;
use std::ffi::{CStr, c_int, c_long, c_uint, c_void};
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::null;
use std::sync::Arc;

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetError, Scope,
};
use rustix::io::Errno;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};

use crate::child::last_error;

/// The namespaces of a probe.
pub(crate) const NAMESPACES: c_int =
    libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWNET | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;

/// The newest version of landlock whose rights this code knows. An older kernel enforces those that it has.
const NEWEST: ABI = ABI::V9;

/// Devices that a program may use: they hold nothing.
const DEVICES: [&CStr; 5] = [c"/dev/null", c"/dev/zero", c"/dev/full", c"/dev/random", c"/dev/urandom"];
/// Those among them that it may write.
const SINKS: [&str; 3] = ["/dev/null", "/dev/zero", "/dev/full"];
/// Directories with the sockets of daemons. Where the second is a link to the first, it is hidden twice.
const HIDDEN: [&CStr; 2] = [c"/run", c"/var/run"];

/// `struct mount_attr` of linux/mount.h
#[repr(C)]
struct MountAttr {
    set: u64,
    clear: u64,
    propagation: u64,
    userns: u64,
}

const MOUNT_ATTR_RDONLY: u64 = 1;
const MOUNT_ATTR_NOSUID: u64 = 2;
const MOUNT_ATTR_NODEV: u64 = 4;
const AT_RECURSIVE: c_int = 0x8000;
/// More capabilities than there are: dropping one that is none fails, which ends the loop.
const MAX_CAPABILITY: c_int = 64;
/// `CAP_DAC_READ_SEARCH`: it opens nothing for writing.
const READ_SEARCH: c_int = 2;
/// `_LINUX_CAPABILITY_VERSION_3`
const CAPABILITY_VERSION: u32 = 0x2008_0522;

/// The bits of a socket's type that are no flags: `SOCK_TYPE_MASK` of linux/net.h
const SOCKET_KIND: u64 = 0xf;

/// The system calls that fail with EPERM in a probe.
const REFUSED: &[c_long] = &[
    libc::SYS_socket,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_mount_setattr,
    libc::SYS_open_by_handle_at,
    libc::SYS_ptrace,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
];

/// What keeps a program from changing anything.
#[derive(Debug, Clone)]
pub struct Probe(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    landlock: OwnedFd,
    seccomp: [BpfProgram; 2],
}

impl Probe {
    /// Makes what a probe needs before its start. The kernel may still refuse its namespaces when it starts.
    ///
    /// # Errors
    /// What this host lacks, in one line.
    pub fn new() -> Result<Self, String> {
        let landlock = ruleset().map_err(|error| format!("this kernel has no landlock: {error}"))?;
        let landlock = landlock.ok_or("this kernel has no landlock, or has it switched off (lsm=)")?;
        let seccomp = filters().map_err(|error| format!("the system calls of a probe cannot be bounded: {error}"))?;
        Ok(Self(Arc::new(Parts { landlock, seccomp })))
    }

    /// The descriptor that the program's process needs.
    pub(crate) fn descriptor(&self) -> c_int {
        self.0.landlock.as_raw_fd()
    }

    /// Makes all file systems read-only for this process, without devices and without what is in /run.
    pub(crate) fn freeze_mounts(&self) -> Result<(), Errno> {
        let frozen = MountAttr {
            set: MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
            clear: 0,
            propagation: libc::MS_PRIVATE,
            userns: 0,
        };
        set_attributes(c"/", AT_RECURSIVE, &frozen)?;
        for device in DEVICES {
            // A mount of its own for each, which shows the device again.
            match mount(Some(device), device, None, libc::MS_BIND) {
                Ok(()) => {}
                Err(Errno::NOENT) => continue,
                Err(error) => return Err(error),
            }
            let usable = MountAttr { set: 0, clear: MOUNT_ATTR_NODEV, propagation: 0, userns: 0 };
            set_attributes(device, 0, &usable)?;
        }
        let flags = libc::MS_RDONLY | libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
        for hidden in HIDDEN {
            match mount(Some(c"tmpfs"), hidden, Some(c"tmpfs"), flags) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Takes the capabilities that an executed program could get. A program of root keeps one.
    pub(crate) fn drop_capabilities(&self) -> Result<(), Errno> {
        for capability in (0..MAX_CAPABILITY).filter(|capability| *capability != READ_SEARCH) {
            // SAFETY: changes this process's bounding set.
            if unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) } != 0 {
                match last_error() {
                    Errno::INVAL if capability > 0 => break,
                    error => return Err(error),
                }
            }
        }
        // SAFETY: changes this process's ambient set. Kernels without one have nothing to clear.
        unsafe { libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) };
        Ok(())
    }

    /// Takes what is left, as the last step before the program.
    pub(crate) fn restrict(&self) -> Result<(), Errno> {
        let mut header = [CAPABILITY_VERSION, 0];
        // Effective, permitted and inheritable, then the same of the higher capabilities.
        let mut sets = [0_u32; 6];
        // SAFETY: both are arrays of the sizes that this version has.
        check(unsafe { libc::syscall(libc::SYS_capget, header.as_mut_ptr(), sets.as_mut_ptr()) })?;
        // Who is not root has none, and an executed program of root gets what is permitted here and in the bounding set.
        let kept = sets[1] & (1 << READ_SEARCH);
        let sets = [kept, kept, 0, 0, 0, 0];
        // SAFETY: as above.
        check(unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), sets.as_ptr()) })?;
        // SAFETY: sets a flag of this process.
        check(c_long::from(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }))?;
        // SAFETY: a descriptor that lives as long as this process.
        check(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, self.0.landlock.as_raw_fd(), 0 as c_uint) })?;
        for filter in &self.0.seccomp {
            let program = libc::sock_fprog {
                len: u16::try_from(filter.len()).unwrap_or(0),
                filter: filter.as_ptr().cast::<libc::sock_filter>().cast_mut(),
            };
            // SAFETY: the kernel copies the program, which lives during the call; both types have the same layout.
            check(unsafe { libc::syscall(libc::SYS_seccomp, 1 as c_uint, 0 as c_uint, std::ptr::from_ref(&program)) })?;
        }
        Ok(())
    }
}

fn ruleset() -> Result<Option<OwnedFd>, RulesetError> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir | AccessFs::Execute;
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()?;
    let Ok(root) = PathFd::new("/") else { return Ok(None) };
    ruleset = ruleset.add_rule(PathBeneath::new(root, read))?;
    for sink in SINKS {
        if let Ok(sink) = PathFd::new(sink) {
            ruleset = ruleset.add_rule(PathBeneath::new(sink, AccessFs::ReadFile | AccessFs::WriteFile))?;
        }
    }
    Ok(ruleset.into())
}

/// One filter refuses system calls. The other says that clone3, whose flags a filter cannot see, is missing, so that
/// programs use clone.
fn filters() -> Result<[BpfProgram; 2], String> {
    // A program of x32 has the same calls under other numbers.
    const X32: c_long = 0x4000_0000;
    let numbers = |call: c_long| if cfg!(target_arch = "x86_64") { vec![call, call | X32] } else { vec![call] };
    let mut refused: BTreeMap<i64, Vec<SeccompRule>> =
        REFUSED.iter().flat_map(|call| numbers(*call)).map(|call| (call, Vec::new())).collect();
    let user = u64::from(libc::CLONE_NEWUSER.unsigned_abs());
    for call in numbers(libc::SYS_clone) {
        let condition =
            SeccompCondition::new(0, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(user), user).map_err(text)?;
        refused.insert(call, vec![SeccompRule::new(vec![condition]).map_err(text)?]);
    }
    let [datagram, raw] = [libc::SOCK_DGRAM, libc::SOCK_RAW].map(|kind| u64::from(kind.unsigned_abs()));
    for call in numbers(libc::SYS_socketpair) {
        // The kernel makes one for datagrams of a raw one.
        let rules = [datagram, raw].into_iter().map(|kind| {
            let is = SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(SOCKET_KIND), kind);
            SeccompRule::new(vec![is.map_err(text)?]).map_err(text)
        });
        refused.insert(call, rules.collect::<Result<_, _>>()?);
    }
    let missing = numbers(libc::SYS_clone3).into_iter().map(|call| (call, Vec::new())).collect();
    let filter = |rules, errno: c_int| -> Result<BpfProgram, String> {
        let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(text)?;
        let action = SeccompAction::Errno(errno.unsigned_abs());
        SeccompFilter::new(rules, SeccompAction::Allow, action, arch).map_err(text)?.try_into().map_err(text)
    };
    Ok([filter(refused, libc::EPERM)?, filter(missing, libc::ENOSYS)?])
}

#[expect(clippy::needless_pass_by_value, reason = "the form that map_err takes")]
fn text(error: seccompiler::BackendError) -> String {
    error.to_string()
}

fn check(result: c_long) -> Result<(), Errno> {
    if result == 0 { Ok(()) } else { Err(last_error()) }
}

fn set_attributes(path: &CStr, flags: c_int, attributes: &MountAttr) -> Result<(), Errno> {
    let size = size_of::<MountAttr>();
    // SAFETY: the path and the structure live during the call.
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            flags,
            std::ptr::from_ref(attributes),
            size,
        )
    })
}

fn mount(source: Option<&CStr>, target: &CStr, kind: Option<&CStr>, flags: u64) -> Result<(), Errno> {
    let pointer = |text: Option<&CStr>| text.map_or(null(), CStr::as_ptr);
    // SAFETY: the texts live during the call.
    let result = unsafe { libc::mount(pointer(source), target.as_ptr(), pointer(kind), flags, null::<c_void>()) };
    check(c_long::from(result))
}
