//! Control groups (version 2) of programs. The kernel ends all processes of a group at once, even if they fork at that
//! moment. If the minion cannot make groups on this host, a program's supervisor finds the descendants by their
//! parents.
//!
//! Each program gets a new group, for two reasons: some kernels end every process that starts in a group that was
//! killed before, and a group may be killed at the moment in which its program ends by itself. When a minion was
//! killed, the next minion ends and removes its groups.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};

use brine_spawn::{ControlGroup, Left};
use tracing::{info, warn};

/// Prefixes of the groups' names, before the minion's PID namespace and pid: for programs whose descendants end with
/// them, and for programs that may detach descendants.
const PREFIX: &str = "program-";
const DETACH_PREFIX: &str = "detach-";
/// Upper bound on the groups that wait for removal. The next start of the minion removes the others.
const MAX_LATE: usize = 1_000;
/// Rounds of moving detached processes out of a group; they may fork in the meantime.
const ROUNDS: usize = 8;

/// The minion's control groups for programs.
#[derive(Default)]
pub(super) struct Groups {
    folder: OnceLock<Option<PathBuf>>,
    /// Groups that were not empty when their program ended; they are removed later.
    late: Mutex<Vec<PathBuf>>,
    next: AtomicU64,
}

/// The control group of one program and its folder.
pub(super) struct Folder {
    path: PathBuf,
    pub(super) group: Arc<ControlGroup>,
}

impl Groups {
    /// Makes the groups below this folder, for tests.
    #[cfg(test)]
    pub(super) fn below(folder: Option<PathBuf>) -> Self {
        let groups = Self::default();
        let _ = groups.folder.set(folder);
        groups
    }

    /// Makes an empty group; none if this host has no usable control groups.
    pub(super) fn take(&self, detach: bool) -> Option<Folder> {
        let below = self.folder.get_or_init(find).as_ref()?;
        lock(&self.late).retain(|path| fs::remove_dir(path).is_err_and(|e| e.kind() != io::ErrorKind::NotFound));
        let prefix = if detach { DETACH_PREFIX } else { PREFIX };
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        match make(below.join(format!("{prefix}{}-{}-{number}", namespace(), std::process::id()))) {
            Ok(folder) => Some(folder),
            Err(error) => {
                warn!("a program has no control group of its own: {}: {error}", below.display());
                None
            }
        }
    }

    /// Takes the group of a program that has ended; `left` says which processes are left in it.
    pub(super) fn give_back(&self, folder: Folder, left: Left) {
        if left == Left::Detached
            && let Some(Some(below)) = self.folder.get()
        {
            move_out(&folder.path, below);
        }
        let mut late = lock(&self.late);
        if fs::remove_dir(&folder.path).is_err() && late.len() < MAX_LATE {
            late.push(folder.path);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the folder for groups after removing the groups of minions that have ended.
fn find() -> Option<PathBuf> {
    let tried = brine_sandbox::program_groups().and_then(|below| {
        sweep(&below);
        // A trial group shows what the kernel lacks.
        let probe = below.join(format!("{PREFIX}{}-{}-probe", namespace(), std::process::id()));
        let made = make(probe.clone()).map_err(|error| format!("{}: {error}", below.display()));
        let works = made.map(|made| made.group.works());
        let _ = fs::remove_dir(probe);
        if works? { Ok(below) } else { Err("this kernel does not start programs in one".to_owned()) }
    });
    tried
        .map_err(|why| {
            info!("no control groups for programs: {why}; what a program starts is ended by its supervisor alone");
        })
        .ok()
}

fn make(path: PathBuf) -> io::Result<Folder> {
    fs::create_dir(&path)?;
    let open = || {
        let folder = OwnedFd::from(File::open(&path)?);
        // `cgroup.kill` exists since Linux 5.14.
        let kill = OwnedFd::from(File::options().write(true).open(path.join("cgroup.kill"))?);
        Ok(Arc::new(ControlGroup { folder, kill }))
    };
    match open() {
        Ok(group) => Ok(Folder { path, group }),
        Err(error) => {
            let _ = fs::remove_dir(&path);
            Err(error)
        }
    }
}

fn is_empty(path: &Path) -> bool {
    let events = fs::read_to_string(path.join("cgroup.events"));
    events.is_ok_and(|events| events.lines().any(|line| line == "populated 0"))
}

/// Moves the processes of a group to the minion's own group, where they would be without control groups.
fn move_out(from: &Path, below: &Path) {
    let leaf = below.join("minion");
    let to = if leaf.is_dir() { leaf } else { below.to_owned() }.join("cgroup.procs");
    for _ in 0..ROUNDS {
        let procs = fs::read_to_string(from.join("cgroup.procs")).unwrap_or_default();
        if procs.is_empty() {
            return;
        }
        for pid in procs.lines() {
            let _ = fs::write(&to, pid);
        }
    }
}

/// Returns the number of this process's PID namespace; 0 if the kernel does not tell it. Minions of several namespaces
/// may share a control group, and their pids mean nothing to each other.
fn namespace() -> u64 {
    static NUMBER: LazyLock<u64> = LazyLock::new(|| fs::metadata("/proc/self/ns/pid").map_or(0, |file| file.ino()));
    *NUMBER
}

/// Ends the programs that killed minions of this PID namespace left behind; detached processes stay.
fn sweep(below: &Path) {
    for entry in fs::read_dir(below).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let (rest, ends) = match (name.strip_prefix(PREFIX), name.strip_prefix(DETACH_PREFIX)) {
            (Some(rest), _) => (rest, true),
            (None, Some(rest)) => (rest, false),
            (None, None) => continue,
        };
        let mut numbers = rest.split('-').map_while(|number| number.parse::<u64>().ok());
        let (Some(space), Some(pid)) = (numbers.next(), numbers.next()) else { continue };
        let lives = pid != u64::from(std::process::id()) && Path::new(&format!("/proc/{pid}")).exists();
        if space != namespace() || lives {
            continue;
        }
        if ends && !is_empty(&entry.path()) {
            warn!("ends what a program left whose minion was killed: {}", entry.path().display());
            let _ = fs::write(entry.path().join("cgroup.kill"), "1");
        }
        let _ = fs::remove_dir(entry.path());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A minion in another PID namespace may share the control group, and its pid may be nobody's here.
    #[test]
    fn programs_of_other_namespaces_are_left_alone() {
        let below = tempfile::tempdir().unwrap();
        let (dead, own) = (u32::MAX, namespace());
        let group = |name: String| {
            let path = below.path().join(name);
            fs::create_dir(&path).unwrap();
            fs::write(path.join("cgroup.events"), "populated 1\nfrozen 0\n").unwrap();
            path
        };
        let foreign = group(format!("{PREFIX}{}-{dead}-0", own + 1));
        let left = group(format!("{PREFIX}{own}-{dead}-0"));
        let detached = group(format!("{DETACH_PREFIX}{own}-{dead}-0"));
        let of_parent = group(format!("{PREFIX}{own}-{}-0", std::os::unix::process::parent_id()));
        sweep(below.path());
        let killed = |path: &Path| path.join("cgroup.kill").exists();
        assert!(own > 0 && killed(&left));
        assert!(!killed(&foreign) && !killed(&detached) && !killed(&of_parent));
    }
}
