//! Control groups (version 2) of programs: the kernel ends all that is in one at once, whatever forks in it. Where the host has none
//! for the minion to arrange, a program's supervisor finds what it started by its parents.
//!
//! Each program has a new group, because some kernels end at once whatever starts in a group that was killed before, and a group may be
//! killed at the very moment in which its program ends by itself. Those of a minion that was killed are ended and removed by the next.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use brine_spawn::{ControlGroup, Left};
use tracing::{info, warn};

/// How the groups are called, with the minion's number behind: those whose programs end with them, and those that may detach.
const PREFIX: &str = "program-";
const DETACH_PREFIX: &str = "detach-";
/// Groups that wait to be removed. The next start removes what is more.
const MAX_LATE: usize = 1_000;
/// Rounds of moving what may stay out of its group: it may fork meanwhile.
const ROUNDS: usize = 8;

/// The minion's groups for programs.
#[derive(Default)]
pub(super) struct Groups {
    folder: OnceLock<Option<PathBuf>>,
    /// Groups that were not empty yet, to be removed later.
    late: Mutex<Vec<PathBuf>>,
    next: AtomicU64,
}

/// One group.
pub(super) struct Folder {
    path: PathBuf,
    pub(super) group: Arc<ControlGroup>,
}

impl Groups {
    /// Below this folder: for tests.
    #[cfg(test)]
    pub(super) fn below(folder: Option<PathBuf>) -> Self {
        let groups = Self::default();
        let _ = groups.folder.set(folder);
        groups
    }

    /// An empty group; none where there are none on this host.
    pub(super) fn take(&self, detach: bool) -> Option<Folder> {
        let below = self.folder.get_or_init(find).as_ref()?;
        lock(&self.late).retain(|path| fs::remove_dir(path).is_err_and(|e| e.kind() != io::ErrorKind::NotFound));
        let prefix = if detach { DETACH_PREFIX } else { PREFIX };
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        match make(below.join(format!("{prefix}{}-{number}", std::process::id()))) {
            Ok(folder) => Some(folder),
            Err(error) => {
                warn!("a program has no control group of its own: {}: {error}", below.display());
                None
            }
        }
    }

    /// The program has ended, and this is left of it.
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

/// Where groups can be made, after removing those of minions that are gone.
fn find() -> Option<PathBuf> {
    let tried = brine_sandbox::program_groups().and_then(|below| {
        sweep(&below);
        // Made and removed once: what the kernel lacks shows here.
        let probe = below.join(format!("{PREFIX}{}-probe", std::process::id()));
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
        // Since Linux 5.14.
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

/// To where the minion itself is, as if there had been no group.
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

/// Ends what minions that were killed have left; what was detached stays.
fn sweep(below: &Path) {
    for entry in fs::read_dir(below).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let (rest, ends) = match (name.strip_prefix(PREFIX), name.strip_prefix(DETACH_PREFIX)) {
            (Some(rest), _) => (rest, true),
            (None, Some(rest)) => (rest, false),
            (None, None) => continue,
        };
        let minion = rest.split('-').next().and_then(|pid| pid.parse::<u32>().ok());
        let lives = minion.is_some_and(|pid| pid != std::process::id() && Path::new(&format!("/proc/{pid}")).exists());
        if minion.is_none() || lives {
            continue;
        }
        if ends && !is_empty(&entry.path()) {
            warn!("ends what a program left whose minion was killed: {}", entry.path().display());
            let _ = fs::write(entry.path().join("cgroup.kill"), "1");
        }
        let _ = fs::remove_dir(entry.path());
    }
}
