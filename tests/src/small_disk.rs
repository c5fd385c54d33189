//! A disk that a test can fill: a file system of memory in a mount namespace of its own.
#![allow(clippy::disallowed_methods, reason = "it starts the process that holds the namespace")]

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use brine_kit::process::{Daemon, Output, run};

/// The file that fills it.
const FILL: &str = "fill";
/// What the folder had is in it as well.
const MOUNT: &str = "mkdir \"$1.disk\" && mount -t tmpfs -o \"size=$2,mode=0700\" brine-small-disk \"$1.disk\" && \
                     cp -a \"$1/.\" \"$1.disk\" && mount --move \"$1.disk\" \"$1\" && echo ready && exec sleep infinity";

/// The disk. Only programs that are started by it see it, and it ends with the last of them.
#[derive(Debug)]
pub struct SmallDisk {
    holder: Child,
    at: PathBuf,
}

impl SmallDisk {
    /// Puts a disk of this many KiB at the place of a folder. Returns none, and reports it, where mounting is not allowed.
    pub fn new(at: &Path, kib: u32) -> Option<Self> {
        std::fs::create_dir_all(at).expect("our own folder");
        let disk = Self::holders().find_map(|mut holder| {
            let words = ["sh", "-c", MOUNT, "hold", at.to_str()?, &format!("{kib}k")];
            let started = holder.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
            let mut holder = started.ok()?;
            let mut line = String::new();
            let _ = BufReader::new(holder.stdout.take()?).read_line(&mut line);
            let disk = Self { holder, at: at.to_owned() };
            (line == "ready\n").then_some(disk)
        });
        if disk.is_none() {
            brine_kit::missing("the right to mount", "allow `unshare -m` or `unshare -Urm` to this user");
        }
        disk
    }

    /// As root, or as a user who may make user namespaces.
    fn holders() -> impl Iterator<Item = Command> {
        ["-m", "-Urm"].into_iter().map(|how| {
            let mut command = Command::new("unshare");
            command.arg(how);
            command
        })
    }

    /// Starts a daemon that sees the disk.
    pub fn daemon(&self, program: &Path, args: &[&str], log: &Path) -> Daemon {
        let enter = self.enter(program);
        let all: Vec<&str> = enter.iter().map(String::as_str).chain(args.iter().copied()).collect();
        Daemon::start(Path::new("/usr/bin/nsenter"), &all, log)
    }

    /// Runs a program that sees the disk to its end.
    pub fn run(&self, program: &Path, args: &[&str]) -> Output {
        let enter = self.enter(program);
        let all: Vec<&str> = enter.iter().map(String::as_str).chain(args.iter().copied()).collect();
        run(Path::new("/usr/bin/nsenter"), &all)
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
        PathBuf::from(format!("/proc/{}/root{}", self.holder.id(), path.display()))
    }

    fn enter(&self, program: &Path) -> Vec<String> {
        let mut enter = vec!["-t".to_owned(), self.holder.id().to_string(), "-m".to_owned()];
        if !rustix::process::geteuid().is_root() {
            enter.extend(["-U", "--preserve-credentials"].map(str::to_owned));
        }
        enter.push(program.display().to_string());
        enter
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}
