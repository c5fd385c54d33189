//! A disk that a test can fill: a file system of memory in a mount namespace of its own.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use brine_kit::process::{Daemon, Output};

use crate::namespace::MountNamespace;

/// The file that fills it.
const FILL: &str = "fill";
/// What the folder had is in it as well.
const MOUNT: &str = "mkdir \"$1.disk\" && mount -t tmpfs -o \"size=$2,mode=0700\" brine-small-disk \"$1.disk\" && \
                     cp -a \"$1/.\" \"$1.disk\" && mount --move \"$1.disk\" \"$1\"";

/// The disk. Only programs that are started by it see it, and it ends with the last of them.
#[derive(Debug)]
pub struct SmallDisk {
    namespace: MountNamespace,
    at: PathBuf,
}

impl SmallDisk {
    /// Puts a disk of this many KiB at the place of a folder. Returns none, and reports it, where mounting is not allowed.
    pub fn new(at: &Path, kib: u32) -> Option<Self> {
        std::fs::create_dir_all(at).expect("our own folder");
        let namespace = MountNamespace::new(MOUNT, &[at.to_str()?, &format!("{kib}k")])?;
        Some(Self { namespace, at: at.to_owned() })
    }

    /// Starts a daemon that sees the disk.
    pub fn daemon(&self, program: &Path, args: &[&str], log: &Path) -> Daemon {
        self.namespace.daemon(program, args, log)
    }

    /// Runs a program that sees the disk to its end.
    pub fn run(&self, program: &Path, args: &[&str]) -> Output {
        self.namespace.run(program, args)
    }

    /// Fills the disk to its last byte.
    pub fn fill(&self) {
        let mut file = File::create(self.inside(&self.at.join(FILL))).expect("a file");
        for size in [64 << 10, 4 << 10, 512, 1] {
            while file.write_all(&vec![0; size]).is_ok() {}
        }
    }

    /// Makes room again.
    pub fn free(&self) {
        std::fs::remove_file(self.inside(&self.at.join(FILL))).expect("it was filled");
    }

    /// Returns the path by which the test reaches a file as those programs see it.
    pub fn inside(&self, path: &Path) -> PathBuf {
        self.namespace.inside(path)
    }
}
