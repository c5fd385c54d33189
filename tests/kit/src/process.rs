//! Programs and daemons, by handle or process id. Dropping a daemon's handle ends the daemon and the processes that it
//! started.

use std::fmt::Display;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::wait::wait_for;

/// The output of a program and its exit code.
#[derive(Debug)]
pub struct Output {
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// The exit code; -1 if a signal ended it.
    pub code: i32,
    /// Wall time from start to end.
    pub elapsed: Duration,
}

impl Output {
    /// Parses standard output as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("no JSON ({e}): {self:?}"))
    }

    /// Checks the exit code.
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "exit code: {self:?}");
        self
    }
}

/// Runs a program to its end.
pub fn run(program: &Path, args: &[&str]) -> Output {
    run_with(program, args, &[])
}

/// Runs a program to its end with additional environment variables.
pub fn run_with(program: &Path, args: &[&str], env: &[(&str, &str)]) -> Output {
    let start = Instant::now();
    let output = Command::new(program)
        .args(args)
        .envs(env.iter().copied())
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|e| panic!("cannot start {}: {e}", program.display()));
    Output {
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        code: output.status.code().unwrap_or(-1),
        elapsed: start.elapsed(),
    }
}

/// A running daemon in a process group of its own.
pub struct Daemon {
    child: Child,
    name: String,
    log: PathBuf,
}

impl Daemon {
    /// Starts a daemon whose output goes to `log`.
    pub fn start(program: &Path, args: &[&str], log: &Path) -> Self {
        Self::start_with(program, args, &[], log)
    }

    /// Like [`Daemon::start`], with additional environment variables.
    pub fn start_with(program: &Path, args: &[&str], env: &[(&str, &str)], log: &Path) -> Self {
        let file = File::options().create(true).append(true).open(log).expect("a log file in the test's own folder");
        let child = Command::new(program)
            .args(args)
            .envs(env.iter().copied())
            .stdin(Stdio::null())
            .stdout(file.try_clone().expect("a second handle"))
            .stderr(file)
            .process_group(0)
            .spawn()
            .unwrap_or_else(|e| panic!("cannot start {}: {e}", program.display()));
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Self { child, name, log: log.to_path_buf() }
    }

    /// Returns its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    fn rustix_pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        let _ = kill_process(self.rustix_pid(), signal);
    }

    /// Kills it at once, as in a crash, and waits until it has ended.
    pub fn kill(&mut self) {
        self.signal(Signal::KILL);
        let _ = self.child.wait();
    }

    /// Sends SIGTERM and waits for its end.
    pub fn terminate(&mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.wait_exit()
    }

    /// Waits until it has ended by itself.
    pub fn wait_exit(&mut self) -> ExitStatus {
        let what = format!("{} to end; its log:\n{}", self.name, self.log_text());
        wait_for(&what, || self.child.try_wait().expect("our own child"))
    }

    /// Returns its output so far.
    pub fn log_text(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Waits until its log contains `text`.
    pub fn wait_log(&self, text: &str) {
        wait_for(&format!("{text:?} in the log of {}", self.name), || self.log_text().contains(text).then_some(()));
    }

    /// Returns the process ids of its direct children.
    pub fn children(&self) -> Vec<u32> {
        children(self.pid())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // The whole group, because Python's daemons fork and a minion starts its executor.
        let _ = kill_process_group(self.rustix_pid(), Signal::TERM);
        let end = Instant::now() + Duration::from_secs(3);
        while Instant::now() < end && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = kill_process_group(self.rustix_pid(), Signal::KILL);
        let _ = self.child.wait();
        if std::thread::panicking() {
            let text = self.log_text();
            let tail = text.lines().rev().take(40).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("\n");
            eprintln!("---- the end of the log of {} ({})\n{tail}", self.name, self.log.display());
        }
    }
}

/// Sends a signal to a process that the test started.
#[track_caller]
pub fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(pid.cast_signed()).expect("a process id");
    kill_process(pid, signal).expect("a process of this test");
}

/// Kills a process that the test started.
#[track_caller]
pub fn kill(pid: u32) {
    signal(pid, Signal::KILL);
}

/// Reads a file that /proc has about a process; None if the process has ended.
pub fn proc(pid: impl Display, file: &str) -> Option<String> {
    std::fs::read_to_string(format!("/proc/{pid}/{file}")).ok()
}

/// Checks whether a process exists, even as a zombie.
pub fn exists(pid: impl Display) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// Checks whether a process exists and is not a zombie.
pub fn lives(pid: impl Display) -> bool {
    let zombie = |stat: String| stat.rsplit_once(')').expect("its form").1.trim_start().starts_with('Z');
    proc(pid, "stat").is_some_and(|stat| !zombie(stat))
}

/// Returns a field of a process's status, such as `CapEff`; None if the process has ended.
pub fn status(pid: impl Display, field: &str) -> Option<String> {
    let status = proc(pid, "status")?;
    let value = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    Some(value.trim().to_owned())
}

/// Returns a size from a process's status in bytes, such as `VmHWM`; None if the process has ended.
pub fn size(pid: impl Display, field: &str) -> Option<u64> {
    Some(status(pid, field)?.trim_end_matches(" kB").parse::<u64>().ok()? << 10)
}

/// Returns the resident memory of a process in bytes.
#[track_caller]
pub fn resident(pid: impl Display) -> u64 {
    size(pid, "VmRSS").expect("it runs")
}

/// Returns the direct children of a process.
pub fn children(pid: impl Display) -> Vec<u32> {
    // Each thread has its own list of the children that it has started.
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()).collect()
}
