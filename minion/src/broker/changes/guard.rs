//! What no grant opens, not even `/: rw`: the minion's own folders, and the kernel's file systems.
//!
//! The minion's configuration is its policy, its keys are its identity, and its caches hold the code that it runs: a
//! module that could change one of them could grant itself anything. They are known by device and inode, so that no other
//! name leads into them, and by their paths, so that no folder around them is moved away.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

use super::failure::Failure;
use super::own::Own;
use crate::config::MinionOpts;

/// File systems that are the kernel's interfaces: proc, sysfs, cgroup, cgroup2, debugfs, tracefs, securityfs, selinuxfs,
/// bpf, configfs, devpts, efivarfs, pstore, binfmt_misc, mqueue, fusectl, smackfs, apparmorfs, resctrl, nfsd, rpc_pipefs, xenfs, binder.
const KERNELS: [u64; 23] = [
    0x9fa0,
    0x6265_6572,
    0x0027_e0eb,
    0x6367_7270,
    0x6462_6720,
    0x7472_6163,
    0x7363_6673,
    0xf97c_ff8c,
    0xcafe_4a11,
    0x6265_6570,
    0x1cd1,
    0xde5e_81e4,
    0x6165_676c,
    0x4249_4e4d,
    0x1980_0202,
    0x6573_5543,
    0x4341_5d53,
    0x5a3c_69f0,
    0x0765_5821,
    0x6e66_7364,
    0x6759_6969,
    0xabba_1974,
    0x6c6f_6f70,
];
/// Upper bound on the parents of a directory that are examined.
const MAX_DEPTH: usize = 4_096;
/// Upper bound on the minion's files that are compared with a file of several names.
const MAX_FILES: usize = 10_000;

/// Device and inode.
pub(super) type Id = (u64, u64);

/// What no grant opens.
pub(super) struct Guard {
    own: Own,
}

impl Guard {
    pub(super) fn new(opts: &MinionOpts) -> Self {
        Self { own: Own::find(opts) }
    }

    /// With these, for tests. `includes` are patterns of files.
    #[cfg(test)]
    pub(super) fn of(own: Vec<PathBuf>, includes: &[PathBuf]) -> Self {
        Self { own: Own::of(own, includes) }
    }

    fn ids(&self) -> Vec<Id> {
        let id = |path: PathBuf| rustix::fs::stat(&path).ok().map(|stat| (stat.st_dev, stat.st_ino));
        self.own.present().filter_map(id).collect()
    }

    /// Checks whether a path is one of the minion's, or one of them lies in it.
    pub(super) fn is_around(&self, real: &Path) -> bool {
        self.own.is_around(real)
    }

    /// Checks a directory, whatever is to be done in it. Returns the ids of the directories around it, the innermost
    /// first.
    pub(super) fn admit(&self, dir: impl AsFd, real: &Path) -> Result<Vec<Id>, Failure> {
        not_the_kernels(&dir)?;
        let around = around(&dir)?;
        let ids = self.ids();
        if self.own.has(real) || around.iter().any(|id| ids.contains(id)) {
            return Err(own(real));
        }
        Ok(around)
    }

    /// Checks a file or directory that is to be read or changed.
    pub(super) fn admit_entry(&self, id: Id, names: u64, real: &Path) -> Result<(), Failure> {
        if self.own.has(real) || self.ids().contains(&id) {
            return Err(own(real));
        }
        // A file with several names may be one of the minion's under another one.
        if names > 1 && self.own.paths.iter().any(|own| holds(own, id, &mut 0)) {
            return Err(own(real));
        }
        Ok(())
    }
}

/// Refuses a directory of the kernel. A link in one says a path as its process sees it, which is another place here.
pub(super) fn not_the_kernels(dir: impl AsFd) -> Result<(), Failure> {
    #[allow(clippy::cast_sign_loss, clippy::unnecessary_cast, reason = "a magic number of 32 bits")]
    let kind = rustix::fs::fstatfs(dir)?.f_type as u64 & 0xffff_ffff;
    if KERNELS.contains(&kind) {
        return Err(Failure::Denied("files of the kernel (/proc, /sys) are not changed or read this way".to_owned()));
    }
    Ok(())
}

fn own(real: &Path) -> Failure {
    Failure::Denied(format!("{} is this minion's own, and no grant opens it", real.display()))
}

/// Whether a folder has this file, without directories that are links.
fn holds(folder: &Path, id: Id, seen: &mut usize) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    for entry in entries.filter_map(Result::ok) {
        *seen += 1;
        if *seen > MAX_FILES {
            // It cannot be told, so it may be.
            return true;
        }
        let Ok(stat) = rustix::fs::statat(CWD, entry.path(), AtFlags::SYMLINK_NOFOLLOW) else { continue };
        if (stat.st_dev, stat.st_ino) == id {
            return true;
        }
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) && holds(&entry.path(), id, seen) {
            return true;
        }
    }
    false
}

/// The ids of a directory and of those around it.
fn around(dir: impl AsFd) -> Result<Vec<Id>, Failure> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut at = rustix::fs::openat(&dir, ".", flags, Mode::empty())?;
    let mut all: Vec<Id> = Vec::new();
    loop {
        let stat = rustix::fs::fstat(&at)?;
        let id = (stat.st_dev, stat.st_ino);
        if all.last() == Some(&id) {
            return Ok(all);
        }
        if all.len() >= MAX_DEPTH {
            return Err(Errno::NAMETOOLONG.into());
        }
        all.push(id);
        at = rustix::fs::openat(&at, "..", flags, Mode::empty())?;
    }
}
