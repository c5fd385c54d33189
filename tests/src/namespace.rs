//! Mounts that only some programs of a test see: a mount namespace of its own.
#![allow(clippy::disallowed_methods, reason = "it starts the process that holds the namespace")]

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use brine_kit::process::{Daemon, Output, run};

/// A mount namespace. It ends with the value and the last of its programs.
#[derive(Debug)]
pub struct MountNamespace {
    holder: Child,
}

impl MountNamespace {
    /// Makes a namespace in which a line of shell has mounted something; `args` are `$1` and so on. Returns none, and
    /// reports it, where mounting is not allowed.
    pub fn new(mount: &str, args: &[&str]) -> Option<Self> {
        let script = format!("{mount} && echo ready && exec sleep infinity");
        let made = Self::holders().find_map(|mut holder| {
            holder.args(["sh", "-c", &script, "hold"]).args(args);
            let started = holder.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
            let mut holder = started.ok()?;
            let mut line = String::new();
            let _ = BufReader::new(holder.stdout.take()?).read_line(&mut line);
            let made = Self { holder };
            (line == "ready\n").then_some(made)
        });
        if made.is_none() {
            brine_kit::missing("the right to mount", "allow `unshare -m` or `unshare -Urm` to this user");
        }
        made
    }

    /// As root, or as a user who may make user namespaces.
    fn holders() -> impl Iterator<Item = Command> {
        ["-m", "-Urm"].into_iter().map(|how| {
            let mut command = Command::new("unshare");
            command.arg(how);
            command
        })
    }

    /// Starts a daemon in it.
    pub fn daemon(&self, program: &Path, args: &[&str], log: &Path) -> Daemon {
        let enter = self.enter(program);
        let all: Vec<&str> = enter.iter().map(String::as_str).chain(args.iter().copied()).collect();
        Daemon::start(Path::new("/usr/bin/nsenter"), &all, log)
    }

    /// Runs a program in it to its end.
    pub fn run(&self, program: &Path, args: &[&str]) -> Output {
        let enter = self.enter(program);
        let all: Vec<&str> = enter.iter().map(String::as_str).chain(args.iter().copied()).collect();
        run(Path::new("/usr/bin/nsenter"), &all)
    }

    /// Returns the path by which the test reaches a file as the programs in it see it.
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

impl Drop for MountNamespace {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}
